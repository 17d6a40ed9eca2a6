from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Unpack, cast, overload
from zoneinfo import ZoneInfo

import msgspec
from typing_extensions import TypeVar

from ..errors import InvalidArgumentError, JobError, SerializationError
from ..queue.bulk import execute_many, send_many
from ..queue.cadence import CatchUp, cadence
from ..queue.listing import State
from ..queue.names import new_id
from ..queue.options import Duration
from ..queue.queue import Added
from ..queue.schedules import Schedule
from ..queue.scripts.adding import NewJob
from ..queue.scripts.descending import NewChild
from ..queue.scripts.scheduling import Overlap
from ..queue.validation import shown
from .controls import QueueControls
from .definition import check_definition
from .job import Job
from .options import (
    ExecuteOptions,
    RunOptions,
    ScheduleOptions,
    pop_if_exists,
    split_options,
)
from .payloads import Payloads
from .telemetry import Observer, Sending
from .watching import JobEvent, events_of
from .worker import Worker, WorkerSettings

if TYPE_CHECKING:
    from .namespace import WorkflowNamespace

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")
ProgressT = TypeVar("ProgressT", default=Any)

GroupOf = Callable[[InputT], str | Awaitable[str | None] | None]


class Workflow(QueueControls, Generic[InputT, OutputT, ProgressT]):
    """A durable function with a queue of its own. Made by ``WorkflowNamespace.create_workflow``.

    Attributes:
        id: Its id in the namespace.
        function: What runs.
        payloads: What it takes and gives.
        notes: How its texts are written that people read.
        non_retryable: Error types that fail a job at once.
    """

    def __init__(
        self,
        namespace: WorkflowNamespace,
        id: str,
        function: Callable[[Any], Any],
        *,
        schema: Any,
        get_group_id: GroupOf[InputT] | None,
        concurrency: int | None,
        group_concurrency: int | None,
        limiters: Sequence[str] | None,
        events: int,
        progress: Any,
        non_retryable: Sequence[type[BaseException]],
        options: Mapping[str, Any],
    ) -> None:
        check_definition(function, non_retryable)
        self._namespace = namespace
        super().__init__(
            namespace.queues.queue(
                id,
                concurrency=concurrency,
                group_concurrency=group_concurrency,
                limiters=limiters,
                events=events,
                **options,
            )
        )
        self.id: Final = id
        self.function: Final = function
        self.payloads: Final[Payloads[InputT, OutputT, ProgressT]] = Payloads(
            id, function, namespace.serializer, schema=schema, progress=progress
        )
        self.notes: Final = namespace.notes
        self.queue.read_note = self.notes.read
        self.non_retryable: Final = tuple(non_retryable)
        self._group_of = get_group_id

    def __repr__(self) -> str:
        return f"<Workflow {self.id!r} of {self._namespace.id!r}>"

    async def run(self, input: InputT, /, **options: Unpack[RunOptions]) -> Job[OutputT, ProgressT]:
        """Have the workflow run.

        Args:
            input: Its input.
            **options: See ``RunOptions`` and ``JobOptions``.

        Raises:
            InvalidArgumentError: An option cannot be used; nothing was sent.
            SerializationError: The input cannot be stored, or does not fit the workflow's schema; nothing was sent.
            JobAlreadyExistsError: The id is in use.
            RedisUnavailableError: Redis did not answer in time.

        Example:
            >>> job = await signup.run(Signup("ada@example.org"), id="ada", max_attempts=5)
        """
        return await self._add("run", input, options)

    async def run_in(self, input: InputT, delay: Duration, /, **options: Unpack[RunOptions]) -> Job[OutputT, ProgressT]:
        """Have the workflow run after a delay (``timedelta`` or seconds, by Redis' clock). See ``run``."""
        return await self._add("run_in", input, options, run_in=delay)

    async def run_at(
        self, input: InputT, instant: datetime, /, **options: Unpack[RunOptions]
    ) -> Job[OutputT, ProgressT]:
        """Have the workflow run at an instant, an aware ``datetime``; a past one is simply due. See ``run``."""
        return await self._add("run_at", input, options, run_at=instant)

    async def run_many(
        self, inputs: Sequence[InputT], /, **options: Unpack[RunOptions]
    ) -> list[Job[OutputT, ProgressT]]:
        """Have the workflow run for each input, 200 a call at most. See ``run``; not with ``id`` or ``if_exists``."""
        with self._sending("run_many") as sending:
            prepared = await self._prepare_many("run_many", inputs, options)
            sending.added_many(len(prepared))
            return [Job(self, job) for job in await send_many(self.queue, prepared)]

    async def execute(
        self,
        input: InputT,
        /,
        *,
        timeout: Duration | None = None,  # noqa: ASYNC109 - it has an error of its own
        **options: Unpack[ExecuteOptions],
    ) -> OutputT:
        """Run and wait, registered as one: the output. The timeout is that of the wait; the job is added however short.

        Raises:
            JobError: As ``Job.wait``.
            And what ``run`` raises.

        Example:
            >>> engagement = await signup.execute(Signup("ada@example.org"), timeout=30)
        """
        with self._sending("execute") as sending:
            where, rest = await self._where(input, options)
            text, if_exists = self.payloads.write_input(input), pop_if_exists(rest)
            if sending.wanted:
                where = msgspec.structs.replace(where, id=where.id or new_id())
                sending.added(str(where.id))
            return self.payloads.read_output(await self.queue.execute(text, where, rest, if_exists, timeout=timeout))

    @overload
    async def execute_many(
        self,
        inputs: Sequence[InputT],
        /,
        *,
        timeout: Duration | None = None,  # noqa: ASYNC109 - it has an error of its own
        return_exceptions: Literal[False] = False,
        **options: Unpack[ExecuteOptions],
    ) -> list[OutputT]: ...
    @overload
    async def execute_many(
        self,
        inputs: Sequence[InputT],
        /,
        *,
        timeout: Duration | None = None,  # noqa: ASYNC109 - it has an error of its own
        return_exceptions: bool,
        **options: Unpack[ExecuteOptions],
    ) -> list[OutputT | JobError | SerializationError]: ...
    async def execute_many(
        self,
        inputs: Sequence[InputT],
        /,
        *,
        timeout: Duration | None = None,  # noqa: ASYNC109 - it has an error of its own
        return_exceptions: bool = False,
        **options: Unpack[ExecuteOptions],
    ) -> Sequence[OutputT | JobError | SerializationError]:
        """Run for each input and wait for all: the outputs, in order. See ``run_many`` and ``execute``.

        Args:
            inputs: The inputs.
            timeout: How long to wait in all; the jobs are added however short.
            return_exceptions: Whether the errors of single jobs stand in their places: those that ``Job.wait`` raises,
                also for a job that has not ended in time. Otherwise the first that is heard of is raised, with a note
                that names the input, and the other jobs go on.
            **options: See ``run_many``.

        Example:
            >>> engagements = await signup.execute_many([Signup("ada@example.org"), Signup("bob@example.org")])
        """
        with self._sending("execute_many") as sending:
            prepared = await self._prepare_many("execute_many", inputs, options)
            sending.added_many(len(prepared))
            executing = execute_many(
                self.queue, prepared, self.payloads.read_outputs, timeout=timeout, return_exceptions=return_exceptions
            )
            del prepared
            return await executing

    async def run_and_watch(
        self, input: InputT, /, **options: Unpack[RunOptions]
    ) -> AsyncGenerator[JobEvent[OutputT, ProgressT]]:
        """Run, and watch the job from its first moment: see ``Job.watch``.

        Example:
            >>> async for event in signup.run_and_watch(Signup("ada@example.org")):
            ...     print(event.kind, event.value)
        """
        # the caller's code runs between the events: the span is over before, and is not current for it
        with self._sending("run_and_watch") as sending:
            where, rest = await self._where(input, options)
            text, if_exists = self.payloads.write_input(input), pop_if_exists(rest)
            if sending.wanted:
                where = msgspec.structs.replace(where, id=where.id or new_id())
                sending.added(str(where.id))
        async with aclosing(events_of(self, self.queue.add_and_watch(text, where, rest, if_exists))) as events:
            async for event in events:
                yield event

    async def upsert_schedule(
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
        """Have the workflow run by the clock. Idempotent by id; unchanged timing keeps the instant it is armed for.

        Args:
            schedule_id: The schedule's id, 1 to 256 characters.
            pattern: A cron pattern of 5 fields, 6 with the seconds first, or ``@daily`` and the like; None
                with ``every``.
            input: The input of its jobs.
            every: The time from one fire to the next, on the grid of the wall clock: ``timedelta`` or seconds.
            tz: The zone of the pattern.
            start: Not before this instant.
            end: Not after this instant.
            jitter: Each fire is put off by less than this, so that a fleet's schedules do not fire at once.
            catch_up: What becomes of fires that nobody was there for: ``"one"`` runs once, ``"skip"`` not at all,
                ``"all"`` each, up to ``catch_up_limit``.
            catch_up_limit: The most that ``"all"`` runs.
            overlap: What becomes of a fire while the job of the previous one lives: ``"skip"`` it, ``"allow"`` both, or
                ``"cancel"`` the previous one.
            **options: Of its jobs; see ``JobOptions``, and ``group``.

        Returns:
            Whether it was created.

        Raises:
            InvalidArgumentError: An argument cannot be used, the pattern never fires; nothing was sent.

        Example:
            >>> await report.upsert_schedule("nightly", "0 3 * * *", Report("all"), tz="Europe/Berlin")
        """
        timing = cadence(
            pattern,
            every=every,
            tz=tz,
            start=start,
            end=end,
            jitter=jitter,
            catch_up=catch_up,
            catch_up_limit=catch_up_limit,
        )
        rest: dict[str, Any] = dict(options)
        group = await self._group_for(input, rest.pop("group", None))
        return await self.queue.schedules.upsert(
            schedule_id, timing, self.payloads.write_input(input), overlap=overlap, group=group, **rest
        )

    async def remove_schedule(self, schedule_id: str) -> bool:
        """Remove a schedule; jobs that it has added stay. Whether there was one."""
        return await self.queue.schedules.remove(schedule_id)

    async def get_schedules(self) -> list[Schedule]:
        """The workflow's schedules, the one that fires next first."""
        schedules = await self.queue.schedules.list()
        return [replace(schedule, data=self.notes.read_value(schedule.data)) for schedule in schedules]

    async def pause_schedule(self, schedule_id: str) -> bool:
        """Fire a schedule no more until ``resume_schedule``. Whether there is one."""
        return await self.queue.schedules.pause(schedule_id)

    async def resume_schedule(self, schedule_id: str) -> bool:
        """Have a paused schedule go on with its next instant. Whether there is one."""
        return await self.queue.schedules.resume(schedule_id)

    async def trigger_schedule(self, schedule_id: str) -> Job[OutputT, ProgressT]:
        """Have a schedule's job run now; its cadence is unchanged.

        Raises:
            ScheduleNotFoundError: There is no such schedule.
        """
        with self._sending("trigger_schedule") as sending:
            trace = self._namespace.telemetry.carried()
            job = await self.queue.schedules.trigger(schedule_id, trace=trace)
            sending.added(job.id)
            return Job(self, job)

    def get_job(self, job_id: str) -> Job[OutputT, ProgressT]:
        """The handle of a job by its id, from any process."""
        return Job(self, self.queue.job(job_id))

    def worker(self, *, concurrency: int = 10, **settings: Unpack[WorkerSettings]) -> Worker:
        """A worker of this workflow, for ``async with``: it works in the background for the block.

        Args:
            concurrency: How many jobs at once.
            **settings: See ``WorkerSettings``.

        Example:
            >>> async with signup.worker(concurrency=100):
            ...     await signup.execute(Signup("ada@example.org"))
        """
        return Worker(self._namespace.queues, [self], concurrency, settings)

    async def work(self, *, concurrency: int = 10, **settings: Unpack[WorkerSettings]) -> None:
        """Work on this workflow until stopped or signalled: the whole of a worker process."""
        await self.worker(concurrency=concurrency, **settings).run()

    async def list_jobs(self, state: State, *, skip: int = 0, limit: int = 100) -> list[Job[OutputT, ProgressT]]:
        """A page of its jobs in a state: waiting, delayed, parked, active, completed, failed, or cancelled."""
        ids = await self.queue.list_jobs(state, skip=skip, limit=limit)
        return [self.get_job(job_id) for job_id in ids]

    @property
    def namespace(self) -> WorkflowNamespace:
        """The namespace that it was created by."""
        return self._namespace

    def belongs_to(self, namespace: object) -> bool:
        """Whether it is a workflow of a namespace."""
        return self._namespace is namespace

    async def new_node(self, input: InputT, options: Mapping[str, Any]) -> NewJob:
        """A job of this workflow in a flow, as it is sent.

        Raises:
            InvalidArgumentError: An option cannot be used.
            SerializationError: The input does not fit the workflow's schema.
        """
        where, rest = await self._where(input, options)
        return self.queue.prepare(self.payloads.write_input(input), where, rest)

    def new_job(
        self,
        input: InputT,
        options: Mapping[str, Any],
        *,
        group: str | None,
        run_in: Duration | None = None,
        run_at: datetime | None = None,
    ) -> NewJob:
        """A job of this workflow whose group is known (see ``group_of``), as it is sent.

        Raises:
            InvalidArgumentError: An option cannot be used.
            SerializationError: The input does not fit the workflow's schema.
        """
        where, rest = split_options(options, group, run_in, run_at, trace=self._namespace.telemetry.carried())
        return self.queue.prepare(self.payloads.write_input(input), where, rest)

    def group_of(self, input: InputT, given: str | None) -> str | Awaitable[str | None] | None:
        """The group of a job: the one that was given, else what the workflow's ``get_group_id`` says of its input.

        Raises:
            SerializationError: The input does not fit the workflow's schema.
        """
        if given is not None or self._group_of is None:
            return given
        return self._group_of(self.payloads.fit_input(input))

    async def new_child(self, path: str, child_id: str, input: InputT, options: Mapping[str, Any]) -> NewChild:
        """A job of this workflow as the child of a run, as it is sent.

        Raises:
            InvalidArgumentError: An option cannot be used.
            SerializationError: The input does not fit the workflow's schema.
        """
        where, rest = await self._where(input, {**options, "id": child_id})
        new = self.queue.prepare(self.payloads.write_input(input), where, rest)
        return NewChild(path, self.id, new.id, new.spec, new.data)

    def observer(self) -> Observer | None:
        """What watches the attempts at its jobs; None: nobody wants to know."""
        return self._namespace.telemetry.observer(self.id)

    def _sending(self, operation: str) -> Sending:
        return self._namespace.telemetry.sending(self.id, operation)

    async def _add(
        self,
        operation: str,
        value: InputT,
        options: RunOptions,
        *,
        run_in: Duration | None = None,
        run_at: datetime | None = None,
    ) -> Job[OutputT, ProgressT]:
        with self._sending(operation) as sending:
            where, rest = await self._where(value, options, run_in=run_in, run_at=run_at)
            if_exists = pop_if_exists(rest)
            job = await self.queue.add_prepared(self.payloads.write_input(value), where, rest, if_exists)
            sending.added(job.id)
            return Job(self, job)

    async def _prepare_many(self, call: str, inputs: Sequence[InputT], options: Mapping[str, Any]) -> list[NewJob]:
        for option in ("id", "if_exists"):
            if option in options:
                raise InvalidArgumentError(f"{call} takes no {option}=: every job has an id of its own; leave it out")
        if not isinstance(cast("object", inputs), Sequence) or isinstance(inputs, str | bytes | bytearray):
            raise InvalidArgumentError(f"{call} takes a list of inputs, not {shown(inputs)}: put them into a list")
        prepared: list[NewJob] = []
        for place, value in enumerate(inputs):
            try:
                where, rest = await self._where(value, options)
                prepared.append(self.queue.prepare(self.payloads.write_input(value), where, rest))
            except SerializationError as error:
                raise SerializationError(f"inputs[{place}] of {call}, which has sent nothing: {error}") from error
            except Exception as error:
                error.add_note(f"It is about inputs[{place}] of {call}, which has sent nothing.")
                raise
        return prepared

    async def _where(
        self,
        value: InputT,
        options: Mapping[str, Any],
        *,
        run_in: Duration | None = None,
        run_at: datetime | None = None,
    ) -> tuple[Added, dict[str, Any]]:
        group = options.get("group") if self._group_of is None else await self._group_for(value, options.get("group"))
        return split_options(options, group, run_in, run_at, trace=self._namespace.telemetry.carried())

    async def _group_for(self, value: InputT, given: str | None) -> str | None:
        found = self.group_of(value, given)
        # most often it is none, and asking what can be awaited takes long
        return found if found is None or not inspect.isawaitable(found) else await found
