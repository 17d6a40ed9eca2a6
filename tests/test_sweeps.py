"""Sweeps: rounds that look for claims whose lease has run out, in bounded portions, and take each back once."""

import asyncio
import contextlib
from collections import Counter

import pytest

from lanner.queue import Job, Namespace
from lanner.queue.bulk import send_many
from lanner.queue.queue import Added
from lanner.queue.scripts.claiming import sweep_claims
from support.jobs import PATIENCE, Desk, Look, results_of, sweep, worker_of
from support.lost import vanish
from support.servers import Server

# of workers that are to sweep soon; a machine that stands still for a moment costs them what they hold
LEASE = 0.4


async def some_late(namespace: Namespace, look: Look) -> list[Job]:
    """Of 2,500 jobs that run those whose lease has run out."""
    jobs = await namespace.queue("q").add_many(["x"] * 2500, result_ttl=0)
    for _ in range(5):
        await vanish(namespace, "q", 500, lease_ms=600_000)
    for job in jobs[::100]:
        look.expire_lease("q", job.id)
    return jobs[::100]


async def test_a_sweep_leaves_what_is_leased_to_its_worker(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    jobs = [await queue.add("x", id=job_id) for job_id in ("held", "late")]
    await vanish(namespace, "q", lease_ms=600_000)
    await vanish(namespace, "q")
    assert await sweep(namespace) == ["q:late"]
    assert [await job.state() for job in jobs] == ["active", "waiting"]
    await queue.remove("held")
    await queue.remove("late")


async def test_twenty_sweeps_at_once_return_a_job_once(server: Server, namespace_id: str) -> None:
    async with contextlib.AsyncExitStack() as stack:
        spaces = [await stack.enter_async_context(Namespace(namespace_id, redis=server.url)) for _ in range(20)]
        job = await spaces[0].queue("q").add("x")
        await vanish(spaces[0], "q")
        calls = [(await each.runtime()).call for each in spaces]
        swept = await asyncio.gather(*(sweep_claims(call, lease=1000, interval=0, limit=10) for call in calls))
        assert [name for each in swept for name in each.recovered] == [f"q:{job.id}"]
        assert (await job.record()).stalls == 1
        await spaces[0].queue("q").remove(job.id)


async def test_thousands_of_expired_claims_come_back_in_bounded_calls(namespace: Namespace, look: Look) -> None:
    queue, count = namespace.queue("q"), 8000
    await queue.set_limits(group_concurrency=None)
    await send_many(queue, [queue.prepare("x", Added(id=str(n), group=f"g{n % 500}"), {}) for n in range(count)])
    claimed = 0
    while claimed < count:
        claimed += len(await vanish(namespace, "q", 400))
    call = (await namespace.runtime()).call
    returned: list[int] = []
    while look("EXISTS", "running"):
        returned.append(len((await sweep_claims(call, lease=1000, interval=0, limit=200)).recovered))
    assert (sum(returned), max(returned)) == (count, 200)
    assert len(returned) < 45
    assert not look("EXISTS", "q:active")
    assert (await queue.counts()).waiting == count
    assert await queue.remove_all("waiting") == count


@pytest.mark.parametrize("count", [999, 1000, 1001, 1040, 1080, 2000])
async def test_a_sweep_comes_to_its_end_however_many_run(namespace: Namespace, look: Look, count: int) -> None:
    queue = namespace.queue("q")
    jobs = await queue.add_many(["x"] * count, result_ttl=0)
    claimed = 0
    while claimed < count:
        claimed += len(await vanish(namespace, "q", min(500, count - claimed), lease_ms=600_000))
    look.expire_lease("q", jobs[-1].id)
    call = (await namespace.runtime()).call
    looks = [await sweep_claims(call, lease=1000, interval=60_000, limit=10)]
    while not looks[-1].again_ms and len(looks) < 4:
        looks.append(await sweep_claims(call, lease=1000, interval=60_000, limit=10))
    assert looks[-1].again_ms
    found = [name for each in looks for name in each.recovered]
    assert found == [f"q:{jobs[-1].id}"]
    await queue.remove_all("active")
    await queue.remove_all("waiting")


async def test_claims_of_many_that_run_are_looked_at_in_portions(namespace: Namespace, look: Look) -> None:
    """Of three workflows, with late ones among them, and jobs that come and go between two portions."""
    late: set[str] = set()
    for name in ("a", "b", "c"):
        queue = namespace.queue(name)
        jobs = await queue.add_many(["x"] * 1500, result_ttl=0)
        for _ in range(4):
            await vanish(namespace, name, 375, lease_ms=600_000)
        for job in jobs[::300]:
            look.expire_lease(name, job.id)
            late.add(f"{name}:{job.id}")
    call = (await namespace.runtime()).call
    returned: list[str] = []
    looks = 0
    while True:
        swept = await sweep_claims(call, lease=1000, interval=60_000, limit=10)
        returned += swept.recovered
        looks += 1
        if swept.again_ms:
            break
        assert len(swept.recovered) <= 10
        if looks == 2:
            assert look("EXISTS", "sweeping")
            assert await namespace.queue("b").remove_all("active") > 0
            await namespace.queue("a").add("x", priority=1)
            await vanish(namespace, "a", 1)
    removed = {each for each in late if each.startswith("b:")}
    assert late - removed <= set(returned) <= late | {each for each in returned if each.startswith("a:")}
    assert len(returned) == len(set(returned))
    assert looks > 3
    assert not look("EXISTS", "sweeping")
    for name in ("a", "c"):
        await namespace.queue(name).remove_all("active")
        await namespace.queue(name).remove_all("waiting")


async def test_a_round_that_takes_long_is_not_taken_for_an_absence(namespace: Namespace, look: Look) -> None:
    queue, late = namespace.queue("q"), await some_late(namespace, look)
    call, lease = (await namespace.runtime()).call, 10_000
    look("SET", "swept", look.now() - lease // 2 - 1)
    found: list[str] = []
    looks = 0
    while True:
        swept = await sweep_claims(call, lease=lease, interval=lease // 2, limit=100)
        found += swept.recovered
        looks += 1
        assert looks == 1 or look("PTTL", "sweeping") <= lease  # whoever comes after a lease begins anew
        if swept.again_ms:
            break
        # nobody has come to an end of a round for long
        look("SET", "swept", look.now() - 10 * lease)
    assert looks > 2
    assert sorted(found) == sorted(f"q:{job.id}" for job in late)
    await queue.remove_all("active")
    await queue.remove_all("waiting")


async def test_a_round_that_begins_after_an_absence_takes_nothing_back(namespace: Namespace, look: Look) -> None:
    queue, late = namespace.queue("q"), await some_late(namespace, look)
    call, lease = (await namespace.runtime()).call, 10_000
    look("SET", "swept", look.now() - 2 * lease)
    again = 0
    while not again:
        swept = await sweep_claims(call, lease=lease, interval=lease // 2, limit=10)
        again = swept.again_ms
        assert swept.recovered == []
    assert all(look.deadline("q", job.id) > look.now() for job in late)
    await queue.remove_all("active")


async def test_the_log_names_the_jobs_of_lost_workers(namespace: Namespace, caplog: pytest.LogCaptureFixture) -> None:
    queue, desk = namespace.queue("q"), Desk(is_open=True)
    jobs = [await queue.add("x", id=f"job {number}") for number in range(12)]
    doomed = await queue.add("x", id="doomed", max_stalled=0, priority=1)
    await vanish(namespace, "q", 13)
    async with worker_of(queue, desk):
        await results_of(jobs)
    said = [record.message for record in caplog.records if record.name == "lanner.queue.sweep"]
    assert "jobs that failed, as their workers were lost once too often: 1 (q:doomed)" in said
    [(count, names)] = [text.split(": ", 1)[1].split(" (", 1) for text in said if "go back" in text]
    assert (count, names.count("q:job "), names.endswith(" and 2 more)")) == ("12", 10, True)
    await queue.remove(doomed.id)


async def test_a_sweep_that_nobody_finished_is_finished_by_the_next(namespace: Namespace, look: Look) -> None:
    queue, desk = namespace.queue("q"), Desk(is_open=True)
    jobs = await queue.add_many(["x"] * 500)
    for _ in range(2):
        await vanish(namespace, "q", 250)
    swept = await sweep_claims((await namespace.runtime()).call, lease=1000, interval=0, limit=200)
    assert (len(swept.recovered), swept.again_ms) == (200, 0)
    assert look("HGETALL", "running") == {"q": "300"}
    async with worker_of(queue, desk, concurrency=100):
        await results_of(jobs)
    assert Counter(desk.started) == Counter(job.id for job in jobs)


async def test_the_fleet_sweeps_once_an_interval_and_no_lock_outlives_its_owner(
    namespace: Namespace, look: Look
) -> None:
    queue, desk = namespace.queue("q"), Desk(is_open=True)
    call = (await namespace.runtime()).call
    job = await queue.add("x")
    await vanish(namespace, "q")
    look("SET", "swept", look.now())  # somebody has swept, or has been killed when he was about to
    assert (await sweep_claims(call, lease=60_000, interval=30_000, limit=10)).recovered == []
    async with worker_of(queue, desk, lease=LEASE):
        await job.wait(PATIENCE)


async def test_where_nobody_has_swept_for_long_workers_get_one_more_lease(namespace: Namespace, look: Look) -> None:
    """Redis was away, and the workers with it: they may live, and are given the time to say so."""
    queue, desk = namespace.queue("q"), Desk(is_open=True)
    call = (await namespace.runtime()).call
    job = await queue.add("x", id="a")
    await vanish(namespace, "q")
    look("SET", "swept", look.now() - 600_000)
    assert (await sweep_claims(call, lease=100_000, interval=50_000, limit=10)).recovered == []
    assert look.deadline("q", "a") > look.now() + 50_000
    look.expire_lease("q", "a")
    async with worker_of(queue, desk, lease=LEASE):
        await job.wait(PATIENCE)
