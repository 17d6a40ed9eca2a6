"""Retries by hand of parents and of children: what succeeded stays, nothing is resurrected."""

from collections.abc import AsyncIterator

import pytest

from lanner import (
    ChildFailedError,
    Context,
    JobFailedError,
    WorkflowNamespace,
)
from support.jobs import PATIENCE
from support.parents import Gate, fails_once, parked, runs_one
from support.waiting import wait_until


@pytest.fixture
async def ns(redis_url: str, namespace_id: str) -> AsyncIterator[WorkflowNamespace]:
    async with WorkflowNamespace(namespace_id, redis=redis_url) as ns:
        yield ns


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
        await wait_until(lambda: parked(workflow, "parked"), PATIENCE)
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
