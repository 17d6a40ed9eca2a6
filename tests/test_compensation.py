"""``ctx.on_failure``: what a run has registered is undone when its job fails for good or is cancelled."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from lanner import (
    Backoff,
    ChildFailedError,
    Context,
    JobCancelledError,
    JobFailedError,
    SyncContext,
    Workflow,
    WorkflowNamespace,
)
from support.crew import crew
from support.diary import SOON, Diary, is_in_state
from support.family import deaths_in, notes_in
from support.jobs import PATIENCE, Look, lose_claim
from support.saga import BOOKINGS, define, define_to_die
from support.waiting import wait_until


@pytest.fixture
async def ns(redis_url: str, namespace_id: str) -> AsyncIterator[WorkflowNamespace]:
    async with WorkflowNamespace(namespace_id, redis=redis_url) as ns:
        yield ns


def workflow_of(ns: WorkflowNamespace, workflow_id: str) -> Workflow[Any, Any]:
    return next(workflow for workflow in ns.workflows if workflow.id == workflow_id)


async def test_they_run_in_reverse_when_the_job_fails_for_good_and_not_before(ns: WorkflowNamespace) -> None:
    diary = Diary()

    async def undo_async(what: str, *, loud: bool) -> None:
        diary.write(f"undid {what}{'!' if loud else ''}")

    async def trip(ctx: Context[None]) -> None:
        diary.write(f"attempt {ctx.attempt}")
        ctx.on_failure("flight", diary.write, "undid flight")
        await ctx.step.do("flight", diary.write, "flight")
        ctx.on_failure("hotel", undo_async, "hotel", loud=True)
        await ctx.step.do("hotel", diary.write, "hotel")
        raise ValueError("no seats")

    workflow = ns.create_workflow("trip", run=trip, max_attempts=2, backoff=SOON)
    async with ns.worker():
        with pytest.raises(JobFailedError, match="no seats") as failed:
            await workflow.execute(None, timeout=PATIENCE)
    assert (failed.value.type, failed.value.message) == ("ValueError", "no seats")
    # the run comes to where they are registered once more, its steps replayed
    assert diary.lines == ["attempt 1", "flight", "hotel", "attempt 2", "attempt 2", "undid hotel!", "undid flight"]


async def test_a_job_that_completes_undoes_nothing(ns: WorkflowNamespace) -> None:
    diary = Diary()

    async def trip(ctx: Context[None]) -> str:
        ctx.on_failure("flight", diary.write, "undid flight")
        if ctx.attempt == 1:
            raise OSError
        return "fine"

    workflow = ns.create_workflow("trip", run=trip, max_attempts=2, backoff=SOON)
    async with ns.worker():
        assert await workflow.execute(None, timeout=PATIENCE) == "fine"
    assert diary.lines == []


async def test_a_plain_workflow_undoes_too(ns: WorkflowNamespace) -> None:
    diary = Diary()

    def trip(ctx: SyncContext[None]) -> None:
        ctx.on_failure("flight", diary.write, "undid flight")
        ctx.step.do("flight", diary.write, "flight")
        ctx.step.wait("a moment", 1.1)
        raise ValueError("no seats")

    workflow = ns.create_workflow("trip", run=trip)
    async with ns.worker():
        with pytest.raises(JobFailedError, match="no seats"):
            await workflow.execute(None, timeout=PATIENCE)
    assert diary.lines == ["flight", "undid flight"]


def holding(ns: WorkflowNamespace, diary: Diary, where: str) -> Workflow[None, None]:
    """A workflow that has registered a compensation when it is held somewhere."""

    async def trip(ctx: Context[None]) -> None:
        ctx.on_failure("flight", diary.write, "undid flight")
        match where:
            case "in a step":
                await ctx.step.do("flight", diary.hold, "flight")
            case "asleep":
                await ctx.step.wait("long", 3600)
            case "waiting for an event":
                await ctx.step.wait_for_event("never")
            case "waiting for a child":
                await ctx.step.run("child", sleeper, None)
            case _:
                await ctx.step.do("flight", diary.write, "flight")
                raise OSError

    async def sleep(ctx: Context[None]) -> None:
        ctx.on_failure("child", diary.write, "undid child")
        await ctx.step.wait("long", 3600)

    sleeper = ns.create_workflow("sleeper", run=sleep)
    return ns.create_workflow("trip", run=trip, max_attempts=5, backoff=Backoff(first=3600, longest=3600))


HELD = {
    "in a step": ("active", ["flight", "undid flight"]),
    "asleep": ("delayed", ["undid flight"]),
    "waiting for an event": ("parked", ["undid flight"]),
    "waiting for a child": ("parked", ["undid child", "undid flight"]),
    "between two attempts": ("delayed", ["flight", "undid flight"]),
}


@pytest.mark.parametrize("where", HELD)
async def test_a_job_that_is_cancelled_undoes_wherever_it_is(ns: WorkflowNamespace, where: str) -> None:
    diary = Diary()
    workflow, (state, lines) = holding(ns, diary, where), HELD[where]
    async with ns.worker():
        job = await workflow.run(None)
        await is_in_state(workflow, job.id, state)
        if where == "in a step":
            await diary.says("flight")
        if where == "waiting for a child":
            (child,) = (await job.tree()).children
            await is_in_state(workflow_of(ns, "sleeper"), child.id, "delayed")
        assert await job.cancel("changed my mind")
        with pytest.raises(JobCancelledError, match="changed my mind"):
            await job.wait(PATIENCE)
        await wait_until(lambda: sorted(diary.lines) == sorted(lines), PATIENCE)


async def test_a_job_that_is_cancelled_before_it_began_or_has_registered_nothing_just_ends(
    ns: WorkflowNamespace, look: Look
) -> None:
    diary, runs = Diary(), 0

    async def trip(ctx: Context[None]) -> None:
        nonlocal runs
        runs += 1
        await ctx.step.wait_for_event("never")
        ctx.on_failure("late", diary.write, "undid late")

    workflow = ns.create_workflow("trip", run=trip)
    early = await workflow.run(None)
    assert await early.cancel()
    assert await early.state() == "cancelled"
    async with ns.worker():
        job = await workflow.run(None)
        await is_in_state(workflow, job.id, "parked")
        assert await job.cancel()
        assert await job.state() == "cancelled"
    assert (runs, diary.lines) == (1, [])
    assert look("EXISTS", f"trip:steps:{job.id}") == 0


async def test_a_cancellation_that_meets_the_end_of_an_attempt_undoes_only_what_was_registered(
    ns: WorkflowNamespace,
) -> None:
    """The attempt has ended in a wait, a retry: its outcome's numbers are none of compensations."""
    runs = 0

    async def trip(ctx: Context[None]) -> None:
        nonlocal runs
        runs += 1
        # marked as cancelled, and told only after the run has decided what it ends in
        await ns.queues.queue("trip").job(ctx.job_id).cancel()
        raise OSError

    workflow = ns.create_workflow("trip", run=trip, max_attempts=5, backoff=SOON)
    async with ns.worker():
        with pytest.raises(JobCancelledError):
            await workflow.execute(None, timeout=PATIENCE)
    assert runs == 1


async def test_a_job_whose_workers_were_lost_too_often_undoes(ns: WorkflowNamespace, look: Look) -> None:
    diary = Diary()
    workflow = holding(ns, diary, "in a step")
    async with ns.worker():
        job = await workflow.run(None, max_stalled=0)
        await diary.says("flight")
        await lose_claim(look, ns.queues, "trip", job.id)
        with pytest.raises(JobFailedError, match="its worker was lost"):
            await job.wait(PATIENCE)
    assert diary.lines == ["flight", "undid flight"]


async def test_children_of_a_cancelled_job_are_cancelled_before_it_undoes(ns: WorkflowNamespace) -> None:
    states: list[str] = []

    async def sleep(ctx: Context[None]) -> None:
        await ctx.step.wait("long", 3600)

    sleeper = ns.create_workflow("sleeper", run=sleep)

    async def look_at_children(job_id: str) -> None:
        tree = await workflow_of(ns, "trip").get_job(job_id).tree()
        states.extend(child.state for child in tree.children)

    async def trip(ctx: Context[None]) -> None:
        ctx.on_failure("look", look_at_children, ctx.job_id)
        await ctx.step.map("children", sleeper, [None] * 3)

    workflow = ns.create_workflow("trip", run=trip)
    async with ns.worker():
        job = await workflow.run(None)
        await wait_until(lambda: _sleeps(sleeper, 3), PATIENCE)
        await job.cancel()
        with pytest.raises(JobCancelledError):
            await job.wait(PATIENCE)
    assert states == ["cancelled"] * 3


async def _sleeps(workflow: Workflow[Any, Any], count: int) -> bool:
    return (await workflow.counts()).delayed == count


async def test_a_childs_failure_has_its_parent_undo(ns: WorkflowNamespace) -> None:
    diary = Diary()

    async def fail(ctx: Context[None]) -> None:
        ctx.on_failure("child", diary.write, "undid child")
        raise ValueError("out of paper")

    child = ns.create_workflow("child", run=fail)

    async def trip(ctx: Context[None]) -> None:
        ctx.on_failure("flight", diary.write, "undid flight")
        await ctx.step.run("child", child, None)

    workflow = ns.create_workflow("trip", run=trip)
    async with ns.worker():
        with pytest.raises(JobFailedError, match="out of paper") as failed:
            await workflow.execute(None, timeout=PATIENCE)
        assert failed.value.type == ChildFailedError.__name__
    assert diary.lines == ["undid child", "undid flight"]


async def test_a_job_that_has_undone_begins_from_the_beginning_when_it_is_retried(ns: WorkflowNamespace) -> None:
    diary = Diary()

    async def pack(_: Context[None]) -> str:
        diary.write("pack")
        return "packed"

    child = ns.create_workflow("child", run=pack)

    async def trip(ctx: Context[None]) -> str:
        ctx.on_failure("flight", diary.write, "undid flight")
        await ctx.step.do("flight", diary.write, "flight")
        packed = await ctx.step.run("pack", child, None)
        if diary.lines.count("flight") < 3:
            raise ValueError("no seats")
        return packed

    workflow = ns.create_workflow("trip", run=trip)
    async with ns.worker():
        job = await workflow.run(None)
        for _ in range(2):
            with pytest.raises(JobFailedError):
                await job.wait(PATIENCE)
            assert await workflow.retry(job.id)
        assert await job.wait(PATIENCE) == "packed"
    assert diary.lines == ["flight", "pack", "undid flight"] * 2 + ["flight", "pack"]


async def test_names_count_in_their_scope_and_mistakes_are_said(ns: WorkflowNamespace) -> None:
    diary = Diary()
    nothing: Any = "no function"

    async def trip(ctx: Context[None]) -> None:
        for item in ("a", "b"):
            with ctx.step.scope(item):
                ctx.on_failure("item", diary.write, f"undid {item}")

        async def inside() -> list[str]:
            texts: list[str] = []
            for name, function in (("in", diary.write), ("none", nothing)):
                try:
                    ctx.on_failure(name, function, "x")
                except Exception as error:  # noqa: BLE001 - looked at below
                    texts.append(str(error))
            return texts

        texts = await ctx.step.do("step", inside)
        for name, function in (("twice", diary.write), ("twice", diary.write), ("", diary.write), ("no", nothing)):
            try:
                ctx.on_failure(name, function, "undid twice")
            except Exception as error:  # noqa: BLE001 - looked at below
                texts.append(str(error))
        raise ValueError(" | ".join(texts))

    workflow = ns.create_workflow("trip", run=trip)
    async with ns.worker():
        with pytest.raises(JobFailedError) as failed:
            await workflow.execute(None, timeout=PATIENCE)
    said = failed.value.message.split(" | ")
    assert [text[:40] for text in said] == [
        "compensation 'in' is registered inside a", "compensation 'none' is registered inside",
        "compensation 'twice' is registered alrea", "a step's name must not be empty: its che",
        "step 'no' was given 'no function', which",
    ]  # fmt: skip
    assert diary.lines == ["undid twice", "undid b", "undid a"]


async def test_a_step_inside_a_compensation_is_an_error_that_says_so(ns: WorkflowNamespace) -> None:
    async def trip(ctx: Context[None]) -> None:
        async def undo() -> None:
            await ctx.step.do("inside", str)

        ctx.on_failure("flight", undo)
        raise ValueError("no seats")

    workflow = ns.create_workflow("trip", run=trip, backoff=SOON)
    async with ns.worker():
        with pytest.raises(JobFailedError, match="step 'inside' is in a compensation, which is a step itself"):
            await workflow.execute(None, timeout=PATIENCE)


@pytest.mark.parametrize("how", ["fails", "waits"])
async def test_each_is_undone_once_wherever_a_worker_is_killed(
    redis_url: str, namespace_id: str, tmp_path: Path, how: str
) -> None:
    async with WorkflowNamespace(namespace_id, redis=redis_url) as ns:
        workflow = define(ns)
        job = await workflow.run(how)
        async with crew(define_to_die, namespace_id, redis_url, tmp_path, lease=None):
            if how == "waits":
                await is_in_state(workflow, job.id, "parked")
                assert await job.cancel("changed my mind")
                with pytest.raises(JobCancelledError, match="changed my mind"):
                    await job.wait(PATIENCE)
            else:
                with pytest.raises(JobFailedError, match="no seats"):
                    await job.wait(PATIENCE)
    undone = [line for line in notes_in(tmp_path) if line.startswith("undid")]
    assert undone == ["undid car", "undid hotel", "undid flight"]
    points = {
        *(f"{what} is {point}" for what in BOOKINGS for point in ("registered", "booked", "about to be undone")),
        *(f"//undo/{what} is stored" for what in BOOKINGS),
    }
    assert deaths_in(tmp_path) >= {point.replace("/", "_") for point in points}
