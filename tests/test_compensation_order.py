"""A cancelled job undoes when what it has started has ended, its compensations included: in reverse, down the tree."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from lanner import Context, JobCancelledError, WorkflowNamespace
from support.diary import Diary
from support.jobs import PATIENCE, RELIES_ON_WAKING, Look
from support.waiting import wait_until

MANY = 120  # more than are ended in one call


@pytest.fixture
async def ns(redis_url: str, namespace_id: str) -> AsyncIterator[WorkflowNamespace]:
    async with WorkflowNamespace(namespace_id, redis=redis_url) as ns:
        yield ns


@pytest.mark.parametrize("where", ["asleep", "running", "stubborn", "undoing"])
async def test_a_parent_undoes_after_its_child_has_ended(ns: WorkflowNamespace, where: str) -> None:
    diary = Diary()

    async def child(ctx: Context[None]) -> None:
        if where == "undoing":
            ctx.on_failure("undo", diary.hold, "child undoes")
        await ctx.step.do("begin", diary.write, "child begins")
        if where in {"asleep", "undoing"}:
            await ctx.step.wait_for_event("never")
        try:
            await asyncio.sleep(3600)
        finally:
            if where == "stubborn":
                await diary.gate.wait()
            diary.write("child cleans up")

    children = ns.create_workflow("child", run=child)

    async def parent(ctx: Context[None]) -> None:
        ctx.on_failure("undo", diary.write, "parent undoes")
        await ctx.step.run("child", children, None)

    workflow = ns.create_workflow("parent", run=parent)
    async with ns.worker(safety=RELIES_ON_WAKING):
        job = await workflow.run(None)
        await diary.says("child begins")
        if where in {"asleep", "undoing"}:
            await wait_until(lambda: _parked(ns), PATIENCE)
        await job.cancel("enough")
        if where in {"stubborn", "undoing"}:
            await wait_until(lambda: _is_parked(ns), PATIENCE)
            assert "parent undoes" not in diary.lines
            diary.gate.set()
        with pytest.raises(JobCancelledError, match="enough"):
            await job.wait(PATIENCE)
    said = {"asleep": [], "running": ["child cleans up"], "stubborn": ["child cleans up"], "undoing": ["child undoes"]}
    assert diary.lines == ["child begins", *said[where], "parent undoes"]


async def _parked(ns: WorkflowNamespace) -> bool:
    counts = [await workflow.counts() for workflow in ns.workflows]
    return all(each.parked == 1 for each in counts)


async def _is_parked(ns: WorkflowNamespace) -> bool:
    """The parent has been cancelled, and waits for its child to end."""
    parent = next(workflow for workflow in ns.workflows if workflow.id == "parent")
    child = next(workflow for workflow in ns.workflows if workflow.id == "child")
    return (await parent.counts()).parked == 1 and (await child.counts()).active == 1


@pytest.mark.parametrize("most", [None, 5])
async def test_all_of_many_children_have_ended_before_anything_is_undone(
    ns: WorkflowNamespace, look: Look, most: int | None
) -> None:
    begun: list[int] = []
    states: list[int] = []

    async def child(ctx: Context[int]) -> None:
        await ctx.step.do("begin", begun.append, ctx.input)
        if ctx.input % 2:
            await asyncio.sleep(3600)
        await ctx.step.wait_for_event("never")

    children = ns.create_workflow("child", run=child)

    async def count() -> None:
        states.append((await children.counts()).cancelled)

    async def parent(ctx: Context[None]) -> None:
        ctx.on_failure("count", count)
        await ctx.step.map("children", children, range(MANY), max_concurrency=most)

    workflow = ns.create_workflow("parent", run=parent)
    async with ns.worker(concurrency=100, safety=RELIES_ON_WAKING), ns.worker(safety=RELIES_ON_WAKING):
        job = await workflow.run(None)
        await wait_until(lambda: len(begun) == (most or MANY), PATIENCE)
        await job.cancel()
        with pytest.raises(JobCancelledError):
            await job.wait(PATIENCE)
        await wait_until(look.all_have_followed, PATIENCE)
    assert states == [MANY]
    assert len(begun) == (most or MANY), "none was let in by the end of another"


@pytest.mark.parametrize("how", ["removed", "removed with its tree"])
async def test_a_child_that_is_removed_meanwhile_holds_nothing_up(ns: WorkflowNamespace, how: str) -> None:
    diary = Diary()

    async def child(ctx: Context[None]) -> None:
        ctx.on_failure("undo", diary.hold, "child undoes")
        await ctx.step.do("begin", diary.write, "child begins")
        await ctx.step.wait_for_event("never")

    children = ns.create_workflow("child", run=child)

    async def parent(ctx: Context[None]) -> None:
        ctx.on_failure("undo", diary.write, "parent undoes")
        await ctx.step.run("child", children, None)

    workflow = ns.create_workflow("parent", run=parent)
    async with ns.worker(safety=RELIES_ON_WAKING):
        job = await workflow.run(None)
        await diary.says("child begins")
        await wait_until(lambda: _parked(ns), PATIENCE)
        await job.cancel("enough")
        await diary.says("child begins", "child undoes")
        (below,) = (await job.tree()).children
        if how == "removed":
            await children.remove(below.id)
            with pytest.raises(JobCancelledError, match="enough"):
                await job.wait(PATIENCE)
            assert diary.lines[-1] == "parent undoes"
        else:
            await workflow.remove(job.id)
            assert not await children.remove(below.id), "it is gone already"
            assert "parent undoes" not in diary.lines


async def test_a_failed_child_that_is_retried_meanwhile_runs_for_itself(ns: WorkflowNamespace) -> None:
    diary = Diary()

    async def child(ctx: Context[str]) -> None:
        if ctx.input == "failing":
            diary.write("fails")
            if diary.lines.count("fails") == 1:
                raise ValueError("once")
            await ctx.step.wait_for_event("never")
        ctx.on_failure("undo", diary.hold, "child undoes")
        await ctx.step.wait_for_event("never")

    children = ns.create_workflow("child", run=child)

    async def parent(ctx: Context[None]) -> None:
        ctx.on_failure("undo", diary.write, "parent undoes")
        await ctx.step.map("children", children, ["failing", "undoing"], on_failure="collect")

    workflow = ns.create_workflow("parent", run=parent)
    async with ns.worker(safety=RELIES_ON_WAKING):
        job = await workflow.run(None)
        await diary.says("fails")
        await wait_until(lambda: _parked(ns), PATIENCE)
        await job.cancel("enough")
        await diary.says("fails", "child undoes")
        failed = next(each for each in (await job.tree()).children if each.state == "failed")
        assert await children.retry(failed.id)
        diary.gate.set()
        with pytest.raises(JobCancelledError, match="enough"):
            await job.wait(PATIENCE)
        assert diary.lines[-1] == "parent undoes"
        assert await children.get_job(failed.id).cancel(), "it sleeps, and is nobody's"
