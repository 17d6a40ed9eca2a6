"""Sequences of calls that the queue once got wrong: most were found by the machine that drives it against its model."""

import asyncio
from contextlib import AsyncExitStack
from datetime import timedelta
from functools import partial
from typing import Any, Literal

import pytest

from lanner.queue import Claim, Failure, Job, Namespace, RateLimit, Retry, Suspended
from lanner.queue.scripts.claiming import sweep_claims
from support.jobs import PATIENCE, Desk, Look, results_of, worker_of
from support.servers import Server
from support.starts import most_within
from support.waiting import wait_until

LEASE = 1
AN_HOUR = timedelta(hours=1)
WINDOW = 0.3


async def in_state(job: Job, state: str) -> bool:
    return await job.state() == state


@pytest.mark.parametrize("gone_on", ["by the clock", "by hand"])
async def test_a_job_sleeps_through_an_event_that_it_has_ceased_to_wait_for(
    namespace: Namespace, look: Look, gone_on: str
) -> None:
    queue, sleeps = namespace.queue("q"), 0

    async def handle(claim: Claim) -> Any:
        nonlocal sleeps
        sleeps += 1
        far = claim.now_ms() + 3_600_000
        soon = claim.now_ms() + 50 if gone_on == "by the clock" else far
        return Suspended(soon, ("go",)) if sleeps == 1 else Suspended(far) if sleeps == 2 else ""

    job = await queue.add("x", id="1")
    async with worker_of(queue, handle):
        if gone_on == "by hand":
            await wait_until(lambda: in_state(job, "delayed"), PATIENCE)
            assert await queue.promote("1")
        await wait_until(lambda: sleeps == 2, PATIENCE)
        await wait_until(lambda: in_state(job, "delayed"), PATIENCE)
        assert await job.send_event("go", "", event_id="1")
        assert await job.state() == "delayed"
        assert not look("HEXISTS", "q:j:1", "awaits")
    assert sleeps == 2


@pytest.mark.parametrize("cap", ["workflow", "namespace"])
@pytest.mark.parametrize("how", ["removed", "stalled", "cancelled"])
async def test_the_slot_of_a_job_whose_worker_is_gone_is_used_at_once_when_it_is_freed(
    namespace: Namespace, look: Look, how: str, cap: str
) -> None:
    """Nobody commits anything in that moment, and so nobody would claim: another worker has to be woken."""
    await namespace.set_limits(concurrency=1 if cap == "namespace" else None)
    a = namespace.queue("a", concurrency=1 if cap == "workflow" else None)
    b = a if cap == "workflow" else namespace.queue("b")
    gone, other = Desk(), Desk()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(worker_of(a, gone, concurrency=1))
        one = await a.add("x", id="one", max_stalled=0)
        await gone.runs("one")
        await stack.enter_async_context(worker_of(b, other, concurrency=1, lease=LEASE))
        two = await b.add("x", id="two")
        await wait_until(lambda: look.a_worker_listens(b.id))
        if cap == "namespace":
            await wait_until(lambda: look("ZSCORE", "capped", "b"), PATIENCE)
        look.give_claim("a", "one", "nobody:1")
        if how == "removed":
            assert await a.remove("one")
        else:
            assert how == "stalled" or await one.cancel()
            look.expire_lease("a", "one")
        await other.runs("two")
        if how != "removed":
            assert await one.state() == ("failed" if how == "stalled" else "cancelled")
        gone.open()
        other.open()
        await two.wait(PATIENCE)


@pytest.mark.parametrize("how", ["removed", "cancelled", "paused"])
async def test_a_workflow_without_work_keeps_no_slot_under_the_namespace_cap(
    namespace: Namespace, look: Look, how: str
) -> None:
    """It was refused first, so the slot would be its own, were there still anything to run and anybody to say so."""
    await namespace.set_limits(concurrency=1)
    a, b, c = (namespace.queue(name) for name in "abc")
    desk = Desk()
    async with worker_of(b, desk), worker_of(c, desk):
        async with worker_of(a, desk):
            await c.add("x", id="c")
            await desk.runs("c")
            first = await a.add("x", id="a")
            await wait_until(lambda: look("ZSCORE", "capped", "a"), PATIENCE)
            second = await b.add("x", id="b")
            await wait_until(lambda: look("ZSCORE", "capped", "b"), PATIENCE)
        if how == "removed":
            assert await a.remove("a")
        elif how == "cancelled":
            assert await first.cancel()
        else:
            await a.pause()
        # as if its worker had asked until a moment ago, and been killed then
        look("ZADD", "capped", look.now() - 1000, "a")
        look("ZADD", "capped:seen", look.now(), "a")
        desk.let_go("c")
        await desk.runs("b")
        desk.open()
        await second.wait(PATIENCE)
    if how == "paused":
        await a.remove("a")
        await a.resume()


@pytest.mark.parametrize("group", [None, "g"])
@pytest.mark.parametrize("how", ["cancelled", "removed", "all removed", "expired", "lost", "run"])
async def test_after_a_drain_of_any_kind_the_order_is_counted_from_the_start(
    namespace: Namespace, look: Look, group: str | None, how: str
) -> None:
    queue, desk = namespace.queue("q"), Desk()
    options: dict[str, Any] = {"group": group, "max_stalled": 0, "expires": AN_HOUR}
    jobs = [await queue.add("x", id=str(n), **options) for n in range(3)]
    assert look("GET", "q:pc") == "3"
    if how == "cancelled":
        assert all([await job.cancel() for job in jobs])
    elif how == "removed":
        assert all([await queue.remove(job.id) for job in jobs])
    elif how == "all removed":
        assert await queue.remove_all("waiting") == len(jobs)
    else:
        await _end_by_a_worker(namespace, look, desk, jobs, how)
    await wait_until(lambda: not look("EXISTS", "q:pc"), PATIENCE)


@pytest.mark.parametrize("held", [1, 250])
@pytest.mark.parametrize("free", [0, 3, 120])
@pytest.mark.parametrize("runnable", [0, 2, 120])
async def test_all_waiting_jobs_are_removed_whatever_they_wait_for(
    namespace: Namespace, held: int, free: int, runnable: int
) -> None:
    queue, desk = namespace.queue("q"), Desk()
    async with worker_of(queue, desk, concurrency=1):
        await queue.add("x", id="runs", group="held")
        await desk.runs("runs")
        await asyncio.gather(
            *(queue.add("x", group="held") for _ in range(held)),
            *(queue.add("x") for _ in range(free)),
            *(queue.add("x", group=f"g{n}") for n in range(runnable)),
        )
        assert await queue.remove_all("waiting") == held + free + runnable
        assert (await queue.counts()).waiting == 0
        desk.open()


async def _end_by_a_worker(namespace: Namespace, look: Look, desk: Desk, jobs: list[Job], how: str) -> None:
    queue = namespace.queue("q", group_concurrency=None)
    if how == "expired":
        for job in jobs:
            look("ZADD", "q:expiring", 1, job.id)
    async with worker_of(queue, desk):
        if how == "lost":
            await desk.runs(*(job.id for job in jobs))
            for job in jobs:
                look.give_claim("q", job.id, "nobody:1")
                look.expire_lease("q", job.id)
            call = (await namespace.runtime()).call
            await sweep_claims(call, lease=3_600_000, interval=1, limit=len(jobs) + 1)
        desk.open()
        ended = "completed" if how == "run" else "failed"
        for job in jobs:
            await wait_until(partial(in_state, job, ended), PATIENCE)


@pytest.mark.parametrize("order", ["strict", "loose"])
async def test_retries_count_against_the_limiter_of_their_group(
    server: Server, namespace_id: str, look: Look, order: Literal["loose", "strict"]
) -> None:
    """Also those of a job that holds its group meanwhile, and so does not stand in its line."""
    starts: dict[str, list[float]] = {"g": [], "h": []}

    async def handle(claim: Claim) -> Any:
        starts[claim.spec.group].append(look.started("q", claim.id) / 1000)
        return Retry(0, Failure("E", "once more")) if claim.attempt < 3 else ""

    limiters = {"tenant": RateLimit(1, WINDOW, per="group")}
    async with Namespace(namespace_id, redis=server.url, limiters=limiters) as namespace:
        queue = namespace.queue("q", group_order=order)
        jobs = [await queue.add("x", group=group, max_attempts=3) for group in "gh"]
        async with worker_of(queue, handle):
            await results_of(jobs)
    for of_group in starts.values():
        assert len(of_group) == 3
        assert most_within(of_group, WINDOW) == 1
