"""Many jobs of one queue at once: added in bulk, and waited for by one task."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from ..errors import JobError, RedisUnavailableError, SerializationError
from .job import NOT_THERE, Job
from .options import Duration
from .scripts.adding import MOST_AT_ONCE, NewJob, Standing, count_at_once
from .validation import duration_ms

if TYPE_CHECKING:
    from .queue import Queue
    from .scripts.ending import End

T = TypeVar("T")


async def send_many(queue: Queue, prepared: Sequence[NewJob]) -> list[Job]:
    """Send prepared jobs in chunks, two calls at once.

    Raises:
        RedisUnavailableError: Redis did not answer in time; the text says how many had been added.
    """
    runtime = await queue.namespace.runtime()
    jobs: list[Job] = []
    calls: deque[asyncio.Task[list[Standing | None]]] = deque()
    try:
        start = 0
        while chunk := prepared[start : start + MOST_AT_ONCE]:
            chunk = chunk[: count_at_once(chunk)]
            start += len(chunk)
            calls.append(asyncio.create_task(runtime.add(chunk)))
            # it is on the wire, alone: calls that go out together are answered together
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            if len(calls) > 1:
                await _take_added(queue, calls, prepared, jobs)
        while calls:
            await _take_added(queue, calls, prepared, jobs)
    finally:
        for call in calls:
            call.cancel()
    return jobs


async def _take_added(
    queue: Queue, calls: deque[asyncio.Task[list[Standing | None]]], prepared: Sequence[NewJob], jobs: list[Job]
) -> None:
    """Wait for the first of the calls, and make handles of what it has added."""
    try:
        answers = await calls.popleft()
    except RedisUnavailableError as error:
        later = sum(
            [len(each) for each in await asyncio.gather(*calls, return_exceptions=True) if isinstance(each, list)]
        )
        after = f", and {later} after them" if later else ""
        added = f" {len(jobs)} of {len(prepared)} jobs had been added before{after}." if jobs or later else ""
        # it has not been said of all of them
        told = str(error).removesuffix(" Nothing was done.") if added else str(error)
        raise RedisUnavailableError(f"{told}{added}") from error
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
    the first in order is raised, and the other jobs go on.

    Raises:
        JobError: As ``Job.wait``.
        RedisUnavailableError: Redis did not answer in time when the jobs were added.
    """
    seconds = None if timeout is None else duration_ms(timeout, "timeout") / 1000
    runtime, loop = await queue.namespace.runtime(), asyncio.get_running_loop()
    until = None if seconds is None else loop.time() + seconds
    waiters = deque([runtime.waiters.enter(queue.id, new.id, new.run) for new in prepared])
    results = _Results(read, seconds or 0.0, return_exceptions=return_exceptions)
    try:
        jobs = await send_many(queue, [await runtime.heard_of(new, "waiters") for new in prepared])
        timer = asyncio.timeout_at(until)
        try:
            async with timer:
                for job, new in zip(jobs, prepared, strict=True):
                    if not waiters[0].future.done():
                        results.read()
                    # of one that has ended it takes no turn of the loop
                    end = await waiters[0].future if job.run == new.run else None
                    if end is None or end.state in NOT_THERE:
                        # another stands in its place, or a look after a gap in the subscription came before it did
                        end = await runtime.waiters.wait(queue.id, job.id, job.run)
                    runtime.waiters.leave(waiters.popleft())
                    results.add(job, end)
        except TimeoutError:
            if not timer.expired():
                raise
            for job, waiter in zip(jobs[len(results) :], waiters, strict=True):
                ended = waiter.future.done() and not waiter.future.cancelled()
                end = waiter.future.result() if ended else None
                results.add(job, None if end is None or end.state in NOT_THERE else end)
        results.read()
    finally:
        for waiter in waiters:
            runtime.waiters.leave(waiter)
    return results.values


class _Results(Generic[T]):
    """What became of jobs, in order: the values that ``read`` makes of their results, or errors.

    Attributes:
        values: What became of those whose results were read.
    """

    def __init__(
        self, read: Callable[[Sequence[str]], Sequence[T]], seconds: float, *, return_exceptions: bool
    ) -> None:
        self.values: list[T | JobError | SerializationError] = []
        self._texts: list[str] = []
        self._read = read
        self._seconds = seconds
        self._return_exceptions = return_exceptions

    def __len__(self) -> int:
        return len(self.values) + len(self._texts)

    def add(self, job: Job, end: End | None) -> None:
        """A job has ended, or (None) has not in time."""
        if end is not None and end.state == "completed":
            self._texts.append(end.text)
            return
        self.read()
        try:
            raise job.late(self._seconds) if end is None else job.error_of(end)
        except JobError as error:
            if not self._return_exceptions:
                raise
            self.values.append(error)

    def read(self) -> None:
        """Read the results that have come."""
        texts, self._texts = self._texts, []
        if not texts:
            return
        try:
            self.values += self._read(texts)
        except SerializationError as error:
            if not self._return_exceptions:
                raise
            if len(texts) == 1:
                self.values.append(error)
                return
            for text in texts:
                self._texts = [text]
                self.read()
