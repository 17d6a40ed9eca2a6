"""When schedules fire: each instant once, by whichever worker, in its bounds, and whatever else is going on."""

import asyncio
import logging
import sys
from collections import Counter
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta

import anyio
import pytest

from lanner.queue import Namespace, cadence
from lanner.queue.scripts.loader import load
from support.jobs import PATIENCE, Desk, Look, worker_of
from support.proxy import Proxy
from support.schedules import (
    DAILY,
    DAY,
    GRID,
    armed,
    completed,
    done,
    fired,
    instants,
    missed,
    ms_of,
    nothing_left,
    now_of,
    the,
    waiting,
)
from support.servers import Server
from support.waiting import wait_until

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


async def test_each_instant_fires_once_over_many_workers(server: Server, namespace: Namespace) -> None:
    queue = namespace.queue("q")
    async with AsyncExitStack() as stack:
        for _ in range(5):
            other = await stack.enter_async_context(Namespace(namespace.id, redis=server.url))
            await stack.enter_async_context(other.queue("q").worker(done, safety=120))
        await queue.schedules.upsert("s", cadence(every=0.05, catch_up="all", catch_up_limit=200), "x", overlap="allow")
        await wait_until(lambda: completed(queue, 20))
        await queue.schedules.remove("s")
        await wait_until(lambda: nothing_left(queue))
    found = await instants(queue)
    assert found == list(range(found[0], found[-1] + 1, 50))


async def test_a_worker_s_clock_is_of_no_concern(server: Server, namespace: Namespace) -> None:
    queue = namespace.queue("q")
    every = 100
    workers = [
        await anyio.open_process([sys.executable, "-c", SKEWED, server.url, namespace.id, skew], stderr=None)
        for skew in ("-10", "0", "10")
    ]
    try:
        await wait_until(lambda: living(namespace, 3), PATIENCE)
        begun = await now_of(namespace)
        await queue.schedules.upsert("s", cadence(every=every / 1000, catch_up="all"), "x", overlap="allow")
        is_set = await now_of(namespace)
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
    assert begun < found[0] <= is_set + every
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


async def test_a_schedule_fires_from_its_start_to_its_end(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    ahead = 300
    while True:
        first = await now_of(namespace) + ahead
        start, end = (datetime.fromtimestamp(instant / 1000, UTC) for instant in (first, first + 320))
        timing = cadence(every=0.1, start=start, end=end, catch_up="all")
        await queue.schedules.upsert("s", timing, "x", overlap="allow")
        # a slow machine may have set it too late for that
        if await now_of(namespace) < first:
            break
        ahead *= 2
    async with worker_of(queue, done):
        await wait_until(lambda: armed(queue, None))
        await wait_until(lambda: completed(queue, 4))
    assert await instants(queue) == [first + after for after in (0, 100, 200, 300)]
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


async def test_a_worker_with_only_far_future_jobs_and_schedules_closes_at_once(
    server: Server, namespace_id: str
) -> None:
    async with Namespace(namespace_id, redis=server.url) as namespace:
        queue = namespace.queue("q")
        job = await queue.add("x", run_in=timedelta(days=30))
        await queue.schedules.upsert("s", cadence("0 0 1 1 *"), "x")
        worker = queue.worker(done, grace=3600, safety=3600)
        await worker.start()
        await (await queue.add("y")).wait(PATIENCE)
        # an hour's grace and the next instant are far away: nothing waits for either
        async with asyncio.timeout(60):
            await worker.stop()
            await queue.remove(job.id)
