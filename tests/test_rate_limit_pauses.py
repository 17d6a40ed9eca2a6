"""What a job that was told to slow down pauses: a limiter for everybody, or itself alone."""

import asyncio
from datetime import timedelta

import pytest

from lanner import Context, RateLimited, WorkflowNamespace
from lanner.queue import Claim, Namespace, Outcome, RateLimit, Suspended
from support.client import Client
from support.jobs import PATIENCE, results_of
from support.rate_limits import LONG, SAFETY, looked_in_vain
from support.servers import Server
from support.starts import starts_of
from support.waiting import wait_until


async def test_rate_limited_pauses_the_limiter_for_everybody(server: Server, namespace_id: str, client: Client) -> None:
    order: list[tuple[str, int, dict[str, str]]] = []
    until: list[int] = []
    limiters = {"api": RateLimit(100, 1), "other": RateLimit(100, 1)}
    async with Namespace(namespace_id, redis=server.url, limiters=limiters) as namespace:
        first, second = namespace.queue("first"), namespace.queue("second", limiters=["api"])
        apart = namespace.queue("apart", limiters=["other"])

        async def handle(claim: Claim) -> str:
            order.append((claim.data, claim.attempt, dict(claim.steps)))
            if claim.data == "a" and not claim.steps:
                assert await first.set_step(claim.id, "asked", "yes", token=claim.token)
                until.append(claim.now_ms() + 300)
                raise RateLimited(0.3, limiter="api")
            return ""

        async with first.worker(handle, concurrency=1, safety=SAFETY), second.worker(handle, safety=SAFETY):
            a, b = await first.add("a"), await first.add("b")
            # a slow machine sees what came after it
            await wait_until(lambda: client("EXISTS", f"{namespace.base}:@limiter-pause:api") or len(order) > 1)
            c = await second.add("c")
            async with apart.worker(handle, safety=SAFETY):
                # no concern of the limiter that is paused
                d = await apart.add("d")
                await d.wait(PATIENCE)
            for job in (a, b, c):
                await job.wait(PATIENCE)
                assert (await starts_of([job]))[0] * 1000 >= until[0] - 0.5
    alone = [entry for entry in order if entry[0] != "c" and entry[0] != "d"]
    assert alone == [("a", 1, {}), ("a", 1, {"asked": "yes"}), ("b", 1, {})]


async def test_a_pause_never_shortens_an_earlier_one(server: Server, namespace_id: str, client: Client) -> None:
    both = asyncio.Barrier(2)
    turns: list[str] = []

    async def handle(claim: Claim) -> str:
        turns.append(claim.data)
        if len(turns) <= 2:
            await both.wait()
            if claim.data == "short":
                await wait_until(lambda: client("EXISTS", pause))
            raise RateLimited(LONG if claim.data == "long" else 0.01, limiter="api")
        return ""

    async with Namespace(namespace_id, redis=server.url, limiters={"api": RateLimit(100, 1)}) as namespace:
        pause = f"{namespace.base}:@limiter-pause:api"
        queue = namespace.queue("calls")
        jobs = [await queue.add("long"), await queue.add("short")]
        async with queue.worker(handle, safety=SAFETY):
            await wait_until(lambda: len(turns) == 2 and not client("EXISTS", f"{namespace.base}:running"))
            seconds, _ = client("TIME")
            assert int(client("GET", pause)) / 1000 > int(seconds) + LONG.total_seconds() / 2
            await looked_in_vain(queue, client)
            assert [await job.state() for job in jobs] == ["waiting", "waiting"]
            client("DEL", pause)
            await queue.resume()
            await results_of(jobs)
    assert sorted(turns) == ["long", "long", "short", "short"]


async def test_a_longer_pause_extends_an_earlier_one(server: Server, namespace_id: str, client: Client) -> None:
    turns: list[str] = []
    shorter_is_known = asyncio.Event()

    async def handle(claim: Claim) -> str:
        turns.append(claim.data)
        if len(turns) == 1:
            await shorter_is_known.wait()
            raise RateLimited(2 * LONG, limiter="api")
        if len(turns) == 2:
            raise RateLimited(LONG, limiter="api")
        return ""

    async with Namespace(namespace_id, redis=server.url, limiters={"api": RateLimit(100, 1)}) as namespace:
        pause = f"{namespace.base}:@limiter-pause:api"
        queue = namespace.queue("calls")
        jobs = [await queue.add("a"), await queue.add("b")]
        async with queue.worker(handle, safety=SAFETY):
            shorter = int(await wait_until(lambda: client("GET", pause)))
            shorter_is_known.set()
            await wait_until(lambda: int(client("GET", pause)) >= shorter + LONG.total_seconds() * 1000)
            await looked_in_vain(queue, client)
            assert [await job.state() for job in jobs] == ["waiting", "waiting"]
            client("DEL", pause)
            await queue.resume()
            for job in jobs:
                await job.wait(PATIENCE)
    assert sorted(turns) == ["a", "a", "b", "b"]


async def test_a_pause_lets_jobs_go_on_that_have_started(server: Server, namespace_id: str, client: Client) -> None:
    async with Namespace(namespace_id, redis=server.url, limiters={"api": RateLimit(100, 1)}) as namespace:
        pause = f"{namespace.base}:@limiter-pause:api"
        turns: list[str] = []

        async def handle(claim: Claim) -> Outcome | str:
            turns.append(claim.data)
            if claim.data == "limited":
                raise RateLimited(LONG, limiter="api")
            if turns.count("sleeper") == 1:
                await wait_until(lambda: client("EXISTS", pause))
                return Suspended(claim.now_ms() + 10)
            return "through"

        queue = namespace.queue("calls")
        sleeper = await queue.add("sleeper")
        limited = await queue.add("limited")
        async with queue.worker(handle, safety=SAFETY):
            assert await sleeper.wait(PATIENCE) == "through"
            assert await limited.state() == "waiting"
        client("DEL", pause)


async def test_rate_limited_without_a_limiter_puts_off_this_job_alone(
    server: Server, namespace_id: str, client: Client
) -> None:
    turns: list[tuple[str, int, int]] = []
    async with Namespace(namespace_id, redis=server.url, limiters={"api": RateLimit(100, 1)}) as namespace:

        async def handle(claim: Claim) -> str:
            turns.append((claim.data, claim.attempt, claim.now_ms()))
            if len(turns) == 1:
                raise RateLimited(0.25)
            return ""

        queue = namespace.queue("calls")
        a, b = await queue.add("a"), await queue.add("b")
        async with queue.worker(handle, concurrency=1, safety=SAFETY):
            await a.wait(PATIENCE)
            await b.wait(PATIENCE)
        assert client("EXISTS", f"{namespace.base}:@limiter-pause:api") == 0
    assert [(name, attempt) for name, attempt, _ in turns] == [("a", 1), ("b", 1), ("a", 1)]
    assert turns[2][2] - turns[0][2] >= 249


async def test_rate_limited_by_the_budget_of_groups_pauses_every_group(
    server: Server, namespace_id: str, client: Client
) -> None:
    turns: list[int] = []

    async def handle(claim: Claim) -> str:
        turns.append(claim.now_ms())
        if len(turns) == 1:
            raise RateLimited(0.3, limiter="tenant")
        return ""

    limiters = {"tenant": RateLimit(100, 1, per="group")}
    async with Namespace(namespace_id, redis=server.url, limiters=limiters) as namespace:
        queue = namespace.queue("calls")
        async with queue.worker(handle, safety=SAFETY):
            jobs = [await queue.add("x", group="a")]
            # a slow machine sees what came after it
            await wait_until(lambda: client("EXISTS", f"{namespace.base}:@limiter-pause:tenant") or len(turns) > 1)
            jobs.append(await queue.add("x", group="b"))
            for job in jobs:
                await job.wait(PATIENCE)
            assert min(await starts_of(jobs)) * 1000 >= turns[0] + 300 - 0.5


async def test_a_rate_limited_workflow_goes_on_with_its_checkpoints(server: Server, namespace_id: str) -> None:
    asked: list[str] = []
    runs: list[int] = []

    def ask(what: str) -> str:
        asked.append(what)
        return what.upper()

    async def call(ctx: Context[str]) -> str:
        runs.append(ctx.attempt)
        answer = await ctx.step.do("ask", ask, ctx.input)
        if len(runs) == 1:
            raise RateLimited(timedelta(milliseconds=50), limiter="api")
        return answer

    limiters = {"api": RateLimit(10, 1)}
    async with WorkflowNamespace(namespace_id, redis=server.url, limiters=limiters) as namespace:
        calls = namespace.create_workflow("calls", run=call)
        async with calls.worker(safety=SAFETY):
            assert await calls.execute("abc", timeout=10) == "ABC"
    assert (asked, runs) == (["abc"], [1, 1])


@pytest.mark.parametrize(("named", "told"), [("api", 0), ("apo", 1), ("other", 1)])
async def test_a_limiter_that_does_not_hold_for_a_workflow_is_named_in_the_log(
    server: Server, namespace_id: str, caplog: pytest.LogCaptureFixture, named: str, told: int
) -> None:
    runs: list[str] = []

    async def call(ctx: Context[str]) -> str:
        runs.append(ctx.input)
        if runs.count(ctx.input) < 3:
            raise RateLimited(0.01, limiter=named)
        return ctx.input

    limiters = {name: RateLimit(100, 1) for name in ("api", "other")}
    async with WorkflowNamespace(namespace_id, redis=server.url, limiters=limiters) as namespace:
        calls = namespace.create_workflow("calls", run=call, limiters=["api"])
        async with calls.worker(safety=SAFETY):
            assert [await job.wait(PATIENCE) for job in await calls.run_many(["a", "b"])] == ["a", "b"]
    warnings = [record.getMessage() for record in caplog.records if "RateLimited" in record.getMessage()]
    assert len(warnings) == told
    assert all(f"limiter {named!r}" in warning and "'api'" in warning for warning in warnings)
