"""Workflows that a run starts as children: each counts once, and how it ends is the parent's to see."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lanner import (
    ChildCancelledError,
    ChildFailedError,
    Context,
    InvalidArgumentError,
    JobCancelledError,
    JobFailedError,
    NonRetryableError,
    SerializationError,
    StepError,
    SyncContext,
    Workflow,
    WorkflowNamespace,
)
from lanner.queue import Claim, Namespace, Queue
from lanner.queue.outcome import Suspended
from lanner.queue.queue import Added
from lanner.queue.scripts.descending import NewChild
from lanner.queue.scripts.loader import load
from support.crew import crew
from support.family import MANY, deaths_in, define, define_to_die, notes_in
from support.jobs import PATIENCE, Look
from support.proxy import Proxy
from support.waiting import wait_until


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


class Gate:
    """A child workflow whose jobs go on when the test lets them."""

    def __init__(self, ns: WorkflowNamespace, id: str = "gated", **options: Any) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.open = asyncio.Event()
        self.workflow: Workflow[str, str] = ns.create_workflow(id, run=self._run, **options)

    async def _run(self, ctx: Context[str]) -> str:
        self.begun.append(ctx.input)
        try:
            await self.open.wait()
        finally:
            self.ended.append(ctx.input)
        return ctx.input.upper()

    async def has_begun(self, *inputs: str) -> None:
        await wait_until(lambda: sorted(self.begun) == sorted(inputs), PATIENCE)


def runs_one(ns: WorkflowNamespace, child: Workflow[str, str], **options: Any) -> Workflow[str, str]:
    """A parent that runs one child and gives what it gave."""

    async def parent(ctx: Context[str]) -> str:
        return await ctx.step.run("child", child, ctx.input, **options)

    return ns.create_workflow("parent", run=parent)


def fails_once(ns: WorkflowNamespace) -> tuple[Workflow[str, str], list[str]]:
    """A workflow whose first job fails for good."""
    runs: list[str] = []

    async def shaky(ctx: Context[str]) -> str:
        runs.append(ctx.input)
        if len(runs) == 1:
            raise ValueError("out of paper")
        return ctx.input.upper()

    return ns.create_workflow("shaky", run=shaky), runs


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


async def test_cancelling_a_parent_cancels_its_tree_wherever_each_job_is(ns: WorkflowNamespace) -> None:
    gate, sleeping = Gate(ns), asyncio.Event()

    async def sleep(ctx: Context[None]) -> None:
        sleeping.set()
        await ctx.step.wait("long", 3600)

    sleeper = ns.create_workflow("sleeper", run=sleep)

    async def middle(ctx: Context[None]) -> None:
        await ctx.step.start("sleeps", sleeper, None)
        await ctx.step.map("held back", gate.workflow, ["a", "b", "c", "d"], max_concurrency=2)

    middling = ns.create_workflow("middle", run=middle)

    async def top(ctx: Context[None]) -> None:
        await ctx.step.run("middle", middling, None)

    workflow = ns.create_workflow("top", run=top)
    async with ns.worker():
        job = await workflow.run(None)
        await gate.has_begun("a", "b")
        await sleeping.wait()
        await wait_until(lambda: _parked(sleeper, "delayed"), PATIENCE)
        tree = await job.tree()
        assert (tree.size, tree.completed) == (6, 0)
        assert await job.cancel("changed my mind")
        with pytest.raises(JobCancelledError, match="changed my mind"):
            await job.wait(PATIENCE)

        async def all_cancelled() -> bool:
            return (await job.tree()).count("cancelled") == tree.size

        await wait_until(all_cancelled, PATIENCE)
        await wait_until(lambda: sorted(gate.ended) == ["a", "b"], PATIENCE)
    assert sorted(gate.begun) == ["a", "b"], "what was held back never began"


async def _parked(workflow: Workflow[Any, Any], state: str) -> bool:
    return bool(getattr(await workflow.counts(), state) == 1)


Ends = dict[str, tuple[dict[str, Any], Callable[[WorkflowNamespace, str], Awaitable[Any]], type[Exception]]]


async def _remove(ns: WorkflowNamespace, job_id: str) -> None:
    await ns.queues.queue("gated").remove(job_id)


async def _cancel(ns: WorkflowNamespace, job_id: str) -> None:
    await ns.queues.queue("gated").job(job_id).cancel("not needed")


async def _nothing(_ns: WorkflowNamespace, _job_id: str) -> None:
    pass


HOW_A_CHILD_MAY_END: Ends = {
    "it is removed": ({}, _remove, ChildCancelledError),
    "it is cancelled": ({}, _cancel, ChildCancelledError),
    "it is cancelled and not kept": ({"result_ttl": 0}, _cancel, ChildCancelledError),
    "its time to be started is over": ({"expires": 0.2}, _nothing, ChildFailedError),
    "its time is over and it is not kept": ({"expires": 0.2, "keep_failed": 0}, _nothing, ChildFailedError),
}


@pytest.mark.parametrize(("options", "act", "error"), HOW_A_CHILD_MAY_END.values(), ids=list(HOW_A_CHILD_MAY_END))
async def test_a_child_that_never_runs_does_not_hang_its_parent(
    ns: WorkflowNamespace,
    options: dict[str, Any],
    act: Callable[[WorkflowNamespace, str], Awaitable[Any]],
    error: type[Exception],
) -> None:
    gate = Gate(ns)
    workflow = runs_one(ns, gate.workflow, **options)
    await gate.workflow.pause()
    async with ns.worker():
        job = await workflow.run("x")

        async def child_id() -> str:
            return next((child.id for child in (await job.tree()).children), "")

        await act(ns, await wait_until(child_id, PATIENCE))
        with pytest.raises(JobFailedError) as failed:
            await job.wait(PATIENCE)
    assert failed.value.type == error.__name__
    await gate.workflow.resume()


async def test_a_running_child_that_is_removed_does_not_hang_its_parent(ns: WorkflowNamespace) -> None:
    gate = Gate(ns)
    workflow = runs_one(ns, gate.workflow)
    async with ns.worker():
        job = await workflow.run("x")
        await gate.has_begun("x")
        (child,) = (await job.tree()).children
        assert await gate.workflow.remove(child.id)
        with pytest.raises(JobFailedError, match="it was removed") as failed:
            await job.wait(PATIENCE)
        assert failed.value.type == "ChildCancelledError"


async def test_a_child_whose_worker_is_lost_too_often_fails_and_its_parent_goes_on(
    ns: WorkflowNamespace, look: Look
) -> None:
    gate = Gate(ns)
    workflow = runs_one(ns, gate.workflow, max_stalled=0)
    async with ns.worker(lease=0.5):
        job = await workflow.run("x")
        await gate.has_begun("x")
        (child,) = (await job.tree()).children

        async def given_up() -> bool:
            look.expire_lease("gated", child.id)
            return await gate.workflow.get_job(child.id).state() == "failed"

        await wait_until(given_up, PATIENCE)
        with pytest.raises(JobFailedError, match="its worker was lost 1 times in a row") as failed:
            await job.wait(PATIENCE)
        assert failed.value.type == "ChildFailedError"


async def test_failed_children_beyond_what_is_kept_do_not_hang_their_parent(ns: WorkflowNamespace) -> None:
    async def fail(ctx: Context[int]) -> int:
        raise ValueError(ctx.input)

    child = ns.create_workflow("child", run=fail, keep_failed=1)

    async def parent(ctx: Context[int]) -> list[str]:
        results = await ctx.step.map("all", child, list(range(5)), on_failure="collect")
        return [result.message for result in results if isinstance(result, ChildFailedError)]

    workflow = ns.create_workflow("parent", run=parent)
    async with ns.worker():
        job = await workflow.run(0)
        assert await job.wait(PATIENCE) == ["0", "1", "2", "3", "4"]
        assert (await child.counts()).failed == 1


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


async def test_a_retry_by_hand_runs_again_what_did_not_succeed_and_nothing_else(ns: WorkflowNamespace) -> None:
    runs: list[str] = []
    broken = {"b", "d"}

    async def work(ctx: Context[str]) -> str:
        runs.append(ctx.input)
        if ctx.input in broken:
            raise ValueError(ctx.input)
        return ctx.input.upper()

    child = ns.create_workflow("child", run=work)

    async def parent(ctx: Context[None]) -> list[str]:
        single = await ctx.step.run("single", child, "a")
        collected = await ctx.step.map("several", child, ["b", "c", "d"], on_failure="collect", max_concurrency=1)
        for each in collected:
            if isinstance(each, Exception):
                raise each
        return [single, *map(str, collected)]

    workflow = ns.create_workflow("parent", run=parent)
    async with ns.worker():
        job = await workflow.run(None)
        with pytest.raises(JobFailedError, match="ValueError: b"):
            await job.wait(PATIENCE)
        broken.remove("b")
        assert await workflow.retry(job.id)
        with pytest.raises(JobFailedError, match="ValueError: d"):
            await job.wait(PATIENCE)
        broken.clear()
        assert await workflow.retry(job.id)
        assert await job.wait(PATIENCE) == ["A", "B", "C", "D"]
        assert (await job.tree()).completed == 4
    assert sorted(runs) == ["a", "b", "b", "c", "d", "d", "d"]


async def test_a_retry_by_hand_starts_removed_and_cancelled_children_again(ns: WorkflowNamespace) -> None:
    gate = Gate(ns)

    async def parent(ctx: Context[None]) -> list[str]:
        children = [await ctx.step.start(name, gate.workflow, name) for name in ("kept", "cancelled", "removed")]
        return [await child.wait() for child in reversed(children)]

    workflow = ns.create_workflow("parent", run=parent)
    async with ns.worker():
        job = await workflow.run(None)
        await gate.has_begun("kept", "cancelled", "removed")
        ids = {child.path: child.id for child in (await job.tree()).children}
        await gate.workflow.get_job(ids["cancelled"]).cancel()
        await gate.workflow.remove(ids["removed"])
        with pytest.raises(JobFailedError):
            await job.wait(PATIENCE)
        gate.open.set()
        assert await workflow.retry(job.id)
        assert await job.wait(PATIENCE) == ["REMOVED", "CANCELLED", "KEPT"]
    assert sorted(gate.begun) == ["cancelled", "cancelled", "kept", "removed", "removed"]


async def test_a_child_that_is_retried_by_hand_before_its_parent_counts_for_it(ns: WorkflowNamespace) -> None:
    child, runs = fails_once(ns)
    workflow = runs_one(ns, child)
    async with ns.worker():
        job = await workflow.run("x")
        with pytest.raises(JobFailedError):
            await job.wait(PATIENCE)
        (kid,) = (await job.tree()).children
        assert await child.retry(kid.id)
        assert await child.get_job(kid.id).wait(PATIENCE) == "X"
        assert await job.state() == "failed", "nothing is resurrected"
        assert await workflow.retry(job.id)
        assert await job.wait(PATIENCE) == "X"
    assert runs == ["x", "x"]


async def test_a_child_that_is_retried_by_hand_does_not_change_what_its_living_parent_has_seen(
    ns: WorkflowNamespace,
) -> None:
    child, runs = fails_once(ns)

    async def parent(ctx: Context[None]) -> list[str]:
        try:
            seen = await ctx.step.run("child", child, "x")
        except ChildFailedError as error:
            seen = error.message
        return [seen, await ctx.step.wait_for_event("go on", type=str)]

    workflow = ns.create_workflow("parent", run=parent)
    async with ns.worker():
        job = await workflow.run(None)
        await wait_until(lambda: _parked(workflow, "parked"), PATIENCE)
        (kid,) = (await job.tree()).children
        assert await child.retry(kid.id)
        assert await child.get_job(kid.id).wait(PATIENCE) == "X"
        await job.send_event("go on", "now")
        assert await job.wait(PATIENCE) == ["out of paper", "now"]
    assert runs == ["x", "x"]


async def test_a_child_of_an_earlier_life_does_not_count_for_the_next(ns: WorkflowNamespace) -> None:
    gate = Gate(ns)
    workflow = runs_one(ns, gate.workflow, result_ttl=60)
    async with ns.worker():
        first = await workflow.run("first", id="same")
        await gate.has_begun("first")
        (old,) = (await first.tree()).children
        assert await workflow.remove("same")
        second = await workflow.run("second", id="same")
        await gate.has_begun("first", "second")
        (new,) = (await second.tree()).children
        assert new.id != old.id
        gate.open.set()
        assert await second.wait(PATIENCE) == "SECOND"


async def test_a_child_that_ends_between_its_parents_decision_to_sleep_and_the_commit_is_not_missed(
    namespace: Namespace,
) -> None:
    parents, children = namespace.queue("parent"), namespace.queue("child")
    child_done, sleeps = asyncio.Event(), 0
    await children.pause()

    async def parent(claim: Claim) -> Suspended | str:
        nonlocal sleeps
        if "child" in claim.steps:
            return claim.steps["child"]
        sleeps += 1
        new, _ = children.prepare("x", Added(), {})
        kid = NewChild("child", "child", new.id, new.spec, new.data)
        await worker.recorder.start_children(claim, "child", policy="fail", most=0, children=[kid])
        await children.resume()
        await child_done.wait()
        return Suspended(None, ("\tchild",))

    async def child(claim: Claim) -> str:
        return claim.data.upper()

    worker = parents.worker(parent)
    async with worker, children.worker(child):
        job = await parents.add("x")
        waiting = asyncio.create_task(job.wait(PATIENCE))
        await wait_until(lambda: _completed(children), PATIENCE)
        child_done.set()
        assert await waiting == "child:X"
    assert sleeps == 1


async def _completed(queue: Queue) -> bool:
    return (await queue.counts()).completed == 1


async def test_lost_answers_start_no_child_twice_and_lose_none(
    redis_url: str, namespace_id: str, proxy: Proxy, look: Look
) -> None:
    runs: list[int] = []

    def definition(ns: WorkflowNamespace) -> Workflow[int, int]:
        async def count(ctx: Context[int]) -> int:
            runs.append(ctx.input)
            return ctx.input

        child = ns.create_workflow("child", run=count)

        async def parent(ctx: Context[int]) -> int:
            first = await ctx.step.run("first", child, 0)
            return first + sum(await ctx.step.map("all", child, list(range(1, 250)), max_concurrency=20))

        return ns.create_workflow("parent", run=parent)

    async with (
        WorkflowNamespace(namespace_id, redis=proxy.url) as working,
        WorkflowNamespace(namespace_id, redis=redis_url) as ns,
    ):
        definition(working)
        workflow = definition(ns)
        async with working.worker(concurrency=50):
            assert await workflow.execute(0, timeout=PATIENCE) == sum(range(250))
            runs.clear()
            for script in ("start_children", "settle", "record_steps"):
                proxy.lose_answers(load(script).sha, every=3)
            job = await workflow.run(0)
            assert await job.wait(PATIENCE) == sum(range(250))
            proxy.lose_no_answers()
            await wait_until(look.all_have_followed, PATIENCE)
        assert (await job.tree()).completed == 250
    assert proxy.lost_answers > 3
    assert sorted(runs) == list(range(250))


async def test_every_child_counts_once_wherever_a_worker_is_killed(
    redis_url: str, namespace_id: str, tmp_path: Path
) -> None:
    async with WorkflowNamespace(namespace_id, redis=redis_url) as ns:
        parent, child = define(ns)
        job = await parent.run(0)
        async with crew(define_to_die, namespace_id, redis_url, tmp_path):
            numbers = [1, 2, *range(10, 10 + MANY)]
            assert await job.wait(PATIENCE) == 2 * sum(numbers)
        tree = await job.tree()
        assert (tree.size, tree.completed) == (len(numbers), len(numbers))
        assert (await child.counts()).completed == len(numbers)
    assert sorted(notes_in(tmp_path)) == sorted(f"doubled {number}" for number in numbers)
    assert deaths_in(tmp_path) == {
        "parent begins", "first is about to be started", "first was started", "child begins", "child ends",
        "it has the first output", "later is about to be started", "later was started", "another is started",
        "many is about to be started", "many was started", "it has all outputs",
    }  # fmt: skip


async def test_a_childs_record_stays_as_long_as_its_parent_may_need_it(ns: WorkflowNamespace, look: Look) -> None:
    gate = Gate(ns, result_ttl=0.05)
    dropped = Gate(ns, "dropped", result_ttl=0)
    dropped.open.set()

    async def parent(ctx: Context[None]) -> list[str]:
        outputs = await ctx.step.map("kept", gate.workflow, ["a", "b"])
        outputs.append(await ctx.step.run("dropped", dropped.workflow, "c"))
        await ctx.step.wait_for_event("go on")
        return outputs

    workflow = ns.create_workflow("parent", run=parent)
    async with ns.worker():
        job = await workflow.run(None)
        await gate.has_begun("a", "b")
        gate.open.set()
        await wait_until(lambda: _waits_for_event(look, job.id), PATIENCE)
        await asyncio.sleep(0.1)  # longer than their own time
        tree = await job.tree()
        assert [child.state for child in tree.children] == ["completed"] * 3, "the dropped one's end is known as well"
        assert await gate.workflow.get_job(tree.children[1].id).wait(PATIENCE) == "A"
        assert look("EXISTS", f"dropped:j:{tree.children[0].id}") == 0
        await job.send_event("go on")
        assert await job.wait(PATIENCE) == ["A", "B", "C"]

        async def gone() -> bool:
            return [child.state for child in (await job.tree()).children] == ["gone"] * 3

        await wait_until(gone, PATIENCE)


def _waits_for_event(look: Look, job_id: str) -> bool:
    return look.field("parent", job_id, "awaits") == "go on"


async def test_removing_a_parent_removes_its_tree(ns: WorkflowNamespace) -> None:
    gate = Gate(ns)

    async def middle(ctx: Context[str]) -> str:
        return await ctx.step.run("inner", gate.workflow, ctx.input)

    middling = ns.create_workflow("middle", run=middle)
    workflow = runs_one(ns, middling)
    async with ns.worker():
        job = await workflow.run("x")
        await gate.has_begun("x")
        (child,) = (await job.tree()).children
        assert [grandchild.state for grandchild in child.children] == ["active"]
        assert await workflow.remove(job.id)
        await wait_until(lambda: gate.ended == ["x"], PATIENCE)
    for each in (workflow, middling, gate.workflow):
        counts = await each.counts()
        assert (counts.waiting, counts.active, counts.parked, counts.cancelled) == (0, 0, 0, 0)


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
