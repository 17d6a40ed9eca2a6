"""What a queue tells of its jobs, and does with many of them; without SCAN or KEYS, each call bounded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from ..errors import InvalidArgumentError
from . import keys
from .calling import Caller
from .names import new_nonce
from .options import Duration
from .scripts.controlling import remove_jobs, retry_jobs
from .scripts.listing import Sizes, count_groups, count_jobs, list_jobs, oldest_ungrouped
from .validation import check_choice, check_free_id, check_int, duration_ms

if TYPE_CHECKING:
    from .namespace import Namespace

State = Literal["waiting", "delayed", "parked", "active", "completed", "failed", "cancelled"]
STATES: Final[tuple[State, ...]] = ("waiting", "delayed", "parked", "active", "completed", "failed", "cancelled")
ENDED: Final = ("completed", "failed", "cancelled")
MOST_AT_ONCE: Final = 100
MOST_A_PAGE: Final = 1000


@dataclass(frozen=True, slots=True)
class Counts:
    """How many jobs a queue has in each state. ``parked`` ones wait for an event or a child, and for no instant."""

    waiting: int
    delayed: int
    parked: int
    active: int
    completed: int
    failed: int
    cancelled: int


async def page_of_jobs(call: Caller, queue_id: str, state: str, skip: int, limit: int) -> list[str]:
    """The ids of a page of the jobs in a state, however many calls that takes."""
    ids: list[str] = []
    place, left = "", skip
    while True:
        page = await list_jobs(
            call, workflow=queue_id, state=state, place=place, skip=left, limit=max(limit - len(ids), 0)
        )
        ids += page.ids
        place, left = page.place, page.skip
        if not place or (state != "active" and len(ids) >= limit):
            break
    # a set has no order, and may show a member twice
    return sorted(set(ids))[skip : skip + limit] if state == "active" else ids


class Listing:
    """The part of a queue that looks at jobs, and handles many at once."""

    namespace: Namespace
    id: str

    async def counts(self) -> Counts:
        """Count the jobs by state: a call, and one for every 200 groups that have waiting jobs."""
        sizes = await self._sizes()
        grouped, standing, _ = await self._groups()
        return Counts(
            waiting=max(sizes.ready - standing, 0) + grouped,
            delayed=sizes.delayed,
            parked=sizes.parked,
            active=sizes.active,
            completed=sizes.completed,
            failed=sizes.failed,
            cancelled=sizes.cancelled,
        )

    async def oldest_waiting(self) -> float | None:
        """Seconds since the oldest job at the head of a line was added; None when none waits.

        The lines are the priorities in use of jobs without a group, and the groups.
        """
        now, created = await self.namespace.persist(
            lambda runtime: oldest_ungrouped(runtime.call, workflow=self.id), f"looking at jobs of {self.id!r}"
        )
        _, _, grouped = await self._groups()
        oldest = min((instant for instant in (created, grouped) if instant), default=None)
        return None if oldest is None else max(now - oldest, 0) / 1000

    async def list_jobs(self, state: State, *, skip: int = 0, limit: int = 100) -> list[str]:
        """The ids of a page of the jobs in a state.

        Args:
            state: One of waiting, delayed, parked, active, completed, failed, cancelled.
            skip: How many to pass over.
            limit: How many at most, up to 1,000.
        """
        check_choice(state, "state", STATES)
        check_int(skip, "skip", 0, 2**53)
        check_int(limit, "limit", 1, MOST_A_PAGE)
        return await self.namespace.persist(
            lambda runtime: page_of_jobs(runtime.call, self.id, state, skip, limit), f"listing jobs of {self.id!r}"
        )

    async def list_group(self, group: str, *, skip: int = 0, limit: int = 100) -> list[str]:
        """The ids of a page of a group's waiting jobs, in order."""
        key = keys.group(self.namespace.base, self.id, check_free_id(group, "group"))
        check_int(skip, "skip", 0, 2**53)
        last = skip + check_int(limit, "limit", 1, MOST_A_PAGE) - 1
        ids: list[bytes] = await self.namespace.persist(
            lambda runtime: runtime.call.link.call("ZRANGE", key, skip, last), f"listing group {group!r}"
        )
        return [job_id.decode() for job_id in ids]

    async def retry_all(self) -> int:
        """Have every job that has failed for good by now run again from its checkpoints, 100 a call. How many."""
        # the oldest come first, so that one which fails anew meanwhile is not retried over and over
        failed, total = (await self._sizes()).failed, 0
        while total < failed:
            most = min(failed - total, MOST_AT_ONCE)
            retried = await self._retry_page(most, total)
            total += retried
            if retried < most:
                break
        await self.namespace.end_descendants(f"{total} jobs are retried")
        return total

    async def remove_all(self, state: State, *, older_than: Duration | None = None) -> int:
        """Remove the jobs in a state, 100 a call; those that run are stopped. How many.

        Args:
            state: One of waiting, delayed, parked, active, completed, failed, cancelled.
            older_than: Only what ended this long ago or earlier; for completed, failed and cancelled jobs.

        Raises:
            InvalidArgumentError: An argument cannot be used.
        """
        check_choice(state, "state", STATES)
        if older_than is not None and state not in ENDED:
            raise InvalidArgumentError(f"older_than is for jobs that have ended ({', '.join(ENDED)}), not for {state}")
        age = 0 if older_than is None else max(duration_ms(older_than, "older_than"), 1)
        total = skip = 0
        while True:
            removed, seen = await self._remove_page(state, age, skip, total)
            total += removed
            skip += seen - removed
            if seen < MOST_AT_ONCE:
                await self.namespace.end_descendants(f"{total} jobs are removed")
                return total

    async def _retry_page(self, most: int, before: int) -> int:
        nonce = new_nonce()
        return await self.namespace.persist(
            lambda runtime: retry_jobs(runtime.call, workflow=self.id, limit=most, nonce=nonce),
            f"retrying the failed jobs of {self.id!r}",
            f"{before} had been retried before." if before else "",
        )

    async def _sizes(self) -> Sizes:
        return await self.namespace.persist(
            lambda runtime: count_jobs(runtime.call, workflow=self.id), f"counting jobs of {self.id!r}"
        )

    async def _remove_page(self, state: State, age: int, skip: int, before: int) -> tuple[int, int]:
        nonce = new_nonce()
        return await self.namespace.persist(
            lambda runtime: remove_jobs(
                runtime.call, workflow=self.id, state=state, age=age, skip=skip, limit=MOST_AT_ONCE, nonce=nonce
            ),
            f"removing jobs of {self.id!r}",
            f"{before} had been removed before." if before else "",
        )

    async def _groups(self) -> tuple[int, int, int]:
        """Waiting jobs in groups, how many groups are runnable, and when the oldest head was created."""
        jobs = standing = cursor = 0
        oldest = 0
        while True:
            position = cursor
            page = await self.namespace.persist(
                lambda runtime: count_groups(runtime.call, workflow=self.id, cursor=position),  # noqa: B023 - awaited at once
                f"counting groups of {self.id!r}",
            )
            jobs += page.jobs
            standing += page.standing
            if page.oldest_ms and (not oldest or page.oldest_ms < oldest):
                oldest = page.oldest_ms
            cursor = page.cursor
            if not cursor:
                return jobs, standing, oldest
