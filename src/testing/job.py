from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from ..errors import JobCancelledError, JobFailedError, SimulationError, WaitTimeoutError
from ..queue.validation import check_free_id
from .entry import Attempt, Entry, State

if TYPE_CHECKING:
    from ..queue.options import Duration
    from .simulation import Simulation

OutputT_co = TypeVar("OutputT_co", covariant=True)


class SimulatedJob(Generic[OutputT_co]):
    """A job of a simulation. Made by ``Simulation.run`` and ``simulate``.

    Attributes:
        simulation: The simulation that it is in.
        id: The job's id: its workflow's and a number, unless it was given one; a child's has the path of its step.
    """

    def __init__(self, simulation: Simulation, entry: Entry) -> None:
        self.simulation: Final = simulation
        self.id: Final = entry.id
        self._entry: Final = entry

    def __repr__(self) -> str:
        return f"<SimulatedJob {self.id!r} of {self._entry.workflow.id!r}: {self.state}>"

    async def wait(self, timeout: Duration | None = None) -> OutputT_co:  # noqa: ASYNC109 - a simulated one
        """Run the simulation until the job has ended, and give its output. Waits take no time.

        Args:
            timeout: How long in the simulation's time: ``timedelta`` or seconds. None: as long as it takes.

        Raises:
            JobFailedError: It failed for good.
            JobCancelledError: It was cancelled.
            WaitTimeoutError: It had not ended in time.
            SimulationError: It can never end: it waits for an event that nobody sends.
        """
        await self.finish(timeout)
        return self.output

    async def finish(self, timeout: Duration | None = None) -> None:  # noqa: ASYNC109 - a simulated one
        """Run the simulation until the job has ended, however it does. See ``wait``.

        Raises:
            WaitTimeoutError: It had not ended in time.
            SimulationError: It can never end, or a crash that was planned for it never came.
        """
        await self.simulation.drive(self._entry, timeout)
        if not self._entry.ended:
            raise WaitTimeoutError(
                f"job {self.id!r} of workflow {self.workflow!r} had not ended after {timeout} of simulated time: it is "
                f"{self.state}",
                workflow=self.workflow,
                job_id=self.id,
            )
        missed = [point for point in self.simulation.crashes.planned if point.job == self.id]
        if missed:
            raise SimulationError(f"job {self.id!r} has ended, and never came to the crash {missed[0]}")

    @property
    def workflow(self) -> str:
        """The id of its workflow."""
        return self._entry.workflow.id

    @property
    def state(self) -> State:
        """Where it is: waiting, delayed, parked, active, completed, failed or cancelled."""
        return self._entry.state

    @property
    def output(self) -> OutputT_co:
        """What it returned, read as ``Job.wait`` reads it.

        Raises:
            JobFailedError: It failed for good.
            JobCancelledError: It was cancelled.
            SimulationError: It has not ended.
        """
        entry = self._entry
        notes = entry.workflow.notes
        if entry.state == "completed":
            output: OutputT_co = entry.workflow.payloads.read_output(entry.result)
            return output
        if entry.state == "failed" and entry.failure is not None:
            failure = entry.failure.with_texts(notes.read)
            raise JobFailedError(
                workflow=self.workflow,
                job_id=self.id,
                type=failure.type,
                message=failure.message,
                traceback=failure.traceback,
            )
        if entry.state == "cancelled":
            raise JobCancelledError(workflow=self.workflow, job_id=self.id, reason=notes.read(entry.reason))
        raise SimulationError(f"job {self.id!r} has not ended: it is {self.state}; await job.wait() first")

    def send_event(self, name: str, value: Any = None, *, event_id: str | None = None) -> bool:
        """Send an event to the job, which takes it now or later. Whether it was kept; False: the job has ended.

        Args:
            name: The event's name.
            value: What it carries.
            event_id: An id of the sender's: an event sent again with it counts once.

        Raises:
            SerializationError: The value cannot be stored.

        Example:
            >>> job.send_event("approved", Approval(by="ada"))
        """
        check_free_id(name, "event name")
        text = self._entry.workflow.payloads.serializer.dumps(value)
        return self.simulation.world.send_event(self._entry, name, text, event_id)

    def cancel(self, reason: str = "") -> bool:
        """Cancel the job wherever it is. Whether it is, or will end, cancelled."""
        return self.simulation.world.cancel(self._entry, self._entry.workflow.notes.write(reason))

    def retry(self) -> bool:
        """Have a job that failed for good go on from its checkpoints. Whether it was failed."""
        return self.simulation.world.retry(self._entry)

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """Each time that a worker had it: what ran, what was replayed, how it ended."""
        return tuple(self._entry.attempts)

    @property
    def ran(self) -> list[str]:
        """The paths of the steps whose function was called, in order, over all attempts; those of children are theirs.

        A step that stands there twice has run twice.
        """
        return [path for attempt in self._entry.attempts for path in attempt.ran]

    @property
    def replayed(self) -> list[str]:
        """The paths of the steps that gave what they gave before, in order, over all attempts."""
        return [path for attempt in self._entry.attempts for path in attempt.replayed]

    @property
    def undone(self) -> list[str]:
        """The names of the compensations that ran, in order."""
        return [name for attempt in self._entry.attempts for name in attempt.undone]

    @property
    def checkpoints(self) -> Mapping[str, str]:
        """Its checkpoints by step path, as they are stored."""
        return dict(self._entry.record.steps)

    @property
    def progress(self) -> Any:
        """What its run last said of how far it is; None when it said nothing."""
        text = self._entry.record.progress
        return self._entry.workflow.payloads.serializer.loads(text, Any, convert=False) if text else None

    @property
    def log(self) -> list[str]:
        """The lines that its runs have written with ``ctx.log``."""
        return [self._entry.workflow.notes.read(line) for line in self._entry.record.log]

    @property
    def children(self) -> list[SimulatedJob[Any]]:
        """Its children, in the order in which they were started."""
        return [SimulatedJob(self.simulation, child) for child in self._entry.children.values()]

    @property
    def due(self) -> datetime | None:
        """When it goes on by itself; None when it waits for no instant."""
        due_ms = self._entry.due_ms
        return None if due_ms is None else self.simulation.world.at(due_ms)

    @property
    def elapsed(self) -> timedelta:
        """From when it was added until it ended, or until now, in the simulation's time."""
        entry = self._entry
        until = self.simulation.world.now_ms() if entry.ended_ms is None else entry.ended_ms
        return timedelta(milliseconds=until - entry.created_ms)
