"""``ctx.step.map``: a child for each input, so many at once, and what becomes of failures."""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

import pytest

from lanner import (
    ChildCancelledError,
    ChildFailedError,
    Context,
    InvalidArgumentError,
    JobCancelledError,
    JobFailedError,
    KeepFailed,
    MapFailedError,
    Tree,
    Workflow,
    WorkflowNamespace,
)
from support.jobs import PATIENCE, Look
from support.waiting import wait_until

# fewer where a machine is too slow for the whole size
LARGE = int(os.environ.get("LANNER_TEST_CHILDREN", "10000"))
LARGE_TAKES = 240.0


@pytest.fixture
async def ns(redis_url: str, namespace_id: str) -> AsyncIterator[WorkflowNamespace]:
    async with WorkflowNamespace(namespace_id, redis=redis_url) as ns:
        yield ns


class Floor:
    """A child workflow of which a test sees how many run at once, and lets them go on.

    Attributes:
        begun: The inputs of those that have begun, in order.
        most: How many ran at once, at most.
        broken: The inputs with which it fails.
    """

    def __init__(self, ns: WorkflowNamespace, **options: Any) -> None:
        self.begun: list[int] = []
        self.running: set[int] = set()
        self.most = 0
        self.broken: set[int] = set()
        self.open = asyncio.Event()
        self.workflow: Workflow[int, int] = ns.create_workflow("work", run=self._run, **options)

    async def _run(self, ctx: Context[int]) -> int:
        self.begun.append(ctx.input)
        self.running.add(ctx.input)
        self.most = max(self.most, len(self.running))
        try:
            if self.open.is_set():
                await asyncio.sleep(0)
            else:
                await self.open.wait()
        finally:
            self.running.discard(ctx.input)
        if ctx.input in self.broken:
            raise ValueError(f"input {ctx.input}")
        return ctx.input * 10

    async def runs(self, count: int) -> None:
        await wait_until(lambda: len(self.running) == count, PATIENCE)


def maps(ns: WorkflowNamespace, floor: Floor, **settings: Any) -> Workflow[list[int], list[Any]]:
    """A parent that maps its inputs; errors in place of outputs come as texts."""

    async def parent(ctx: Context[list[int]]) -> list[Any]:
        outputs: list[Any] = await ctx.step.map("all", floor.workflow, ctx.input, **settings)
        broken = (ChildFailedError, ChildCancelledError)
        return [f"{type(each).__name__} {each.step}" if isinstance(each, broken) else each for each in outputs]

    return ns.create_workflow("parent", run=parent)


async def child_of(workflow: Workflow[Any, Any], job_id: str, index: int) -> Tree:
    tree = await workflow.get_job(job_id).tree()
    return next(child for child in tree.children if child.path == f"all/{index}")


async def test_outputs_come_in_the_order_of_the_inputs(ns: WorkflowNamespace) -> None:
    floor = Floor(ns)
    floor.open.set()
    workflow = maps(ns, floor)
    async with ns.worker():
        assert await workflow.execute([3, 1, 2, 1], timeout=PATIENCE) == [30, 10, 20, 10]
        assert await workflow.execute([], timeout=PATIENCE) == []


@pytest.mark.parametrize("most", [1, 3, 100])
async def test_no_more_children_than_allowed_run_at_once_and_never_fewer(ns: WorkflowNamespace, most: int) -> None:
    floor = Floor(ns)
    workflow = maps(ns, floor, max_concurrency=most)
    async with ns.worker(concurrency=50):
        job = await workflow.run(list(range(12)))
        await floor.runs(min(most, 12))
        # claimed in order, over calls on two connections
        assert sorted(floor.begun[:most]) == list(range(12))[:most]
        floor.open.set()
        assert await job.wait(PATIENCE) == [number * 10 for number in range(12)]
    assert floor.most == min(most, 12)


async def test_what_is_held_back_begins_in_the_order_of_the_inputs(ns: WorkflowNamespace, look: Look) -> None:
    floor = Floor(ns)
    floor.open.set()
    workflow = maps(ns, floor, max_concurrency=1)
    async with ns.worker(concurrency=10):
        await workflow.execute(list(range(120)), timeout=PATIENCE)
        await wait_until(look.all_have_followed, PATIENCE)
    assert floor.begun == list(range(120))


async def test_cancelling_and_removing_children_lets_no_more_run_than_allowed(
    ns: WorkflowNamespace, look: Look
) -> None:
    floor = Floor(ns)
    workflow = maps(ns, floor, max_concurrency=2, on_failure="collect")
    async with ns.worker(concurrency=50):
        job = await workflow.run(list(range(10)))
        await floor.runs(2)
        # held back, so that no slot comes free
        assert await floor.workflow.get_job((await child_of(workflow, job.id, 5)).id).cancel()
        assert await floor.workflow.remove((await child_of(workflow, job.id, 6)).id)
        assert look("ZCARD", "work:parked") == 6
        # running: the next ones begin
        await floor.workflow.get_job((await child_of(workflow, job.id, 0)).id).cancel()
        await floor.workflow.remove((await child_of(workflow, job.id, 1)).id)
        await wait_until(lambda: floor.running == {2, 3}, PATIENCE)
        floor.open.set()
        outputs = await job.wait(PATIENCE)
    cancelled = {0, 1, 5, 6}
    assert outputs == [f"ChildCancelledError all/{n}" if n in cancelled else n * 10 for n in range(10)]
    assert floor.most == 2


async def test_a_retry_lets_no_more_run_than_allowed(ns: WorkflowNamespace) -> None:
    floor = Floor(ns, keep_failed=KeepFailed(count=None))
    floor.broken = set(range(1, 9))
    floor.open.set()

    async def parent(ctx: Context[None]) -> int:
        outputs = await ctx.step.map(
            "all", floor.workflow, list(range(9)), max_concurrency=2, on_failure="collect", min_successful=5
        )
        return len([each for each in outputs if isinstance(each, int)])

    workflow = ns.create_workflow("parent", run=parent)
    async with ns.worker(concurrency=50):
        job = await workflow.run(None)
        with pytest.raises(
            JobFailedError, match="1 children succeeded, 5 were asked for; the first: step 'all/1'"
        ) as e:
            await job.wait(PATIENCE)
        assert e.value.type == MapFailedError.__name__
        floor.broken, floor.most = set(), 0
        floor.open.clear()
        assert await floor.workflow.retry((await child_of(workflow, job.id, 8)).id)
        await floor.runs(1)
        assert await workflow.retry(job.id)
        await floor.runs(2)
        floor.open.set()
        assert await job.wait(PATIENCE) == 9
    assert floor.most == 2
    assert sorted(floor.begun) == sorted([0, *(2 * list(range(1, 9)))])


async def test_the_first_failure_is_raised_at_once_and_the_others_run_on(ns: WorkflowNamespace) -> None:
    floor = Floor(ns)
    floor.broken = {1}

    async def parent(ctx: Context[None]) -> list[Any]:
        try:
            return await ctx.step.map("all", floor.workflow, [0, 1, 2])
        except ChildFailedError as error:
            return [error.step, error.type, error.message]

    workflow = ns.create_workflow("parent", run=parent)
    async with ns.worker():
        job = await workflow.run(None)
        await floor.runs(3)
        failing = floor.workflow.get_job((await child_of(workflow, job.id, 1)).id)
        assert await failing.cancel("no use")
        with pytest.raises(JobFailedError, match="no use") as failed:
            await job.wait(PATIENCE)
        assert failed.value.type == ChildCancelledError.__name__
        others = [floor.workflow.get_job((await child_of(workflow, job.id, index)).id) for index in (0, 2)]
        floor.open.set()
        assert await asyncio.gather(*(other.wait(PATIENCE) for other in others)) == [0, 20]
        assert await workflow.execute(None, timeout=PATIENCE) == ["all/1", "ValueError", "input 1"]


async def test_collected_failures_stand_in_the_place_of_outputs(ns: WorkflowNamespace) -> None:
    floor = Floor(ns)
    floor.broken = {1, 3}
    floor.open.set()
    workflow = maps(ns, floor, on_failure="collect", min_successful=2)
    async with ns.worker():
        assert await workflow.execute([0, 1, 2, 3], timeout=PATIENCE) == [
            0, "ChildFailedError all/1", 20, "ChildFailedError all/3",
        ]  # fmt: skip
        with pytest.raises(JobFailedError, match="step 'all': 1 children succeeded, 2 were asked for"):
            await workflow.execute([1, 2, 3], timeout=PATIENCE)


async def test_another_number_of_inputs_than_before_is_refused(ns: WorkflowNamespace) -> None:
    floor = Floor(ns)
    floor.open.set()

    async def parent(ctx: Context[None]) -> None:
        await ctx.step.map("all", floor.workflow, list(range(2 + ctx.attempt)))
        raise OSError

    workflow = ns.create_workflow("parent", run=parent, max_attempts=2)
    async with ns.worker():
        with pytest.raises(JobFailedError, match="step 'all' maps 4 inputs, and in an earlier attempt 3") as failed:
            await workflow.execute(None, timeout=PATIENCE)
        assert failed.value.type == "StepError"
    assert sorted(floor.begun) == [0, 1, 2]


async def test_bad_settings_are_refused_before_anything_is_started(ns: WorkflowNamespace) -> None:
    floor = Floor(ns)

    async def parent(ctx: Context[None]) -> list[str]:
        texts: list[str] = []
        step: Any = ctx.step
        bad: list[dict[str, Any]] = [
            {"max_concurrency": 0},
            {"max_concurrency": 1.5},
            {"on_failure": "ignore"},
            {"min_successful": 1},
            {"min_successful": 3, "on_failure": "collect"},
            {"min_successful": -1, "on_failure": "collect"},
        ]
        for settings in bad:
            with pytest.raises(InvalidArgumentError) as refused:
                step.map("all", floor.workflow, [1, 2], **settings)
            texts.append(str(refused.value))
        with pytest.raises(InvalidArgumentError, match="the number of inputs must be an int from 0 to 100000"):
            step.map("all", floor.workflow, range(100_001))
        return texts

    workflow = ns.create_workflow("parent", run=parent)
    async with ns.worker():
        texts = await workflow.execute(None, timeout=PATIENCE)
    for text, named in zip(texts, ["max_concurrency"] * 2 + ["on_failure"] + ["min_successful"] * 3, strict=True):
        assert named in text
    assert floor.begun == []


async def test_cancelled_in_the_middle_nothing_is_left(ns: WorkflowNamespace, look: Look) -> None:
    floor = Floor(ns)
    workflow = maps(ns, floor, max_concurrency=20)
    async with ns.worker(concurrency=50):
        job = await workflow.run(list(range(500)))
        await floor.runs(20)
        await wait_until(lambda: look("ZCARD", "work:parked") == 480, PATIENCE)
        assert await job.cancel()
        with pytest.raises(JobCancelledError):
            await job.wait(PATIENCE)
        await wait_until(look.all_have_followed, PATIENCE)
        await floor.runs(0)
    assert len(floor.begun) == 20
    assert [key for key in look.names() if ":barrier:" in key or ":held:" in key or "cascade" in key] == []
    counts = await floor.workflow.counts()
    assert (counts.cancelled, counts.parked, counts.waiting, counts.active) == (500, 0, 0, 0)


async def test_cancelled_while_it_starts_its_children_nothing_is_left(ns: WorkflowNamespace, look: Look) -> None:
    floor = Floor(ns)
    workflow = maps(ns, floor)
    async with ns.worker(concurrency=5):
        job = await workflow.run(list(range(3000)))
        await wait_until(lambda: look("EXISTS", f"parent:barrier:{job.id}") == 1, PATIENCE)
        assert await job.cancel()
        with pytest.raises(JobCancelledError):
            await job.wait(PATIENCE)
        await wait_until(look.all_have_followed, PATIENCE)
        await floor.runs(0)
    counts = await floor.workflow.counts()
    assert (counts.parked, counts.waiting, counts.active) == (0, 0, 0)
    assert counts.cancelled > 0


@pytest.mark.parametrize("most", [None, 100])
async def test_thousands_of_children(ns: WorkflowNamespace, look: Look, most: int | None) -> None:
    floor = Floor(ns, keep_failed=KeepFailed(count=None))
    floor.open.set()
    floor.broken = set(range(7, LARGE, 100))

    async def parent(ctx: Context[int]) -> list[int]:
        outputs = await ctx.step.map(
            "all", floor.workflow, list(range(ctx.input)), max_concurrency=most, on_failure="collect"
        )
        given = [each for each in outputs if isinstance(each, int)]
        return [len(given), sum(given)]

    workflow = ns.create_workflow("parent", run=parent)
    async with ns.worker(concurrency=200):
        job = await workflow.run(LARGE)
        good = set(range(LARGE)) - floor.broken
        assert await job.wait(LARGE_TAKES) == [len(good), 10 * sum(good)]
        tree = await job.tree()
        assert (tree.size, tree.completed, tree.count("failed")) == (LARGE, len(good), len(floor.broken))
        await wait_until(look.all_have_followed, LARGE_TAKES)
    assert sorted(floor.begun) == list(range(LARGE))
    if most is not None:
        assert floor.most <= most
