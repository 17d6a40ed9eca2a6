"""What a simulation makes of a workflow is what a worker on a server makes of it."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from lanner import (
    Backoff,
    ChildCancelledError,
    ChildFailedError,
    Context,
    ContinueAsNew,
    Flow,
    JobError,
    MapFailedError,
    NonRetryableError,
    SyncContext,
    Workflow,
    WorkflowNamespace,
)
from lanner.testing import Simulation
from support.waiting import wait_until

SLEEP = 1.2  # a shorter wait would not end the run on a server

Scenario = Callable[[WorkflowNamespace, list[str]], Workflow[Any, Any] | Flow]


def steps(ns: WorkflowNamespace, done: list[str]) -> Workflow[None, list[object]]:
    async def run(ctx: Context[None]) -> list[object]:
        def do(what: str) -> str:
            done.append(what)
            return what

        async def outer() -> list[str]:
            first = await ctx.step.do("inner", do, "inner")
            await ctx.step.wait("inner wait", SLEEP)
            return [first, await ctx.step.do("last", do, "last")]

        nested = await ctx.step.do("outer", outer)
        with ctx.step.scope("a/b"):
            await ctx.step.do("inner", do, "scoped")
        with suppress(ValueError):
            await ctx.step.do("caught", int, "not a number")
        early = await ctx.step.wait_for_event("sent", timeout=60, type=int)
        late = await ctx.step.wait_for_event("never", timeout=SLEEP, type=int)
        return [nested, early, late]

    return ns.create_workflow("steps", run=run)


def attempts(ns: WorkflowNamespace, done: list[str]) -> Workflow[None, list[int]]:
    async def run(ctx: Context[None]) -> list[int]:
        with suppress(NonRetryableError):
            await ctx.step.do("for good", fail_for_good)
        await ctx.step.do("flaky", fail, ctx.attempt)
        await ctx.step.wait("pause", SLEEP)
        if ctx.attempt == 2:
            raise ValueError("after the wait")
        return [ctx.attempt]

    def fail_for_good() -> None:
        done.append("for good")
        raise NonRetryableError("for good")

    def fail(attempt: int) -> None:
        done.append(f"flaky {attempt}")
        if attempt == 1:
            raise ValueError("flaky")

    return ns.create_workflow("attempts", run=run, max_attempts=5, backoff=Backoff(first=0.01))


def exhausted(ns: WorkflowNamespace, done: list[str]) -> Workflow[None, None]:
    async def run(ctx: Context[None]) -> None:
        ctx.on_failure("undo a", undo, "a")
        await ctx.step.do("a", done.append, "a")
        ctx.on_failure("undo b", undo, "b")
        ctx.on_failure("undo c", undo, "c")
        await ctx.step.wait("pause", SLEEP)
        raise ValueError(f"attempt {ctx.attempt}")

    async def undo(name: str) -> None:
        done.append(f"undo {name}")
        if name == "b":
            raise ValueError("b cannot be undone")

    return ns.create_workflow("exhausted", run=run, max_attempts=2, backoff=Backoff(first=0))


def family(ns: WorkflowNamespace, done: list[str]) -> Workflow[None, list[str]]:
    async def child(ctx: Context[str]) -> str:
        done.append(f"begin {ctx.input}")
        await ctx.step.wait("pause", SLEEP)
        if ctx.input == "bad":
            raise NonRetryableError("bad child")
        return ctx.input.upper()

    def plain(ctx: SyncContext[str]) -> str:
        return ctx.step.run("below", children, ctx.input) + "!"

    async def run(ctx: Context[None]) -> list[str]:
        ahead = await ctx.step.start("ahead", plains, "ahead")
        results = [await ctx.step.run("one", children, "one")]
        results += await ctx.step.map("good", children, ["a", "b", "c"], max_concurrency=2)
        collected = await ctx.step.map("mixed", children, ["d", "bad"], on_failure="collect")
        results += [each if isinstance(each, str) else f"{type(each).__name__} {each.workflow}" for each in collected]
        results += await ctx.step.map("none", children, [])
        try:
            await ctx.step.map("raise", children, ["bad", "e"])
        except ChildFailedError as error:
            results.append(f"{error.type}: {error.message}")
        try:
            await ctx.step.map("too few", children, ["bad", "f"], on_failure="collect", min_successful=2)
        except MapFailedError as error:
            results.append(f"{error.successes} of {error.wanted}")
        return [*results, await ahead.wait()]

    children = ns.create_workflow("child", run=child)
    plains = ns.create_workflow("plain", run=plain)
    return ns.create_workflow("family", run=run)


def failing_parent(ns: WorkflowNamespace, done: list[str]) -> Workflow[None, None]:
    async def child(ctx: Context[None]) -> None:
        ctx.on_failure("undo child", done.append, "undo child")
        await ctx.step.wait("pause", SLEEP)
        raise ValueError("child")

    async def run(ctx: Context[None]) -> None:
        ctx.on_failure("undo parent", done.append, "undo parent")
        await ctx.step.run("child", children, None)

    children = ns.create_workflow("child", run=child)
    return ns.create_workflow("parent", run=run, max_attempts=5)


def rounds(ns: WorkflowNamespace, done: list[str]) -> Workflow[int, int]:
    async def child(ctx: Context[int]) -> int:
        return ctx.input

    async def run(ctx: Context[int]) -> int:
        number = ctx.input or 0
        await ctx.step.do("work", done.append, f"work {number}")
        assert await ctx.step.run("child", children, number) == number
        if number == 1:
            await ctx.step.wait_for_event("sent", type=int)
        if number < 3:
            raise ContinueAsNew(number + 1)
        return number

    children = ns.create_workflow("child", run=child)
    return ns.create_workflow("rounds", run=run, schema=int | None)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - a union is no type


def flow(ns: WorkflowNamespace, done: list[str]) -> Flow:
    async def leaf(ctx: Context[str]) -> str:
        done.append(ctx.input)
        if ctx.input == "bad":
            raise ValueError("bad leaf")
        return ctx.input.upper()

    async def join(ctx: Context[str]) -> str:
        found = [each if isinstance(each, str) else type(each).__name__ for each in ctx.children]
        return f"{ctx.input}({', '.join(found)})"

    leaves = ns.create_workflow("leaf", run=leaf)
    joins = ns.create_workflow("join", run=join)
    inner = Flow(joins, "inner", children=[Flow(leaves, "a"), Flow(leaves, "bad", on_failure="continue")])
    return Flow(joins, "root", children=[inner, Flow(leaves, "b")])


def failing_flow(ns: WorkflowNamespace, done: list[str]) -> Flow:
    async def leaf(ctx: Context[str]) -> None:
        done.append(ctx.input)
        raise ValueError("leaf")

    async def join(ctx: Context[str]) -> None:
        done.append(ctx.input)

    leaves = ns.create_workflow("leaf", run=leaf)
    joins = ns.create_workflow("join", run=join)
    return Flow(joins, "root", children=[Flow(joins, "inner", children=[Flow(leaves, "leaf")])])


def cancelled(ns: WorkflowNamespace, done: list[str]) -> Workflow[None, str]:
    async def child(ctx: Context[None]) -> None:
        ctx.on_failure("undo child", done.append, "undo child")
        await ctx.step.do("begin", done.append, "begin child")
        await ctx.step.wait_for_event("never")

    async def run(ctx: Context[None]) -> str:
        ctx.on_failure("undo parent", done.append, "undo parent")
        try:
            await ctx.step.run("child", children, None)
        except ChildCancelledError:
            return "not reached"
        return "not reached either"

    children = ns.create_workflow("child", run=child)
    return ns.create_workflow("cancelled", run=run)


SCENARIOS: list[Scenario] = [
    steps,
    attempts,
    exhausted,
    family,
    failing_parent,
    rounds,
    flow,
    failing_flow,
    cancelled,
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
async def test_a_simulation_and_a_server_agree(scenario: Scenario, redis_url: str, namespace_id: str) -> None:
    simulated = await _simulated(scenario)
    real = await _real(scenario, redis_url, namespace_id)
    assert simulated == real


async def _simulated(scenario: Scenario) -> tuple[str, object, list[str]]:
    done: list[str] = []
    simulation = Simulation()
    what = scenario(WorkflowNamespace("simulated", redis="redis://nobody.invalid"), done)
    job = await simulation.run_flow(what) if isinstance(what, Flow) else simulation.run(what, None)
    job.send_event("sent", 1)
    if scenario is cancelled:
        await simulation.settle()
        job.cancel("enough")
    ended = await _end_of(job.wait)
    await simulation.settle()
    return *ended, _in_order(scenario, done)


async def _real(scenario: Scenario, redis_url: str, namespace_id: str) -> tuple[str, object, list[str]]:
    done: list[str] = []
    async with WorkflowNamespace(namespace_id, redis=redis_url) as ns:
        what = scenario(ns, done)
        async with ns.worker(concurrency=20):
            job = await ns.run_flow(what) if isinstance(what, Flow) else await what.run(None)
            await job.send_event("sent", 1)
            if scenario is cancelled:
                await wait_until(lambda: "begin child" in done)
                await job.cancel("enough")
                await wait_until(lambda: "undo child" in done)
            ended = await _end_of(job.wait)
        return *ended, _in_order(scenario, done)


async def _end_of(wait: Callable[[], Awaitable[Any]]) -> tuple[str, object]:
    try:
        return "completed", await asyncio.wait_for(wait(), 60)
    except JobError as error:
        first_line = str(error).partition("\n")[0].partition(": ")[2]
        return type(error).__name__, re.sub(r"(job|child) (\S+) of", r"\1 of", first_line)


def _in_order(scenario: Scenario, done: list[str]) -> list[str]:
    """What was done; sorted, where it was done side by side."""
    return sorted(done) if scenario in (family, flow, failing_flow, cancelled) else done
