"""However a child ends, its parent goes on; and however a parent ends, its children do with it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from lanner import (
    ChildCancelledError,
    ChildFailedError,
    Context,
    JobCancelledError,
    JobFailedError,
    WorkflowNamespace,
)
from support.jobs import PATIENCE, Look, lose_claim
from support.parents import Gate, parked, runs_one
from support.waiting import wait_until


@pytest.fixture
async def ns(redis_url: str, namespace_id: str) -> AsyncIterator[WorkflowNamespace]:
    async with WorkflowNamespace(namespace_id, redis=redis_url) as ns:
        yield ns


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
        await wait_until(lambda: parked(sleeper, "delayed"), PATIENCE)
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
    async with ns.worker():
        job = await workflow.run("x")
        await gate.has_begun("x")
        (child,) = (await job.tree()).children
        await lose_claim(look, ns.queues, "gated", child.id)
        assert await gate.workflow.get_job(child.id).state() == "failed"
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
