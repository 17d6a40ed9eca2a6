"""What thousands of jobs leave behind when they are told to leave nothing: nothing."""

import asyncio
import gc
import random
import tracemalloc
import weakref
from dataclasses import dataclass
from typing import Any

import pytest

from lanner import Context, WorkflowNamespace
from lanner.errors import JobCancelledError, JobFailedError
from lanner.queue import Backoff, Claim, Namespace, Queue, Suspended
from lanner.queue.bulk import send_many
from lanner.queue.queue import Added
from support.client import Client
from support.jobs import PATIENCE, worker_of
from support.servers import PrivateServer, Server
from support.waiting import wait_until

JOBS = 2000
DRAINS_WITHIN = 240.0  # nearly all that a test has


async def handle(claim: Claim) -> Any:
    """All that can become of a job, by its payload."""
    match claim.data:
        case "fails":
            raise ValueError("no")
        case "fails once" if claim.attempt == 1:
            raise ValueError("again")
        case "sleeps" if not claim.steps:
            return Suspended(claim.now_ms() + 1)
        case _:
            return "x"


async def run_all(namespace: Namespace, *, grouped: bool) -> None:
    """Jobs of every kind, all of which leave nothing."""
    queue = namespace.queue("q", result_ttl=0, keep_failed=0, max_attempts=2, backoff=Backoff(first=0.001))

    async def step(claim: Claim) -> Any:
        if claim.data == "sleeps":
            await queue.set_step(claim.id, "step", "x", token=claim.token)
        return await handle(claim)

    kinds = ["", "", "", "fails once", "fails", "sleeps", "delayed", "never runs"]
    async with worker_of(queue, step, concurrency=50, lease=5):
        waits: list[asyncio.Task[str]] = []
        for number in range(JOBS // 100):
            jobs = await asyncio.gather(
                *(
                    queue.add(
                        kind,
                        group=f"g{number}.{place % 5}" if grouped else None,
                        run_in={"never runs": 60, "delayed": 0.01}.get(kind),
                        expires=60 if place % 3 else None,
                    )
                    for place, kind in enumerate(random.choices(kinds, k=100))
                )
            )
            waits += [asyncio.create_task(job.wait(PATIENCE)) for job in jobs[:20]]
            await asyncio.sleep(0)
        await wait_until(lambda: is_drained(queue), DRAINS_WITHIN)
        ends = await asyncio.gather(*waits, return_exceptions=True)
    unexpected = [end for end in ends if not isinstance(end, str | JobFailedError | JobCancelledError)]
    assert not [end for end in unexpected if "record is gone" not in str(end) and "removed" not in str(end)]


async def is_drained(queue: Any) -> bool:
    for job_id in await queue.list_jobs("delayed", limit=1000):
        if random.random() < 0.5:
            await queue.remove(job_id)
        else:
            await queue.job(job_id).cancel()
    counts = await queue.counts()
    return not any([counts.waiting, counts.delayed, counts.parked, counts.active])


def lasting_keys(client: Client) -> list[str]:
    """The keys that do not go by themselves."""
    names = sorted(name for page in client.keys("*") for name in page)
    ttls = client.many([("PTTL", name) for name in names])
    return [name for name, ttl in zip(names, ttls, strict=True) if ttl == -1]


@pytest.mark.parametrize("grouped", [False, True], ids=["without groups", "in groups"])
async def test_keys_and_memory_are_what_they_were(own_server: PrivateServer, grouped: bool) -> None:  # noqa: FBT001 - by pytest
    async with Namespace("n", redis=own_server.url) as namespace:
        with own_server.client() as client:
            await run_all(namespace, grouped=grouped)
            keys, memory = lasting_keys(client), used(client)
            await run_all(namespace, grouped=grouped)
            assert lasting_keys(client) == keys
            # 2,000 jobs that stay take half a megabyte at least
            assert used(client) - memory < 200_000
    assert not [key for key in keys if key.count(":") > 2 and not key.endswith(":limits")], keys


@pytest.mark.parametrize("group", [None, "g{}"], ids=["without groups", "in groups"])
async def test_a_hundred_thousand_jobs_leave_nothing(own_server: PrivateServer, group: str | None) -> None:
    async def run(queue: Queue, count: int) -> None:
        where = [Added(group=group and group.format(n % 100)) for n in range(count)]
        async with worker_of(queue, nothing, concurrency=100):
            await send_many(queue, [queue.prepare("x" * 100, each, {}) for each in where])
            await wait_until(lambda: is_drained(queue), DRAINS_WITHIN)

    async with Namespace("n", redis=own_server.url, producer_timeout=60) as namespace:
        queue = namespace.queue("q", result_ttl=0)
        with own_server.client() as client:
            await run(queue, 1_000)
            keys, memory = lasting_keys(client), used(client)
            await run(queue, 100_000)
            assert lasting_keys(client) == keys
            # what stayed of each job would take fifty bytes at least
            assert used(client) - memory < 1_000_000


async def nothing(_: Claim) -> None:
    """Do nothing."""


def used(client: Client) -> int:
    """Bytes that the data takes, without what goes by itself."""
    for page in client.keys("*@receipt*"):
        client.many([("DEL", name) for name in page])
    client("MEMORY", "PURGE")
    return int(client("INFO", "memory")["used_memory_dataset"])


async def test_a_worker_and_a_producer_remember_nothing_of_jobs_that_ended(server: Server, namespace_id: str) -> None:
    async with Namespace(namespace_id, redis=server.url) as namespace:
        queue = namespace.queue("q", result_ttl=0)

        async def some(count: int) -> None:
            jobs = [await queue.add("x" * 1000) for _ in range(count)]
            await asyncio.gather(*(job.wait(PATIENCE) for job in jobs), return_exceptions=True)

        async with worker_of(queue, handle, concurrency=20):
            tracemalloc.start()
            taken: list[int] = []
            for _ in range(3):
                await some(400)
                gc.collect()
                taken.append(tracemalloc.get_traced_memory()[0])
            tracemalloc.stop()
    # the payloads alone are 400 kB
    assert taken[2] - taken[1] < 100_000


async def test_a_run_that_has_ended_is_gone_without_the_garbage_collector(server: Server, namespace_id: str) -> None:
    left: list[weakref.ref[object]] = []

    async def ship(ctx: Context[Parcel]) -> str:
        left.append(weakref.ref(ctx.input))
        return await ctx.step.do("pack", pack, ctx.input.to)

    gc.collect()
    gc.disable()
    try:
        async with WorkflowNamespace(namespace_id, redis=server.url) as namespace:
            shipping = namespace.create_workflow("shipping", run=ship, schema=Parcel)
            async with shipping.worker(concurrency=1):
                assert await shipping.execute(Parcel("home"), timeout=PATIENCE) == "packed for home"
                assert await shipping.execute(Parcel("away"), timeout=PATIENCE) == "packed for away"
                await wait_until(lambda: [reference() for reference in left] == [None, None])
    finally:
        gc.enable()


@dataclass
class Parcel:
    """What is shipped."""

    to: str


async def pack(to: str) -> str:
    return f"packed for {to}"
