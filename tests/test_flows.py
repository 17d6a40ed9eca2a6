"""Flows: trees of jobs that are declared up front, in one call; leaves first."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from lanner import (
    ChildCancelledError,
    ChildFailedError,
    Context,
    Dedup,
    Flow,
    InvalidArgumentError,
    Job,
    JobCancelledError,
    JobFailedError,
    JobNotFoundError,
    KeepFailed,
    SerializationError,
    Tree,
    Workflow,
    WorkflowNamespace,
)
from lanner.queue.scripts.loader import load
from support.jobs import PATIENCE, Look
from support.proxy import Proxy
from support.waiting import wait_until

MOST = 1000


@pytest.fixture
async def ns(redis_url: str, namespace_id: str) -> AsyncIterator[WorkflowNamespace]:
    async with WorkflowNamespace(namespace_id, redis=redis_url) as ns:
        yield ns


class Line:
    """Two workflows: ``part`` does what the test says for its input, ``whole`` gives what its children gave.

    Attributes:
        begun: The inputs of the jobs that have begun, in order.
        broken: The inputs of parts that fail.
        held: The inputs of parts that wait until they are taken out of this.
    """

    def __init__(self, ns: WorkflowNamespace, **options: Any) -> None:
        self.begun: list[str] = []
        self.broken: set[str] = set()
        self.held: set[str] = set()
        self.part: Workflow[str, str] = ns.create_workflow("part", run=self._part, **options)
        self.whole: Workflow[str, list[Any]] = ns.create_workflow("whole", run=self._whole, **options)

    async def _part(self, ctx: Context[str]) -> str:
        self.begun.append(ctx.input)
        await wait_until(lambda: ctx.input not in self.held, PATIENCE)
        if ctx.input in self.broken:
            raise ValueError(ctx.input)
        return ctx.input.upper()

    async def _whole(self, ctx: Context[str]) -> list[Any]:
        self.begun.append(ctx.input)
        return [_said(each) for each in ctx.children]

    async def has_begun(self, *inputs: str) -> None:
        await wait_until(lambda: set(inputs) <= set(self.begun), PATIENCE)


def _said(result: Any) -> Any:
    if isinstance(result, ChildFailedError):
        return f"{result.workflow} failed: {result.message}"
    if isinstance(result, ChildCancelledError):
        return f"{result.workflow} cancelled: {result.reason}"
    return result


async def _parts(job: Job[Any]) -> list[Tree]:
    return list((await job.tree()).children)


async def _state(workflow: Workflow[Any, Any], job_id: str, *states: str) -> None:
    async def is_so() -> bool:
        return await workflow.get_job(job_id).state() in states

    await wait_until(is_so, PATIENCE)


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
        first = (await _parts(job))[0]
        await wait_until(lambda: look("EXISTS", f"part:j:{first.id}") == 0, PATIENCE)
        assert (await _parts(job))[0].state == "completed"
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


async def test_a_failure_fails_its_parents_at_once_up_to_the_root_with_nobody_working_on_their_queues(
    ns: WorkflowNamespace,
) -> None:
    line = Line(ns)
    line.broken, line.held = {"bad"}, {"slow"}
    async with line.part.worker():
        job = await ns.run_flow(Flow(line.whole, "top", children=[
            Flow(line.whole, "middle", children=[Flow(line.part, "bad"), Flow(line.part, "slow")]),
            Flow(line.part, "good"),
        ]))  # fmt: skip
        with pytest.raises(JobFailedError) as failed:
            await job.wait(PATIENCE)
        middle = (await _parts(job))[0]
        assert (failed.value.type, failed.value.message) == (
            "ChildFailedError", f"child {middle.id} of workflow whole has failed",
        )  # fmt: skip
        bad, slow = middle.children
        with pytest.raises(JobFailedError, match=f"child {bad.id} of workflow part has failed"):
            await line.whole.get_job(middle.id).wait(PATIENCE)
        assert (bad.state, slow.state) == ("failed", "active"), "its other children run on"
        line.held.clear()
        assert await line.part.get_job(slow.id).wait(PATIENCE) == "SLOW"
        await line.has_begun("good")
        assert await job.state() == "failed", "nothing is resurrected"
        # what the others gave late is kept for a retry
        assert [child.state for child in (await job.tree()).children[0].children] == ["failed", "completed"]
    assert sorted(line.begun) == ["bad", "good", "slow"]


async def test_a_failure_may_be_no_more_than_a_result(ns: WorkflowNamespace) -> None:
    line = Line(ns)
    line.broken, line.held = {"bad"}, {"unwanted", "removed"}
    async with ns.worker():
        job = await ns.run_flow(Flow(line.whole, "top", children=[
            Flow(line.part, "good"),
            Flow(line.part, "bad", on_failure="continue"),
            Flow(line.part, "unwanted", on_failure="continue"),
            Flow(line.part, "removed", on_failure="continue"),
        ]))  # fmt: skip
        await line.has_begun("unwanted", "removed")
        parts = await _parts(job)
        await line.part.get_job(parts[2].id).cancel("not needed")
        await line.part.remove(parts[3].id)
        assert await job.wait(PATIENCE) == [
            "GOOD", "part failed: bad", "part cancelled: not needed", "part cancelled: it was removed",
        ]  # fmt: skip
        assert [child.state for child in await _parts(job)][:3] == ["completed", "failed", "cancelled"]


@pytest.mark.parametrize(("how", "verb"), [("cancel", "was cancelled"), ("remove", "was removed")])
async def test_a_cancelled_or_removed_child_fails_its_parent_and_is_told_from_a_failed_one(
    ns: WorkflowNamespace, how: str, verb: str
) -> None:
    line = Line(ns)
    job = await ns.run_flow(Flow(line.whole, "top", children=[Flow(line.part, "a"), Flow(line.part, "b")]))
    child = (await _parts(job))[0]
    if how == "cancel":
        await line.part.get_job(child.id).cancel()
    else:
        await line.part.remove(child.id)
    with pytest.raises(JobFailedError, match=f"child {child.id} of workflow part {verb}") as failed:
        await job.wait(PATIENCE)
    assert failed.value.type == "ChildCancelledError"
    await line.part.remove_all("waiting")


@pytest.mark.parametrize("policy", ["fail_parent", "continue"])
async def test_a_child_that_stalls_out_expires_or_is_trimmed_hangs_nobody(
    ns: WorkflowNamespace, look: Look, policy: Any
) -> None:
    line = Line(ns)
    line.held, line.broken = {"stalls"}, {"trimmed"}
    await line.part.set_limits(concurrency=2)
    async with ns.worker(lease=0.5):
        job = await ns.run_flow(Flow(line.whole, "top", children=[
            Flow(line.part, "stalls", on_failure=policy, options={"max_stalled": 0, "priority": 2}),
            Flow(line.part, "trimmed", on_failure="continue", options={"keep_failed": 0, "priority": 1}),
            Flow(line.part, "expires", on_failure="continue", options={"expires": 0.001}),
        ]))  # fmt: skip
        await line.has_begun("stalls")
        stalls = (await _parts(job))[0]

        async def given_up() -> bool:
            look.expire_lease("part", stalls.id)
            return await line.part.get_job(stalls.id).state() == "failed"

        await wait_until(given_up, PATIENCE)
        if policy == "fail_parent":
            with pytest.raises(JobFailedError, match="has failed"):
                await job.wait(PATIENCE)
        else:
            stalled, trimmed, expired = await job.wait(PATIENCE)
            assert stalled.startswith("part failed: its worker was lost")
            assert trimmed == "part failed: trimmed"
            assert expired.startswith("part failed: not started within")


async def test_a_parents_time_to_be_started_counts_from_when_its_children_have_ended(ns: WorkflowNamespace) -> None:
    line = Line(ns)
    line.held = {"a"}
    options = {"expires": 0.2}
    async with ns.worker():
        job = await ns.run_flow(Flow(line.whole, "top", options=options, children=[Flow(line.part, "a")]))
        await line.has_begun("a")
        await asyncio.sleep(0.4)
        line.held.clear()
        assert await job.wait(PATIENCE) == ["A"]


async def test_the_policy_of_a_child_can_be_changed_while_it_matters(ns: WorkflowNamespace) -> None:
    line = Line(ns)
    line.broken = line.held = {"bad", "worse"}
    async with ns.worker():
        job = await ns.run_flow(Flow(line.whole, "top", children=[
            Flow(line.part, "bad"), Flow(line.part, "worse", on_failure="continue"),
        ]))  # fmt: skip
        await line.has_begun("bad", "worse")
        bad, worse = (line.part.get_job(child.id) for child in await _parts(job))
        assert await bad.set_failure_policy("continue")
        line.held = {"worse"}
        await _state(line.part, bad.id, "failed")
        assert await job.state() == "parked"
        assert await worse.set_failure_policy("fail_parent")
        line.held = set()
        with pytest.raises(JobFailedError, match=f"child {worse.id} of workflow part has failed"):
            await job.wait(PATIENCE)
        assert not await job.set_failure_policy("continue"), "it is nobody's child"
        with pytest.raises(JobNotFoundError):
            await line.part.get_job("nothing").set_failure_policy("continue")
        with pytest.raises(InvalidArgumentError, match="policy must be one of"):
            await bad.set_failure_policy("ignore")  # type: ignore[arg-type] # as it comes from elsewhere


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
        _, middle = await _parts(job)
        await _state(line.part, (await _parts(job))[0].id, "completed")
        await _state(line.part, middle.children[0].id, "completed")
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
        middle, c, d = await _parts(job)
        line.held.discard("a")
        await _state(line.part, middle.children[0].id, "completed")
        await line.part.get_job(c.id).cancel()
        with pytest.raises(JobFailedError):
            await job.wait(PATIENCE)
        await line.part.remove(d.id)
        # one that has waited for others itself, with one of them done and one under way
        await line.whole.get_job(middle.id).cancel()
        await _state(line.part, middle.children[1].id, "cancelled")
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
        return [_said(each) for each in ctx.children]

    workflow = ns.create_workflow("parent", run=parent)
    async with ns.worker():
        job = await ns.run_flow(Flow(workflow, "top", children=[
            Flow(line.part, "bad", on_failure="continue"), Flow(line.part, "good"),
        ]))  # fmt: skip
        await wait_until(lambda: runs == 1, PATIENCE)
        line.broken.clear()
        bad = (await _parts(job))[0]
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
        bad = (await _parts(job))[0]
        await _state(line.part, bad.id, "failed")
        line.broken.clear()
        line.held.add("bad")
        assert await line.part.retry(bad.id)
        line.held.discard("slow")
        await _state(line.part, (await _parts(job))[1].id, "completed")
        assert await job.state() == "parked"
        line.held.clear()
        assert await job.wait(PATIENCE) == ["BAD", "SLOW"]


async def test_cancelling_a_root_cancels_its_tree(ns: WorkflowNamespace, look: Look) -> None:
    line = Line(ns)
    line.held = {"a"}
    async with ns.worker():
        job = await ns.run_flow(Flow(line.whole, "top", children=[
            Flow(line.whole, "middle", children=[Flow(line.part, "a")]), Flow(line.part, "done"),
        ]))  # fmt: skip
        await line.has_begun("a", "done")
        await _state(line.part, (await _parts(job))[1].id, "completed")
        assert await job.cancel()
        with pytest.raises(JobCancelledError):
            await job.wait(PATIENCE)
        await wait_until(look.all_have_followed, PATIENCE)
        (middle, done) = await _parts(job)
        await _state(line.part, middle.children[0].id, "cancelled")
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
        await _state(line.part, (await _parts(job))[1].id, "completed")
        await _state(line.part, (await _parts(job))[0].children[1].id, "failed")
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
        middle = (await _parts(job))[0]
        await _state(line.whole, middle.id, "failed")
        # failed jobs that nobody waits for push it off the list of those that are kept
        for name in ("other", "last"):
            with pytest.raises(JobFailedError):
                await line.part.execute(name, timeout=PATIENCE)
        await line.has_begun("ok")
        await asyncio.sleep(0.1)  # longer than what is kept for its own sake is kept
        assert [child.state for child in (await _parts(job))[0].children] == ["failed", "completed"]
        line.broken.clear()
        assert await line.whole.retry(middle.id)
        line.held.clear()
        assert await job.wait(PATIENCE) == [["BAD", "OK"], "SLOW"]
        await wait_until(look.all_have_followed, PATIENCE)

        async def gone() -> bool:
            return {child.state for child in await _parts(job)} == {"gone"}

        await wait_until(gone, PATIENCE)


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
    flow = Flow(line.part, "leaf")
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
        "there is no option 'retries'": inner(options={"retries": 3}),
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
        assert [child.path for child in await _parts(job)] == ["", "more/0", "more/1"]
