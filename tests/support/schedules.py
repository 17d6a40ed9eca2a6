"""Schedules as a test sets them and looks at them.

Fires that were missed are made by moving a schedule back in time where it is stored.
"""

from datetime import UTC, datetime, timedelta

from lanner.queue import Claim, Namespace, Queue, Schedule, cadence

from .jobs import PATIENCE, Look
from .waiting import wait_until

DAY = 24 * 3600 * 1000
# its grid is half a day away from when the tests run: no fire of it is real
GRID = datetime.now(UTC) - timedelta(days=200.5)
DAILY = cadence(every=timedelta(days=1), start=GRID)


async def done(_: Claim) -> str:
    return ""


async def the(queue: Queue, schedule_id: str = "s") -> Schedule:
    """A schedule as it stands."""
    schedule = await queue.schedules.get(schedule_id)
    assert schedule is not None
    return schedule


async def fired(queue: Queue, fires: int, schedule_id: str = "s") -> Schedule:
    """A schedule as it stands when it has fired so often."""
    await wait_until(lambda: has_fired(queue, fires, schedule_id), PATIENCE)
    return await the(queue, schedule_id)


async def has_fired(queue: Queue, fires: int, schedule_id: str) -> bool:
    return (await the(queue, schedule_id)).fires >= fires


async def armed(queue: Queue, instant: datetime | None) -> bool:
    return (await the(queue)).next_fire == instant


async def completed(queue: Queue, jobs: int) -> bool:
    return (await queue.counts()).completed >= jobs


async def waiting(queue: Queue, jobs: int) -> bool:
    return (await queue.counts()).waiting >= jobs


async def nothing_left(queue: Queue) -> bool:
    counts = await queue.counts()
    return counts.waiting + counts.active == 0


async def instants(queue: Queue) -> list[int]:
    """The instants that the completed jobs of schedules stood for, in ms."""
    ids = await queue.list_jobs("completed", limit=1000)
    return sorted([(await queue.job(job_id).record()).spec.scheduled for job_id in ids])


def ms_of(instant: datetime | None) -> int:
    assert instant is not None
    return round(instant.timestamp() * 1000)


async def now_of(namespace: Namespace) -> int:
    runtime = await namespace.runtime()
    seconds, micros = await runtime.call.link.call("TIME")
    return int(seconds) * 1000 + int(micros) // 1000


def missed(look: Look, schedule: Schedule, fires: int) -> int:
    """Move a daily schedule back, so that so many of its fires have been missed; the first of them, in ms.

    A worker, be it there or to come, looks at it then.
    """
    first = ms_of(schedule.next_fire) - fires * DAY
    look("HSET", f"q:schedule:{schedule.id}", "armed", str(first))
    look("ZADD", "q:due", first, schedule.id)
    look("LPUSH", "q:clock", "1")
    look("PEXPIRE", "q:clock", 60_000)
    return first
