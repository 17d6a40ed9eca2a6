from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, Unpack

import msgspec

from ..errors import InvalidArgumentError, JobAlreadyExistsError
from . import keys
from .bulk import send_many
from .job import Job
from .limits import QueueLimits, pack_cap, pack_limiter_names, read_queue_limits
from .listing import Listing
from .names import new_names, new_nonce
from .notes import LOG_LINES, LONGEST_LINE, check_progress, log_entry
from .options import UNSET, Duration, JobOptions, Unset, pack_options
from .scheduling import Schedules
from .scripts.adding import NewJob, Standing
from .scripts.controlling import promote_job, remove_job, retry_job, set_paused
from .scripts.ending import NOT_THERE
from .scripts.recording import Checkpoint, append_log, record_steps, report_progress
from .spec import Spec
from .stream import Stream
from .validation import (
    check_cap,
    check_choice,
    check_free_id,
    check_id,
    check_int,
    check_text,
    duration_ms,
    instant_ms,
    shown,
)

if TYPE_CHECKING:
    from .namespace import Namespace
    from .watch import Happening
    from .worker import Handler, Worker

MOST_EVENTS: Final = 10_000_000
DEDUPLICATED: Final = ("throttled", "debounced")
OF_A_QUEUE: Final = ("concurrency", "group_concurrency", "limiters", "events")
OF_A_JOB: Final = ("id", "group", "unique", "if_exists", "throttle", "debounce")


@dataclass(frozen=True, slots=True)
class Dedup:
    """A key and a window, for ``throttle`` and ``debounce``.

    Example:
        >>> await queue.add("reindex", debounce=Dedup("reindex:42", window=5))
    """

    key: str
    window: Duration

    def packed(self, kind: str) -> str:
        """As the script that adds takes it.

        Raises:
            InvalidArgumentError: Key or window cannot be used.
        """
        window = duration_ms(self.window, f"{kind} window", minimum=1)
        return f"{kind} {window} {check_free_id(self.key, f'{kind} key')}"


class Added(msgspec.Struct, frozen=True, kw_only=True):
    """Where a job goes and when, for ``Queue.prepare``."""

    id: str | None = None
    group: str | None = None
    run_in: Duration | None = None
    run_at: datetime | None = None
    unique: Literal["live", "retained"] = "live"
    throttle: Dedup | None = None
    debounce: Dedup | None = None
    trace: str = ""


class Queue(Listing, Stream):
    """A queue of texts. Made by ``Namespace.queue``.

    Attributes:
        read_note: Gives what people read (messages, tracebacks, reasons, log lines) from what is stored of it.
        limiters: The names of the rate limiters that hold for its jobs.
    """

    def __init__(
        self,
        namespace: Namespace,
        id: str,
        *,
        concurrency: int | None,
        group_concurrency: int | None,
        limiters: Sequence[str] | None,
        events: int,
        defaults: Mapping[str, Any],
    ) -> None:
        self.namespace = namespace
        self.id = check_id(id, "workflow id")
        self.schedules: Final = Schedules(self)
        self.read_note: Callable[[str], str] = str
        self.declared: Final[Mapping[str, int | str]] = {
            "concurrency": pack_cap(check_cap(concurrency, "concurrency")),
            "group": pack_cap(check_cap(group_concurrency, "group_concurrency")),
            "limiters": pack_limiter_names(limiters, namespace.limiters),
            "stream": check_int(events, "events", 0, MOST_EVENTS) or "unset",
        }
        self.limiters: Final = tuple(namespace.limiters if limiters is None else limiters)
        self._fields: Final = pack_options({**namespace.defaults, **defaults}, OF_A_QUEUE)
        self._rest: Final = Spec(run="", **self._fields).rest()

    async def add(
        self,
        data: str,
        *,
        id: str | None = None,
        group: str | None = None,
        run_in: Duration | None = None,
        run_at: datetime | None = None,
        unique: Literal["live", "retained"] = "live",
        if_exists: Literal["raise", "return"] = "raise",
        throttle: Dedup | None = None,
        debounce: Dedup | None = None,
        **options: Unpack[JobOptions],
    ) -> Job:
        """Add a job.

        Args:
            data: Its payload.
            id: Its id, 1 to 256 characters; made up if omitted. An id that is live, or failed and kept, collides; that
                of a completed or cancelled job can be used again.
            group: Its group; jobs of a group run one at a time unless the queue's limits say otherwise.
            run_in: Not before this time from now: ``timedelta`` or seconds, by Redis' clock.
            run_at: Not before this instant, an aware ``datetime``.
            unique: ``"retained"``: the id of a completed or cancelled job collides until its record is gone.
            if_exists: ``"return"`` gives the job that has the id instead of raising.
            throttle: The first job of a window stands for all with its key that come within it.
            debounce: Jobs with its key come together in one, which runs when none has come for the window, with the
                payload of the last.
            **options: See ``JobOptions``.

        Raises:
            InvalidArgumentError: An argument cannot be used; nothing was sent.
            JobAlreadyExistsError: The id is in use.
            RedisUnavailableError: Redis did not answer in time.

        Example:
            >>> job = await queue.add("hello", run_in=timedelta(minutes=5))
        """
        where = Added(
            id=id, group=group, run_in=run_in, run_at=run_at, unique=unique, throttle=throttle, debounce=debounce
        )
        return await self.add_prepared(data, where, options, check_choice(if_exists, "if_exists", ("raise", "return")))

    async def add_prepared(
        self, data: str, where: Added, options: Mapping[str, Any], if_exists: Literal["raise", "return"] = "raise"
    ) -> Job:
        """Add a job; see ``add``."""
        new = self.prepare(data, where, options)
        runtime = await self.namespace.runtime()
        return self.added(new, await runtime.submit(new), if_exists)

    async def add_many(self, data: Sequence[str], **options: Unpack[JobOptions]) -> list[Job]:
        """Add jobs that differ in their payload only, in calls of 200; in order, unless a call has to be made again.

        Raises:
            InvalidArgumentError: An argument cannot be used; nothing was sent.
            RedisUnavailableError: Redis did not answer in time; the text says how many had been added.
        """
        if isinstance(data, str):
            raise InvalidArgumentError(f"data must be a list of texts, not one text: [{shown(data)}]")
        where = Added()
        return await send_many(self, [self.prepare(each, where, options) for each in data])

    def prepare(self, data: str, where: Added, options: Mapping[str, Any]) -> NewJob:
        """Check everything about a new job; what is sent.

        Raises:
            InvalidArgumentError: An argument cannot be used.
        """
        check_text(data, "data")
        if where.run_in is not None and where.run_at is not None:
            raise InvalidArgumentError("give run_in or run_at, not both")
        at, delay, due = "", 0, 0
        if where.run_in is not None:
            delay = duration_ms(where.run_in, "run_in")
            at = f"+{delay}"
        elif where.run_at is not None:
            due = instant_ms(where.run_at, "run_at")
            at = str(due)
        rest = self._rest
        if options or where.group is not None or where.trace or delay or due:
            fields = {**self._fields, **pack_options(options, OF_A_JOB)} if options else self._fields
            group = "" if where.group is None else check_free_id(where.group, "group")
            rest = Spec(run="", group=group, trace=where.trace, delay=delay, due=due, **fields).rest()
        unique = check_choice(where.unique, "unique", ("live", "retained"))
        id, run = new_names()
        return NewJob(
            self.id,
            id if where.id is None else check_free_id(where.id, "job id"),
            run,
            rest,
            data,
            at,
            "fresh" if where.id is None else unique,
            dedup=_dedup(where),
        )

    async def execute(
        self,
        data: str,
        where: Added,
        options: Mapping[str, Any],
        if_exists: Literal["raise", "return"] = "raise",
        *,
        timeout: Duration | None,  # noqa: ASYNC109 - a total, with an error of its own
    ) -> str:
        """Add a job and give its result; this process is registered for its end as it is added.

        The result is that of the job which stands in its place, where there is one. However short the timeout, the job
        is added, or the error says that it was not.

        Raises:
            JobError: As ``Job.wait``; JobAlreadyExistsError: The id is in use.
            RedisUnavailableError: Redis did not answer in time when the job was added.
        """
        new = self.prepare(data, where, options)
        seconds = None if timeout is None else duration_ms(timeout, "timeout") / 1000
        runtime, loop = await self.namespace.runtime(), asyncio.get_running_loop()
        began = loop.time()
        # the channel first: who waits is looked for when that opens again, and the job is not there yet
        heard_of = await runtime.heard_of(new, "waiters")
        waiter = runtime.waiters.enter(self.id, new.id, new.run, unsent=True)
        try:
            standing = await runtime.submit(heard_of)
            job = self.added(new, standing, if_exists)
            if seconds is not None:
                waiter.time_out_at(loop, began + seconds)
            if standing is None:
                runtime.waiters.sent(waiter)
                return job.result_of(await job.end_of(waiter.future, seconds))
        finally:
            runtime.waiters.leave(waiter)
        left = None if seconds is None else max(began + seconds - loop.time(), 0)
        wait = runtime.waiters.wait(self.id, job.id, job.run, within=left, first_look=self.namespace.timeout)
        return job.result_of(await job.end_of(wait, seconds))

    async def add_and_watch(
        self, data: str, where: Added, options: Mapping[str, Any], if_exists: Literal["raise", "return"] = "raise"
    ) -> AsyncGenerator[tuple[Job, Happening]]:
        """Add a job and watch it from its first moment, or the job that stands in its place: see ``Job.watch``."""
        new = self.prepare(data, where, options)
        runtime = await self.namespace.runtime()
        with runtime.waiters.watch(self.id, new.id, new.run) as watch:
            standing = await runtime.submit(await runtime.heard_of(new, "watchers"))
            job = self.added(new, standing, if_exists)
            if standing is None:
                async for happening in watch.happenings():
                    if happening.kind in NOT_THERE:
                        break  # a look after a gap in the subscription has come before the job did
                    yield job, happening
                else:
                    return
        async for happening in job.watch():
            yield job, happening

    def added(self, new: NewJob, standing: Standing | None, if_exists: str) -> Job:
        """The handle of a job that was sent.

        Raises:
            JobAlreadyExistsError: Another job has its id, and ``if_exists`` is ``"raise"``.
        """
        if standing is None:
            return Job(self, new.id, new.run)
        if if_exists == "return" or standing.state in DEDUPLICATED:
            return Job(self, standing.id, standing.run)
        hint = "retry or remove it" if standing.state == "failed" else "if_exists='return' gives its handle"
        raise JobAlreadyExistsError(
            f"job {new.id!r} of workflow {self.id!r} exists and is {standing.state} ({hint})",
            workflow=self.id,
            job_id=new.id,
        )

    async def add_like(self, spec: str, data: str, trace: str) -> Job:
        """Add a job with the options of an earlier spec, in a new life."""
        like = msgspec.structs.replace(msgspec.json.decode(spec, type=Spec), trace=trace)
        new = NewJob(self.id, *new_names(), like.rest(), data)
        runtime = await self.namespace.runtime()
        return self.added(new, await runtime.submit(new), "raise")

    def job(self, job_id: str) -> Job:
        """The handle of a job by its id, whichever life of it is there."""
        return Job(self, check_free_id(job_id, "job id"), "")

    def worker(self, handler: Handler, *, concurrency: int = 10, **settings: Any) -> Worker:
        """A worker of this queue alone; see ``Worker``."""
        from .worker import Worker  # noqa: PLC0415 - the worker builds on the queue

        limits = {self.id: self.declared}
        return Worker(self.namespace, {self.id: handler}, concurrency=concurrency, limits=limits, **settings)

    async def set_limits(
        self, *, concurrency: int | Unset | None = UNSET, group_concurrency: int | Unset | None = UNSET
    ) -> None:
        """Set caps for every process, from now on; None lifts one, and what is omitted stays.

        Raising wakes workers; lowering only holds back new claims.
        """
        caps: dict[str, int | str] = {}
        if not isinstance(concurrency, Unset):
            caps["concurrency"] = pack_cap(check_cap(concurrency, "concurrency"))
        if not isinstance(group_concurrency, Unset):
            caps["group"] = pack_cap(check_cap(group_concurrency, "group_concurrency"))
        await self.namespace.store_limits(self.id, "override", caps)

    async def limits(self) -> QueueLimits:
        """The queue's caps, and whether it is paused, as they stand for every process."""
        return read_queue_limits(await self.namespace.stored_limits(self.id))

    async def pause(self) -> None:
        """Claim nothing of the queue from now on; what runs goes on."""
        await self.namespace.persist(
            lambda runtime: set_paused(runtime.call, workflow=self.id, paused=True), f"pausing {self.id!r}"
        )

    async def resume(self) -> None:
        """Claim again after ``pause``."""
        await self.namespace.persist(
            lambda runtime: set_paused(runtime.call, workflow=self.id, paused=False), f"resuming {self.id!r}"
        )

    async def retry(self, job_id: str) -> bool:
        """Have a job that failed for good run again from its checkpoints. Whether it was failed."""
        check_free_id(job_id, "job id")
        nonce = new_nonce()
        answer = await self.namespace.persist(
            lambda runtime: retry_job(runtime.call, workflow=self.id, id=job_id, nonce=nonce),
            f"retrying job {job_id!r}",
        )
        await self.namespace.end_descendants(f"Job {job_id!r} is retried")
        return answer == 1

    async def remove(self, job_id: str) -> bool:
        """Remove a job and everything of it; the run of one that runs is stopped. Whether there was one."""
        check_free_id(job_id, "job id")
        nonce = new_nonce()
        answer = await self.namespace.persist(
            lambda runtime: remove_job(runtime.call, workflow=self.id, id=job_id, nonce=nonce),
            f"removing job {job_id!r}",
        )
        await self.namespace.end_descendants(f"Job {job_id!r} is removed")
        return answer == 1

    async def promote(self, job_id: str) -> bool:
        """Have a delayed job run now. Whether it was delayed."""
        check_free_id(job_id, "job id")
        nonce = new_nonce()
        answer = await self.namespace.persist(
            lambda runtime: promote_job(runtime.call, workflow=self.id, id=job_id, nonce=nonce),
            f"promoting job {job_id!r}",
        )
        return answer == 1

    async def set_step(self, job_id: str, name: str, text: str, *, token: str) -> bool:
        """Store a checkpoint for the holder of a claim. False: the claim is lost, nothing was written."""
        step = Checkpoint(
            self.id,
            check_free_id(job_id, "job id"),
            check_free_id(token, "token"),
            check_text(name, "step name"),
            check_text(text, "step text"),
        )
        return (
            await self.namespace.persist(
                lambda runtime: record_steps(runtime.call, steps=[step]), f"recording step {name!r} of job {job_id!r}"
            )
        )[0]

    async def set_progress(self, job_id: str, text: str, *, token: str) -> bool:
        """Say how far a job has come, for the holder of its claim: in its record, and to those who watch it.

        Args:
            job_id: The job's id.
            text: Up to 65,536 characters; it replaces the last one.
            token: The claim's.

        Returns:
            Whether it was kept; False: the claim is lost, or the job was removed.

        Raises:
            InvalidArgumentError: An argument cannot be used; nothing was sent.

        Example:
            >>> await queue.set_progress(claim.id, "3 of 10", token=claim.token)
        """
        check_free_id(job_id, "job id")
        check_progress(check_text(text, "progress"))
        check_free_id(token, "token")
        return await self.namespace.persist(
            lambda runtime: report_progress(runtime.call, workflow=self.id, id=job_id, token=token, text=text),
            f"noting the progress of job {job_id!r}",
        )

    async def append_log(self, job_id: str, line: str, *, token: str) -> bool:
        """Write a line to a job's log, for the holder of its claim; the log keeps the latest thousand.

        Args:
            job_id: The job's id.
            line: What to write; of a longer one the first 4,000 characters.
            token: The claim's.

        Returns:
            Whether it was kept; False: the claim is lost, or the job was removed.

        Example:
            >>> await queue.append_log(claim.id, "the card was declined", token=claim.token)
        """
        check_free_id(job_id, "job id")
        check_free_id(token, "token")
        entry = log_entry(check_text(line, "line")[:LONGEST_LINE])
        return await self.namespace.persist(
            lambda runtime: append_log(
                runtime.call, workflow=self.id, id=job_id, token=token, entry=entry, most=LOG_LINES
            ),
            f"writing to the log of job {job_id!r}",
        )

    async def get_step(self, job_id: str, name: str) -> str | None:
        """A checkpoint's text, or None."""
        check_free_id(job_id, "job id")
        check_text(name, "step name")
        text: bytes | None = await self.namespace.persist(
            lambda runtime: runtime.call.link.call("HGET", keys.steps(runtime.call.base, self.id, job_id), name),
            f"reading step {name!r} of job {job_id!r}",
        )
        return None if text is None else text.decode()


def _dedup(where: Added) -> str:
    if where.throttle is None and where.debounce is None:
        return ""
    for name, given in (("throttle", where.throttle), ("debounce", where.debounce)):
        if given is not None and not isinstance(given, Dedup):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without a type checker
            raise InvalidArgumentError(f"{name} must be a Dedup(key, window), not {shown(given)}")
    if where.throttle is not None and where.debounce is not None:
        raise InvalidArgumentError("give throttle or debounce, not both")
    if where.throttle is not None:
        return where.throttle.packed("throttle")
    if where.run_in is not None or where.run_at is not None:
        raise InvalidArgumentError("debounce says when the job runs: leave run_in and run_at out")
    assert where.debounce is not None  # noqa: S101 - one of the two is there
    return where.debounce.packed("debounce")
