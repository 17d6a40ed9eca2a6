"""A failed flow that is retried runs again what did not succeed, in any order."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from lanner import (
    Context,
    Flow,
    JobFailedError,
    WorkflowNamespace,
)
from support.jobs import PATIENCE
from support.line import Line, has_state, parts_of, said
from support.waiting import wait_until


@pytest.fixture
async def ns(redis_url: str, namespace_id: str) -> AsyncIterator[WorkflowNamespace]:
    async with WorkflowNamespace(namespace_id, redis=redis_url) as ns:
        yield ns


ORDERS = [
    ("root",),
    ("part", "root"),
    ("part", "middle", "root"),
    ("middle", "root"),
    ("middle", "part", "root"),
    ("root", "middle", "part"),
    ("all parts", "all wholes"),
    ("all wholes", "all parts"),
]


@pytest.mark.parametrize("order", ORDERS, ids=" then ".join)
async def test_a_retry_runs_again_what_did_not_succeed_in_whatever_order_it_is_asked_for(
    ns: WorkflowNamespace, order: tuple[str, ...]
) -> None:
    line = Line(ns)
    line.broken = {"bad"}
    async with ns.worker():
        job = await ns.run_flow(Flow(line.whole, "top", children=[
            Flow(line.part, "good"),
            Flow(line.whole, "middle", children=[Flow(line.part, "fine"), Flow(line.part, "bad")]),
        ]))  # fmt: skip
        with pytest.raises(JobFailedError):
            await job.wait(PATIENCE)
        await line.has_begun("good", "fine")
        _, middle = await parts_of(job)
        await has_state(line.part, (await parts_of(job))[0].id, "completed")
        await has_state(line.part, middle.children[0].id, "completed")
        line.broken.clear()
        for what in order:
            match what:
                case "root":
                    assert await line.whole.retry(job.id)
                case "middle":
                    await line.whole.retry(middle.id)
                case "part":
                    await line.part.retry(middle.children[1].id)
                case "all parts":
                    await line.part.retry_all()
                case _:
                    await line.whole.retry_all()
        assert await job.wait(PATIENCE) == ["GOOD", ["FINE", "BAD"]]
        tree = await job.tree()
        assert (tree.size, tree.completed) == (4, 4)
    assert sorted(line.begun) == ["bad", "bad", "fine", "good", "middle", "top"]


async def test_a_retry_also_runs_what_was_cancelled_and_goes_on_without_what_was_removed(ns: WorkflowNamespace) -> None:
    line = Line(ns)
    line.held = {"a", "b", "c", "d"}
    async with ns.worker():
        job = await ns.run_flow(Flow(line.whole, "top", children=[
            Flow(line.whole, "middle", children=[Flow(line.part, "a"), Flow(line.part, "b")]),
            Flow(line.part, "c"),
            Flow(line.part, "d"),
        ]))  # fmt: skip
        await line.has_begun("a", "b", "c", "d")
        middle, c, d = await parts_of(job)
        line.held.discard("a")
        await has_state(line.part, middle.children[0].id, "completed")
        await line.part.get_job(c.id).cancel()
        with pytest.raises(JobFailedError):
            await job.wait(PATIENCE)
        await line.part.remove(d.id)
        # one that has waited for others itself, with one of them done and one under way
        await line.whole.get_job(middle.id).cancel()
        await has_state(line.part, middle.children[1].id, "cancelled")
        line.held.clear()
        assert await line.whole.retry(job.id)
        assert await job.wait(PATIENCE) == [["A", "B"], "C", "part cancelled: it was removed"]
    assert sorted(line.begun) == ["a", "b", "b", "c", "c", "d", "middle", "top"]


async def test_a_failed_child_that_is_retried_while_its_parent_runs_starts_no_second_run_of_it(
    ns: WorkflowNamespace,
) -> None:
    line, seen = Line(ns), asyncio.Event()
    line.broken = {"bad"}
    runs = 0

    async def parent(ctx: Context[str]) -> list[Any]:
        nonlocal runs
        runs += 1
        await seen.wait()
        return [said(each) for each in ctx.children]

    workflow = ns.create_workflow("parent", run=parent)
    async with ns.worker():
        job = await ns.run_flow(Flow(workflow, "top", children=[
            Flow(line.part, "bad", on_failure="continue"), Flow(line.part, "good"),
        ]))  # fmt: skip
        await wait_until(lambda: runs == 1, PATIENCE)
        line.broken.clear()
        bad = (await parts_of(job))[0]
        assert await line.part.retry(bad.id)
        assert await line.part.get_job(bad.id).wait(PATIENCE) == "BAD"
        seen.set()
        assert await job.wait(PATIENCE) == ["part failed: bad", "GOOD"]
    assert runs == 1


async def test_a_failed_child_that_is_retried_before_its_parent_begins_is_waited_for(ns: WorkflowNamespace) -> None:
    line = Line(ns)
    line.broken, line.held = {"bad"}, {"slow"}
    async with ns.worker():
        job = await ns.run_flow(Flow(line.whole, "top", children=[
            Flow(line.part, "bad", on_failure="continue"), Flow(line.part, "slow"),
        ]))  # fmt: skip
        bad = (await parts_of(job))[0]
        await has_state(line.part, bad.id, "failed")
        line.broken.clear()
        line.held.add("bad")
        assert await line.part.retry(bad.id)
        line.held.discard("slow")
        await has_state(line.part, (await parts_of(job))[1].id, "completed")
        assert await job.state() == "parked"
        line.held.clear()
        assert await job.wait(PATIENCE) == ["BAD", "SLOW"]
