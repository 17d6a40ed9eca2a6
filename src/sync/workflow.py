from __future__ import annotations

from collections.abc import Generator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Unpack, overload
from zoneinfo import ZoneInfo

from typing_extensions import TypeVar

from .job import SyncJob
from .portal import portal
from .worker import SyncWorker

if TYPE_CHECKING:
    from ..errors import JobError, SerializationError
    from ..queue.cadence import CatchUp
    from ..queue.limits import QueueLimits
    from ..queue.listing import Counts, State
    from ..queue.options import Duration
    from ..queue.schedules import Schedule
    from ..queue.scripts.scheduling import Overlap
    from ..queue.stream import QueueEvent
    from ..workflow.options import ExecuteOptions, LimitSettings, RunOptions, ScheduleOptions
    from ..workflow.watching import JobEvent
    from ..workflow.worker import WorkerSettings
    from ..workflow.workflow import Workflow

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")
ProgressT = TypeVar("ProgressT", default=Any)


class SyncWorkflow(Generic[InputT, OutputT, ProgressT]):
    """A workflow whose calls block: those of ``Workflow``, from any thread without an event loop.

    Attributes:
        id: Its id in the namespace.
        workflow: The workflow itself.
    """

    def __init__(self, workflow: Workflow[InputT, OutputT, ProgressT]) -> None:
        self.id: Final = workflow.id
        self.workflow: Final = workflow

    def __repr__(self) -> str:
        return f"<SyncWorkflow {self.id!r} of {self.workflow.namespace.id!r}>"

    def run(self, input: InputT, /, **options: Unpack[RunOptions]) -> SyncJob[OutputT, ProgressT]:
        """Have the workflow run. See ``Workflow.run``.

        Example:
            >>> job = sync(signup).run(Signup("ada@example.org"), id="ada", max_attempts=5)
        """
        return SyncJob(portal.call(lambda: self.workflow.run(input, **options)))

    def run_in(self, input: InputT, delay: Duration, /, **options: Unpack[RunOptions]) -> SyncJob[OutputT, ProgressT]:
        """Have the workflow run after a delay (``timedelta`` or seconds). See ``Workflow.run_in``."""
        return SyncJob(portal.call(lambda: self.workflow.run_in(input, delay, **options)))

    def run_at(self, input: InputT, instant: datetime, /, **options: Unpack[RunOptions]) -> SyncJob[OutputT, ProgressT]:
        """Have the workflow run at an instant. See ``Workflow.run_at``."""
        return SyncJob(portal.call(lambda: self.workflow.run_at(input, instant, **options)))

    def run_many(self, inputs: Sequence[InputT], /, **options: Unpack[RunOptions]) -> list[SyncJob[OutputT, ProgressT]]:
        """Have the workflow run for each input, in calls of up to 200. See ``Workflow.run_many``."""
        return [SyncJob(job) for job in portal.call(lambda: self.workflow.run_many(inputs, **options))]

    def execute(
        self, input: InputT, /, *, timeout: Duration | None = None, **options: Unpack[ExecuteOptions]
    ) -> OutputT:
        """Run and wait, registered as one: the output. See ``Workflow.execute``.

        Example:
            >>> engagement = sync(signup).execute(Signup("ada@example.org"), timeout=30)
        """
        return portal.call(lambda: self.workflow.execute(input, timeout=timeout, **options))

    @overload
    def execute_many(
        self,
        inputs: Sequence[InputT],
        /,
        *,
        timeout: Duration | None = None,
        return_exceptions: Literal[False] = False,
        **options: Unpack[ExecuteOptions],
    ) -> list[OutputT]: ...
    @overload
    def execute_many(
        self,
        inputs: Sequence[InputT],
        /,
        *,
        timeout: Duration | None = None,
        return_exceptions: bool,
        **options: Unpack[ExecuteOptions],
    ) -> list[OutputT | JobError | SerializationError]: ...
    def execute_many(
        self,
        inputs: Sequence[InputT],
        /,
        *,
        timeout: Duration | None = None,
        return_exceptions: bool = False,
        **options: Unpack[ExecuteOptions],
    ) -> Sequence[OutputT | JobError | SerializationError]:
        """Run for each input and wait for all: the outputs, in order. See ``Workflow.execute_many``.

        Example:
            >>> engagements = sync(signup).execute_many([Signup("ada@example.org"), Signup("bob@example.org")])
        """
        return portal.call(
            lambda: self.workflow.execute_many(inputs, timeout=timeout, return_exceptions=return_exceptions, **options)
        )

    def run_and_watch(self, input: InputT, /, **options: Unpack[RunOptions]) -> Generator[JobEvent[OutputT, ProgressT]]:
        """Run, and watch the job from its first moment. See ``Workflow.run_and_watch``.

        Example:
            >>> for event in sync(signup).run_and_watch(Signup("ada@example.org")):
            ...     print(event.kind, event.value)
        """
        return portal.iterate(lambda: self.workflow.run_and_watch(input, **options))

    def upsert_schedule(
        self,
        schedule_id: str,
        pattern: str | None,
        input: InputT,
        /,
        *,
        every: Duration | None = None,
        tz: str | ZoneInfo = "UTC",
        start: datetime | None = None,
        end: datetime | None = None,
        jitter: Duration | None = None,
        catch_up: CatchUp = "one",
        catch_up_limit: int | None = None,
        overlap: Overlap = "skip",
        **options: Unpack[ScheduleOptions],
    ) -> bool:
        """Have the workflow run by the clock. See ``Workflow.upsert_schedule``.

        Example:
            >>> sync(report).upsert_schedule("nightly", "0 3 * * *", Report("all"), tz="Europe/Berlin")
        """
        return portal.call(
            lambda: self.workflow.upsert_schedule(
                schedule_id,
                pattern,
                input,
                every=every,
                tz=tz,
                start=start,
                end=end,
                jitter=jitter,
                catch_up=catch_up,
                catch_up_limit=catch_up_limit,
                overlap=overlap,
                **options,
            )
        )

    def remove_schedule(self, schedule_id: str) -> bool:
        """Remove a schedule; jobs that it has added stay. Whether there was one."""
        return portal.call(lambda: self.workflow.remove_schedule(schedule_id))

    def get_schedules(self) -> list[Schedule]:
        """The workflow's schedules, the one that fires next first."""
        return portal.call(self.workflow.get_schedules)

    def pause_schedule(self, schedule_id: str) -> bool:
        """Fire a schedule no more until ``resume_schedule``. Whether there is one."""
        return portal.call(lambda: self.workflow.pause_schedule(schedule_id))

    def resume_schedule(self, schedule_id: str) -> bool:
        """Have a paused schedule go on with its next instant. Whether there is one."""
        return portal.call(lambda: self.workflow.resume_schedule(schedule_id))

    def trigger_schedule(self, schedule_id: str) -> SyncJob[OutputT, ProgressT]:
        """Have a schedule's job run now; its cadence is unchanged. See ``Workflow.trigger_schedule``."""
        return SyncJob(portal.call(lambda: self.workflow.trigger_schedule(schedule_id)))

    def get_job(self, job_id: str) -> SyncJob[OutputT, ProgressT]:
        """The handle of a job by its id, from any process."""
        return SyncJob(self.workflow.get_job(job_id))

    def worker(self, *, concurrency: int = 10, **settings: Unpack[WorkerSettings]) -> SyncWorker:
        """A worker of this workflow, for ``with``: it works in the background for the block. See ``SyncWorker``."""
        return SyncWorker(self.workflow.worker(concurrency=concurrency, **settings))

    def set_limits(self, **caps: Unpack[LimitSettings]) -> None:
        """Set caps for every process, from now on: ``concurrency`` and ``group_concurrency``; None lifts one."""
        portal.call(lambda: self.workflow.set_limits(**caps))

    def pause(self) -> None:
        """Start nothing of the workflow from now on; what runs goes on."""
        portal.call(self.workflow.pause)

    def resume(self) -> None:
        """Start jobs again after ``pause``."""
        portal.call(self.workflow.resume)

    def limits(self) -> QueueLimits:
        """Its caps, and whether it is paused, as they stand for every process."""
        return portal.call(self.workflow.limits)

    def counts(self) -> Counts:
        """How many of its jobs are in each state."""
        return portal.call(self.workflow.counts)

    def list_jobs(self, state: State, *, skip: int = 0, limit: int = 100) -> list[SyncJob[OutputT, ProgressT]]:
        """A page of its jobs in a state: waiting, delayed, parked, active, completed, failed, or cancelled."""
        return [SyncJob(job) for job in portal.call(lambda: self.workflow.list_jobs(state, skip=skip, limit=limit))]

    def oldest_waiting(self) -> float | None:
        """Seconds since the oldest job at the head of a line was added. See ``Workflow.oldest_waiting``."""
        return portal.call(self.workflow.oldest_waiting)

    def events(self, *, after: str | None = None, limit: int = 100) -> list[QueueEvent]:
        """A page of the events of its stream, oldest first. See ``Workflow.events``."""
        return portal.call(lambda: self.workflow.events(after=after, limit=limit))

    def watch_events(self, *, after: str | None = None) -> Generator[QueueEvent]:
        """The events of its stream as they happen. Leaving the loop ends it. See ``Workflow.watch_events``.

        Example:
            >>> for event in sync(signup).watch_events():
            ...     print(event.at, event.kind, event.job_id)
        """
        return portal.iterate(lambda: self.workflow.watch_events(after=after))

    def retry_all(self) -> int:
        """Have every job that failed for good go on from its checkpoints. How many."""
        return portal.call(self.workflow.retry_all)

    def remove_all(self, state: State, *, older_than: Duration | None = None) -> int:
        """Remove its jobs in a state. See ``Workflow.remove_all``."""
        return portal.call(lambda: self.workflow.remove_all(state, older_than=older_than))

    def retry(self, job_id: str) -> bool:
        """Have a job that failed for good go on from its checkpoints. Whether it was failed."""
        return portal.call(lambda: self.workflow.retry(job_id))

    def remove(self, job_id: str) -> bool:
        """Remove a job and everything of it; a running one is stopped. Whether there was one."""
        return portal.call(lambda: self.workflow.remove(job_id))

    def promote(self, job_id: str) -> bool:
        """Have a delayed job run now. Whether it was delayed."""
        return portal.call(lambda: self.workflow.promote(job_id))
