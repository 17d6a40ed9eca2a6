"""Workflows that a run starts as children: each counts once, and how it ends is the parent's to see."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass
from typing import Any

import pytest

from lanner import (
    ChildFailedError,
    Context,
    InvalidArgumentError,
    JobFailedError,
    NonRetryableError,
    SerializationError,
    StepError,
    SyncContext,
    Workflow,
    WorkflowNamespace,
)
from support.jobs import PATIENCE
from support.parents import Gate, fails_once, runs_one


@dataclass(frozen=True)
class Order:
    id: str
    items: list[str]


@dataclass(frozen=True)
class Parcel:
    order: str
    weight: float


@pytest.fixture
async def ns(redis_url: str, namespace_id: str) -> AsyncIterator[WorkflowNamespace]:
    async with WorkflowNamespace(namespace_id, redis=redis_url) as ns:
        yield ns


class Backwards:
    """A codec that one can read."""

    def encode(self, text: str, /) -> str:
        return text[::-1]

    def decode(self, text: str, /) -> str:
        return text[::-1]


async def test_an_async_and_a_plain_workflow_run_a_child_and_get_what_it_gave(ns: WorkflowNamespace) -> None:
    async def ship(ctx: Context[Order]) -> Parcel:
        return Parcel(ctx.input.id, len(ctx.input.items) / 2)

    shipping = ns.create_workflow("shipping", run=ship)

    async def buy(ctx: Context[Order]) -> list[Any]:
        parcel = await ctx.step.run("ship", shipping, ctx.input)
        return [type(parcel).__name__, parcel.weight]

    def buy_plainly(ctx: SyncContext[Order]) -> list[Any]:
        parcel = ctx.step.run("ship", shipping, ctx.input)
        later = ctx.step.start("ship again", shipping, ctx.input)
        both = ctx.step.map("ship all", shipping, [ctx.input] * 2)
        return [type(parcel).__name__, later.wait().weight, *(each.weight for each in both)]

    buying = ns.create_workflow("buying", run=buy)
    plainly = ns.create_workflow("plainly", run=buy_plainly)
    order = Order("1", ["cup", "pot", "pan"])
    async with ns.worker():
        assert await buying.execute(order, timeout=PATIENCE) == ["Parcel", 1.5]
        assert await plainly.execute(order, timeout=PATIENCE) == ["Parcel", 1.5, 1.5, 1.5]


async def test_a_child_is_waited_for_later_as_often_as_one_likes_or_never(ns: WorkflowNamespace) -> None:
    gate = Gate(ns)
    long_name = "n" * 256

    async def parent(ctx: Context[str]) -> list[str]:
        never = await ctx.step.start("never waited for", gate.workflow, "never")
        child = await ctx.step.start(long_name, gate.workflow, "later")
        await ctx.step.do("open", gate.open.set)
        first = await child.wait()
        return [first, *await asyncio.gather(child.wait(), child.wait()), child.id, never.id]

    workflow = ns.create_workflow("parent", run=parent)
    async with ns.worker():
        *outputs, waited, never = await workflow.execute("x", timeout=PATIENCE)
        assert outputs == ["LATER"] * 3
        assert await gate.workflow.get_job(waited).wait(PATIENCE) == "LATER"
        assert await gate.workflow.get_job(never).wait(PATIENCE) == "NEVER"


async def test_a_child_that_nobody_waits_for_outlives_its_parent(ns: WorkflowNamespace) -> None:
    gate = Gate(ns)

    async def parent(ctx: Context[None]) -> str:
        return (await ctx.step.start("child", gate.workflow, "on its own")).id

    workflow = ns.create_workflow("parent", run=parent)
    async with ns.worker():
        child = gate.workflow.get_job(await workflow.execute(None, timeout=PATIENCE))
        assert await child.state() in ("waiting", "active")
        gate.open.set()
        assert await child.wait(PATIENCE) == "ON ITS OWN"


async def test_a_parent_holds_no_slot_while_it_waits(redis_url: str, namespace_id: str) -> None:
    async with WorkflowNamespace(namespace_id, redis=redis_url, concurrency=1) as ns:
        gate = Gate(ns)
        workflow = runs_one(ns, gate.workflow)
        async with ns.worker(concurrency=1):
            jobs = await workflow.run_many(["a", "b", "c"])
            await gate.has_begun("a")
            assert (await workflow.counts()).parked >= 1
            gate.open.set()
            assert await asyncio.gather(*(job.wait(PATIENCE) for job in jobs)) == ["A", "B", "C"]


async def test_a_childs_failure_is_raised_with_what_is_known_of_it_and_fails_the_parent_for_good(
    ns: WorkflowNamespace,
) -> None:
    runs: list[str] = []

    async def decline(ctx: Context[str]) -> str:
        runs.append(ctx.input)
        raise ValueError(f"no money for {ctx.input}")

    charging = ns.create_workflow("charging", run=decline)
    seen: list[ChildFailedError] = []

    async def parent(ctx: Context[str]) -> str:
        try:
            return await ctx.step.run("charge", charging, "a cup")
        except ChildFailedError as error:
            seen.append(error)
            if ctx.input == "catches":
                return "caught"
            raise

    workflow = ns.create_workflow("parent", run=parent, max_attempts=3)
    async with ns.worker():
        assert await workflow.execute("catches", timeout=PATIENCE) == "caught"
        error = seen[-1]
        assert (error.step, error.workflow, error.type, error.message) == (
            "charge", "charging", "ValueError", "no money for a cup",
        )  # fmt: skip
        assert "raise ValueError" in error.traceback
        assert str(error).startswith(f"step 'charge': job {error.job_id!r} of workflow 'charging' failed: ValueError")
        with pytest.raises(JobFailedError, match="no money for a cup") as failed:
            await workflow.execute("does not", timeout=PATIENCE)
        assert failed.value.type == "ChildFailedError"
    assert runs == ["a cup"] * 2, "neither child ran again, though the parents had attempts left"


async def test_a_parent_that_is_tried_again_does_not_start_its_children_again(ns: WorkflowNamespace) -> None:
    child, runs = fails_once(ns)
    attempts: list[int] = []

    async def parent(ctx: Context[None]) -> list[str]:
        attempts.append(ctx.attempt)
        failed = ""
        try:
            await ctx.step.run("fails", child, "first")
        except ChildFailedError as error:
            failed = error.message
        given = await ctx.step.run("succeeds", child, "second")
        if ctx.attempt < 3:
            raise OSError
        return [failed, given]

    workflow = ns.create_workflow("parent", run=parent, max_attempts=3)
    async with ns.worker():
        assert await workflow.execute(None, timeout=PATIENCE) == ["out of paper", "SECOND"]
    assert runs == ["first", "second"]
    assert attempts[-1] == 3


async def test_an_input_that_does_not_fit_is_an_error_of_the_step_and_nothing_is_started(ns: WorkflowNamespace) -> None:
    async def ship(_: Context[Order]) -> None:
        raise AssertionError

    shipping = ns.create_workflow("shipping", run=ship)
    wrong: Any = {"id": 7}

    async def parent(ctx: Context[None]) -> list[str]:
        texts: list[str] = []
        for _ in range(2):  # the name is free again
            with pytest.raises(SerializationError) as refused:
                await ctx.step.run("ship", shipping, wrong)
            texts.append(str(refused.value))
        with pytest.raises(SerializationError):
            await ctx.step.map("ship all", shipping, [Order("1", []), wrong])
        return texts

    workflow = ns.create_workflow("parent", run=parent)
    async with ns.worker():
        job = await workflow.run(None)
        texts = await job.wait(PATIENCE)
        assert all("workflow 'shipping': the input does not fit its schema" in text for text in texts)
        assert (await job.tree()).children == ()


async def test_what_makes_no_sense_is_refused_in_words(ns: WorkflowNamespace, redis_url: str) -> None:
    gate = Gate(ns)
    elsewhere = WorkflowNamespace("elsewhere", redis=redis_url)
    foreign = Gate(elsewhere)
    function: Any = test_what_makes_no_sense_is_refused_in_words
    loose: Any = {}

    async def parent(ctx: Context[None]) -> list[str]:
        texts: list[str] = []
        step: Any = ctx.step

        async def refused(call: Awaitable[Any]) -> None:
            with pytest.raises(InvalidArgumentError) as error:
                await call
            texts.append(str(error.value))

        await refused(step.run("a", foreign.workflow, "x"))
        await refused(step.run("a", function, "x"))
        for option in ("id", "unique", "if_exists", "throttle", "debounce", "run_in", "run_at"):
            await refused(step.start("a", gate.workflow, "x", **{option: "1", **loose}))
        await refused(step.run("a", gate.workflow, "x", retries=3))
        for inputs in ({"a"}, iter("a"), "abc"):
            with pytest.raises(InvalidArgumentError, match="must be a list or another sequence"):
                step.map("a", gate.workflow, inputs)
        return texts

    workflow = ns.create_workflow("parent", run=parent)
    async with ns.worker(), elsewhere:
        job = await workflow.run(None)
        texts = await job.wait(PATIENCE)
        assert "step 'a': workflow 'gated' is of another namespace" in texts[0]
        assert "step 'a': a workflow is run as a child, not <function" in texts[1]
        assert "`ctx.step.do` runs a function" in texts[1]
        assert "step 'a': id= has no meaning for a child" in texts[2]
        assert "retries" in texts[-1]
        assert (await job.tree()).children == ()


async def test_a_name_that_was_another_kind_of_step_is_an_error(ns: WorkflowNamespace) -> None:
    gate = Gate(ns)
    gate.open.set()
    kinds = ["do", "run", "map", "do"]

    async def parent(ctx: Context[None]) -> str:
        if ctx.attempt > len(kinds):
            return "done"
        kind = kinds[ctx.attempt - 1]
        if kind == "do":
            await ctx.step.do("a" if ctx.attempt == 1 else "b", str)
        elif kind == "run":
            with pytest.raises(StepError, match="is a 'child' step now and was a 'do' step"):
                await ctx.step.run("a", gate.workflow, "x")
            await ctx.step.run("b", gate.workflow, "x")
        else:
            with pytest.raises(StepError, match="is a map, and in an earlier attempt it started a single child"):
                await ctx.step.map("b", gate.workflow, ["x"])
            await ctx.step.map("c", gate.workflow, ["x"])
            with pytest.raises(StepError, match="was already used"):
                await ctx.step.run("c", gate.workflow, "x")
        raise OSError

    workflow = ns.create_workflow("parent", run=parent, max_attempts=9)
    async with ns.worker():
        with pytest.raises(JobFailedError, match="is a 'do' step now and was a 'child' step"):
            await workflow.execute(None, timeout=PATIENCE, max_attempts=4)


async def test_children_in_scopes_steps_and_branches(ns: WorkflowNamespace) -> None:
    gate = Gate(ns)
    gate.open.set()

    async def parent(ctx: Context[list[str]]) -> list[str]:
        async def nested(name: str) -> str:
            return await ctx.step.run("inner", gate.workflow, name)

        async def one(name: str) -> str:
            with ctx.step.scope(name):
                return await ctx.step.run("child", gate.workflow, name)

        both = await asyncio.gather(*(one(name) for name in ctx.input))
        return [*both, await ctx.step.do("outer", nested, "deep")]

    workflow = ns.create_workflow("parent", run=parent)
    async with ns.worker():
        job = await workflow.run(["a/b", "ü", "x"])
        assert await job.wait(PATIENCE) == ["A/B", "Ü", "X", "DEEP"]
        assert [child.path for child in (await job.tree()).children] == [
            "a~1b/child", "outer/inner", "x/child", "ü/child",
        ]  # fmt: skip


async def test_a_failure_that_comes_up_through_generations_is_told_once(ns: WorkflowNamespace) -> None:
    async def descend(ctx: Context[int]) -> None:
        if ctx.input == 0:
            raise ValueError("no money")
        await ctx.step.run("below", descending, ctx.input - 1)

    descending: Workflow[int, None] = ns.create_workflow("descending", run=descend)
    async with ns.worker():
        with pytest.raises(JobFailedError) as failed:
            await descending.execute(4, timeout=PATIENCE)
    assert str(failed.value).count('raise ValueError("no money")') == 1
    assert "where it ran" not in failed.value.message


async def test_ten_generations_with_long_names(ns: WorkflowNamespace) -> None:
    async def descend(ctx: Context[int]) -> list[str]:
        if ctx.input == 0:
            return [ctx.job_id]
        return [*await ctx.step.run("näme " * 40, descending, ctx.input - 1), ctx.job_id]

    descending: Workflow[int, list[str]] = ns.create_workflow("descending", run=descend)
    async with ns.worker():
        job = await descending.run(10, id="i" * 256)
        ids = await job.wait(PATIENCE)
        assert len(set(ids)) == 11
        assert max(map(len, ids)) <= 256
        assert (await job.tree()).size == 10


async def test_a_child_gets_its_own_group_and_options(ns: WorkflowNamespace) -> None:
    async def tell(ctx: Context[str]) -> str:
        return ctx.group

    child = ns.create_workflow("child", run=tell, get_group_id=lambda _: "of its workflow")

    async def parent(ctx: Context[None]) -> list[str]:
        return [
            await ctx.step.run("as it is", child, "x"),
            await ctx.step.run("given", child, "x", group="given", priority=7, result_ttl=60),
        ]

    workflow = ns.create_workflow("parent", run=parent)
    async with ns.worker():
        job = await workflow.run(None)
        assert await job.wait(PATIENCE) == ["of its workflow", "given"]
        given = await child.get_job((await job.tree()).children[1].id).record()
        assert (given.spec.priority, given.spec.result_ttl) == (7, 60_000)


async def test_children_in_a_coded_namespace(redis_url: str, namespace_id: str) -> None:
    async with WorkflowNamespace(namespace_id, redis=redis_url, codec=Backwards()) as ns:
        child, _ = fails_once(ns)

        async def parent(ctx: Context[None]) -> list[str]:
            failed = ""
            try:
                await ctx.step.run("fails", child, "first")
            except ChildFailedError as error:
                failed = error.message
            return [failed, await ctx.step.run("succeeds", child, "second")]

        workflow = ns.create_workflow("parent", run=parent)
        async with ns.worker():
            assert await workflow.execute(None, timeout=PATIENCE) == ["out of paper", "SECOND"]


async def test_a_failure_for_good_of_a_child_says_so_in_the_parent(ns: WorkflowNamespace) -> None:
    async def refuse(_: Context[str]) -> str:
        raise NonRetryableError("never")

    child = ns.create_workflow("child", run=refuse, max_attempts=5)
    workflow = runs_one(ns, child)
    async with ns.worker():
        with pytest.raises(JobFailedError, match="NonRetryableError: never"):
            await workflow.execute("x", timeout=PATIENCE)


@pytest.mark.parametrize("how", ["run", "map"])
@pytest.mark.parametrize(("group", "cap"), [("g", 1), ("other", 1), ("g", None)])
async def test_a_child_that_would_wait_for_the_group_that_its_parent_holds_is_refused(
    ns: WorkflowNamespace, how: str, group: str, cap: int | None
) -> None:
    async def count(ctx: Context[int]) -> int:
        if ctx.input == 0:
            return 0
        if how == "run":
            return 1 + await ctx.step.run("below", counts, ctx.input - 1, group=group)
        return 1 + sum(await ctx.step.map("below", counts, [ctx.input - 1], group=group))

    counts: Workflow[int, int] = ns.create_workflow("count", run=count, group_order="strict", group_concurrency=cap)
    async with ns.worker():
        job = await counts.run(1, group="g")
        if (group, cap) == ("g", 1):
            with pytest.raises(JobFailedError, match="holds group 'g' while it waits") as raised:
                await job.wait(PATIENCE)
            assert raised.value.type == "InvalidArgumentError"
            assert (await job.tree()).size == 0
        else:
            assert await job.wait(PATIENCE) == 1
