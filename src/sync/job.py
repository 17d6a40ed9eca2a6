from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final, Generic, Literal

from typing_extensions import TypeVar

from .portal import portal

if TYPE_CHECKING:
    from ..queue.job import Record
    from ..queue.options import Duration
    from ..workflow.job import Job
    from ..workflow.tree import Tree
    from ..workflow.watching import JobEvent

OutputT_co = TypeVar("OutputT_co", covariant=True)
ProgressT_co = TypeVar("ProgressT_co", covariant=True, default=Any)


class SyncJob(Generic[OutputT_co, ProgressT_co]):
    """The handle of a job whose calls block: those of ``Job``, from any thread without an event loop.

    Attributes:
        id: The job's id.
    """

    def __init__(self, job: Job[OutputT_co, ProgressT_co]) -> None:
        self._job: Final = job
        self.id: Final = job.id

    def __repr__(self) -> str:
        return repr(self._job)

    @property
    def workflow(self) -> str:
        """The id of its workflow."""
        return self._job.workflow

    def wait(self, timeout: Duration | None = None) -> OutputT_co:
        """Wait for the job's end and give its output. See ``Job.wait``.

        Example:
            >>> sync(signup).run(Signup("ada@example.org")).wait(timeout=30)
        """
        return portal.call(lambda: self._job.wait(timeout))

    def watch(self) -> Generator[JobEvent[OutputT_co, ProgressT_co]]:
        """Everything that happens to the job, as it happens. Leaving the loop ends the watch. See ``Job.watch``.

        Example:
            >>> for event in job.watch():
            ...     print(event.kind, event.value)
        """
        return portal.iterate(self._job.watch)

    def progress(self) -> ProgressT_co | None:
        """What its run last said of how far it is. See ``Job.progress``."""
        return portal.call(self._job.progress)

    def log(self) -> list[str]:
        """The lines that its runs have written with ``ctx.log``, the latest thousand."""
        return portal.call(self._job.log)

    def tree(self) -> Tree:
        """The job with its children and theirs, and the state of each."""
        return portal.call(self._job.tree)

    def set_failure_policy(self, policy: Literal["fail_parent", "continue"]) -> bool:
        """Change what the failure of this child means to its parent. See ``Job.set_failure_policy``."""
        return portal.call(lambda: self._job.set_failure_policy(policy))

    def cancel(self, reason: str = "") -> bool:
        """Cancel the job wherever it is. See ``Job.cancel``."""
        return portal.call(lambda: self._job.cancel(reason))

    def send_event(self, name: str, value: Any = None, *, event_id: str | None = None) -> bool:
        """Send an event to the job. See ``Job.send_event``.

        Example:
            >>> job.send_event("approved", Approval(by="ada"))
        """
        return portal.call(lambda: self._job.send_event(name, value, event_id=event_id))

    def state(self) -> str:
        """Where it is: waiting, delayed, parked, active, completed, failed or cancelled."""
        return portal.call(self._job.state)

    def record(self) -> Record:
        """Everything that is known of it, values as text."""
        return portal.call(self._job.record)
