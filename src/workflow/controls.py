from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Final, Unpack

from ..queue.limits import QueueLimits
from ..queue.listing import Counts, State
from ..queue.options import Duration
from ..queue.stream import QueueEvent
from .options import LimitSettings

if TYPE_CHECKING:
    from ..queue.queue import Queue


class QueueControls:
    """What those who run a workflow do with its queue.

    Attributes:
        queue: The queue.
    """

    def __init__(self, queue: Queue) -> None:
        self.queue: Final = queue

    async def set_limits(self, **caps: Unpack[LimitSettings]) -> None:
        """Set caps for every process, from now on: ``concurrency`` and ``group_concurrency``; None lifts one."""
        await self.queue.set_limits(**caps)

    async def pause(self) -> None:
        """Start nothing of the workflow from now on; what runs goes on."""
        await self.queue.pause()

    async def resume(self) -> None:
        """Start jobs again after ``pause``."""
        await self.queue.resume()

    async def limits(self) -> QueueLimits:
        """Its caps, and whether it is paused, as they stand for every process."""
        return await self.queue.limits()

    async def counts(self) -> Counts:
        """How many of its jobs are in each state."""
        return await self.queue.counts()

    async def oldest_waiting(self) -> float | None:
        """Seconds since the oldest job at the head of a line was added; None when none waits.

        The lines are the priorities in use of jobs without a group, and the groups.
        """
        return await self.queue.oldest_waiting()

    async def events(self, *, after: str | None = None, limit: int = 100) -> list[QueueEvent]:
        """A page of the events of its stream, oldest first: those after a position, or (None) from the oldest kept.

        It has some where ``create_workflow(events=...)`` says how many to keep.
        """
        return await self.queue.events(after=after, limit=limit)

    async def watch_events(self, *, after: str | None = None) -> AsyncGenerator[QueueEvent]:
        """The events of its stream as they happen, from now on, or after a position. Leaving the loop ends it.

        Raises:
            ClosedError: The namespace was closed meanwhile.

        Example:
            >>> async for event in signup.watch_events():
            ...     print(event.at, event.kind, event.job_id)
        """
        async with aclosing(self.queue.watch_events(after=after)) as events:
            async for event in events:
                yield event

    async def retry_all(self) -> int:
        """Have every job that failed for good go on from its checkpoints. How many."""
        return await self.queue.retry_all()

    async def remove_all(self, state: State, *, older_than: Duration | None = None) -> int:
        """Remove its jobs in a state; of those that have ended what ended ``older_than`` ago or earlier. How many."""
        return await self.queue.remove_all(state, older_than=older_than)

    async def retry(self, job_id: str) -> bool:
        """Have a job that failed for good go on from its checkpoints. Whether it was failed."""
        return await self.queue.retry(job_id)

    async def remove(self, job_id: str) -> bool:
        """Remove a job and everything of it; a running one is stopped. Whether there was one."""
        return await self.queue.remove(job_id)

    async def promote(self, job_id: str) -> bool:
        """Have a delayed job run now. Whether it was delayed."""
        return await self.queue.promote(job_id)
