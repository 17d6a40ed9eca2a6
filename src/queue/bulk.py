"""Many jobs of one queue at once: added in bulk, and waited for by one task."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from ..errors import ClosedError, JobError, RedisUnavailableError, SerializationError
from .calling import MAYBE_DONE, NOTHING_DONE
from .job import Job
from .options import Duration
from .scripts.adding import MOST_AT_ONCE, NewJob, Standing, count_at_once
from .validation import duration_ms

if TYPE_CHECKING:
    from .looking import Waiter
    from .queue import Queue
    from .runtime import Runtime
    from .scripts.ending import End

T = TypeVar("T")


async def send_many(queue: Queue, prepared: Sequence[NewJob]) -> list[Job]:
    """Send prepared jobs in chunks, two calls at once.

    Raises:
        RedisUnavailableError: Redis did not answer in time; the text says how many have been added.
        ClosedError: The namespace was closed meanwhile; as above.
    """
    runtime = await queue.namespace.runtime()
    jobs: list[Job] = []
    calls: deque[_Call] = deque()
    try:
        start = 0
        while chunk := prepared[start : start + MOST_AT_ONCE]:
            chunk = chunk[: count_at_once(chunk)]
            start += len(chunk)
            calls.append(_Call(len(chunk), asyncio.create_task(runtime.add(chunk))))
            # it is on the wire, alone: calls that go out together are answered together
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            if len(calls) > 1:
                await _take_added(queue, calls, prepared, jobs)
        while calls:
            await _take_added(queue, calls, prepared, jobs)
    finally:
        for call in calls:
            call.task.cancel()
    return jobs


class _Call(NamedTuple):
    """A call that adds so many jobs."""

    size: int
    task: asyncio.Task[list[Standing | None]]


async def _take_added(queue: Queue, calls: deque[_Call], prepared: Sequence[NewJob], jobs: list[Job]) -> None:
    """Wait for the first of the calls, and make handles of what it has added."""
    try:
        answers = await calls[0].task
    except (RedisUnavailableError, ClosedError) as error:
        if calls[0].size == len(prepared):
            raise
        ends = await asyncio.gather(*(call.task for call in calls), return_exceptions=True)
        added, unknown = len(jobs), 0
        for call, end in zip(calls, ends, strict=True):
            if isinstance(end, list):
                added += call.size
            elif not isinstance(end, RedisUnavailableError | ClosedError) or MAYBE_DONE in str(end):
                unknown += call.size
        # it has not been said of all of them
        told = str(error).removesuffix(NOTHING_DONE).rstrip()
        maybe = f", and {unknown} more may have been" if unknown else ""
        raise type(error)(f"{told} {added} of {len(prepared)} jobs have been added for certain{maybe}.") from error
    calls.popleft()
    sent = prepared[len(jobs) : len(jobs) + len(answers)]
    jobs += [queue.added(new, answer, "raise") for new, answer in zip(sent, answers, strict=True)]


async def execute_many(
    queue: Queue,
    prepared: Sequence[NewJob],
    read: Callable[[Sequence[str]], Sequence[T]],
    *,
    timeout: Duration | None,  # noqa: ASYNC109 - a total, with an error of its own
    return_exceptions: bool,
) -> list[T | JobError | SerializationError]:
    """Add prepared jobs and give what ``read`` makes of their results, in order.

    This process is registered for their ends as they are added. However short the timeout, the jobs are added, or the
    error says that they were not. With ``return_exceptions`` the errors of single jobs stand in their places; otherwise
    the first that is heard of is raised, and the other jobs go on.

    Raises:
        JobError: As ``Job.wait``.
        RedisUnavailableError: Redis did not answer in time when the jobs were added.
    """
    seconds = None if timeout is None else duration_ms(timeout, "timeout") / 1000
    runtime, loop = await queue.namespace.runtime(), asyncio.get_running_loop()
    until = None if seconds is None else loop.time() + seconds
    crowd = _Crowd(queue, runtime, read, seconds or 0.0, return_exceptions=return_exceptions)
    # the channel first: who waits is looked for when that opens again, and the jobs are not there yet
    prepared = [await runtime.heard_of(new, "waiters") for new in prepared]
    crowd.enter(prepared)
    try:
        await crowd.added(await send_many(queue, prepared))
        # of many jobs that is much, and the wait may be long
        del prepared
        timer = asyncio.timeout_at(until)
        try:
            async with timer:
                await crowd.hear_of_all()
        except TimeoutError:
            if not timer.expired():
                raise
        crowd.give_up()
    finally:
        crowd.leave()
    return crowd.values


class _Crowd(Generic[T]):
    """Jobs that one task waits for: it takes their ends in order, which needs no turn of the loop for those that came.

    Attributes:
        values: What became of jobs, in order: the values that ``read`` makes of their results, or errors.
    """

    def __init__(
        self,
        queue: Queue,
        runtime: Runtime,
        read: Callable[[Sequence[str]], Sequence[T]],
        seconds: float,
        *,
        return_exceptions: bool,
    ) -> None:
        self.values: list[T | JobError | SerializationError] = []
        self._queue = queue
        self._runtime = runtime
        self._read = read
        self._seconds = seconds
        self._return_exceptions = return_exceptions
        self._waiters: deque[Waiter] = deque()
        self._came: list[str] = []
        self._failed: tuple[Waiter, End] | None = None
        self._turn: asyncio.Future[None] | None = None

    def enter(self, prepared: Sequence[NewJob]) -> None:
        """Wait for jobs that are about to be added."""
        for new in prepared:
            self._waiters.append(self._enter(new.id, new.run, unsent=True))

    def _enter(self, job_id: str, run: str, *, unsent: bool) -> Waiter:
        waiter = self._runtime.waiters.enter(self._queue.id, job_id, run, unsent=unsent)
        waiter.failed = None if self._return_exceptions else self._note_failure
        return waiter

    async def added(self, jobs: Sequence[Job]) -> None:
        """They were added, or others stand in their places, which are looked at, however short the timeout."""
        others: dict[tuple[str, str], Waiter] = {}
        for place, job in enumerate(jobs):
            waiter = self._waiters[place]
            if job.run == waiter.run:
                self._runtime.waiters.sent(waiter)
                continue
            self._runtime.waiters.leave(waiter)
            other = others.get((job.id, job.run)) or self._enter(job.id, job.run, unsent=False)
            self._waiters[place] = others[job.id, job.run] = other
        await self._runtime.waiters.look_first([*others.values()], self._queue.namespace.timeout)

    def leave(self) -> None:
        """Wait no longer."""
        for waiter in self._waiters:
            self._runtime.waiters.leave(waiter)

    async def hear_of_all(self) -> None:
        """Wait until all have ended, or one has failed."""
        self._raise_failure()
        waiters = self._waiters
        while waiters:
            future = waiters[0].future
            if not future.done():
                await self._pause(future)
            end = future.result()
            waiter = waiters.popleft()
            if not waiter.left:
                self._runtime.waiters.leave(waiter)
            if end.state == "completed":
                self._came.append(end.text)
            else:
                self._take(waiter, end)
        self._read_what_came()

    def give_up(self) -> None:
        """Take what has come of those that are left; the others are late."""
        self._raise_failure()
        while self._waiters:
            waiter = self._waiters.popleft()
            self._runtime.waiters.leave(waiter)
            future = waiter.future
            # several may stand for one job, and the first of them has left
            self._take(waiter, future.result() if future.done() and not future.cancelled() else None)
        self._read_what_came()

    async def _pause(self, future: asyncio.Future[End]) -> None:
        """Wait until one has ended, or another has failed."""
        self._read_what_came()
        self._turn = asyncio.get_running_loop().create_future()
        future.add_done_callback(self._go_on)
        await self._turn
        self._raise_failure()

    def _go_on(self, _: object = None) -> None:
        if self._turn is not None and not self._turn.done():
            self._turn.set_result(None)

    def _note_failure(self, waiter: Waiter, end: End) -> None:
        if self._failed is None:
            self._failed = waiter, end
            self._go_on()

    def _raise_failure(self) -> None:
        if self._failed is not None:
            waiter, end = self._failed
            place = len(self.values) + len(self._came) + self._waiters.index(waiter)
            raise _placed(self._job_of(waiter).error_of(end), place)

    def _job_of(self, waiter: Waiter) -> Job:
        return Job(self._queue, waiter.key[1], waiter.run)

    def _take(self, waiter: Waiter, end: End | None) -> None:
        """The next job has ended, or (None) has not in time."""
        if end is not None and end.state == "completed":
            self._came.append(end.text)
            return
        self._read_what_came()
        job = self._job_of(waiter)
        self._keep(job.late(self._seconds) if end is None else job.error_of(end))

    def _read_what_came(self) -> None:
        texts, self._came = self._came, []
        if not texts:
            return
        try:
            self.values += self._read(texts)
        except SerializationError as error:
            if len(texts) == 1:
                self._keep(error)
                return
            for text in texts:
                self._came = [text]
                self._read_what_came()

    def _keep(self, error: JobError | SerializationError) -> None:
        if not self._return_exceptions:
            raise _placed(error, len(self.values))
        # with its traceback it would keep all of this
        self.values.append(error.with_traceback(None))


def _placed(error: Exception, place: int) -> Exception:
    error.add_note(f"That is what came of inputs[{place}].")
    return error
