"""Schedules as their users see them: what fires, once, when, and what is left alone.

Fires that were missed are made by moving a schedule back in time where it is stored.
"""

import asyncio
import itertools
import logging
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest

from lanner import Context, InvalidArgumentError, ScheduleNotFoundError, WorkflowNamespace
from lanner.queue import Claim, Namespace, Queue, Schedule, cadence
from lanner.queue.scripts.loader import load
from support.jobs import Desk, Look, worker_of
from support.proxy import Proxy
from support.servers import PrivateServer, Server
from support.waiting import wait_until

DAY = 24 * 3600 * 1000
# its grid is half a day away from when the tests run: no fire of it is real
GRID = datetime.now(UTC) - timedelta(days=200.5)
DAILY = cadence(every=timedelta(days=1), start=GRID)

SKEWED = """
import asyncio, sys, time
real, skew = time.time, float(sys.argv[3])
time.time = lambda: real() + skew
from lanner.queue import Namespace

async def main(url, name):
    async with Namespace(name, redis=url) as namespace:
        async def handle(claim):
            return ""
        async with namespace.queue("q").worker(handle, safety=120):
            await asyncio.to_thread(sys.stdin.read)

asyncio.run(main(*sys.argv[1:3]))
"""


async def done(_: Claim) -> str:
    return ""


async def the(queue: Queue, schedule_id: str = "s") -> Schedule:
    """A schedule as it stands."""
    schedule = await queue.schedules.get(schedule_id)
    assert schedule is not None
    return schedule


async def fired(queue: Queue, fires: int, schedule_id: str = "s") -> Schedule:
    """A schedule as it stands when it has fired so often."""
    await wait_until(lambda: has_fired(queue, fires, schedule_id), 30)
    return await the(queue, schedule_id)


async def has_fired(queue: Queue, fires: int, schedule_id: str) -> bool:
    return (await the(queue, schedule_id)).fires >= fires


async def instants(queue: Queue) -> list[int]:
    """The instants that the completed jobs of schedules stood for, in ms."""
    ids = await queue.list_jobs("completed", limit=1000)
    return sorted([(await queue.job(job_id).record()).spec.scheduled for job_id in ids])


def ms_of(instant: datetime | None) -> int:
    assert instant is not None
    return round(instant.timestamp() * 1000)


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


async def test_setting_a_schedule_again_changes_nothing(namespace: Namespace, look: Look) -> None:
    queue = namespace.queue("q")
    assert await queue.schedules.upsert("s", DAILY, "data") is True
    before, stored = await the(queue), look("HGETALL", "q:schedule:s")
    assert await queue.schedules.upsert("s", DAILY, "data") is False
    again = look("HGETALL", "q:schedule:s")
    assert await the(queue) == before
    assert {name for name in stored if stored[name] != again[name]} <= {"spec"}  # of which the nonce alone is new
    assert await queue.schedules.list() == [before]


async def test_unchanged_timing_keeps_an_instant_that_is_overdue(namespace: Namespace, look: Look) -> None:
    queue = namespace.queue("q")
    await queue.schedules.upsert("s", DAILY, "old")
    first = missed(look, await the(queue), 3)
    await queue.schedules.upsert("s", DAILY, "new", overlap="allow", priority=7)
    assert ms_of((await the(queue)).next_fire) == first
    async with worker_of(queue, done):
        schedule = await fired(queue, 1)
        record = await queue.job(str(schedule.last_job)).record()
    assert (record.data, record.spec.priority, record.spec.group) == ("new", 7, "")


@pytest.mark.parametrize("change", [{"every": 90_000}, {"pattern": "0 0 1 1 *"}, {"jitter": 1}])
async def test_changed_timing_is_armed_anew_and_the_last_fire_is_remembered(
    namespace: Namespace, look: Look, change: dict[str, Any]
) -> None:
    queue = namespace.queue("q")
    await queue.schedules.upsert("s", DAILY, "x")
    missed(look, await the(queue), 5)
    async with worker_of(queue, done):
        before = await fired(queue, 1)
    missed(look, before, 3)
    timing: dict[str, Any] = {**({} if "pattern" in change else {"every": timedelta(days=1), "start": GRID}), **change}
    assert await queue.schedules.upsert("s", cadence(**timing), "x") is False
    after = await the(queue)
    assert ms_of(after.next_fire) > ms_of(before.last_fire)
    kept = [(one.last_fire, one.last_job, one.fires, one.skipped) for one in (before, after)]
    assert kept[0] == kept[1]


async def test_another_way_to_catch_up_is_no_other_timing(namespace: Namespace, look: Look) -> None:
    queue = namespace.queue("q")
    await queue.schedules.upsert("s", DAILY, "x", overlap="allow")
    first = missed(look, await the(queue), 3)
    await queue.schedules.upsert(
        "s", cadence(every=timedelta(days=1), start=GRID, catch_up="all"), "x", overlap="allow"
    )
    assert ms_of((await the(queue)).next_fire) == first
    async with worker_of(queue, done):
        await fired(queue, 1)
        await wait_until(lambda: completed(queue, 3))
    assert (await instants(queue))[0] == first


async def completed(queue: Queue, jobs: int) -> bool:
    return (await queue.counts()).completed >= jobs


@pytest.mark.parametrize(
    ("settings", "made_up"),
    [
        ({}, [59]),
        ({"catch_up": "one"}, [59]),
        ({"catch_up": "all", "catch_up_limit": 7}, range(53, 60)),
        ({"catch_up": "all"}, range(60)),
    ],
)
async def test_sixty_missed_fires_are_made_up_for_once_by_five_workers_started_at_once(
    server: Server, namespace: Namespace, look: Look, settings: dict[str, Any], made_up: Sequence[int]
) -> None:
    queue = namespace.queue("q")
    timing = cadence(every=timedelta(days=1), start=GRID, **settings)
    await queue.schedules.upsert("s", timing, "x", overlap="allow")
    schedule = await the(queue)
    first = missed(look, schedule, 60)
    async with AsyncExitStack() as stack:
        others = [await stack.enter_async_context(Namespace(namespace.id, redis=server.url)) for _ in range(5)]
        workers = [other.queue("q").worker(done, safety=120) for other in others]
        await asyncio.gather(*(stack.enter_async_context(worker) for worker in workers))
        await wait_until(lambda: completed(queue, len(made_up)))
        after = await the(queue)
        assert (after.fires, after.skipped, after.next_fire) == (1, 0, schedule.next_fire)
    assert await instants(queue) == [first + number * DAY for number in made_up]


async def test_missed_fires_that_are_to_be_skipped_run_nothing_and_the_cadence_goes_on(
    namespace: Namespace, look: Look
) -> None:
    queue = namespace.queue("q")
    timing = cadence(every=timedelta(days=1), start=GRID, catch_up="skip")
    await queue.schedules.upsert("s", timing, "x")
    schedule = await the(queue)
    missed(look, schedule, 60)
    async with worker_of(queue, done):
        await wait_until(lambda: armed(queue, schedule.next_fire))
        after = await the(queue)
    assert (after.fires, after.last_fire, after.last_job) == (0, None, None)


async def armed(queue: Queue, instant: datetime | None) -> bool:
    return (await the(queue)).next_fire == instant


async def now_of(namespace: Namespace) -> int:
    runtime = await namespace.runtime()
    seconds, micros = await runtime.call.link.call("TIME")
    return int(seconds) * 1000 + int(micros) // 1000


async def test_each_instant_fires_once_over_many_workers(server: Server, namespace: Namespace) -> None:
    queue = namespace.queue("q")
    async with AsyncExitStack() as stack:
        for _ in range(5):
            other = await stack.enter_async_context(Namespace(namespace.id, redis=server.url))
            await stack.enter_async_context(other.queue("q").worker(done, safety=120))
        await queue.schedules.upsert("s", cadence(every=0.05, catch_up="all"), "x", overlap="allow")
        await wait_until(lambda: completed(queue, 20))
        await queue.schedules.remove("s")
        await wait_until(lambda: nothing_left(queue))
    found = await instants(queue)
    assert found == list(range(found[0], found[-1] + 1, 50))


async def nothing_left(queue: Queue) -> bool:
    counts = await queue.counts()
    return counts.waiting + counts.active == 0


async def test_a_worker_s_clock_is_of_no_concern(server: Server, namespace: Namespace) -> None:
    queue = namespace.queue("q")
    every = 100
    workers = [
        await anyio.open_process([sys.executable, "-c", SKEWED, server.url, namespace.id, skew], stderr=None)
        for skew in ("-10", "0", "10")
    ]
    try:
        await wait_until(lambda: living(namespace, 3), 30)
        begun = await now_of(namespace)
        await queue.schedules.upsert("s", cadence(every=every / 1000, catch_up="all"), "x", overlap="allow")
        await wait_until(lambda: completed(queue, 12))
        await queue.schedules.remove("s")
        await wait_until(lambda: nothing_left(queue))
        ended = await now_of(namespace)
    finally:
        for worker in workers:
            assert worker.stdin is not None
            await worker.stdin.aclose()
            await worker.wait()
            await worker.aclose()
    found = await instants(queue)
    assert found == list(range(found[0], found[-1] + 1, every))
    assert begun < found[0] <= begun + 2 * every
    assert found[-1] <= ended
    for job_id in await queue.list_jobs("completed", limit=1000):
        record = await queue.job(job_id).record()
        assert record.spec.created >= record.spec.scheduled


async def living(namespace: Namespace, workers: int) -> bool:
    return len([worker for worker in await namespace.workers() if worker.departed is None]) == workers


async def test_an_idle_worker_wakes_for_a_new_schedule_and_for_an_earlier_one(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    async with worker_of(queue, done):
        await queue.schedules.upsert("late", DAILY, "x")
        await queue.schedules.upsert("early", cadence(every=0.2), "x")
        await fired(queue, 2, "early")
        await queue.schedules.upsert("late", cadence(every=0.3), "x")
        await fired(queue, 2, "late")


async def test_a_trigger_leaves_the_cadence_alone(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    await queue.schedules.upsert("s", DAILY, "data", priority=5)
    before = await the(queue)
    async with worker_of(queue, done):
        job = await queue.schedules.trigger("s")
        await job.wait(10)
    record = await job.record()
    assert (record.data, record.spec.priority, record.spec.scheduled) == ("data", 5, 0)
    assert record.spec.group == "schedule:s"
    assert await the(queue) == before


async def test_triggers_do_not_share_a_life(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    await queue.schedules.upsert("s", DAILY, "x")
    first, second = await queue.schedules.trigger("s"), await queue.schedules.trigger("s")
    assert first.id != second.id
    assert first.run != second.run


async def test_a_schedule_that_is_not_there_cannot_be_triggered(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    with pytest.raises(ScheduleNotFoundError, match="no schedule 'nightly' of workflow 'q'"):
        await queue.schedules.trigger("nightly")
    assert await queue.schedules.get("nightly") is None
    assert [
        await queue.schedules.remove("nightly"),
        await queue.schedules.pause("nightly"),
        await queue.schedules.resume("nightly"),
    ] == [False] * 3


async def test_a_removed_schedule_fires_no_more_and_its_jobs_stay(namespace: Namespace, look: Look) -> None:
    queue, desk = namespace.queue("q"), Desk()
    await queue.schedules.upsert("s", DAILY, "x")
    missed(look, await the(queue), 1)
    async with worker_of(queue, desk):
        job_id = str((await fired(queue, 1)).last_job)
        await desk.runs(job_id)
        assert await queue.schedules.remove("s") is True
        assert await queue.schedules.list() == []
        desk.open()
        await queue.job(job_id).wait(10)
    assert not look("EXISTS", "q:due")


async def test_a_fire_is_skipped_while_the_previous_job_lives(namespace: Namespace, look: Look) -> None:
    queue, desk = namespace.queue("q"), Desk()
    await queue.schedules.upsert("s", DAILY, "x")
    async with worker_of(queue, desk):
        for fires in (1, 2, 3):
            missed(look, await the(queue), 1)
            schedule = await fired(queue, fires)
            assert schedule.skipped == fires - 1
        desk.let_go(*desk.started)
        await queue.job(desk.started[0]).wait(10)
        missed(look, await the(queue), 1)
        schedule = await fired(queue, 4)
        assert (schedule.skipped, schedule.last_job == desk.started[0]) == (2, False)
        desk.open()
        await queue.job(str(schedule.last_job)).wait(10)
    assert len(desk.started) == 2


@pytest.mark.parametrize("ended", ["failed", "cancelled", "removed", "completed"])
async def test_however_the_previous_job_ended_the_next_fire_runs(namespace: Namespace, look: Look, ended: str) -> None:
    async def handle(_: Claim) -> str:
        if ended == "failed":
            raise ValueError
        return ""

    queue = namespace.queue("q")
    await queue.schedules.upsert("s", DAILY, "x")
    if ended in ("cancelled", "removed"):
        await queue.pause()
    missed(look, await the(queue), 1)
    async with worker_of(queue, handle):
        job = queue.job(str((await fired(queue, 1)).last_job))
        if ended == "cancelled":
            assert await job.cancel()
        if ended == "removed":
            assert await queue.remove(job.id)
        else:
            await wait_until(lambda: has_ended(queue, job.id, ended))
        missed(look, await the(queue), 1)
        schedule = await fired(queue, 2)
        assert (schedule.skipped, schedule.last_job == job.id) == (0, False)
        await queue.resume()
        await wait_until(lambda: nothing_left(queue))


async def has_ended(queue: Queue, job_id: str, state: str) -> bool:
    return await queue.job(job_id).state() == state


async def test_overlapping_jobs_run_side_by_side_where_allowed(namespace: Namespace, look: Look) -> None:
    queue, desk = namespace.queue("q"), Desk()
    await queue.schedules.upsert("s", DAILY, "x", overlap="allow")
    async with worker_of(queue, desk):
        for fires in (1, 2, 3):
            missed(look, await the(queue), 1)
            await fired(queue, fires)
        await wait_until(lambda: len(desk.running) == 3)
        desk.open()
        await wait_until(lambda: nothing_left(queue))
    assert (await the(queue)).skipped == 0


async def test_the_previous_job_is_cancelled_where_asked_for(namespace: Namespace, look: Look) -> None:
    queue, desk = namespace.queue("q"), Desk()
    await queue.schedules.upsert("s", DAILY, "x", overlap="cancel")
    async with worker_of(queue, desk):
        missed(look, await the(queue), 1)
        first = str((await fired(queue, 1)).last_job)
        await desk.runs(first)
        missed(look, await the(queue), 1)
        second = str((await fired(queue, 2)).last_job)
        await desk.runs(second)
        record = await queue.job(first).record()
        assert (record.state, record.reason) == ("cancelled", "the schedule fired again")
        desk.open()
        await queue.job(second).wait(10)
    # they are in one group: the second waited for the first to be gone
    assert desk.most == 1


async def test_a_paused_schedule_fires_nothing_and_what_it_missed_stays_missed(
    namespace: Namespace, look: Look
) -> None:
    queue = namespace.queue("q")
    await queue.schedules.upsert("s", DAILY, "x")
    assert await queue.schedules.pause("s") is True
    assert await queue.schedules.pause("s") is True
    paused = await the(queue)
    assert (paused.paused, paused.next_fire) == (True, None)
    await queue.schedules.upsert("other", cadence(every=0.1), "x")
    look("HSET", "q:schedule:s", "armed", 1)
    async with worker_of(queue, done):
        await fired(queue, 2, "other")
        await queue.schedules.resume("s")
        schedule = await the(queue)
        assert schedule.paused is False
        assert ms_of(schedule.next_fire) > await now_of(namespace)
        # one more look at them
        await fired(queue, (await the(queue, "other")).fires + 2, "other")
        assert (await the(queue)).fires == 0


async def test_a_paused_schedule_stays_so_when_it_is_set_again(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    await queue.schedules.upsert("s", DAILY, "x")
    await queue.schedules.pause("s")
    await queue.schedules.upsert("s", cadence("0 0 1 1 *"), "y")
    schedule = await the(queue)
    assert (schedule.paused, schedule.next_fire, schedule.data) == (True, None, "y")
    await queue.schedules.resume("s")
    resumed = (await the(queue)).next_fire
    assert resumed is not None
    assert (resumed.month, resumed.day) == (1, 1)


async def test_a_paused_schedule_can_be_triggered(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    await queue.schedules.upsert("s", DAILY, "x")
    await queue.schedules.pause("s")
    async with worker_of(queue, done):
        await (await queue.schedules.trigger("s")).wait(10)
    assert (await the(queue)).paused


async def test_a_resumed_schedule_wakes_an_idle_worker(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    await queue.schedules.upsert("s", cadence(every=0.1), "x")
    await queue.schedules.pause("s")
    async with worker_of(queue, done):
        await (await queue.add("x")).wait(10)
        await queue.schedules.resume("s")
        await fired(queue, 2)


async def test_to_resume_what_is_not_paused_changes_nothing(namespace: Namespace, look: Look) -> None:
    queue = namespace.queue("q")
    await queue.schedules.upsert("s", DAILY, "x")
    first = missed(look, await the(queue), 2)
    assert await queue.schedules.resume("s") is True
    assert ms_of((await the(queue)).next_fire) == first


async def test_a_schedule_fires_from_its_start_to_its_end(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    now = await now_of(namespace)
    start, end = (datetime.fromtimestamp((now + ahead) / 1000, UTC) for ahead in (300, 620))
    timing = cadence(every=0.1, start=start, end=end, catch_up="all")
    await queue.schedules.upsert("s", timing, "x", overlap="allow")
    async with worker_of(queue, done):
        await wait_until(lambda: armed(queue, None))
        await wait_until(lambda: completed(queue, 4))
    assert await instants(queue) == [now + ahead for ahead in (300, 400, 500, 600)]
    # it stays, to be looked at; setting it again as it was does not revive it
    assert await queue.schedules.upsert("s", timing, "x", overlap="allow") is False
    assert (await the(queue)).next_fire is None
    assert [schedule.id for schedule in await queue.schedules.list()] == ["s"]


async def test_an_exhausted_schedule_goes_on_with_a_later_end(namespace: Namespace, look: Look) -> None:
    queue = namespace.queue("q")
    now = await now_of(namespace)
    over, later = (datetime.fromtimestamp((now + ahead) / 1000, UTC) for ahead in (-1000, 10 * DAY))
    await queue.schedules.upsert("s", cadence(every=timedelta(days=1), start=GRID, end=over), "x")
    assert (await the(queue)).next_fire is None
    await queue.schedules.upsert("s", cadence(every=timedelta(days=1), start=GRID, end=later), "x")
    assert ms_of((await the(queue)).next_fire) > now
    missed(look, await the(queue), 1)
    async with worker_of(queue, done):
        await fired(queue, 1)


async def test_a_pattern_with_seconds_fires_on_the_second(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    async with worker_of(queue, done):
        await queue.schedules.upsert("s", cadence("* * * * * *", tz="Europe/Berlin"), "x")
        await fired(queue, 1)
        await wait_until(lambda: completed(queue, 1))
    assert [instant % 1000 for instant in await instants(queue)] == [0] * len(await instants(queue))


async def test_jitter_puts_a_fire_off_and_never_brings_it_forward(namespace: Namespace) -> None:
    queue, timing = namespace.queue("q"), cadence(every=0.2, jitter=0.1, catch_up="all")
    async with worker_of(queue, done):
        await queue.schedules.upsert("s", timing, "x", overlap="allow")
        await wait_until(lambda: completed(queue, 5))
        await queue.schedules.remove("s")
        await wait_until(lambda: nothing_left(queue))
    delays: list[int] = []
    for job_id in await queue.list_jobs("completed"):
        record = await queue.job(job_id).record()
        put_off = timing.fire_ms(record.spec.scheduled, f"{namespace.base}:q:s")
        assert record.spec.created >= put_off >= record.spec.scheduled
        delays.append(put_off - record.spec.scheduled)
    assert max(delays) < 100
    assert len(set(delays)) > 1
    found = await instants(queue)
    assert found == list(range(found[0], found[-1] + 1, 200))


async def test_many_schedules_that_are_due_at_once_all_fire(namespace: Namespace, look: Look) -> None:
    queue = namespace.queue("q")
    for number in range(70):
        await queue.schedules.upsert(f"s{number}", DAILY, str(number), overlap="allow")
    for schedule in await queue.schedules.list():
        missed(look, schedule, 2)
    async with worker_of(queue, done):
        await wait_until(lambda: completed(queue, 70))
    records = [await queue.job(job_id).record() for job_id in await queue.list_jobs("completed")]
    assert Counter(int(record.data) for record in records) == Counter(range(70))


@pytest.mark.parametrize(
    "unfit", [("Europe/Berlin", "Mars/Olympus"), ("* * * * *", "60 * * * *"), ('"pattern"', '"every_ms"')]
)
async def test_a_schedule_that_cannot_be_fired_here_holds_up_nobody(
    namespace: Namespace, proxy: Proxy, look: Look, caplog: pytest.LogCaptureFixture, unfit: tuple[str, str]
) -> None:
    queue = namespace.queue("q")
    for number in range(25):
        await queue.schedules.upsert(f"bad {number}", cadence("* * * * *", tz="Europe/Berlin"), "x")
        stored = look("HGET", f"q:schedule:bad {number}", "cadence")
        look("HSET", f"q:schedule:bad {number}", "cadence", stored.replace(*unfit))
        look("ZADD", "q:due", 1000, f"bad {number}")
        look("HSET", f"q:schedule:bad {number}", "armed", 1000)
    await queue.schedules.upsert("good", cadence(every=0.1), "x", overlap="allow")
    async with Namespace(namespace.id, redis=proxy.url) as other:
        with caplog.at_level(logging.ERROR, "lanner.queue.schedules"):
            async with other.queue("q").worker(done, safety=120):
                before = proxy.requests_with(load("due_schedules").sha)
                schedule = await fired(queue, 4, "good")
                asked = proxy.requests_with(load("due_schedules").sha) - before
    assert asked <= 3 * schedule.fires + 5
    told = Counter(record.args[0] for record in caplog.records if isinstance(record.args, tuple))
    assert set(told) == {f"bad {number}" for number in range(25)}
    assert max(told.values()) == 1


async def test_schedules_go_on_while_all_slots_are_busy(namespace: Namespace) -> None:
    queue, desk = namespace.queue("q"), Desk()
    await queue.schedules.upsert("s", cadence(every=0.1), "x", overlap="allow")
    async with worker_of(queue, desk, concurrency=1):
        await wait_until(lambda: len(desk.running) == 1)
        await wait_until(lambda: waiting(queue, 5))
        await queue.schedules.remove("s")
        desk.open()
        await wait_until(lambda: nothing_left(queue))


async def test_a_schedule_set_while_all_slots_are_busy_is_seen(namespace: Namespace) -> None:
    queue, desk = namespace.queue("q"), Desk()
    async with worker_of(queue, desk, concurrency=1):
        busy = await queue.add("x")
        await desk.runs(busy.id)
        await queue.schedules.upsert("s", cadence(every=0.1), "x", overlap="allow")
        await wait_until(lambda: waiting(queue, 3), 20)
        await queue.schedules.remove("s")
        desk.open()
        await wait_until(lambda: nothing_left(queue))


async def waiting(queue: Queue, jobs: int) -> bool:
    return (await queue.counts()).waiting >= jobs


async def test_a_worker_with_only_far_future_jobs_and_schedules_closes_at_once(
    server: Server, namespace_id: str
) -> None:
    async with Namespace(namespace_id, redis=server.url) as namespace:
        queue = namespace.queue("q")
        job = await queue.add("x", run_in=timedelta(days=30))
        await queue.schedules.upsert("s", cadence("0 0 1 1 *"), "x")
        worker = queue.worker(done, grace=3600, safety=3600)
        await worker.start()
        await (await queue.add("y")).wait(10)
        # an hour's grace and the next instant are far away: nothing waits for either
        async with asyncio.timeout(60):
            await worker.stop()
            await queue.remove(job.id)


async def test_lost_answers_neither_add_a_fire_nor_lose_one(namespace: Namespace, proxy: Proxy) -> None:
    queue = namespace.queue("q")
    proxy.lose_answers(load("fire_schedule").sha, every=2)
    async with Namespace(namespace.id, redis=proxy.url) as other:
        async with other.queue("q").worker(done, safety=1):
            await queue.schedules.upsert("s", cadence(every=0.1, catch_up="all"), "x", overlap="allow")
            await wait_until(lambda: completed(queue, 12), 30)
            await queue.schedules.remove("s")
            await wait_until(lambda: nothing_left(queue))
        assert proxy.lost_answers >= 3
    found = await instants(queue)
    assert found == list(range(found[0], found[-1] + 1, 100))


async def test_lost_answers_change_nothing_in_what_calls_say_and_do(namespace: Namespace, proxy: Proxy) -> None:
    queue = namespace.queue("q")
    async with Namespace(namespace.id, redis=proxy.url) as other:
        remote = other.queue("q").schedules
        await remote.list()
        for script in ("set_schedule", "pause_schedule", "add_jobs"):
            proxy.lose_answers(load(script).sha, every=2)
        await other.queue("q").pause()
        for name in ("a", "b", "c", "d"):
            assert await remote.upsert(name, DAILY, "x") is True
            assert await remote.upsert(name, DAILY, "x") is False
            assert await remote.pause(name) is True
            assert await remote.resume(name) is True
            await remote.trigger(name)
        assert proxy.lost_answers >= 6
    assert (await queue.counts()).waiting == 4
    assert [schedule.paused for schedule in await queue.schedules.list()] == [False] * 4


async def test_fires_that_nobody_could_make_while_redis_was_away_are_made_up_for_once(
    own_server: PrivateServer,
) -> None:
    async with Namespace("shop", redis=own_server.url, producer_timeout=30) as namespace:
        queue = namespace.queue("q")
        await queue.schedules.upsert("s", cadence(every=0.1), "x", overlap="allow")
        async with queue.worker(done, safety=120):
            await fired(queue, 2)
            own_server.stop()
            await asyncio.sleep(0.5)  # five of its fires come to nothing
            own_server.start()
            before = await the(queue)
            await fired(queue, before.fires + 3)
            await queue.schedules.remove("s")
            await wait_until(lambda: nothing_left(queue))
        found = await instants(queue)
    assert len(set(found)) == len(found)
    gaps = [later - earlier for earlier, later in itertools.pairwise(found)]
    assert max(gaps) >= 300


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"schedule_id": ""}, "schedule id"),
        ({"schedule_id": "x" * 257}, "schedule id"),
        ({"schedule_id": "a\nb"}, "schedule id"),
        ({"cadence": "0 3 * * *"}, r"cadence must be made by cadence\(pattern\)"),
        ({"data": 5}, "data must be a str"),
        ({"overlap": "both"}, "overlap"),
        ({"id": "mine"}, "no option 'id'"),
        ({"run_in": 5}, "no option 'run_in'"),
        ({"throttle": None}, "no option 'throttle'"),
        ({"priority": -1}, "priority"),
        ({"group": ""}, "group"),
    ],
)
async def test_an_unfit_argument_is_refused_by_name_and_nothing_is_stored(
    namespace: Namespace, look: Look, arguments: dict[str, Any], why: str
) -> None:
    queue = namespace.queue("q")
    given: dict[str, Any] = {"schedule_id": "s", "cadence": DAILY, "data": "x", **arguments}
    with pytest.raises(InvalidArgumentError, match=why):
        await queue.schedules.upsert(**given)
    assert not look("EXISTS", "q:due")


async def test_schedule_ids_are_free_text(namespace: Namespace, look: Look) -> None:
    queue = namespace.queue("q")
    ids = ["user:42", "täglich um 3", "{x}", "a b", "*", "x" * 256]
    for schedule_id in ids:
        await queue.schedules.upsert(schedule_id, DAILY, schedule_id)
        missed(look, await the(queue, schedule_id), 1)
    async with worker_of(queue, done):
        await wait_until(lambda: completed(queue, len(ids)))
    for schedule_id in ids:
        schedule = await the(queue, schedule_id)
        assert (schedule.fires, schedule.data) == (1, schedule_id)
        assert await queue.schedules.remove(schedule_id)


async def test_a_workflow_s_schedule_runs_it_by_the_clock(server: Server, namespace_id: str) -> None:
    seen: list[tuple[str, datetime | None]] = []

    async def report(ctx: Context[str]) -> str:
        seen.append((ctx.input, ctx.scheduled))
        return ctx.group

    async with WorkflowNamespace(namespace_id, redis=server.url) as namespace:
        reports = namespace.create_workflow("reports", run=report)
        assert await reports.upsert_schedule("often", None, "all", every=timedelta(seconds=0.1), max_attempts=3)
        assert await reports.upsert_schedule("nightly", "0 3 * * *", "some", tz="Europe/Berlin")
        async with reports.worker(safety=120):
            await wait_until(lambda: len(seen) >= 2)
            job = await reports.trigger_schedule("nightly")
            assert await job.wait(10) == "schedule:nightly"
            assert await reports.pause_schedule("often")
            assert await reports.resume_schedule("often")
            often, nightly = await reports.get_schedules()
            assert (often.id, often.paused, nightly.id, nightly.fires) == ("often", False, "nightly", 0)
            assert nightly.cadence == cadence("0 3 * * *", tz="Europe/Berlin")
            assert await reports.remove_schedule("often")
            await wait_until(lambda: nothing_left(reports.queue))
    scheduled = [instant for text, instant in seen if text == "all" and instant is not None]
    assert len(scheduled) >= 2
    assert all(ms_of(instant) % 100 == 0 and instant.tzinfo is UTC for instant in scheduled)
    assert ("some", None) in seen


async def test_a_workflow_s_group_is_that_of_its_schedules(server: Server, namespace_id: str) -> None:
    async def report(ctx: Context[str]) -> str:
        return ctx.group

    async with WorkflowNamespace(namespace_id, redis=server.url) as namespace:
        reports = namespace.create_workflow("reports", run=report, get_group_id=lambda tenant: tenant)
        await reports.upsert_schedule("a", "@daily", "acme")
        await reports.upsert_schedule("b", "@daily", "acme", group="other")
        async with reports.worker(safety=120):
            assert await (await reports.trigger_schedule("a")).wait(10) == "acme"
            assert await (await reports.trigger_schedule("b")).wait(10) == "other"


@pytest.mark.parametrize("option", ["id", "unique", "if_exists", "throttle", "debounce", "run_in"])
async def test_options_that_mean_nothing_to_a_workflow_s_schedule_are_refused(option: str) -> None:
    async def report(_: Context[str]) -> None:
        pass

    reports = WorkflowNamespace("shop").create_workflow("reports", run=report)
    options: dict[str, Any] = {option: "x"}
    with pytest.raises(InvalidArgumentError, match=f"no option '{option}'"):
        await reports.upsert_schedule("s", "@daily", "x", **options)
