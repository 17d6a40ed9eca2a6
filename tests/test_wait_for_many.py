"""Waiting for many jobs at once: what goes together, and what goes wrong for one of them or for all."""

import asyncio
from collections.abc import Sequence

from lanner.errors import JobFailedError
from lanner.queue import Claim, Job, Namespace
from support.jobs import PATIENCE, Desk, worker_of
from support.servers import PrivateServer
from support.waiting import wait_until

SLOTS = 100
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
