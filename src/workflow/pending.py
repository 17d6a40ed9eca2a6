"""Runs that are collected during a transaction, and sent when it has committed."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar, Unpack

import msgspec

from ..errors import InvalidArgumentError, JobAlreadyExistsError, RedisUnavailableError, UnsentJobsError
from ..queue.job import Job as QueueJob
from ..queue.names import new_id
from ..queue.scripts.adding import MOST_AT_ONCE, count_at_once
from ..queue.spec import Spec
from .job import Job
from .options import pop_if_exists

if TYPE_CHECKING:
    from types import TracebackType

    from ..queue.options import Duration
    from ..queue.scripts.adding import NewJob, Standing
    from .namespace import WorkflowNamespace
    from .options import RunOptions
    from .workflow import Workflow

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")


@dataclass(slots=True)
class _Run:
    """A run that is to be sent; with a group that is still to be awaited, it is prepared again when that is known."""

    workflow: Workflow[Any, Any]
    prepared: NewJob
    if_exists: Literal["raise", "return"]
    group: Awaitable[str | None] | None
    prepare: Callable[[str | None], NewJob]

    @property
    def key(self) -> tuple[str, str]:
        """Its workflow and its id."""
        return self.workflow.id, self.prepared.id

    async def resolve(self) -> None:
        """Find its group."""
        if self.group is not None:
            group, self.group = self.group, None
            collected, new = self.prepared, self.prepare(await group)
            # id and nonce stay: the handle that was given out is for this life of the job; and so does who collected it
            trace = msgspec.json.decode(collected.spec, type=Spec).trace
            spec = msgspec.structs.replace(msgspec.json.decode(new.spec, type=Spec), trace=trace)
            self.prepared = msgspec.structs.replace(new, id=collected.id, run=collected.run, rest=spec.rest())

    def drop(self) -> None:
        """It is not going to be sent."""
        if inspect.iscoroutine(self.group):
            self.group.close()

    def job(self, standing: Standing | None) -> Job[Any]:
        """Its job, or the one that stands in its place."""
        return Job(self.workflow, self.workflow.queue.added(self.prepared, standing, self.if_exists))


class Pending:
    """Runs that are not sent yet. Made by ``WorkflowNamespace.pending``; for one transaction, used in one thread.

    As a context manager it sends them at the end of the block, and discards them when an exception leaves it: put the
    transaction within.

    Between the commit and the send lies a moment in which a process that dies takes the runs with it; nothing is ever
    sent of a transaction that was rolled back.

    Example:
        >>> async with ns.pending() as pending, session.begin():
        ...     session.add(order)
        ...     pending.run(ship, Shipment(order.id))
    """

    def __init__(self, namespace: WorkflowNamespace) -> None:
        self._namespace: Final = namespace
        self._runs: list[_Run] = []

    def __repr__(self) -> str:
        return f"<Pending: {len(self._runs)} runs for {self._namespace.id!r}>"

    def __len__(self) -> int:
        return len(self._runs)

    def run(self, workflow: Workflow[InputT, OutputT], input: InputT, /, **options: Unpack[RunOptions]) -> Job[OutputT]:
        """Have a workflow run once the runs are sent. Everything is checked now.

        Args:
            workflow: A workflow of the namespace.
            input: Its input.
            **options: See ``RunOptions``.

        Returns:
            The job that it will be. Its id can be stored in the transaction; where another job may stand in its place
            (``if_exists="return"``, ``throttle``, ``debounce``), ``send`` tells which.

        Raises:
            InvalidArgumentError: An option cannot be used, the workflow is of another namespace, or a run of the id is
                collected already.
            SerializationError: The input cannot be stored, or does not fit the workflow's schema.

        Example:
            >>> order.job_id = pending.run(ship, Shipment(order.id)).id
        """
        return self._collect(workflow, input, options, None, None)

    def run_in(
        self, workflow: Workflow[InputT, OutputT], input: InputT, delay: Duration, /, **options: Unpack[RunOptions]
    ) -> Job[OutputT]:
        """Have a workflow run after a delay, which begins when it is sent. See ``run``."""
        return self._collect(workflow, input, options, delay, None)

    def run_at(
        self, workflow: Workflow[InputT, OutputT], input: InputT, instant: datetime, /, **options: Unpack[RunOptions]
    ) -> Job[OutputT]:
        """Have a workflow run at an instant. See ``run``."""
        return self._collect(workflow, input, options, None, instant)

    def discard(self) -> None:
        """Forget the runs: the transaction was rolled back."""
        for run in self._runs:
            run.drop()
        self._runs.clear()

    async def send(self) -> list[Job[Any]]:
        """Send the runs, in calls of up to 200. To be called when the transaction has committed.

        What could not be sent stays collected, so that it can be sent again: what did arrive all the same is not added
        twice.

        Returns:
            The jobs, in the order in which they were collected.

        Raises:
            UnsentJobsError: Not all of them could be sent; it names what was and what was not.
        """
        left, self._runs = self._runs, []
        sent: list[Job[Any]] = []
        refused: dict[tuple[str, str], Exception] = {}
        try:
            while left:
                sent += await self._send_some(left, refused)
        except RedisUnavailableError as error:
            raise _unsent(sent, refused, left, error) from error
        finally:
            self._runs[:0] = left
        if refused:
            raise _unsent(sent, refused, left, None)
        return sent

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            await self.send()
        else:
            self.discard()

    def _collect(
        self,
        workflow: Workflow[InputT, OutputT],
        input: InputT,
        options: Mapping[str, Any],
        run_in: Duration | None,
        run_at: datetime | None,
    ) -> Job[OutputT]:
        if not workflow.belongs_to(self._namespace):
            raise InvalidArgumentError(f"workflow {workflow.id!r} is not of namespace {self._namespace.id!r}")
        rest: dict[str, Any] = {"id": new_id(), **options}
        if_exists = pop_if_exists(rest)

        def prepare(group: str | None) -> NewJob:
            return workflow.new_job(input, rest, group=group, run_in=run_in, run_at=run_at)

        found = workflow.group_of(input, options.get("group"))
        waiting = None if found is None or isinstance(found, str) else found
        try:
            with self._namespace.telemetry.sending(workflow.id, "pending") as sending:
                group = None if waiting is not None else _text(found)
                run = _Run(workflow, prepare(group), if_exists, waiting, prepare)
                sending.added(run.key[1])
                if if_exists == "raise" and any(other.key == run.key for other in self._runs):
                    raise InvalidArgumentError(
                        f"a run of workflow {workflow.id!r} with the id {run.key[1]!r} is collected already"
                    )
        except BaseException:
            if inspect.iscoroutine(waiting):
                waiting.close()
            raise
        self._runs.append(run)
        return Job(workflow, QueueJob(workflow.queue, run.key[1], run.prepared.run))

    async def _send_some(self, left: list[_Run], refused: dict[tuple[str, str], Exception]) -> list[Job[Any]]:
        """Send the first of what is left, which is then less."""
        runtime = await self._namespace.queues.runtime()
        resolved: list[_Run] = []
        first = left[:MOST_AT_ONCE]
        for run in first:
            try:
                await run.resolve()
            except Exception as error:  # noqa: BLE001 - the user's function; the others are not to suffer from it
                refused[run.key] = error
            else:
                resolved.append(run)
        left[: len(first)] = resolved
        chunk = resolved[: count_at_once([run.prepared for run in resolved])]
        answers = await runtime.add([run.prepared for run in chunk]) if chunk else []
        del left[: len(chunk)]
        sent: list[Job[Any]] = []
        for run, standing in zip(chunk, answers, strict=True):
            try:
                sent.append(run.job(standing))
            except JobAlreadyExistsError as error:
                refused[run.key] = error
        return sent


def _text(group: object) -> str | None:
    return group if isinstance(group, str) else None


def _unsent(
    sent: list[Job[Any]], refused: Mapping[tuple[str, str], Exception], left: list[_Run], cause: Exception | None
) -> UnsentJobsError:
    return UnsentJobsError(
        sent=[(job.workflow, job.id) for job in sent], refused=refused, unsent=[run.key for run in left], cause=cause
    )
