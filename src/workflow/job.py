from __future__ import annotations

import secrets
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, Generic, Literal

from typing_extensions import TypeVar

from ..queue.validation import check_choice
from .records import readable
from .tree import Tree, read_tree
from .watching import JobEvent, events_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from ..queue.job import Job as QueueJob
    from ..queue.job import Record
    from ..queue.options import Duration
    from ..queue.watch import Happening
    from .workflow import Workflow

OutputT_co = TypeVar("OutputT_co", covariant=True)
ProgressT_co = TypeVar("ProgressT_co", covariant=True, default=Any)


class Job(Generic[OutputT_co, ProgressT_co]):
    """The handle of a workflow's job.

    Attributes:
        id: The job's id.

    Example:
        >>> job = await signup.run(Signup("ada@example.org"))
        >>> await job.wait(timeout=30)
    """

    def __init__(self, workflow: Workflow[Any, OutputT_co, ProgressT_co], job: QueueJob) -> None:
        self._workflow = workflow
        self._job = job
        self.id: Final = job.id

    def __repr__(self) -> str:
        return repr(self._job)

    @property
    def workflow(self) -> str:
        """The id of its workflow."""
        return self._workflow.id

    async def wait(self, timeout: Duration | None = None) -> OutputT_co:  # noqa: ASYNC109 - it has an error of its own
        """Wait for the job's end and give its output.

        Args:
            timeout: How long: ``timedelta`` or seconds. None: as long as it takes.

        Raises:
            JobFailedError: It failed for good.
            JobCancelledError: It was cancelled.
            WaitTimeoutError: It had not ended in time; it goes on.
            ResultExpiredError: It ended and its record is gone.
            JobNotFoundError: No job has the id.
            SerializationError: Its output is not of the workflow's type.
        """
        return self._workflow.payloads.read_output(await self._job.wait(timeout))

    async def watch(self) -> AsyncGenerator[JobEvent[OutputT_co, ProgressT_co]]:
        """Everything that happens to the job, as it happens: started, progress, retrying, suspended, and its end.

        Of a job that has ended it gives the end. Leaving the loop ends the watch.

        Raises:
            JobNotFoundError: No job has the id.
            ResultExpiredError: The job's record is gone.
            SerializationError: A progress or the output is not of its type.

        Example:
            >>> async for event in job.watch():
            ...     print(event.kind, event.value)
        """
        async with aclosing(events_of(self._workflow, self._happenings())) as events:
            async for event in events:
                yield event

    async def _happenings(self) -> AsyncGenerator[tuple[QueueJob, Happening]]:
        async for happening in self._job.watch():
            yield self._job, happening

    async def progress(self) -> ProgressT_co | None:
        """What its run last said of how far it is, as the workflow's progress type; None before it said anything.

        Raises:
            JobNotFoundError: No job has the id.
            ResultExpiredError: The job's record is gone.
            SerializationError: It is not of the type.
        """
        text = (await self._job.record()).progress
        return None if text is None else self._workflow.payloads.read_progress(text)

    async def log(self) -> list[str]:
        """The lines that its runs have written with ``ctx.log``, the latest thousand."""
        return await self._job.log()

    async def tree(self) -> Tree:
        """The job with its children and theirs, and the state of each."""
        return await read_tree(self._job)

    async def set_failure_policy(self, policy: Literal["fail_parent", "continue"]) -> bool:
        """Change what the failure of this child means to its parent. False: it is no child of a flow.

        Raises:
            JobNotFoundError: No job has the id.
        """
        check_choice(policy, "policy", ("fail_parent", "continue"))
        return await self._job.set_failure_policy("fail" if policy == "fail_parent" else "continue")

    async def cancel(self, reason: str = "") -> bool:
        """Cancel the job wherever it is. Whether it is, or will end, cancelled; False: it ended otherwise or is gone.

        Example:
            >>> await job.cancel("the customer has left")
        """
        return await self._job.cancel(self._workflow.notes.write(reason))

    async def send_event(self, name: str, value: Any = None, *, event_id: str | None = None) -> bool:
        """Send an event to the job, which takes it with ``ctx.step.wait_for_event``, now or later.

        Args:
            name: The event's name.
            value: What it carries.
            event_id: An id of the sender's: an event sent again with it counts once. Made up if omitted.

        Returns:
            Whether it was kept; False: the job has ended.

        Raises:
            JobNotFoundError: No job has the id.
            SerializationError: The value cannot be stored.
        """
        text = self._workflow.payloads.serializer.dumps(value)
        return await self._job.send_event(name, text, event_id=event_id or secrets.token_urlsafe(9))

    async def state(self) -> str:
        """Where it is: waiting, delayed, parked, active, completed, failed or cancelled."""
        return await self._job.state()

    async def record(self) -> Record:
        """Everything that is known of it, values as text."""
        return readable(await self._job.record(), self._workflow.notes)
