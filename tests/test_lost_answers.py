"""Answers that are lost after the call was executed: nothing is lost, nothing is doubled, and nobody is blamed."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from lanner.errors import JobFailedError
from lanner.queue import Claim, Dedup, Failure, Job, Namespace, Retry, Suspended
from lanner.queue.cadence import cadence
from lanner.queue.scripts.loader import load
from support.jobs import PATIENCE, Desk, Look, results_of, sweep, worker_of
from support.proxy import Proxy
from support.waiting import wait_until

JOBS = 120
LEASE = 0.3


async def sums_of(jobs: list[Job]) -> dict[str, int]:
    """Over the records of jobs: how many attempts and stalls there were."""
    records = await asyncio.gather(*(job.record() for job in jobs))
    return {"attempts": sum(each.attempt for each in records), "stalls": sum(each.stalls for each in records)}


@pytest.mark.parametrize("every", [2, 3, 7])
@pytest.mark.parametrize("script", ["settle", "add_jobs"])
async def test_every_job_runs_once(
    namespace_id: str, proxy: Proxy, script: str, every: int, caplog: pytest.LogCaptureFixture
) -> None:
    ran = Counter[str]()

    async def handle(claim: Claim) -> str:
        ran[claim.id] += 1
        await asyncio.sleep(0)
        return claim.data

    async with Namespace(namespace_id, redis=proxy.url, producer_timeout=60) as namespace:
        queue = namespace.queue("q")
        async with worker_of(queue, handle, concurrency=8):
            proxy.lose_answers(load(script).sha, every=every)
            jobs: list[Job] = []
            for wave in range(0, JOBS, 6):
                adds = [
                    queue.add(str(n), id=str(n), group=f"g{n % 5}" if n % 2 else None) for n in range(wave, wave + 6)
                ]
                jobs += await asyncio.gather(*adds)
            assert await results_of(jobs) == [str(n) for n in range(JOBS)]
            proxy.lose_no_answers()
        assert await sums_of(jobs) == {"attempts": JOBS, "stalls": 0}
        assert (await queue.counts()).active == 0
    assert proxy.lost_answers > 1
    assert ran == Counter(str(n) for n in range(JOBS))
    assert "taken over" not in caplog.text


@pytest.mark.parametrize("every", [2, 3])
async def test_jobs_that_leave_nothing_run_once(namespace_id: str, proxy: Proxy, every: int) -> None:
    """With ``result_ttl=0`` no record is left by which a call that comes again could be known."""
    ran = Counter[str]()

    async def handle(claim: Claim) -> None:
        ran[claim.data] += 1
        await asyncio.sleep(0)

    async with Namespace(namespace_id, redis=proxy.url, producer_timeout=60) as namespace:
        queue = namespace.queue("q")
        async with worker_of(queue, handle, concurrency=8):
            for script in ("settle", "add_jobs"):
                proxy.lose_answers(load(script).sha, every=every)
            singles = [queue.add(str(n), result_ttl=0) for n in range(JOBS)]
            batches = [queue.add_many([f"{b}.{n}" for n in range(20)], result_ttl=0) for b in range(4)]
            await asyncio.gather(*singles, *batches)
            await wait_until(lambda: len(ran) == JOBS + 80, PATIENCE)
            # what was done twice would show by the time that a job added now has ended
            await (await queue.add("last")).wait(PATIENCE)
            proxy.lose_no_answers()
    assert set(ran.values()) == {1}
    assert proxy.lost_answers > 1


@pytest.mark.parametrize("every", [2, 3])
async def test_retries_and_waits_are_counted_once(namespace_id: str, proxy: Proxy, every: int) -> None:
    attempts = Counter[str]()
    naps = Counter[str]()

    async def handle(claim: Claim) -> Any:
        if naps[claim.id] < 2:
            naps[claim.id] += 1
            return Suspended(claim.now_ms() + 5)
        attempts[claim.id] += 1
        naps[claim.id] = 0
        return Retry(1, Failure("E", "again")) if claim.attempt < 3 else "done"

    async with Namespace(namespace_id, redis=proxy.url, producer_timeout=60) as namespace:
        queue = namespace.queue("q")
        async with worker_of(queue, handle, concurrency=8):
            proxy.lose_answers(load("settle").sha, every=every)
            jobs = await queue.add_many(["x"] * 30, max_attempts=3)
            await results_of(jobs)
            proxy.lose_no_answers()
        assert await sums_of(jobs) == {"attempts": 90, "stalls": 0}
    assert set(attempts.values()) == {3}


@pytest.mark.parametrize("every", [2, 3])
async def test_checkpoints_are_written_once_and_found_again(namespace_id: str, proxy: Proxy, every: int) -> None:
    async with Namespace(namespace_id, redis=proxy.url, producer_timeout=60) as namespace:
        queue = namespace.queue("q")

        async def handle(claim: Claim) -> str:
            for n in range(3):
                assert await queue.set_step(claim.id, f"step {n}", f"{claim.id} {n}", token=claim.token)
            if claim.attempt == 1:
                raise ValueError("again")
            return "|".join(f"{name}={text}" for name, text in sorted(claim.steps.items()))

        async with worker_of(queue, handle, concurrency=8):
            proxy.lose_answers(load("record_steps").sha, every=every)
            jobs = await queue.add_many(["x"] * 8, max_attempts=2)
            results = await results_of(jobs)
            proxy.lose_no_answers()
    assert results == ["|".join(f"step {n}={job.id} {n}" for n in range(3)) for job in jobs]
    assert proxy.lost_answers > 1


async def test_events_that_are_sent_again_arrive_once(namespace_id: str, proxy: Proxy, look: Look) -> None:
    async with Namespace(namespace_id, redis=proxy.url, producer_timeout=60) as namespace:
        job = await namespace.queue("q").add("x", id="a", run_in=3600)
        proxy.lose_answers(load("send_event").sha, every=2)
        for n in range(6):
            assert await job.send_event("ping", str(n), event_id=f"sent {n}")
        proxy.lose_no_answers()
        assert [event.rsplit("\n", 1)[1] for event in look("ZRANGE", "q:events:a", 0, -1)] == list("012345")
        await namespace.queue("q").remove("a")


@pytest.mark.parametrize("kind", ["throttle", "debounce"])
async def test_deduplication_does_not_mistake_a_call_that_comes_again(
    namespace_id: str, proxy: Proxy, kind: str
) -> None:
    async with Namespace(namespace_id, redis=proxy.url, producer_timeout=60) as namespace:
        queue = namespace.queue("q")
        proxy.lose_answers(load("add_jobs").sha, every=2)
        given: dict[str, Any] = {kind: Dedup("k", 60)}
        first = await queue.add("one", **given)
        again = [await queue.add(f"again {n}", **given) for n in range(5)]
        proxy.lose_no_answers()
        assert {job.id for job in again} == {first.id}
        assert await queue.remove(first.id)


async def test_control_of_jobs_is_sent_until_it_is_answered(namespace_id: str, proxy: Proxy) -> None:
    async with Namespace(namespace_id, redis=proxy.url, producer_timeout=60) as namespace:
        queue, desk = namespace.queue("q"), Desk()

        async def handle(claim: Claim) -> str:
            if claim.data == "fails":
                raise ValueError("no")
            return await desk(claim)

        async with worker_of(queue, handle, concurrency=8):
            proxy.lose_answers("EVALSHA", every=2)
            delayed = await queue.add("x", run_in=3600)
            assert await queue.promote(delayed.id)
            await desk.has_started(delayed.id)
            assert await delayed.cancel("enough")
            assert await delayed.cancel("enough")
            failed = await queue.add("fails")
            with pytest.raises(JobFailedError):
                await failed.wait(PATIENCE)
            assert await queue.retry(failed.id)
            with pytest.raises(JobFailedError):
                await failed.wait(PATIENCE)
            assert await queue.retry_all() == 1
            with pytest.raises(JobFailedError):
                await failed.wait(PATIENCE)
            assert await queue.remove(failed.id)
            assert not await queue.remove(failed.id)
            dropped = [await queue.add("x", run_in=3600, result_ttl=0) for _ in range(5)]
            assert [await job.cancel() for job in dropped] == [True] * 5
            for n in range(5):
                await queue.schedules.upsert(str(n), cadence("0 3 * * *"), "x")
            assert [await queue.schedules.remove(str(n)) for n in range(5)] == [True] * 5
            await queue.pause()
            await queue.add_many(["x"] * 250)
            assert await queue.remove_all("waiting") == 250
            proxy.lose_no_answers()


async def test_one_outcome_counts_when_the_answer_was_lost_and_the_lease_ran_out(
    namespace_id: str, proxy: Proxy, namespace: Namespace, look: Look
) -> None:
    """The connection is cut after the commit was applied; meanwhile others sweep; then the call is sent again."""
    desk, other = Desk(), Desk(is_open=True)
    async with Namespace(namespace_id, redis=proxy.url) as cut_off:
        queue = cut_off.queue("q")
        # nobody takes from anybody what is only late
        look.hold_sweeps()
        async with worker_of(queue, desk, lease=LEASE, concurrency=1):
            job = await queue.add("x", id="a")
            await desk.runs("a")
            deadline = look.deadline("q", "a")
            proxy.lose_answers(load("settle").sha, every=1)
            desk.open()
            await wait_until(lambda: proxy.lost_answers >= 1)
            await proxy.refuse()
            async with worker_of(namespace.queue("q"), other):
                await wait_until(lambda: look.state("q", "a") == "completed")
                await wait_until(lambda: look.now() > deadline + 2 * LEASE * 1000, PATIENCE)
                look("DEL", "swept")
                assert await sweep(namespace) == []
                next_job = await namespace.queue("q").add("x", id="b")
                await next_job.wait(PATIENCE)
            proxy.lose_no_answers()
            await proxy.accept()
            assert await job.wait(PATIENCE) == "x"
            assert await (await queue.add("x", id="c")).wait(PATIENCE) == "x"
    assert (desk.started, other.started) == (["a", "c"], ["b"])


async def test_a_worker_hears_again_of_work_though_its_nudge_was_lost(
    namespace_id: str, proxy: Proxy, namespace: Namespace
) -> None:
    """One whose slots are taken stops popping a workflow's wake-ups, and ends its pop when it wants them again."""
    desk = Desk()
    async with (
        Namespace(namespace_id, redis=proxy.url) as remote,
        worker_of(remote.queue("q"), desk, concurrency=1),
    ):
        queue = namespace.queue("q")
        await queue.add("x", id="a")
        await desk.runs("a")
        await wait_until(lambda: proxy.requests_with("BRPOP") > proxy.requests_with(":q:wake"), PATIENCE)
        proxy.lose_request(load("nudge_worker").sha)
        desk.open()
        await wait_until(lambda: proxy.lost_requests == 1, PATIENCE)
        await (await queue.add("x", id="b")).wait(PATIENCE / 2)
