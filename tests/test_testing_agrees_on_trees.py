"""What becomes of a tree of jobs in a simulation is what becomes of it on a server: retries, cancellations, rounds."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from lanner import (
    Backoff,
    ChildCancelledError,
    ChildFailedError,
    Context,
    ContinueAsNew,
    Flow,
    NonRetryableError,
    RetryAfter,
    Workflow,
)
from support.stages import Played, SimulatedStage, Stage, described, real_stage

SLEEP = 1.2  # a shorter wait would not end the run on a server

Scenario = Callable[[Stage, list[str]], Awaitable[object]]


class Flaky:
    """A workflow whose jobs note that they begin, and fail as often as they are told to."""

    def __init__(self, at: Stage, done: list[str], **failures: int) -> None:
        self.done = done
        self.left = failures
        self.workflow: Workflow[str, str] = at.ns.create_workflow("flaky", run=self.run)

    async def run(self, ctx: Context[str]) -> str:
        name = ctx.input
        self.done.append(name)
        self.left[name] = self.left.get(name, 0) - 1
        if self.left[name] >= 0:
            raise ValueError(f"{name} fails")
        return name.upper()


def joining(at: Stage, done: list[str]) -> Workflow[str, object]:
    async def join(ctx: Context[str]) -> object:
        done.append(ctx.input)
        return [ctx.input, *map(described, ctx.children)]

    return at.ns.create_workflow("join", run=join)


async def ends_of(jobs: list[Played]) -> list[object]:
    return [await job.end() for job in jobs]


async def attempts_end_for_many_reasons(at: Stage, done: list[str]) -> object:
    class GivesUpError(Exception):
        pass

    async def run(ctx: Context[str]) -> str:
        done.append(f"{ctx.input} {ctx.attempt}")
        match ctx.input:
            case "later" if ctx.attempt == 1:
                raise RetryAfter(0.01)
            case "never":
                raise NonRetryableError("no use")
            case "given up":
                raise GivesUpError("enough")
            case "too late":
                await ctx.step.wait_for_event("nothing", timeout=SLEEP)
            case "too late, not caught":
                await ctx.step.do("gives up", give_up)
            case "always":
                raise KeyError(ctx.input)
            case _:
                pass
        return f"{ctx.input} in attempt {ctx.attempt}"

    def give_up() -> None:
        raise TimeoutError("of my own")

    workflow = at.ns.create_workflow(
        "attempts", run=run, max_attempts=3, backoff=Backoff(first=0.01), non_retryable=[GivesUpError]
    )
    names = ["at once", "later", "never", "given up", "too late", "too late, not caught", "always"]
    return [await (await at.run(workflow, name)).end() for name in names]


async def a_parent_is_retried(at: Stage, done: list[str]) -> object:
    flaky = Flaky(at, done, b=1, c=1)

    async def run(ctx: Context[None]) -> list[str]:
        await ctx.step.do("before", done.append, "before")
        return [
            await ctx.step.run("a", flaky.workflow, "a"),
            await ctx.step.run("b", flaky.workflow, "b"),
            *await ctx.step.map("map", flaky.workflow, ["c", "d"], max_concurrency=1),
        ]

    job = await at.run(at.ns.create_workflow("parent", run=run), None)
    seen: list[object] = []
    for _ in range(2):
        seen += [await job.end(), await job.retry()]
    return [*seen, await job.end(), await job.retry(), sorted(map(str, await ends_of(await job.children())))]


async def a_parent_that_has_undone_is_retried(at: Stage, done: list[str]) -> object:
    flaky = Flaky(at, done, child=1)

    async def run(ctx: Context[None]) -> str:
        ctx.on_failure("undo", undo)
        await ctx.step.do("do", done.append, "do")
        await ctx.step.run("fine", flaky.workflow, "fine")
        return await ctx.step.run("child", flaky.workflow, "child")

    def undo() -> None:
        done.append("undo")

    job = await at.run(at.ns.create_workflow("parent", run=run), None)
    return [await job.end(), await job.retry(), await job.end(), len(await job.children())]


async def a_cancelled_parent_undoes_after_its_children_have_ended(at: Stage, done: list[str]) -> object:
    async def child(ctx: Context[str]) -> None:
        done.append("child")
        await ctx.step.wait_for_event("never")

    async def run(ctx: Context[None]) -> None:
        ctx.on_failure("undo", undo)
        await ctx.step.map("map", children, ["a", "b"], max_concurrency=1)

    async def undo() -> None:
        done.append("undo")
        done.extend([await below.stands() for below in await job.children()])

    children = at.ns.create_workflow("child", run=child)
    job = await at.run(at.ns.create_workflow("parent", run=run), None)
    await at.until(lambda: done == ["child"])
    return [await job.cancel(), await job.end(), await job.cancel(), await job.retry()]


async def a_tree_is_undone_from_below(at: Stage, done: list[str]) -> object:
    async def leaf(ctx: Context[str]) -> None:
        ctx.on_failure("undo", done.append, f"undo {ctx.input}")
        await ctx.step.do("begin", done.append, ctx.input)
        await ctx.step.wait_for_event("never")

    async def twig(ctx: Context[str]) -> None:
        ctx.on_failure("undo", done.append, "undo twig")
        await ctx.step.run("leaf", leaves, "leaf")

    async def run(ctx: Context[None]) -> None:
        ctx.on_failure("undo", done.append, "undo root")
        await ctx.step.run("twig", twigs, "twig")

    leaves = at.ns.create_workflow("leaf", run=leaf)
    twigs = at.ns.create_workflow("twig", run=twig)
    job = await at.run(at.ns.create_workflow("root", run=run), None)
    await at.until(lambda: done == ["leaf"])
    return [await job.cancel(), await job.end()]


async def a_parent_goes_on_without_those_it_holds_back(at: Stage, done: list[str]) -> object:
    async def child(ctx: Context[str]) -> None:
        done.append(ctx.input)
        if ctx.input == "bad":
            raise ValueError("bad")
        await ctx.step.wait_for_event("go")

    async def run(ctx: Context[None]) -> str:
        with suppress(ChildFailedError):
            await ctx.step.map("map", children, ["bad", "a", "b"], max_concurrency=1)
        return "gone on"

    children = at.ns.create_workflow("child", run=child)
    job = await at.run(at.ns.create_workflow("parent", run=run), None)
    ended = await job.end()
    states = [await child.state() for child in await job.children()]
    return [ended, states]


async def held_children_are_cancelled(at: Stage, done: list[str]) -> object:
    async def child(ctx: Context[str]) -> str:
        await ctx.step.do("begin", done.append, ctx.input)
        await ctx.step.wait_for_event("go")
        return ctx.input

    async def run(ctx: Context[None]) -> object:
        results = await ctx.step.map("map", children, list("abcdef"), max_concurrency=2, on_failure="collect")
        return [*map(described, results)]

    children = at.ns.create_workflow("child", run=child)
    job = await at.run(at.ns.create_workflow("parent", run=run), None)
    await at.until(lambda: len(done) == 2)
    done.sort()
    below = await job.children()
    seen = [await below[3].cancel(), await below[4].cancel()]
    states = [[await child.state() for child in below]]
    await below[0].cancel()
    await at.until(lambda: len(done) == 3)
    states.append([await child.state() for child in below])
    for number in (1, 2, 5):
        await below[number].send("go")
        await below[number].end()
    return [seen, states, await job.end()]


async def a_flow_tells_what_its_children_were(at: Stage, done: list[str]) -> object:
    flaky, join = Flaky(at, done, bad=9), joining(at, done)

    async def sleeper(ctx: Context[str]) -> None:
        await ctx.step.wait_for_event("never")

    sleepers = at.ns.create_workflow("sleeper", run=sleeper)
    job = await at.run_flow(
        Flow(join, "root", children=[
            Flow(flaky.workflow, "good"),
            Flow(flaky.workflow, "bad", on_failure="continue"),
            Flow(sleepers, "asleep", on_failure="continue"),
        ])
    )  # fmt: skip
    await at.until(lambda: len(done) == 2)
    await (await job.children())[2].cancel()
    done.sort()
    return await job.end()


async def a_flow_fails_as_a_child_is_cancelled(at: Stage, done: list[str]) -> object:
    flaky, join = Flaky(at, done), joining(at, done)

    async def sleeper(ctx: Context[str]) -> str:
        await ctx.step.wait_for_event("go")
        return "late"

    sleepers = at.ns.create_workflow("sleeper", run=sleeper)
    job = await at.run_flow(
        Flow(join, "root", children=[
            Flow(join, "inner", children=[Flow(sleepers, "asleep"), Flow(sleepers, "late")]),
            Flow(flaky.workflow, "good"),
        ])
    )  # fmt: skip
    await at.until(lambda: done == ["good"])
    inner = (await job.children())[0]
    asleep, late = await inner.children()
    await asleep.cancel()
    ends = [await job.end(), await inner.end(), await late.send("go"), await late.end()]
    seen = [await job.retry(), await job.state(), await inner.state(), await asleep.state(), await late.state()]
    await asleep.send("go")
    return [ends, seen, await job.end()]


def retried_flow(order: list[int]) -> Scenario:
    async def a_flow_is_retried(at: Stage, done: list[str]) -> object:
        flaky, join = Flaky(at, done, leaf=1), joining(at, done)
        job = await at.run_flow(
            Flow(join, "root", children=[
                Flow(flaky.workflow, "other"),
                Flow(join, "inner", children=[Flow(flaky.workflow, "leaf"), Flow(flaky.workflow, "kept")]),
            ])
        )  # fmt: skip
        ended = await job.end()
        inner = (await job.children())[1]
        leaf = (await inner.children())[0]
        await at.until(lambda: len(done) == 3)
        done.sort()
        jobs = [job, inner, leaf]
        retried = [[await jobs[number].retry(), await jobs[number].state()] for number in order]
        return [ended, retried, await ends_of(jobs)]

    a_flow_is_retried.__name__ = f"a flow is retried {order}"
    return a_flow_is_retried


async def a_flow_goes_on_as_new(at: Stage, done: list[str]) -> object:
    flaky = Flaky(at, done, bad=9)

    async def join(ctx: Context[int]) -> object:
        await ctx.step.do("note", done.append, f"round {ctx.input}")
        await ctx.step.run("child", flaky.workflow, f"child {ctx.input}")
        if ctx.input < 2:
            raise ContinueAsNew(ctx.input + 1)
        return [*map(described, ctx.children)]

    joins = at.ns.create_workflow("join", run=join)
    job = await at.run_flow(
        Flow(joins, 0, children=[Flow(flaky.workflow, "bad", on_failure="continue"), Flow(flaky.workflow, "good")])
    )
    ended = await job.end()
    done[:2] = sorted(done[:2])
    return [ended, len(await job.children())]


async def a_child_is_retried_after_its_parent_has_gone_on(at: Stage, done: list[str]) -> object:
    flaky = Flaky(at, done, bad=1)

    async def run(ctx: Context[None]) -> object:
        with suppress(ChildFailedError):
            await ctx.step.run("bad", flaky.workflow, "bad")
        await ctx.step.wait_for_event("go")
        try:
            return await ctx.step.run("bad", flaky.workflow, "bad")
        except ChildFailedError as error:
            return f"still {error.message}"

    job = await at.run(at.ns.create_workflow("parent", run=run), None)
    await at.until(lambda: done == ["bad"])
    (child,) = await job.children()
    seen = [await child.retry(), await child.end(), await job.state()]
    await job.send("go")
    return [*seen, await job.end()]


async def a_child_is_retried_while_others_are_awaited(at: Stage, done: list[str]) -> object:
    flaky = Flaky(at, done, bad=1)

    async def sleeper(ctx: Context[str]) -> str:
        if ctx.input == "bad":
            return await flaky.run(ctx)
        await ctx.step.wait_for_event("go")
        return ctx.input

    async def run(ctx: Context[None]) -> object:
        results = await ctx.step.map("map", sleepers, ["bad", "asleep"], on_failure="collect")
        return [*map(described, results)]

    sleepers = at.ns.create_workflow("sleeper", run=sleeper)
    job = await at.run(at.ns.create_workflow("parent", run=run), None)
    await at.until(lambda: done == ["bad"])
    bad, asleep = await job.children()
    seen = [await bad.end(), await bad.retry(), await bad.end()]
    await asleep.send("go")
    return [seen, await job.end()]


async def a_cancelled_child_is_not_caught(at: Stage, done: list[str]) -> object:
    async def sleeper(ctx: Context[str]) -> str:
        await ctx.step.do("begin", done.append, ctx.input)
        await ctx.step.wait_for_event("go")
        return ctx.input

    async def run(ctx: Context[None]) -> object:
        return await ctx.step.map("map", sleepers, ["a", "b"])

    async def caught(ctx: Context[None]) -> object:
        try:
            return await ctx.step.run("child", sleepers, "c")
        except ChildCancelledError as error:
            return f"cancelled: {error.reason}"

    sleepers = at.ns.create_workflow("sleeper", run=sleeper)
    parents = at.ns.create_workflow("parent", run=run, max_attempts=3)
    catching = at.ns.create_workflow("catching", run=caught)
    job, other = await at.run(parents, None), await at.run(catching, None)
    await at.until(lambda: len(done) == 3)
    await (await job.children())[1].cancel()
    await (await other.children())[0].cancel()
    ends = await ends_of([job, other])
    done.sort()
    states = [await child.state() for child in await job.children()]
    retried = await job.retry()
    await at.until(lambda: len(done) == 4)
    for child in await job.children():
        await child.send("go")
    return [ends, states, retried, await job.end()]


SCENARIOS: list[Scenario] = [
    attempts_end_for_many_reasons,
    a_parent_is_retried,
    a_parent_that_has_undone_is_retried,
    a_cancelled_parent_undoes_after_its_children_have_ended,
    a_tree_is_undone_from_below,
    a_parent_goes_on_without_those_it_holds_back,
    held_children_are_cancelled,
    a_flow_tells_what_its_children_were,
    a_flow_fails_as_a_child_is_cancelled,
    retried_flow([0]),
    retried_flow([2, 1, 0]),
    retried_flow([1, 0]),
    retried_flow([2, 0]),
    a_flow_goes_on_as_new,
    a_child_is_retried_after_its_parent_has_gone_on,
    a_child_is_retried_while_others_are_awaited,
    a_cancelled_child_is_not_caught,
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
async def test_a_simulation_and_a_server_agree(scenario: Scenario, redis_url: str, namespace_id: str) -> None:
    done: dict[str, list[str]] = {"simulation": [], "server": []}
    simulated = await scenario(SimulatedStage(), done["simulation"])
    async with real_stage(namespace_id, redis_url) as stage:
        real = await scenario(stage, done["server"])
    assert simulated == real
    assert done["simulation"] == done["server"]
