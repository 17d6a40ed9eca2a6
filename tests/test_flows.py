"""Flows: trees of jobs that are declared up front, in one call; leaves first."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from lanner import (
    Context,
    Dedup,
    Flow,
    InvalidArgumentError,
    JobCancelledError,
    JobFailedError,
    JobNotFoundError,
    KeepFailed,
    SerializationError,
    WorkflowNamespace,
)
from lanner.queue.scripts.loader import load
from support.jobs import PATIENCE, Look
from support.line import Line, has_state, parts_of
from support.proxy import Proxy
from support.waiting import wait_until

MOST = 1000


@pytest.fixture
async def ns(redis_url: str, namespace_id: str) -> AsyncIterator[WorkflowNamespace]:
    async with WorkflowNamespace(namespace_id, redis=redis_url) as ns:
        yield ns


async def test_leaves_run_first_and_a_parent_gets_what_its_children_gave_in_their_order(ns: WorkflowNamespace) -> None:
    line = Line(ns)
    flow = Flow(line.whole, "top", children=[
        Flow(line.whole, "left", children=[Flow(line.part, "a"), Flow(line.part, "b")]),
        Flow(line.part, "c"),
        Flow(line.whole, "right", children=[Flow(line.part, "d")]),
    ])  # fmt: skip
    async with ns.worker():
        job = await ns.run_flow(flow)
        assert await job.wait(PATIENCE) == [["A", "B"], "C", ["D"]]
        tree = await job.tree()
        assert (tree.size, tree.completed) == (6, 6)
        assert str(tree).count("completed") == 7
    assert line.begun[-1] == "top"
    assert line.begun.index("left") > max(line.begun.index("a"), line.begun.index("b"))
    assert sorted(line.begun) == ["a", "b", "c", "d", "left", "right", "top"]


async def test_a_single_job_is_a_flow_too(ns: WorkflowNamespace) -> None:
    line = Line(ns)
    async with ns.worker():
        assert await (await ns.run_flow(Flow(line.part, "a"))).wait(PATIENCE) == "A"


async def test_results_are_the_parents_even_when_the_children_are_not_kept(ns: WorkflowNamespace, look: Look) -> None:
    line = Line(ns)
    line.held = {"b"}
    options = {"result_ttl": 0}
    async with ns.worker():
        job = await ns.run_flow(Flow(line.whole, "top", children=[
            Flow(line.part, "a", options=options), Flow(line.part, "b"),
        ]))  # fmt: skip
        first = (await parts_of(job))[0]
        await wait_until(lambda: look("EXISTS", f"part:j:{first.id}") == 0, PATIENCE)
        assert (await parts_of(job))[0].state == "completed"
        line.held.clear()
        assert await job.wait(PATIENCE) == ["A", "B"]


async def test_one_call_adds_all_or_nothing(redis_url: str, namespace_id: str, proxy: Proxy) -> None:
    async with WorkflowNamespace(namespace_id, redis=proxy.url) as ns:
        line = Line(ns)
        flow = Flow(line.whole, "top", children=[Flow(line.part, str(number)) for number in range(20)])
        async with ns.worker():
            await (await ns.run_flow(flow)).wait(PATIENCE)
        line.begun.clear()
        proxy.lose_answers(load("add_flow").sha, every=2)
        jobs = [await ns.run_flow(flow) for _ in range(4)]
        assert proxy.requests_with(load("add_flow").sha) >= 6, "some were sent again"
        proxy.lose_no_answers()
    async with WorkflowNamespace(namespace_id, redis=redis_url) as again:
        line = Line(again)
        assert (await line.whole.counts()).parked == 4
        assert (await line.part.counts()).waiting == 80
        async with again.worker(concurrency=20):
            for job in jobs:
                await again.queues.queue("whole").job(job.id).wait(PATIENCE)
        assert len(line.begun) == 84


async def test_a_parents_time_to_be_started_counts_from_when_its_children_have_ended(ns: WorkflowNamespace) -> None:
    line = Line(ns)
    line.held = {"a"}
    options = {"expires": 2}
    async with ns.worker():
        job = await ns.run_flow(Flow(line.whole, "top", options=options, children=[Flow(line.part, "a")]))
        await line.has_begun("a")
        await asyncio.sleep(2.2)
        line.held.clear()
        assert await job.wait(PATIENCE) == ["A"]


async def test_cancelling_a_root_cancels_its_tree(ns: WorkflowNamespace, look: Look) -> None:
    line = Line(ns)
    line.held = {"a"}
    async with ns.worker():
        job = await ns.run_flow(Flow(line.whole, "top", children=[
            Flow(line.whole, "middle", children=[Flow(line.part, "a")]), Flow(line.part, "done"),
        ]))  # fmt: skip
        await line.has_begun("a", "done")
        await has_state(line.part, (await parts_of(job))[1].id, "completed")
        assert await job.cancel()
        with pytest.raises(JobCancelledError):
            await job.wait(PATIENCE)
        await wait_until(look.all_have_followed, PATIENCE)
        (middle, done) = await parts_of(job)
        await has_state(line.part, middle.children[0].id, "cancelled")
        assert (middle.state, done.state) == ("cancelled", "completed")
    assert "top" not in line.begun


async def test_removing_a_root_removes_its_tree(ns: WorkflowNamespace) -> None:
    line = Line(ns)
    line.held, line.broken = {"a"}, {"bad"}
    async with ns.worker():
        job = await ns.run_flow(Flow(line.whole, "top", children=[
            Flow(line.whole, "middle", children=[Flow(line.part, "a"), Flow(line.part, "bad", on_failure="continue")]),
            Flow(line.part, "done"),
        ]))  # fmt: skip
        await line.has_begun("a", "bad", "done")
        await has_state(line.part, (await parts_of(job))[1].id, "completed")
        await has_state(line.part, (await parts_of(job))[0].children[1].id, "failed")
        assert await line.whole.remove(job.id)
        with pytest.raises(JobNotFoundError):
            await line.whole.get_job(job.id).state()
        for workflow in (line.part, line.whole):
            counts = await workflow.counts()
            assert (counts.waiting, counts.parked, counts.active, counts.completed, counts.failed) == (0, 0, 0, 0, 0)
    assert "top" not in line.begun


async def test_retention_treats_a_flow_as_one(ns: WorkflowNamespace, look: Look) -> None:
    line = Line(ns, result_ttl=0.05, keep_failed=KeepFailed(count=1))
    line.broken, line.held = {"bad", "other", "last"}, {"slow"}
    async with ns.worker():
        job = await ns.run_flow(Flow(line.whole, "top", options={"result_ttl": 60}, children=[
            Flow(line.whole, "middle", on_failure="continue", children=[Flow(line.part, "bad"), Flow(line.part, "ok")]),
            Flow(line.part, "slow"),
        ]))  # fmt: skip
        middle = (await parts_of(job))[0]
        await has_state(line.whole, middle.id, "failed")
        # failed jobs that nobody waits for push it off the list of those that are kept
        for name in ("other", "last"):
            with pytest.raises(JobFailedError):
                await line.part.execute(name, timeout=PATIENCE)
        await has_state(line.part, (await parts_of(job))[0].children[1].id, "completed")
        await asyncio.sleep(0.1)  # longer than what is kept for its own sake is kept
        assert [child.state for child in (await parts_of(job))[0].children] == ["failed", "completed"]
        line.broken.clear()
        assert await line.whole.retry(middle.id)
        line.held.clear()
        assert await job.wait(PATIENCE) == [["BAD", "OK"], "SLOW"]
        await wait_until(look.all_have_followed, PATIENCE)

        async def gone() -> bool:
            return {child.state for child in await parts_of(job)} == {"gone"}

        await wait_until(gone, PATIENCE)


@pytest.mark.parametrize("end", ["completed", "cancelled"])
async def test_a_root_that_is_kept_for_ever_keeps_its_children_no_longer_than_they_say(
    ns: WorkflowNamespace, look: Look, end: str
) -> None:
    line = Line(ns, result_ttl=0.05)
    line.held = {"slow"} if end == "cancelled" else set()
    async with ns.worker():
        job = await ns.run_flow(Flow(line.whole, "top", options={"result_ttl": None}, children=[
            Flow(line.whole, "middle", options={"result_ttl": None}, children=[Flow(line.part, "low")]),
            *(Flow(line.part, "slow" if number == 0 else str(number)) for number in range(60)),
        ]))  # fmt: skip
        if end == "cancelled":
            await line.has_begun("slow")
            assert await job.cancel()
        await has_state(line.whole, job.id, end)

        async def those_kept_for_ever_remain() -> bool:
            counts = await line.whole.counts()
            return len([name for name in look.names() if ":j:" in name]) == counts.completed + counts.cancelled

        line.held.clear()
        await wait_until(look.all_have_followed, PATIENCE)
        await wait_until(those_kept_for_ever_remain, PATIENCE)
        assert await line.whole.get_job(job.id).state() == end


async def test_a_failed_root_that_is_not_kept_any_more_lets_go_of_its_children(
    ns: WorkflowNamespace, look: Look
) -> None:
    line = Line(ns, keep_failed=1, result_ttl=0.05)
    line.broken = {"bad"}
    async with ns.worker():
        for _ in range(3):
            job = await ns.run_flow(Flow(line.whole, "top", children=[Flow(line.part, "good"), Flow(line.part, "bad")]))
            with pytest.raises(JobFailedError):
                await job.wait(PATIENCE)
        await wait_until(look.all_have_followed, PATIENCE)

        async def only_the_last() -> bool:
            return len([name for name in look.names() if ":j:" in name]) == 3

        await wait_until(only_the_last, PATIENCE)


def _deep(line: Line, depth: int) -> Flow:
    flow: Flow = Flow(line.part, "leaf")
    for level in range(depth - 1):
        flow = Flow(line.whole, str(level), children=[flow])
    return flow


async def test_a_thousand_jobs_side_by_side_or_one_below_the_other(ns: WorkflowNamespace, look: Look) -> None:
    line = Line(ns)
    wide = Flow(line.whole, "top", children=[Flow(line.part, str(number)) for number in range(MOST - 1)])
    async with ns.worker(concurrency=100):
        job = await ns.run_flow(wide)
        assert await job.wait(PATIENCE) == [str(number) for number in range(MOST - 1)]
        chain = await ns.run_flow(_deep(line, 200))
        await chain.wait(PATIENCE)
        assert (await chain.tree()).completed == 199
        line.broken = {"leaf"}
        deep = await ns.run_flow(_deep(line, MOST))
        with pytest.raises(JobFailedError):
            await deep.wait(PATIENCE)
        tree = await deep.tree()
        assert (tree.size, tree.count("failed")) == (MOST - 1, MOST - 1)
        assert str(tree).count("failed") == MOST
        line.held = {"leaf"}
        assert await line.whole.retry(deep.id)
        assert (await deep.tree()).count("parked") == MOST - 2
        assert await line.whole.remove(deep.id)
        await wait_until(look.all_have_followed, PATIENCE)


async def test_what_cannot_be_a_flow_is_refused_and_nothing_is_sent(ns: WorkflowNamespace, redis_url: str) -> None:
    line = Line(ns)
    other = WorkflowNamespace("elsewhere", redis=redis_url)
    foreign = Line(other)

    async def typed(_: Context[int]) -> None:
        raise AssertionError

    numbers = ns.create_workflow("numbers", run=typed)

    def inner(**settings: Any) -> Flow:
        return Flow(line.whole, "top", children=[Flow(line.part, "a", **settings)])

    looped: list[Flow] = []
    endless = Flow(line.whole, "x", children=looped)
    looped.append(endless)
    anything: Any = "not a node"
    refused = {
        "a flow has at most 1000 jobs": Flow(line.whole, "x", children=[Flow(line.part, "y")] * MOST),
        "at most 1000": endless,
        "an empty list of children": inner(children=[]),
        "id= has no meaning": inner(options={"id": "mine"}),
        "run_in= has no meaning": inner(options={"run_in": 3}),
        "debounce= has no meaning": inner(options={"debounce": Dedup("key", 1)}),
        "throttle= has no meaning": inner(options={"throttle": Dedup("key", 1)}),
        "workflow 'part': the workflow is of another namespace": Flow(
            line.whole, "x", children=[Flow(foreign.part, "y")]
        ),
        "on_failure must be one of": inner(on_failure="ignore"),
        "priority must be": inner(options={"priority": -1}),
        "there is no option retries=": inner(options={"retries": 3}),
        "a flow is made of Flow": Flow(line.whole, "x", children=[anything]),
        "a flow node's workflow": Flow(anything, "x"),
        "a flow node's children": Flow(line.whole, "x", children=anything),
        "a flow node's options": Flow(line.whole, "x", options=anything),
    }
    for text, flow in refused.items():
        with pytest.raises(InvalidArgumentError, match=text):
            await ns.run_flow(flow)
    with pytest.raises(SerializationError, match="workflow 'numbers': the input does not fit"):
        await ns.run_flow(Flow(line.whole, "x", children=[Flow(numbers, "no number")]))
    for workflow in (line.part, line.whole):
        counts = await workflow.counts()
        assert (counts.waiting, counts.parked, counts.delayed) == (0, 0, 0)
    await other.aclose()


async def test_a_job_of_a_flow_starts_children_of_its_own_and_may_wait(ns: WorkflowNamespace) -> None:
    line = Line(ns)

    async def busy(ctx: Context[str]) -> list[Any]:
        await ctx.step.wait("a moment", 1.2)
        more = await ctx.step.map("more", line.part, ["x", "y"])
        if ctx.attempt == 1:
            raise OSError
        return [*ctx.children, *more]

    workflow = ns.create_workflow("busy", run=busy, max_attempts=2)
    async with ns.worker():
        job = await ns.run_flow(Flow(workflow, "top", children=[Flow(line.part, "a")]))
        assert await job.wait(PATIENCE) == ["A", "X", "Y"]
        assert [child.path for child in await parts_of(job)] == ["", "more/0", "more/1"]
