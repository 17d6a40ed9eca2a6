"""``raise ContinueAsNew``: a job goes on as a new run, and what it has to remember stays bounded."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from lanner import (
    ChildFailedError,
    Context,
    ContinueAsNew,
    Flow,
    JobCancelledError,
    JobFailedError,
    SyncContext,
    Workflow,
    WorkflowNamespace,
)
from support.jobs import PATIENCE, Look
from support.waiting import wait_until

ROUNDS = 50


@pytest.fixture
async def ns(redis_url: str, namespace_id: str) -> AsyncIterator[WorkflowNamespace]:
    async with WorkflowNamespace(namespace_id, redis=redis_url) as ns:
        yield ns


async def _in_state(workflow: Workflow[Any, Any], job_id: str, state: str) -> None:
    async def is_so() -> bool:
        return await workflow.get_job(job_id).state() == state

    await wait_until(is_so, PATIENCE)


async def test_checkpoints_stay_few_and_who_waits_gets_the_last_result(ns: WorkflowNamespace) -> None:
    sizes: list[int] = []

    async def count(ctx: Context[int]) -> str:
        for number in range(3):
            await ctx.step.do(f"step {number}", str)
        sizes.append(len((await workflow.get_job(ctx.job_id).record()).steps))
        if ctx.input < ROUNDS:
            raise ContinueAsNew(ctx.input + 1)
        return f"after {ctx.input}"

    workflow = ns.create_workflow("count", run=count)
    async with ns.worker():
        job = await workflow.run(1)
        before, by_id = asyncio.create_task(job.wait(PATIENCE)), asyncio.create_task(workflow.get_job(job.id).wait())
        assert {await before, await by_id} == {f"after {ROUNDS}"}
        assert await job.wait(PATIENCE) == f"after {ROUNDS}"
    assert sizes == [3] * ROUNDS


async def test_a_plain_workflow_goes_on_as_new_too(ns: WorkflowNamespace) -> None:
    def count(ctx: SyncContext[int]) -> int:
        try:
            ctx.step.do("step", str)
            if ctx.input < 5:
                raise ContinueAsNew(ctx.input + 1)
        except Exception as error:
            raise AssertionError("nothing that catches errors catches it") from error
        return ctx.input

    workflow = ns.create_workflow("count", run=count)
    async with ns.worker():
        assert await workflow.execute(0, timeout=PATIENCE) == 5


async def test_attempts_and_the_record_begin_anew_each_round(ns: WorkflowNamespace) -> None:
    attempts: list[tuple[int, int]] = []

    async def count(ctx: Context[int]) -> int:
        attempts.append((ctx.input, ctx.attempt))
        if ctx.attempt == 1:
            raise OSError
        if ctx.input < 3:
            raise ContinueAsNew(ctx.input + 1)
        return ctx.input

    workflow = ns.create_workflow("count", run=count, max_attempts=2)
    async with ns.worker():
        job = await workflow.run(1)
        assert await job.wait(PATIENCE) == 3
        assert (await job.record()).data == '{"json":3}'
    assert attempts == [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2)]


async def test_events_that_were_not_taken_are_kept_for_the_next_round(ns: WorkflowNamespace) -> None:
    async def listen(ctx: Context[list[int]]) -> list[int]:
        heard = [*ctx.input, await ctx.step.wait_for_event("number", type=int)]
        if len(heard) < 5:
            raise ContinueAsNew(heard)
        return heard

    workflow = ns.create_workflow("listen", run=listen)
    job = await workflow.run([])
    for number in range(3):
        await job.send_event("number", number)
    async with ns.worker():
        await _in_state(workflow, job.id, "parked")
        for number in range(3, 5):
            await job.send_event("number", number)
        assert await job.wait(PATIENCE) == [0, 1, 2, 3, 4]


async def test_what_an_earlier_round_has_left_goes_with_the_record(ns: WorkflowNamespace, look: Look) -> None:
    async def run(ctx: Context[int]) -> None:
        if ctx.input < 2:
            await ctx.log(f"round {ctx.input}")
            raise ContinueAsNew(ctx.input + 1)

    workflow = ns.create_workflow("rounds", run=run)
    async with workflow.worker():
        job = await workflow.run(0)
        await _in_state(workflow, job.id, "completed")
        assert await job.log() == ["round 0", "round 1"]
        assert look("PTTL", f"rounds:log:{job.id}") > 0


async def test_children_of_one_round_are_none_of_the_next(ns: WorkflowNamespace, look: Look) -> None:
    started: list[int] = []
    gate = asyncio.Event()

    async def work(ctx: Context[int]) -> int:
        started.append(ctx.input)
        if ctx.input < 0:
            await gate.wait()
        return 10 * ctx.input

    child = ns.create_workflow("child", run=work)

    async def count(ctx: Context[int]) -> list[str]:
        await ctx.step.start("left behind", child, -ctx.input)
        await ctx.step.map("held back", child, [ctx.input], max_concurrency=1)
        given = await ctx.step.run("child", child, ctx.input)
        if ctx.input < 3:
            raise ContinueAsNew(ctx.input + 1)
        return [str(given)]

    workflow = ns.create_workflow("count", run=count)
    async with ns.worker():
        job = await workflow.run(1)
        assert await job.wait(PATIENCE) == ["30"]
        assert [each.path for each in (await job.tree()).children] == ["child", "held back/0", "left behind"]
        await wait_until(lambda: len(started) == 9, PATIENCE)
        gate.set()

        async def all_completed() -> bool:
            return (await child.counts()).completed == 9

        await wait_until(all_completed, PATIENCE)
        await wait_until(look.all_have_followed, PATIENCE)
    assert sorted(started) == [-3, -2, -1, 1, 1, 2, 2, 3, 3]


async def test_a_child_that_ends_after_its_round_changes_nothing_in_the_next(ns: WorkflowNamespace) -> None:
    gate = asyncio.Event()
    broken: list[str] = []

    async def work(ctx: Context[str]) -> str:
        await gate.wait()
        broken.append(ctx.input)
        raise ValueError(ctx.input)

    child = ns.create_workflow("child", run=work)

    async def count(ctx: Context[str]) -> str:
        await ctx.step.start("child", child, ctx.input)
        if ctx.input == "first":
            raise ContinueAsNew("second")
        await ctx.step.wait_for_event("go on")
        return "fine"

    workflow = ns.create_workflow("count", run=count)
    async with ns.worker():
        job = await workflow.run("first")
        await _in_state(workflow, job.id, "parked")
        gate.set()
        await wait_until(lambda: sorted(broken) == ["first", "second"], PATIENCE)
        await job.send_event("go on")
        assert await job.wait(PATIENCE) == "fine"


async def test_children_that_were_held_back_end_with_their_round(ns: WorkflowNamespace, look: Look) -> None:
    gate = asyncio.Event()
    begun: list[int] = []

    async def work(ctx: Context[int]) -> int:
        begun.append(ctx.input)
        await gate.wait()
        if ctx.input == 0:
            raise ValueError
        return ctx.input

    child = ns.create_workflow("child", run=work)

    async def count(ctx: Context[str]) -> str:
        if ctx.input == "second":
            return "done"
        try:
            await ctx.step.map("all", child, list(range(20)), max_concurrency=2)
        except ChildFailedError:
            raise ContinueAsNew("second") from None
        raise AssertionError

    workflow = ns.create_workflow("count", run=count)
    async with ns.worker(concurrency=30):
        job = await workflow.run("first")
        await wait_until(lambda: len(begun) == 2, PATIENCE)
        gate.set()
        assert await job.wait(PATIENCE) == "done"
        await wait_until(look.all_have_followed, PATIENCE)

        async def over() -> bool:
            counts = await child.counts()
            return counts.active == counts.waiting == counts.parked == 0

        await wait_until(over, PATIENCE)


async def test_what_a_flow_gave_stays_through_all_rounds(ns: WorkflowNamespace) -> None:
    async def part(ctx: Context[str]) -> str:
        return ctx.input.upper()

    parts = ns.create_workflow("part", run=part)

    async def whole(ctx: Context[int]) -> list[Any]:
        if ctx.input < 3:
            raise ContinueAsNew(ctx.input + 1)
        return ctx.children

    wholes = ns.create_workflow("whole", run=whole)
    async with ns.worker():
        job = await ns.run_flow(Flow(wholes, 0, children=[Flow(parts, "a"), Flow(parts, "b")]))
        assert await job.wait(PATIENCE) == ["A", "B"]


async def test_a_child_may_go_on_as_new_and_its_parent_gets_the_last_result(ns: WorkflowNamespace) -> None:
    async def count(ctx: Context[int]) -> int:
        if ctx.input < 4:
            raise ContinueAsNew(ctx.input + 1)
        return ctx.input

    counting = ns.create_workflow("count", run=count)

    async def parent(ctx: Context[None]) -> int:
        return await ctx.step.run("count", counting, 0)

    workflow = ns.create_workflow("parent", run=parent)
    async with ns.worker():
        assert await workflow.execute(None, timeout=PATIENCE) == 4


async def test_compensations_are_those_of_the_last_round(ns: WorkflowNamespace) -> None:
    undone: list[str] = []

    async def trip(ctx: Context[int]) -> None:
        ctx.on_failure("leg", undone.append, f"leg {ctx.input}")
        await ctx.step.do("leg", str)
        if ctx.input < 3:
            raise ContinueAsNew(ctx.input + 1)
        raise ValueError("no seats")

    workflow = ns.create_workflow("trip", run=trip)
    async with ns.worker():
        with pytest.raises(JobFailedError, match="no seats"):
            await workflow.execute(1, timeout=PATIENCE)
    assert undone == ["leg 3"]


async def test_it_is_cancelled_like_any_job_in_any_round(ns: WorkflowNamespace) -> None:
    rounds = 0

    async def spin(ctx: Context[int]) -> None:
        nonlocal rounds
        rounds += 1
        await ctx.step.do("step", str)
        raise ContinueAsNew(ctx.input + 1)

    workflow = ns.create_workflow("spin", run=spin)
    async with ns.worker():
        job = await workflow.run(0)
        await wait_until(lambda: rounds >= 10, PATIENCE)
        assert await job.cancel("enough")
        with pytest.raises(JobCancelledError, match="enough"):
            await job.wait(PATIENCE)


async def test_a_next_input_that_cannot_be_stored_fails_the_attempt(ns: WorkflowNamespace) -> None:
    async def count(_: Context[None]) -> None:
        raise ContinueAsNew(lambda: None)

    workflow = ns.create_workflow("count", run=count)
    async with ns.worker():
        with pytest.raises(JobFailedError, match="its next input cannot be stored"):
            await workflow.execute(None, timeout=PATIENCE)
