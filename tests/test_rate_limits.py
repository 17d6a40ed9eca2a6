"""Rate limiters: what they let start, and what they cost a job that they refuse."""

import asyncio
import sys
from contextlib import AsyncExitStack

import anyio
import pytest

from lanner import Context, WorkflowNamespace
from lanner.queue import Claim, Namespace, Outcome, RateLimit, Released, Retry, Suspended
from lanner.queue.outcome import Failure
from support.client import Client
from support.jobs import PATIENCE, results_of
from support.rate_limits import LONG, SAFETY, done, looked_in_vain, starts_kept
from support.servers import Server
from support.starts import most_within, starts_of
from support.waiting import wait_until

WORKER = """
import asyncio, sys
from lanner.queue import Namespace, RateLimit

async def main(url, name, limit, window):
    limiters = {"api": RateLimit(int(limit), float(window))}
    async with Namespace(name, redis=url, limiters=limiters) as namespace:
        async def handle(claim):
            return ""
        async with namespace.queue("calls").worker(handle, concurrency=4, safety=120):
            await asyncio.to_thread(sys.stdin.read)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize(("limit", "window", "jobs"), [(1, 0.02, 12), (7, 0.3, 30), (30, 0.5, 70)])
async def test_no_window_has_more_starts_than_the_limit_with_many_workers(
    server: Server, namespace_id: str, limit: int, window: float, jobs: int
) -> None:
    limiters = {"api": RateLimit(limit, window)}
    async with AsyncExitStack() as stack:
        for _ in range(4):
            namespace = await stack.enter_async_context(Namespace(namespace_id, redis=server.url, limiters=limiters))
            await stack.enter_async_context(namespace.queue("calls").worker(done, concurrency=5, safety=SAFETY))
        queue = Namespace(namespace_id, redis=server.url).queue("calls")
        async with queue.namespace:
            added = await queue.add_many(["x"] * jobs)
            for job in added:
                await job.wait(PATIENCE)
            starts = await starts_of(added)
    assert len(starts) == jobs
    assert most_within(starts, window) <= limit


async def test_no_window_has_more_starts_than_the_limit_with_many_processes(server: Server, namespace_id: str) -> None:
    command = [sys.executable, "-c", WORKER, server.url, namespace_id, "8", "0.25"]
    async with Namespace(namespace_id, redis=server.url) as namespace:
        workers = [await anyio.open_process(command, stderr=None) for _ in range(3)]
        try:
            await wait_until(lambda: all_started(namespace, len(workers)), PATIENCE)
            added = await namespace.queue("calls").add_many(["x"] * 40)
            for job in added:
                await job.wait(PATIENCE)
            starts = await starts_of(added)
        finally:
            for worker in workers:
                assert worker.stdin is not None
                await worker.stdin.aclose()
                await worker.wait()
                await worker.aclose()
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    assert most_within(starts, 0.25) <= 8


async def test_a_job_that_goes_on_after_a_wait_starts_nothing(
    server: Server, namespace_id: str, client: Client
) -> None:
    turns: list[str] = []

    async def handle(claim: Claim) -> Outcome | str:
        turns.append(claim.data)
        return Suspended(claim.now_ms() + 20) if len(turns) < 4 else "through"

    async with Namespace(namespace_id, redis=server.url, limiters={"api": RateLimit(1, LONG)}) as namespace:
        queue = namespace.queue("calls")
        first, second = await queue.add("first"), await queue.add("second")
        async with queue.worker(handle, safety=SAFETY):
            assert await first.wait(PATIENCE) == "through"
            await looked_in_vain(queue, client)
            assert await second.state() == "waiting"
    assert turns == ["first"] * 4


@pytest.mark.parametrize("way", ["released", "worker stopped"])
async def test_a_job_that_was_handed_back_starts_nothing_when_it_goes_on(
    server: Server, namespace_id: str, way: str
) -> None:
    turns: list[str] = []
    begun = asyncio.Event()

    async def handle(claim: Claim) -> Outcome | str:
        turns.append(claim.data)
        begun.set()
        if len(turns) > 1:
            return "through"
        if way == "released":
            return Released()
        await asyncio.sleep(60)
        return "never"

    async with Namespace(namespace_id, redis=server.url, limiters={"api": RateLimit(1, LONG)}) as namespace:
        queue = namespace.queue("calls")
        job = await queue.add("first")
        worker = queue.worker(handle, safety=SAFETY)
        await worker.start()
        await begun.wait()
        if way == "worker stopped":
            await worker.stop(grace=0)
            worker = queue.worker(handle, safety=SAFETY)
            await worker.start()
        assert await job.wait(PATIENCE) == "through"
        await worker.stop()
    assert turns == ["first", "first"]


async def test_a_retry_is_a_start(server: Server, namespace_id: str, client: Client) -> None:
    async def handle(_: Claim) -> Outcome:
        return Retry(0, Failure("Oops", "again"))

    async with Namespace(namespace_id, redis=server.url, limiters={"api": RateLimit(2, LONG)}) as namespace:
        queue = namespace.queue("calls", max_attempts=5)
        job = await queue.add("x")
        async with queue.worker(handle, safety=SAFETY):
            await wait_until(lambda: starts_kept(client, namespace, "api") == 2)
            await wait_until(lambda: client("EXISTS", f"{namespace.base}:running") == 0)
            await looked_in_vain(queue, client)
            record = await job.record()
    assert (record.state, record.attempt) == ("waiting", 3)


async def test_a_refused_job_keeps_its_place_and_its_attempt(server: Server, namespace_id: str, client: Client) -> None:
    order: list[str] = []

    async def handle(claim: Claim) -> str:
        order.append(claim.data)
        return ""

    async with Namespace(namespace_id, redis=server.url, limiters={"api": RateLimit(1, LONG)}) as namespace:
        queue = namespace.queue("calls", group_concurrency=1)
        await queue.pause()
        names = ["b", "c", "a", "d", "e"]
        jobs = [
            await queue.add(name, priority=9 if name == "a" else 1, group="g" if name in "cd" else None)
            for name in names
        ]
        ready = client("ZRANGE", f"{namespace.base}:calls:ready", 0, -1, "WITHSCORES")
        group = client("ZRANGE", f"{namespace.base}:calls:g:g", 0, -1, "WITHSCORES")
        async with queue.worker(handle, safety=SAFETY):
            await queue.resume()
            await wait_until(lambda: order == ["a"])
            await looked_in_vain(queue, client)
            # what is left after the first start stands as it stood
            assert client("ZRANGE", f"{namespace.base}:calls:ready", 0, -1, "WITHSCORES") == ready[1:]
            assert client("ZRANGE", f"{namespace.base}:calls:g:g", 0, -1, "WITHSCORES") == group
            for started in range(2, len(jobs) + 1):
                client("DEL", f"{namespace.base}:@limiter:api")
                await queue.resume()
                await wait_until(lambda: len(order) == started)  # noqa: B023 - awaited at once
            await results_of(jobs)
        attempts = [(await job.record()).attempt for job in jobs]
    assert order == ["a", "b", "c", "d", "e"]
    assert attempts == [1] * 5


async def test_several_budgets_are_all_taken_or_none(server: Server, namespace_id: str, client: Client) -> None:
    limiters = {"account": RateLimit(3, LONG), "card": RateLimit(2, LONG)}
    async with Namespace(namespace_id, redis=server.url, limiters=limiters) as namespace:
        both, one = namespace.queue("both"), namespace.queue("one", limiters=["account"])
        async with both.worker(done, safety=SAFETY), one.worker(done, safety=SAFETY):
            paid = await both.add_many(["x"] * 5)
            await paid[1].wait(PATIENCE)
            await looked_in_vain(both, client)
            assert starts_kept(client, namespace, "card") == 2
            assert starts_kept(client, namespace, "account") == 2
            # the third start of the account is still to be had, by whom the card does not concern
            await (await one.add("y")).wait(PATIENCE)
            late = await one.add("z")
            await looked_in_vain(one, client)
            assert await late.state() == "waiting"
            assert [await job.state() for job in paid] == ["completed"] * 2 + ["waiting"] * 3
        assert starts_kept(client, namespace, "account") == 3


@pytest.mark.parametrize("over", [0, 1, 2, 63, 64, 255, 256, 257, 700])
@pytest.mark.parametrize("within", [0, 1, 2])
async def test_starts_that_are_over_are_forgotten_however_many_calls_told_them(
    server: Server, namespace_id: str, client: Client, over: int, within: int
) -> None:
    async with Namespace(namespace_id, redis=server.url, limiters={"api": RateLimit(2, LONG)}) as namespace:
        queue = namespace.queue("calls")
        job = await queue.add("x")
        now = (await job.record()).created.timestamp() * 1000
        instants = [int(now - LONG.total_seconds() * 1000) - 1] * over + [int(now)] * within
        for told, instant in enumerate(instants):
            client("RPUSH", f"{namespace.base}:@limiter:api", f"{instant} {told} {told + 1}")
            client("PEXPIRE", f"{namespace.base}:@limiter:api", int(LONG.total_seconds() * 1000))
        async with queue.worker(done, safety=SAFETY):
            if within < 2:
                await job.wait(PATIENCE)
            else:
                await looked_in_vain(queue, client)
                assert await job.state() == "waiting"
            assert starts_kept(client, namespace, "api") == min(within + 1, 2)


@pytest.mark.parametrize("entry", ["junk", "1700000000000", "1700000000000 1"])
async def test_a_limiter_whose_starts_cannot_be_read_lets_nothing_start(
    server: Server, namespace_id: str, client: Client, entry: str
) -> None:
    async with Namespace(namespace_id, redis=server.url, limiters={"api": RateLimit(2, LONG)}) as namespace:
        queue = namespace.queue("calls")
        job = await queue.add("x")
        for place in ("LPUSH", "RPUSH"):
            client("RPUSH", f"{namespace.base}:@limiter:api", "1700000000000 0 1")
            client(place, f"{namespace.base}:@limiter:api", entry)
            client("PEXPIRE", f"{namespace.base}:@limiter:api", int(LONG.total_seconds() * 1000))
            async with queue.worker(done, safety=SAFETY):
                await looked_in_vain(queue, client)
                assert await job.state() == "waiting"
            client("DEL", f"{namespace.base}:@limiter:api")
        async with queue.worker(done, safety=SAFETY):
            await job.wait(PATIENCE)


@pytest.mark.parametrize(("slots", "limit"), [(1, 2), (3, 2), (4, 2), (5, 3), (10, 4)])
async def test_a_worker_goes_on_as_soon_as_a_budget_opens_whoever_was_refused(
    server: Server, namespace_id: str, slots: int, limit: int
) -> None:
    async with Namespace(namespace_id, redis=server.url, limiters={"api": RateLimit(limit, 0.02)}) as namespace:
        queue = namespace.queue("calls")
        # calls that commit, and claim nothing, come between those that are refused
        async with queue.worker(done, concurrency=slots, safety=SAFETY):
            for job in await queue.add_many(["x"] * 300):
                await job.wait(PATIENCE)


async def test_limiters_are_one_budget_over_workflows(server: Server, namespace_id: str, client: Client) -> None:
    async def nothing(_: Context[None]) -> None:
        pass

    limiters = {"api": RateLimit(2, LONG)}
    async with WorkflowNamespace(namespace_id, redis=server.url, limiters=limiters) as namespace:
        workflows = [namespace.create_workflow(name, run=nothing) for name in ("a", "b", "c")]
        async with namespace.worker(safety=SAFETY):
            jobs = [await workflow.run(None) for workflow in workflows]
            for workflow in workflows:
                await looked_in_vain(workflow.queue, client)
            states = sorted([await job.state() for job in jobs])
            assert states == ["completed", "completed", "waiting"]


async def all_started(namespace: Namespace, workers: int) -> bool:
    """Whether so many workers live."""
    return len([worker for worker in await namespace.workers() if worker.departed is None]) == workers
