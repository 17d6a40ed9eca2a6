"""Jobs that wait for an instant: when they run, who is woken for them, and what goes on while every slot is taken."""

import asyncio
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from lanner.errors import JobCancelledError, JobFailedError
from lanner.queue import Job, Namespace
from support.jobs import PATIENCE, Desk, Look, echo, results_of, worker_of
from support.servers import Server
from support.waiting import wait_until

MANY = 450  # more than two batches of promotions


@pytest.mark.parametrize("delay", [0.05, timedelta(milliseconds=310)])
async def test_a_delayed_job_runs_at_its_instant_by_redis_clock_and_not_before(
    namespace: Namespace, delay: float | timedelta
) -> None:
    queue = namespace.queue("q")
    seconds = delay.total_seconds() if isinstance(delay, timedelta) else delay
    async with worker_of(queue, echo):
        jobs = [await queue.add("x", run_in=delay) for _ in range(5)]
        assert await jobs[0].state() in {"delayed", "active", "completed"}
        await results_of(jobs)
        for job in jobs:
            record = await job.record()
            assert record.started is not None
            assert (record.started - record.created).total_seconds() >= seconds


async def test_run_at_is_an_instant_in_any_zone(namespace: Namespace, look: Look) -> None:
    queue = namespace.queue("q")
    instant = datetime.fromtimestamp((look.now() + 300) / 1000, UTC).astimezone()
    async with worker_of(queue, echo):
        job = await queue.add("x", run_at=instant)
        await job.wait(PATIENCE)
        record = await job.record()
    assert record.started is not None
    assert record.started >= instant - timedelta(milliseconds=1)


async def test_an_idle_worker_wakes_by_itself_and_for_an_earlier_instant(namespace: Namespace) -> None:
    queue, desk = namespace.queue("q"), Desk(is_open=True)
    async with worker_of(queue, desk):
        await queue.add("x", id="in an hour", run_in=3600)
        await queue.add("x", id="soon", run_in=3)
        await queue.add("x", id="sooner", run_in=0.1)
        await desk.has_started("sooner", "soon")
        assert desk.started == ["sooner", "soon"]
        await queue.add("x", id="again", run_in=0.05)
        await desk.has_started("again")
    await queue.remove("in an hour")


async def test_a_worker_without_a_free_slot_leaves_the_instant_to_another(namespace: Namespace) -> None:
    queue, busy, idle = namespace.queue("q"), Desk(), Desk(is_open=True)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(worker_of(queue, busy, concurrency=1))
        holds = await queue.add("x", id="holds")
        await busy.runs("holds")
        await stack.enter_async_context(worker_of(queue, idle))
        for number in range(6):
            await queue.add("x", id=str(number), run_in=0.02)
            await idle.has_started(str(number))
        busy.open()
        await holds.wait(PATIENCE)


async def test_many_that_are_due_at_once_all_run(namespace: Namespace, look: Look) -> None:
    queue, desk = namespace.queue("q"), Desk(is_open=True)
    jobs = [await queue.add("x", id=f"{n:03}", run_in=3600, result_ttl=0) for n in range(MANY)]
    due = look.now() - MANY
    for number, job in enumerate(jobs):
        look("ZADD", "q:delayed", due + number, job.id)
    async with worker_of(queue, desk, concurrency=50):
        await desk.starts(MANY)
    # claimed in order (see the tests of that), over calls on two connections
    assert sorted(desk.started) == [f"{n:03}" for n in range(MANY)]


async def test_a_member_without_a_record_is_dropped_and_not_resurrected(namespace: Namespace, look: Look) -> None:
    queue = namespace.queue("q")
    await queue.add("x", id="gone", run_in=3600)
    look("DEL", "q:j:gone")
    look("ZADD", "q:delayed", 1, "gone")
    async with worker_of(queue, echo):
        await (await queue.add("x")).wait(PATIENCE)
    assert not look("EXISTS", "q:j:gone")
    assert not look("EXISTS", "q:delayed")


async def test_promote_runs_a_delayed_job_now(namespace: Namespace) -> None:
    queue, desk = namespace.queue("q"), Desk()
    async with worker_of(queue, desk):
        job = await queue.add("x", run_in=3600)
        assert await queue.promote(job.id)
        await desk.runs(job.id)
        assert not await queue.promote(job.id)
        assert not await queue.promote("nobody")
        desk.open()
        await job.wait(PATIENCE)
        assert not await queue.promote(job.id)


async def test_a_delay_longer_than_the_lease_is_one_run(namespace: Namespace) -> None:
    queue, desk = namespace.queue("q"), Desk(is_open=True)
    async with worker_of(queue, desk, lease=1):
        job = await queue.add("x", run_in=1.5)
        await job.wait(PATIENCE)
    assert desk.started == [job.id]


async def test_jobs_become_due_while_every_slot_is_taken(namespace: Namespace, look: Look) -> None:
    queue, desk = namespace.queue("q"), Desk()
    async with worker_of(queue, desk, concurrency=1):
        await queue.add("x", id="holds")
        await desk.runs("holds")
        now = datetime.fromtimestamp(look.now() / 1000, UTC)
        jobs = [await queue.add("x", run_at=now + timedelta(seconds=delay)) for delay in (2, 1.8, 1.6)]
        for job in jobs:
            await wait_until(partial(is_waiting, job), PATIENCE)
        assert await queue.list_jobs("waiting") == [job.id for job in reversed(jobs)]
        desk.open()
        await results_of(jobs)


async def test_a_job_that_was_not_started_in_time_fails_while_every_slot_is_taken(namespace: Namespace) -> None:
    queue, desk = namespace.queue("q"), Desk()
    async with worker_of(queue, desk, concurrency=1):
        holds = await queue.add("x", id="holds")
        await desk.runs("holds")
        job = await queue.add("x", expires=0.2)
        with pytest.raises(JobFailedError, match="JobExpiredError") as raised:
            await job.wait(PATIENCE)
        assert raised.value.type == "JobExpiredError"
        assert desk.started == ["holds"]
        desk.open()
        await holds.wait(PATIENCE)
        assert await job.state() == "failed"


async def test_a_job_that_is_started_in_time_does_not_expire(namespace: Namespace, look: Look) -> None:
    queue, desk = namespace.queue("q"), Desk()
    async with worker_of(queue, desk):
        jobs = [await queue.add("x", expires=30, group=group) for group in (None, "g")]
        later = await queue.add("x", expires=30, run_in=0.1)
        await desk.runs(*(job.id for job in (*jobs, later)))
        assert not look("EXISTS", "q:expiring")
        desk.open()
        await results_of([*jobs, later])


@pytest.mark.parametrize("group", [None, "g"])
async def test_an_expired_job_at_the_head_holds_up_nobody(namespace: Namespace, look: Look, group: str | None) -> None:
    queue, desk = namespace.queue("q"), Desk(is_open=True)
    late = [await queue.add("x", group=group, expires=1, keep_failed=200) for _ in range(150)]
    job = await queue.add("x", id="in time", group=group)
    await wait_until(lambda: look("ZCOUNT", "q:expiring", "-inf", look.now()) == len(late))
    async with worker_of(queue, desk):
        await job.wait(PATIENCE)
        for each in late:
            with pytest.raises(JobFailedError, match="not started within 1000 ms"):
                await each.wait(PATIENCE)
    assert desk.started == ["in time"]


@pytest.mark.parametrize("how", ["cancel", "remove"])
async def test_a_delayed_job_can_be_taken_away(namespace: Namespace, look: Look, how: str) -> None:
    queue, desk = namespace.queue("q"), Desk(is_open=True)
    async with worker_of(queue, desk):
        job = await queue.add("x", id="a", run_in=0.3, expires=5)
        if how == "cancel":
            assert await job.cancel()
            with pytest.raises(JobCancelledError):
                await job.wait(PATIENCE)
        else:
            assert await queue.remove("a")
        assert not look("EXISTS", "q:delayed")
        assert not look("EXISTS", "q:expiring")
        after = await queue.add("x", id="after", run_in=0.35)
        await after.wait(PATIENCE)
    assert desk.started == ["after"]


async def test_a_paused_queue_lets_nothing_start_that_becomes_due(namespace: Namespace) -> None:
    queue, desk = namespace.queue("q"), Desk(is_open=True)
    async with worker_of(queue, desk):
        await queue.pause()
        job = await queue.add("x", run_in=0.05)
        await wait_until(partial(is_waiting, job), PATIENCE)
        assert desk.started == []
        await queue.resume()
        await job.wait(PATIENCE)


async def test_the_next_instant_of_another_workers_queue_is_kept_too(server: Server, namespace_id: str) -> None:
    """Whoever is woken keeps the timer; that it ends does not lose the instant."""
    desk = Desk(is_open=True)
    async with (
        Namespace(namespace_id, redis=server.url) as first,
        Namespace(namespace_id, redis=server.url) as second,
        worker_of(first.queue("q"), desk),
    ):
        async with worker_of(second.queue("q"), desk):
            jobs = [await first.queue("q").add("x", run_in=0.6 - number / 100) for number in range(10)]
            await asyncio.sleep(0.05)
        await results_of(jobs)


async def is_waiting(job: Job) -> bool:
    return await job.state() == "waiting"
