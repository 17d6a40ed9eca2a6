"""Waiting for many jobs at once: what goes together, and what goes wrong for one of them or for all."""

import asyncio
from collections.abc import Sequence

import pytest

from lanner.errors import JobFailedError, JobNotFoundError, WaitTimeoutError
from lanner.queue import Claim, Job, Namespace
from lanner.queue.calling import ScriptError
from lanner.queue.scripts.loader import load
from support.jobs import PATIENCE, Desk, Look, results_of, worker_of
from support.proxy import Proxy
from support.servers import PrivateServer, Server
from support.waiting import wait_until

SLOTS = 100
MANY = 1000
# how many calls a thousand waits may take
FEW = 30
# longer than what is pushed with an end
LONG = 20_000


async def are_waited_for(namespace: Namespace, jobs: Sequence[Job]) -> bool:
    """Whether the end of each job will be pushed to somebody."""
    link = (await namespace.runtime()).call.link
    asked = [link.call("HEXISTS", f"{namespace.base}:{job.queue.id}:j:{job.id}", "waiters") for job in jobs]
    return all(await asyncio.gather(*asked))


async def test_ends_that_are_committed_together_are_pushed_together(own_server: PrivateServer) -> None:
    desk = Desk()
    async with Namespace("n", redis=own_server.url) as namespace:
        queue = namespace.queue("q")
        async with worker_of(queue, desk, concurrency=SLOTS):
            jobs = await queue.add_many([str(n) for n in range(SLOTS)])
            waits = [asyncio.create_task(job.wait(PATIENCE)) for job in jobs]
            await wait_until(lambda: len(desk.running) == SLOTS, PATIENCE)
            await wait_until(lambda: are_waited_for(namespace, jobs), PATIENCE)
            with own_server.client() as client:
                client("CONFIG", "RESETSTAT")
                desk.open()
                assert list(await asyncio.gather(*waits)) == [str(n) for n in range(SLOTS)]
                published = client("INFO", "commandstats")["cmdstat_publish"]["calls"]
    assert int(published) < SLOTS / 4


async def test_each_of_many_hears_of_its_own_end_wherever_it_waits(namespace: Namespace, redis_url: str) -> None:
    """Short and long ones, empty, of several lines, of two queues, failed, and some that two processes wait for."""
    gate = asyncio.Event()

    async def end(claim: Claim) -> str:
        await gate.wait()
        if claim.data == "bad":
            raise ValueError(claim.id)
        return claim.data

    queues = [namespace.queue("q"), namespace.queue("r")]
    payloads = ["", "a\nb\n\nc", "é\U0001f600", "bad", "x" * LONG] * 10
    async with (
        Namespace(namespace.id, redis=redis_url) as other,
        worker_of(queues[0], end, concurrency=SLOTS),
        worker_of(queues[1], end, concurrency=SLOTS),
    ):
        jobs = [job for queue in queues for job in await queue.add_many(payloads)]
        elsewhere = [other.queue(job.queue.id).job(job.id) for job in jobs[::3]]
        waits = [asyncio.create_task(job.wait(PATIENCE)) for job in [*jobs, *elsewhere]]
        await wait_until(lambda: are_waited_for(namespace, jobs), PATIENCE)
        gate.set()
        ends = await asyncio.gather(*waits, return_exceptions=True)
    expected = payloads * 2
    for job, text, heard in zip([*jobs, *elsewhere], [*expected, *expected[::3]], ends, strict=True):
        if text == "bad":
            assert isinstance(heard, JobFailedError)
            assert heard.message == job.id
        else:
            assert heard == text


def calls_of(proxy: Proxy, script: str) -> int:
    """How often a script was called through the proxy."""
    return proxy.requests_with(load(script).sha) + proxy.requests_with(load(script).text)


async def test_waits_that_begin_together_take_few_calls(namespace_id: str, proxy: Proxy) -> None:
    desk = Desk(is_open=True)
    async with Namespace(namespace_id, redis=proxy.url) as namespace:
        queue = namespace.queue("q")
        jobs = await queue.add_many([str(n) for n in range(MANY)])
        waits = [asyncio.create_task(job.wait(PATIENCE)) for job in jobs]
        await wait_until(lambda: are_waited_for(namespace, jobs), PATIENCE)
        async with worker_of(queue, desk, concurrency=SLOTS):
            assert list(await asyncio.gather(*waits)) == [str(n) for n in range(MANY)]
            assert calls_of(proxy, "wait_jobs") < FEW
            # now that all have ended
            assert await results_of(jobs) == [str(n) for n in range(MANY)]
            assert calls_of(proxy, "wait_jobs") < 2 * FEW


async def test_a_wait_by_itself_is_one_call_that_is_sent_at_once(namespace_id: str, proxy: Proxy) -> None:
    desk = Desk(is_open=True)
    async with Namespace(namespace_id, redis=proxy.url) as namespace:
        queue = namespace.queue("q")
        async with worker_of(queue, desk):
            for calls in range(1, 10):
                assert await (await queue.add("x")).wait(PATIENCE) == "x"
                assert proxy.requests_with(load("wait_jobs").sha) == calls


async def test_one_that_cannot_be_waited_for_fails_alone(namespace: Namespace, look: Look) -> None:
    queue, desk = namespace.queue("q"), Desk(is_open=True)
    jobs = await queue.add_many([str(n) for n in range(SLOTS)])
    bad = await queue.add("x", id="bad", run_in=3600)
    spec = look("HGET", "q:j:bad", "spec")
    look("HSET", "q:j:bad", "spec", "no spec")
    waited_for = [*jobs[:50], bad, queue.job("nobody"), *jobs[50:], bad]
    waits = [asyncio.create_task(job.wait(PATIENCE)) for job in waited_for]
    for wait, job in zip(waits, waited_for, strict=True):
        if job is bad:
            with pytest.raises(ScriptError, match="wait_jobs"):
                await wait
        elif job.id == "nobody":
            with pytest.raises(JobNotFoundError):
                await wait
    async with worker_of(queue, desk, concurrency=SLOTS):
        good = [wait for wait, job in zip(waits, waited_for, strict=True) if job in jobs]
        assert list(await asyncio.gather(*good)) == [str(n) for n in range(SLOTS)]
    look("HSET", "q:j:bad", "spec", spec)
    await queue.remove("bad")


@pytest.mark.parametrize("size", [LONG, 600_000])
async def test_long_results_that_are_read_together_arrive(namespace_id: str, proxy: Proxy, size: int) -> None:
    async def long(claim: Claim) -> str:
        return claim.data * size

    async with Namespace(namespace_id, redis=proxy.url) as namespace:
        queue = namespace.queue("q")
        payloads = [chr(ord("a") + n) for n in range(20)]
        async with worker_of(queue, long, concurrency=SLOTS):
            jobs = await queue.add_many(payloads)
            assert await results_of(jobs) == [payload * size for payload in payloads]
            before = calls_of(proxy, "wait_jobs")
            assert await results_of(jobs) == [payload * size for payload in payloads]
        # an answer holds a MiB, and the text that goes beyond it; the first wait may be sent by itself
        assert calls_of(proxy, "wait_jobs") - before in ((1, 2) if size == LONG else (10, 11))


async def test_ends_are_heard_of_although_the_connections_break(
    namespace_id: str, server: Server, proxy: Proxy
) -> None:
    desk = Desk()
    async with (
        Namespace(namespace_id, redis=proxy.url) as waiting,
        Namespace(namespace_id, redis=server.url) as working,
        worker_of(working.queue("q"), desk, concurrency=SLOTS),
    ):
        jobs = await waiting.queue("q").add_many([str(n) for n in range(MANY)])
        waits = [asyncio.create_task(job.wait(PATIENCE)) for job in jobs]
        await wait_until(lambda: are_waited_for(working, jobs), PATIENCE)
        await proxy.refuse()
        desk.let_go(*(job.id for job in jobs[::2]))
        await asyncio.sleep(0.2)  # some end while nobody hears of it, some when they are looked for again
        await proxy.accept()
        desk.open()
        assert list(await asyncio.gather(*waits)) == [str(n) for n in range(MANY)]
    assert calls_of(proxy, "wait_jobs") < 3 * FEW


@pytest.mark.parametrize("every", [1, 2, 3])
async def test_waits_whose_answer_is_lost_are_sent_again(
    namespace_id: str, server: Server, proxy: Proxy, every: int
) -> None:
    desk = Desk()
    async with (
        Namespace(namespace_id, redis=proxy.url) as waiting,
        Namespace(namespace_id, redis=server.url) as working,
        worker_of(working.queue("q"), desk, concurrency=SLOTS),
    ):
        queue = waiting.queue("q")
        jobs = await queue.add_many([str(n) for n in range(MANY // 2)])
        proxy.lose_answers(load("wait_jobs").sha, every=every)
        waits = [asyncio.create_task(job.wait(PATIENCE)) for job in jobs]
        await wait_until(lambda: proxy.lost_answers > 1, PATIENCE)
        if every == 1:
            proxy.lose_no_answers()
        desk.open()
        assert list(await asyncio.gather(*waits)) == [str(n) for n in range(MANY // 2)]
        # once, however often it was said
        process = await (await waiting.runtime()).waiters.ready()
        last = await queue.add("x", run_in=3600)
        more = [asyncio.create_task(last.wait(PATIENCE)) for _ in range(3)]
        await wait_until(lambda: are_waited_for(working, [last]), PATIENCE)
        key = f"{working.base}:q:j:{last.id}"
        assert await (await working.runtime()).call.link.call("HGET", key, "waiters") == process.encode()
        await last.cancel()
        await asyncio.gather(*more, return_exceptions=True)


async def test_those_that_time_out_go_together_and_leave_the_others(namespace_id: str, proxy: Proxy) -> None:
    desk = Desk()
    async with Namespace(namespace_id, redis=proxy.url) as namespace:
        queue = namespace.queue("q")
        jobs = await queue.add_many([str(n) for n in range(MANY)])
        impatient = [asyncio.create_task(job.wait(0.5)) for job in jobs[1:]]
        patient = [asyncio.create_task(job.wait(PATIENCE)) for job in jobs[:2]]
        ends = await asyncio.gather(*impatient, return_exceptions=True)
        assert {type(end) for end in ends} == {WaitTimeoutError}

        async def nobody_waits() -> bool:
            link = (await namespace.runtime()).call.link
            asked = [link.call("HEXISTS", f"{namespace.base}:q:j:{job.id}", "waiters") for job in jobs[2:]]
            return not any(await asyncio.gather(*asked))

        await wait_until(nobody_waits, PATIENCE)
        assert await are_waited_for(namespace, jobs[:2])
        assert calls_of(proxy, "unwait_jobs") < FEW
        async with worker_of(queue, desk, concurrency=SLOTS):
            desk.open()
            assert list(await asyncio.gather(*patient)) == ["0", "1"]
            assert await results_of(jobs) == [str(n) for n in range(MANY)]


async def test_one_of_many_times_out_alone(namespace: Namespace) -> None:
    queue, desk = namespace.queue("q"), Desk()
    jobs = await queue.add_many([str(n) for n in range(SLOTS)])
    waits = [asyncio.create_task(job.wait(0.05 if n == 50 else PATIENCE)) for n, job in enumerate(jobs)]
    with pytest.raises(WaitTimeoutError, match=f"job '{jobs[50].id}'"):
        await waits[50]
    async with worker_of(queue, desk, concurrency=SLOTS):
        desk.open()
        ends = await asyncio.gather(*waits[:50], *waits[51:])
    assert ends == [str(n) for n in range(SLOTS) if n != 50]
