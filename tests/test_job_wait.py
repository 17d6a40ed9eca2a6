"""Waiting for the end of a job: before, during and after it, here and elsewhere, and whatever happens meanwhile."""

import asyncio
import logging
from typing import Any

import pytest

from lanner.errors import (
    ClosedError,
    JobCancelledError,
    JobFailedError,
    JobNotFoundError,
    ResultExpiredError,
    WaitTimeoutError,
)
from lanner.queue import Claim, Namespace
from lanner.queue.connection import Connector
from support.jobs import PATIENCE, Desk, echo, worker_of
from support.proxy import Proxy
from support.servers import Server
from support.waiting import wait_until

MANY = 1000


async def test_a_thousand_waits_share_one_connection(namespace_id: str, proxy: Proxy) -> None:
    async with Namespace(namespace_id, redis=proxy.url) as namespace:
        queue, desk = namespace.queue("q"), Desk()
        jobs = await queue.add_many([str(number) for number in range(MANY)])
        async with worker_of(queue, desk, concurrency=MANY):
            waits = [asyncio.create_task(job.wait(PATIENCE)) for job in jobs]
            await wait_until(lambda: len(desk.running) == MANY, PATIENCE)
            desk.open()
            assert list(await asyncio.gather(*waits)) == [str(number) for number in range(MANY)]
    assert proxy.requests_with("SUBSCRIBE") == 1


async def test_a_wait_resolves_before_during_and_after_the_run(namespace: Namespace) -> None:
    queue, desk = namespace.queue("q"), Desk()
    job = await queue.add("x")
    before = asyncio.create_task(job.wait(PATIENCE))
    async with worker_of(queue, desk):
        await desk.runs(job.id)
        during = asyncio.create_task(job.wait(PATIENCE))
        by_id = asyncio.create_task(queue.job(job.id).wait(PATIENCE))
        desk.open()
        assert list(await asyncio.gather(before, during, by_id)) == ["x"] * 3
        assert await job.wait(PATIENCE) == "x"


async def test_another_process_may_wait(namespace: Namespace, redis_url: str) -> None:
    queue, desk = namespace.queue("q"), Desk()
    job = await queue.add("x", id="a")
    async with Namespace(namespace.id, redis=redis_url) as other, worker_of(queue, desk):
        elsewhere = other.queue("q").job("a")
        waits = [asyncio.create_task(elsewhere.wait(PATIENCE)), asyncio.create_task(job.wait(PATIENCE))]
        await desk.runs("a")
        desk.open()
        assert await asyncio.gather(*waits) == ["x", "x"]
        assert await elsewhere.wait(PATIENCE) == "x"


async def test_the_end_of_a_job_that_failed_or_was_cancelled_is_raised(namespace: Namespace) -> None:
    async def fail(_: Claim) -> None:
        raise ValueError("no good")

    queue = namespace.queue("q")
    later = await queue.add("x", run_in=3600)
    waits = asyncio.create_task(later.wait(PATIENCE))
    async with worker_of(queue, fail):
        failed = await queue.add("x")
        with pytest.raises(JobFailedError) as raised:
            await failed.wait(PATIENCE)
        assert (raised.value.type, raised.value.message) == ("ValueError", "no good")
        assert "raise ValueError" in raised.value.traceback
        await later.cancel("changed my mind")
        with pytest.raises(JobCancelledError, match="changed my mind"):
            await waits
        with pytest.raises(JobCancelledError, match="changed my mind"):
            await later.wait(PATIENCE)
        with pytest.raises(JobFailedError, match="no good"):
            await failed.wait(PATIENCE)


async def test_a_failure_without_a_text_is_told_by_its_type(namespace: Namespace) -> None:
    async def fail(_: Claim) -> None:
        raise OSError

    queue = namespace.queue("q")
    async with worker_of(queue, fail):
        job = await queue.add("x", id="a")
        with pytest.raises(JobFailedError, match=r"^job 'a' of workflow 'q' failed: OSError\n\nwhere it ran:\nTrace"):
            await job.wait(PATIENCE)


@pytest.mark.parametrize("size", [0, 1, 16_384, 16_385, 300_000])
@pytest.mark.parametrize("ttl", [0, 60])
async def test_a_result_of_any_size_arrives_also_when_nothing_is_kept(
    namespace: Namespace, size: int, ttl: float
) -> None:
    async def long(_: Claim) -> str:
        return "é" * size

    queue = namespace.queue("q")
    job = await queue.add("x", result_ttl=ttl)
    wait = asyncio.create_task(job.wait(PATIENCE))
    await wait_until(lambda: job_has_waiters(namespace, job.id))
    async with worker_of(queue, long):
        assert await wait == "é" * size


async def job_has_waiters(namespace: Namespace, job_id: str) -> bool:
    key = f"{namespace.base}:q:j:{job_id}"
    return bool(await (await namespace.runtime()).call.link.call("HEXISTS", key, "waiters"))


@pytest.mark.parametrize("scripts", ["known to Redis", "not known to Redis"])
async def test_a_wait_that_timed_out_can_be_made_again_and_again(
    server: Server, namespace: Namespace, scripts: str
) -> None:
    queue, desk = namespace.queue("q"), Desk()
    job = await queue.add("x")
    if scripts == "not known to Redis":
        with server.client() as client:
            client("SCRIPT", "FLUSH")
    async with worker_of(queue, desk):
        await desk.runs(job.id)
        for _ in range(20):
            with pytest.raises(WaitTimeoutError, match="it goes on"):
                await job.wait(0.001)
        with pytest.raises(WaitTimeoutError):
            await job.wait(0.2)
        # at once, while the process is still about to take itself off the record
        last = asyncio.create_task(job.wait(PATIENCE))
        await wait_until(lambda: job_has_waiters(namespace, job.id))
        await asyncio.sleep(0.05)  # what was about to happen has happened
        desk.open()
        assert await last == "x"


async def test_who_gave_up_is_taken_off_the_record(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    job = await queue.add("x", run_in=3600)
    with pytest.raises(WaitTimeoutError):
        await job.wait(0.05)

    async def alone() -> bool:
        return not await job_has_waiters(namespace, job.id)

    await wait_until(alone)
    await queue.remove(job.id)


async def test_one_that_gives_up_takes_nothing_from_others(namespace: Namespace) -> None:
    queue, desk = namespace.queue("q"), Desk()
    job = await queue.add("x")
    async with worker_of(queue, desk):
        await desk.runs(job.id)
        stays = asyncio.create_task(job.wait(PATIENCE))
        goes = asyncio.create_task(job.wait(PATIENCE))
        await asyncio.sleep(0.05)
        goes.cancel()
        with pytest.raises(asyncio.CancelledError):
            await goes
        desk.open()
        assert await stays == "x"


async def test_closing_fails_pending_waits_at_once(namespace_id: str, redis_url: str) -> None:
    namespace = Namespace(namespace_id, redis=redis_url)
    queue = namespace.queue("q")
    job = await queue.add("x", run_in=3600)
    waits = [asyncio.create_task(job.wait()) for _ in range(3)]
    await wait_until(lambda: job_has_waiters(namespace, job.id))
    await queue.remove("nobody")
    await namespace.aclose()
    for wait in waits:
        with pytest.raises(ClosedError, match=f"waiting for job '{job.id}'"):
            await wait
    with pytest.raises(ClosedError):
        await job.wait()
    async with Namespace(namespace_id, redis=redis_url) as other:
        await other.queue("q").remove(job.id)


async def test_closing_fails_waits_also_while_redis_is_away(namespace_id: str, redis_url: str, proxy: Proxy) -> None:
    namespace = Namespace(namespace_id, redis=proxy.url)
    queue = namespace.queue("q")
    job = await queue.add("x", run_in=3600)
    await proxy.refuse()
    waits = [asyncio.create_task(each) for each in (job.wait(), job.wait(), _watch(job))]
    await asyncio.sleep(0.1)
    async with asyncio.timeout(PATIENCE):
        await namespace.aclose()
        for wait in waits:
            with pytest.raises(ClosedError):
                await wait
    async with Namespace(namespace_id, redis=redis_url) as other:
        await other.queue("q").remove(job.id)


async def _watch(job: Any) -> list[str]:
    return [happening.kind async for happening in job.watch()]


async def test_a_wait_whose_task_is_cancelled_is_cancelled(namespace: Namespace) -> None:
    job = await namespace.queue("q").add("x", run_in=3600)
    wait = asyncio.create_task(job.wait())
    await wait_until(lambda: job_has_waiters(namespace, job.id))
    wait.cancel()
    with pytest.raises(asyncio.CancelledError):
        await wait
    await namespace.queue("q").remove(job.id)


async def test_a_handle_never_gets_the_result_of_another_life(namespace: Namespace, redis_url: str) -> None:
    queue = namespace.queue("q")
    async with Namespace(namespace.id, redis=redis_url) as other, worker_of(queue, echo):
        for life in range(30):
            job = await queue.add(f"life {life}", id="a")
            by_id = other.queue("q").job("a")
            assert list(await asyncio.gather(job.wait(PATIENCE), by_id.wait(PATIENCE))) == [f"life {life}"] * 2


async def test_a_handle_of_a_replaced_life_says_that_its_result_is_gone(namespace: Namespace) -> None:
    queue, desk = namespace.queue("q"), Desk()
    async with worker_of(queue, desk):
        desk.let_go("a")
        first = await queue.add("one", id="a", result_ttl=60)
        assert await first.wait(PATIENCE) == "one"
        second = await queue.add("two", id="a", run_in=3600)
        with pytest.raises(ResultExpiredError, match="its id was used again"):
            await first.wait(PATIENCE)
        with pytest.raises(ResultExpiredError, match="its id was used again"):
            await first.record()
        waiting = asyncio.create_task(second.wait(PATIENCE))
        await queue.promote("a")
        assert await waiting == "two"


async def test_a_removed_job_ends_its_waits(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    job = await queue.add("x", run_in=3600)
    wait = asyncio.create_task(job.wait(PATIENCE))
    await wait_until(lambda: job_has_waiters(namespace, job.id))
    await queue.remove(job.id)
    with pytest.raises(JobNotFoundError, match="was removed"):
        await wait


async def test_a_result_that_was_dropped_is_told_from_a_job_that_never_was(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    async with worker_of(queue, echo):
        job = await queue.add("x", result_ttl=0)
        marker = await queue.add("y")
        await marker.wait(PATIENCE)
    with pytest.raises(ResultExpiredError):
        await job.wait(PATIENCE)
    with pytest.raises(JobNotFoundError):
        await queue.job(job.id).wait(PATIENCE)


async def test_an_end_that_was_published_into_a_gap_is_noticed(namespace_id: str, server: Server, proxy: Proxy) -> None:
    async with (
        Namespace(namespace_id, redis=proxy.url) as waiting,
        Namespace(namespace_id, redis=server.url) as working,
    ):
        desk = Desk()

        async def ended() -> bool:
            return (await working.queue("q").counts()).completed == 100

        async with worker_of(working.queue("q"), desk, concurrency=100):
            jobs = await waiting.queue("q").add_many(["x"] * 100)
            waits = [asyncio.create_task(job.wait(PATIENCE)) for job in jobs]
            await wait_until(lambda: len(desk.running) == 100, PATIENCE)
            await asyncio.gather(*(job_has_waiters(waiting, job.id) for job in jobs))
            await proxy.refuse()
            desk.open()
            await wait_until(ended)
            await proxy.accept()
            assert await asyncio.gather(*waits) == ["x"] * 100


async def test_a_wait_for_a_retried_job_hears_of_its_new_end(namespace: Namespace) -> None:
    failing = True

    async def handle(claim: Claim) -> str:
        if failing:
            raise ValueError(claim.data)
        return claim.data

    queue = namespace.queue("q")
    async with worker_of(queue, handle):
        job = await queue.add("x")
        with pytest.raises(JobFailedError):
            await job.wait(PATIENCE)
        failing = False
        assert await queue.retry(job.id)
        assert await job.wait(PATIENCE) == "x"


async def test_an_idle_wait_outlives_the_clients_socket_timeout(
    namespace: Namespace, caplog: pytest.LogCaptureFixture
) -> None:
    queue, desk = namespace.queue("q"), Desk()
    caplog.set_level(logging.DEBUG, "lanner")
    async with worker_of(queue, desk):
        job = await queue.add("x")
        wait = asyncio.create_task(job.wait(PATIENCE))
        await desk.runs(job.id)
        await asyncio.sleep(5.5)  # redis-py's own default is 5 s
        desk.open()
        assert await wait == "x"
    assert [record for record in caplog.records if "broke" in record.message] == []


async def test_a_connection_that_has_died_unnoticed_is_noticed(
    namespace_id: str, server: Server, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is pushed over it is lost, and nothing says so."""
    monkeypatch.setattr("lanner.queue.subscription.QUIET", 0.2)
    monkeypatch.setattr("lanner.queue.subscription.ANSWERS_WITHIN", 0.3)
    monkeypatch.setitem(Connector.link.__kwdefaults__ or {}, "timeout", 1.0)
    desk = Desk()
    async with (
        Namespace(namespace_id, redis=proxy.url) as waiting,
        Namespace(namespace_id, redis=server.url) as working,
        worker_of(working.queue("q"), desk),
    ):
        job = await waiting.queue("q").add("x")
        wait = asyncio.create_task(job.wait(PATIENCE))
        await desk.runs(job.id)
        await wait_until(lambda: job_has_waiters(working, job.id))
        proxy.silence()
        desk.open()
        assert await wait == "x"


async def test_a_quiet_connection_that_lives_is_kept(
    namespace_id: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lanner.queue.subscription.ANSWERS_WITHIN", 4)
    monkeypatch.setattr("lanner.queue.subscription.QUIET", 0.2)
    desk = Desk()
    async with Namespace(namespace_id, redis=proxy.url) as namespace, worker_of(namespace.queue("q"), desk):
        job = await namespace.queue("q").add("x")
        wait = asyncio.create_task(job.wait(PATIENCE))
        await wait_until(lambda: proxy.requests_with("PING") > 2)
        desk.open()
        assert await wait == "x"
    assert proxy.requests_with("SUBSCRIBE") == 1
