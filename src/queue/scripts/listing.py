from dataclasses import dataclass

from ..calling import Caller


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many jobs there are by state; ``ready`` counts the waiting ones without a group, and runnable groups."""

    ready: int
    active: int
    delayed: int
    parked: int
    completed: int
    failed: int
    cancelled: int


async def count_jobs(call: Caller, *, workflow: str) -> Sizes:
    """Count a workflow's jobs."""
    return Sizes(*await call("count_jobs", workflow))


@dataclass(frozen=True, slots=True)
class GroupPage:
    """What some of the groups have waiting; ``standing`` of them are in ``ready``. Cursor 0 is after the last."""

    cursor: int
    jobs: int
    standing: int
    oldest_ms: int


async def count_groups(call: Caller, *, workflow: str, cursor: int) -> GroupPage:
    """Count the waiting jobs of some groups."""
    return GroupPage(*await call("count_groups", workflow, cursor))


async def oldest_ungrouped(call: Caller, *, workflow: str) -> tuple[int, int]:
    """Redis' now, and when the oldest waiting job without a group was created (0: none)."""
    now, created = await call("oldest_ungrouped", workflow)
    return now, created


@dataclass(frozen=True, slots=True)
class JobPage:
    """Some of the jobs in a state; ``place`` is where to go on, empty after the last."""

    place: str
    skip: int
    ids: list[str]


async def list_jobs(call: Caller, *, workflow: str, state: str, place: str, skip: int, limit: int) -> JobPage:
    """Some of the ids of a page of jobs in a state, as much as one call looks at; of active ones all that it saw."""
    on, left, ids = await call("list_jobs", workflow, state, place, skip, limit)
    return JobPage(on.decode(), left, [job_id.decode() for job_id in ids])


async def beat_worker(call: Caller, *, worker: str, about: str, ttl: int) -> None:
    """Say that a worker lives."""
    await call("beat_worker", worker, about, ttl)


async def leave_worker(call: Caller, *, worker: str) -> None:
    """Say that a worker has stopped in good order."""
    await call("leave_worker", worker)


async def list_workers(
    call: Caller, *, ttl: int, skip: int, limit: int
) -> tuple[list[tuple[str, int, str]], list[list[str]]]:
    """A page of living workers (id, last seen, about), the last seen first; departed ones (id, how, when, about)."""
    living, departed = await call("list_workers", ttl, skip, limit)
    return (
        [(worker.decode(), int(seen), about.decode()) for worker, seen, about in living],
        [line.decode().split("\n", 3) for line in departed],
    )
