"""What the failure of a flow's child means to its parents, and that nobody waits for ever."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from lanner import (
    Flow,
    InvalidArgumentError,
    JobFailedError,
    JobNotFoundError,
    WorkflowNamespace,
)
from support.jobs import PATIENCE, Look, lose_claim
from support.line import Line, has_state, parts_of


@pytest.fixture
async def ns(redis_url: str, namespace_id: str) -> AsyncIterator[WorkflowNamespace]:
    async with WorkflowNamespace(namespace_id, redis=redis_url) as ns:
        yield ns


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
        middle = (await parts_of(job))[0]
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
        parts = await parts_of(job)
        await line.part.get_job(parts[2].id).cancel("not needed")
        await line.part.remove(parts[3].id)
        assert await job.wait(PATIENCE) == [
            "GOOD", "part failed: bad", "part cancelled: not needed", "part cancelled: it was removed",
        ]  # fmt: skip
        assert [child.state for child in await parts_of(job)][:3] == ["completed", "failed", "cancelled"]


@pytest.mark.parametrize(("how", "verb"), [("cancel", "was cancelled"), ("remove", "was removed")])
async def test_a_cancelled_or_removed_child_fails_its_parent_and_is_told_from_a_failed_one(
    ns: WorkflowNamespace, how: str, verb: str
) -> None:
    line = Line(ns)
    job = await ns.run_flow(Flow(line.whole, "top", children=[Flow(line.part, "a"), Flow(line.part, "b")]))
    child = (await parts_of(job))[0]
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
    await line.part.set_limits(concurrency=1)
    async with ns.worker():
        job = await ns.run_flow(Flow(line.whole, "top", children=[
            Flow(line.part, "stalls", on_failure=policy, options={"max_stalled": 0, "priority": 2}),
            Flow(line.part, "trimmed", on_failure="continue", options={"keep_failed": 0, "priority": 1}),
            Flow(line.part, "expires", on_failure="continue", options={"expires": 0.001}),
        ]))  # fmt: skip
        await line.has_begun("stalls")
        stalls = (await parts_of(job))[0]
        # the only slot is taken
        await has_state(line.part, (await parts_of(job))[2].id, "failed")
        await lose_claim(look, ns.queues, "part", stalls.id)
        if policy == "fail_parent":
            with pytest.raises(JobFailedError, match="has failed"):
                await job.wait(PATIENCE)
        else:
            stalled, trimmed, expired = await job.wait(PATIENCE)
            assert stalled.startswith("part failed: its worker was lost")
            assert trimmed == "part failed: trimmed"
            assert expired.startswith("part failed: not started within")


async def test_the_policy_of_a_child_can_be_changed_while_it_matters(ns: WorkflowNamespace) -> None:
    line = Line(ns)
    line.broken = line.held = {"bad", "worse"}
    async with ns.worker():
        job = await ns.run_flow(Flow(line.whole, "top", children=[
            Flow(line.part, "bad"), Flow(line.part, "worse", on_failure="continue"),
        ]))  # fmt: skip
        await line.has_begun("bad", "worse")
        bad, worse = (line.part.get_job(child.id) for child in await parts_of(job))
        assert await bad.set_failure_policy("continue")
        line.held = {"worse"}
        await has_state(line.part, bad.id, "failed")
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
