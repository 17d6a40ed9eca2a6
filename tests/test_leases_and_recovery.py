"""Workers that are killed, cut off or blocked: what they hold comes back, once, and what they still hold is theirs."""

import asyncio
from collections import Counter

import pytest

from lanner.errors import JobCancelledError, JobFailedError
from lanner.queue import Claim, EndReason, Failure, Namespace, Released, Retry, Suspended
from lanner.queue.scripts.claiming import renew_claims
from support.jobs import PATIENCE, Desk, Look, lose_claim, results_of, sweep, worker_of
from support.lost import commit, vanish
from support.proxy import Proxy
from support.servers import Server
from support.waiting import wait_until

# of workers that are to sweep soon; a machine that stands still for a moment costs them what they hold
LEASE = 0.4
# where a claim must be renewed in time all the same
RENEWED_LEASE = 3.0


@pytest.mark.parametrize("group", [None, "g"])
async def test_a_job_whose_worker_was_killed_runs_again(namespace: Namespace, group: str | None) -> None:
    queue, desk = namespace.queue("q"), Desk(is_open=True)
    job = await queue.add("x", id="a", group=group)
    behind = await queue.add("x", id="b", group=group)
    assert [claim.id for claim in await vanish(namespace, "q")] == ["a"]
    async with worker_of(queue, desk, concurrency=1):
        await results_of([job, behind])
    record = await job.record()
    assert (record.attempt, record.stalls) == (1, 1)
    assert sorted(desk.started) == ["a", "b"]


async def test_a_group_at_its_cap_is_free_again_after_a_crash(namespace: Namespace, look: Look) -> None:
    queue, desk = namespace.queue("q", group_concurrency=3), Desk()
    async with worker_of(queue, desk):
        pass  # declares the cap
    jobs = [await queue.add("x", id=str(n), group="g") for n in range(6)]
    assert len(await vanish(namespace, "q", 10)) == 3
    async with worker_of(queue, desk):
        assert len(await sweep(namespace)) == 3
        await desk.runs("0", "1", "2")
        desk.open()
        await results_of(jobs)
    assert not look("HEXISTS", "q:ga", "g")
    assert desk.started == ["0", "1", "2", "3", "4", "5"]


async def test_a_job_that_runs_for_many_leases_is_renewed(namespace: Namespace, look: Look) -> None:
    queue, desk = namespace.queue("q"), Desk()
    look.hold_sweeps()
    async with worker_of(queue, desk, lease=RENEWED_LEASE):
        job = await queue.add("x")
        await desk.runs(job.id)
        first = look.deadline("q", job.id)
        await wait_until(lambda: look.deadline("q", job.id) > first + 1.5 * RENEWED_LEASE * 1000, PATIENCE)
        desk.open()
        await job.wait(PATIENCE)
    assert desk.started == [job.id]


async def test_more_claims_than_are_renewed_in_a_call_are_all_renewed(namespace: Namespace, look: Look) -> None:
    queue, desk, count = namespace.queue("q"), Desk(), 1200

    def earliest() -> float:
        return min(float(claim.split()[2]) for claim in look("HVALS", "q:active"))

    look.hold_sweeps()
    async with worker_of(queue, desk, lease=RENEWED_LEASE, concurrency=count):
        jobs = await queue.add_many(["x"] * count, result_ttl=0)
        await wait_until(lambda: len(desk.running) == count, PATIENCE)
        now = look.now()
        await wait_until(lambda: earliest() > now + RENEWED_LEASE * 1000, PATIENCE)
        assert look("HLEN", "q:active") == count
        desk.open()
        await wait_until(lambda: not desk.running, PATIENCE)
    assert Counter(desk.started) == Counter(job.id for job in jobs)


async def test_a_claim_that_is_taken_over_ends_its_run_and_refuses_what_it_writes(
    namespace: Namespace, look: Look
) -> None:
    queue, other = namespace.queue("q"), Desk()
    ended: list[EndReason | None] = []
    stored: list[bool] = []
    running = asyncio.Event()

    async def handle(claim: Claim) -> str:
        stored.append(await queue.set_step(claim.id, "before", "kept", token=claim.token))
        running.set()
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append(claim.ended)
            stored.append(await queue.set_step(claim.id, "after", "late", token=claim.token))
        return "first"

    async with worker_of(queue, handle, concurrency=1):
        job = await queue.add("x", id="a")
        await running.wait()
        async with worker_of(queue, other, concurrency=1):
            await wait_until(lambda: look.listeners() >= 2, PATIENCE)
            await lose_claim(look, namespace, "q", "a")
            await other.runs("a")
            await wait_until(lambda: len(stored) == 2)
            assert (ended, stored) == ([EndReason.LOST], [True, False])
            assert other.claims["a"].steps == {"before": "kept"}
            other.open()
            assert await job.wait(PATIENCE) == "x"


async def test_a_claim_that_was_taken_over_is_not_renewed(namespace: Namespace, look: Look) -> None:
    queue, call = namespace.queue("q"), (await namespace.runtime()).call
    await queue.add("x", id="a")
    claims = await vanish(namespace, "q")
    await sweep(namespace)
    assert await renew_claims(call, lease=60_000, claims=claims) == b"0"
    claims += await vanish(namespace, "q", lease_ms=60_000)
    deadline = look.deadline("q", "a")
    assert await renew_claims(call, lease=600_000, claims=claims[:1]) == b"0"
    assert look.deadline("q", "a") == deadline
    assert await renew_claims(call, lease=600_000, claims=claims) == b"01"
    assert look.deadline("q", "a") > deadline
    await queue.remove("a")


async def test_the_outcome_of_a_claim_that_was_taken_over_is_refused(
    namespace_id: str, proxy: Proxy, namespace: Namespace, look: Look, caplog: pytest.LogCaptureFixture
) -> None:
    """The attempt ends just when its lease does, and its worker hears of nothing."""
    first, second = Desk(), Desk(is_open=True)

    async def late(claim: Claim) -> str:
        await first(claim)
        return "late"

    async with Namespace(namespace_id, redis=proxy.url) as slow, worker_of(slow.queue("q"), late, concurrency=1):
        job = await namespace.queue("q").add("in time", id="a")
        await first.runs("a")
        proxy.stall()
        look.expire_lease("q", "a")
        first.open()
        await first.ended("a")
        async with worker_of(namespace.queue("q"), second, lease=LEASE):
            assert await job.wait(PATIENCE) == "in time"
        proxy.flow()
        await wait_until(lambda: "was taken over" in caplog.text, PATIENCE)
        assert (await (await namespace.queue("q").add("x")).wait(PATIENCE)) == "late"
    assert await job.wait(PATIENCE) == "in time"


async def test_a_worker_that_cannot_renew_for_a_whole_lease_ends_its_runs(
    namespace_id: str, proxy: Proxy, namespace: Namespace, look: Look
) -> None:
    ended: list[EndReason | None] = []
    running, desk = asyncio.Event(), Desk(is_open=True)
    look.hold_sweeps()

    async def handle(claim: Claim) -> None:
        running.set()
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append(claim.ended)

    async with Namespace(namespace_id, redis=proxy.url) as cut_off, worker_of(cut_off.queue("q"), handle, lease=LEASE):
        job = await namespace.queue("q").add("x")
        await running.wait()
        await proxy.refuse()
        await wait_until(lambda: ended == [EndReason.LOST], PATIENCE)
        look("DEL", "swept")
        async with worker_of(namespace.queue("q"), desk, lease=LEASE):
            await job.wait(PATIENCE)
        await proxy.accept()


async def test_what_was_recorded_before_a_crash_is_there_after_it(namespace: Namespace) -> None:
    queue, desk = namespace.queue("q"), Desk(is_open=True)
    job = await queue.add("x", id="a")
    [claim] = await vanish(namespace, "q")
    for name in ("step 1", "step 2"):
        assert await queue.set_step("a", name, f"of {name}", token=claim.token)
    behind = await queue.add("x", id="b")
    async with worker_of(queue, desk, concurrency=1):
        await results_of([job, behind])
    assert desk.claims["a"].steps == {"step 1": "of step 1", "step 2": "of step 2"}
    assert await queue.get_step("a", "step 1") is None  # its end has dropped them


async def crash(namespace: Namespace) -> None:
    """Claim the only job and lose its worker."""
    assert len(await vanish(namespace, "q")) == 1


async def test_a_job_that_loses_its_worker_too_often_in_a_row_fails(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    job = await queue.add("x", max_stalled=2)
    wait = asyncio.create_task(job.wait(PATIENCE))
    for stalls in (1, 2):
        await crash(namespace)
        await sweep(namespace)
        record = await job.record()
        assert (record.state, record.stalls, record.attempt) == ("waiting", stalls, 1)
    await crash(namespace)
    await sweep(namespace)
    with pytest.raises(JobFailedError, match="its worker was lost 3 times in a row") as raised:
        await wait
    assert raised.value.type == "StalledError"
    assert await queue.retry(job.id)
    assert (await job.record()).stalls == 0
    await queue.remove(job.id)


@pytest.mark.parametrize("progress", ["a checkpoint", "a suspension", "a failed attempt"])
async def test_progress_between_makes_stalls_count_from_the_start(namespace: Namespace, progress: str) -> None:
    queue = namespace.queue("q")
    job = await queue.add("x", id="a", max_stalled=1, max_attempts=9)
    for number in range(3):
        await crash(namespace)
        await sweep(namespace)
        assert (await job.record()).stalls == 1
        [claim] = await vanish(namespace, "q", lease_ms=60_000)
        if progress == "a checkpoint":
            assert await queue.set_step("a", str(number), "x", token=claim.token)
            await commit(namespace, claim, Released())
        elif progress == "a suspension":
            await commit(namespace, claim, Suspended(1))
        else:
            await commit(namespace, claim, Retry(0, Failure("E", "counted")))
        assert (await job.record()).stalls == 0
    await queue.remove("a")


async def test_a_job_whose_cancellation_was_asked_for_is_cancelled_when_its_worker_is_lost(
    namespace: Namespace,
) -> None:
    queue = namespace.queue("q")
    job = await queue.add("x")
    await crash(namespace)
    assert await job.cancel("no more")
    assert await job.state() == "active"
    await sweep(namespace)
    with pytest.raises(JobCancelledError, match="no more"):
        await job.wait(PATIENCE)


async def test_no_job_starts_twice_when_a_worker_starts_into_a_backlog(
    server: Server, namespace: Namespace, look: Look
) -> None:
    queue, desk = namespace.queue("q"), Desk(is_open=True)
    jobs = await queue.add_many(["x"] * 200)
    with server.client() as client:
        client("SCRIPT", "FLUSH")
    async with worker_of(queue, desk, concurrency=32, lease=RENEWED_LEASE):
        await results_of(jobs)
    assert Counter(desk.started) == Counter(job.id for job in jobs)
    assert look.nothing_is_active("q")


async def test_checkpoints_of_many_megabytes_come_back_after_a_crash(namespace: Namespace) -> None:
    queue, desk = namespace.queue("q"), Desk(is_open=True)
    jobs = await queue.add_many(["x"] * 4)
    written = {f"step {n}": str(n) * 300_000 for n in range(3)}
    for claim in await vanish(namespace, "q", 4, lease_ms=60_000):
        for name, text in written.items():
            assert await queue.set_step(claim.id, name, text, token=claim.token)
        await commit(namespace, claim, Released())
    async with worker_of(queue, desk):
        await results_of(jobs)
    assert [desk.claims[job.id].steps for job in jobs] == [written] * 4
