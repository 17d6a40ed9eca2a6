"""Simulated workers that are lost at chosen moments."""

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from lanner import Context, ContinueAsNew, NonRetryableError, SyncContext, Workflow, WorkflowNamespace
from lanner.errors import SimulationError
from lanner.testing import CrashPoint, SimulatedJob, Simulation, crash_points, simulate

DAY = timedelta(days=1)

shop = WorkflowNamespace("shop", redis="redis://nobody.invalid")
done: Counter[str] = Counter()


@pytest.fixture(autouse=True)
def nothing_done() -> None:
    done.clear()


def do(what: str) -> str:
    done[what] += 1
    return what


async def ship(ctx: Context[str]) -> str:
    await ctx.step.wait("pack", DAY)
    return await ctx.step.do("carry", do, f"carry {ctx.input}")


async def order(ctx: Context[str]) -> list[str]:
    paid = await ctx.step.do("charge", do, "charge")
    await ctx.step.wait("a day", DAY)
    ahead = await ctx.step.start("ahead", shipping, "ahead")
    mapped = await ctx.step.map("map", shipping, ["a", "b", "c"], max_concurrency=2)
    note = await ctx.step.wait_for_event("note", timeout=DAY, type=str)
    nothing = await ctx.step.wait_for_event("nothing", timeout=DAY, type=str)
    return [paid, *mapped, await ahead.wait(), note or "", nothing or "nothing"]


async def saga(ctx: Context[None]) -> None:
    for name in ("charge", "reserve"):
        ctx.on_failure(f"undo {name}", do, f"undo {name}")
        await ctx.step.do(name, do, name)
    await ctx.step.wait("a day", DAY)
    raise NonRetryableError("no stock")


async def rounds(ctx: Context[int]) -> int:
    await ctx.step.do("work", do, f"work {ctx.input}")
    await ctx.step.run("ship", shipping, str(ctx.input))
    if ctx.input < 2:
        raise ContinueAsNew(ctx.input + 1)
    return ctx.input


def plain(ctx: SyncContext[None]) -> str:
    ctx.step.do("first", do, "first")
    ctx.step.wait("a day", DAY)
    return ctx.step.do("second", do, "second") + ctx.step.run("ship", shipping, "tea")


shipping = shop.create_workflow("shipping", run=ship)
ordering = shop.create_workflow("ordering", run=order)
repeating = shop.create_workflow("repeating", run=rounds)
undoing = shop.create_workflow("undoing", run=saga)
simple = shop.create_workflow("simple", run=plain)


def crashes_of(job: SimulatedJob[Any]) -> int:
    return sum(attempt.end == "crashed" for each in job.simulation.jobs for attempt in each.attempts)


async def test_a_crash_after_a_step_does_not_run_it_again() -> None:
    job = await simulate(ordering, "tea", crash="charge")
    assert (job.ran, done["charge"], crashes_of(job)) == (["charge"], 1, 1)
    assert "charge" in job.replayed


async def test_a_crash_before_the_checkpoint_runs_the_step_again() -> None:
    job = await simulate(ordering, "tea", crash=CrashPoint("charge", kept=False))
    assert (job.ran, done["charge"], crashes_of(job)) == (["charge", "charge"], 2, 1)


async def test_a_lost_worker_is_seen_when_its_lease_is_over_and_costs_no_attempt() -> None:
    job = await simulate(simple, None, crash="first")
    assert job.output == "secondcarry tea"
    assert job.elapsed == 2 * DAY + timedelta(seconds=30)
    assert {attempt.number for attempt in job.attempts} == {1}


@pytest.mark.parametrize(
    ("workflow", "input"),
    [(ordering, "tea"), (undoing, None), (repeating, 0), (simple, None)],
    ids=lambda value: value.id if isinstance(value, Workflow) else "",
)
async def test_a_workflow_ends_the_same_wherever_a_worker_is_lost(workflow: Workflow[Any, Any], input: Any) -> None:
    first = await simulate(workflow, input, events={"note": "well done"})
    expected = (first.state, set(first.checkpoints))
    once = dict(done)
    points = crash_points(first)
    assert len(points) == len(set(points)) > 10
    for point in points:
        done.clear()
        job = await simulate(workflow, input, events={"note": "well done"}, crash=point)
        assert crashes_of(job) == 1, point
        assert (job.state, set(job.checkpoints)) == expected, point
        if job.state == "completed":
            assert job.output == first.output, point
        assert list(dict.fromkeys(job.undone)) == first.undone, point
        again = {what: times for what, times in done.items() if times != 1}
        assert dict.fromkeys(done, 1) == once, point
        # what a crash can repeat is the one step whose checkpoint it prevented
        assert len(again) <= (0 if point.kept else 1), point


async def test_every_job_of_a_simulation_is_crashed_in_turn() -> None:
    points = crash_points(await simulate(simple, None))
    assert {point.job for point in points} == {"simple-1", "simple-1/ship"}
    assert str(points[0]) == "simple-1: before the checkpoint of first"
    assert str(points[1]) == "simple-1: after the checkpoint of first"
    assert "simple-1: at the end of an attempt (number 2)" in map(str, points)


async def test_a_workflow_that_cannot_bear_crashes_is_found() -> None:
    async def careless(ctx: Context[None]) -> int:
        do("outside of any step")
        await ctx.step.do("inside", do, "inside")
        return done["outside of any step"]

    first = await simulate(careless, None)
    assert first.output == 1
    found: list[str] = []
    for point in crash_points(first):
        done.clear()
        if (await simulate(careless, None, crash=point)).output != first.output:
            found.append(str(point))
    assert found == [
        "careless-1: before the checkpoint of inside",
        "careless-1: after the checkpoint of inside",
        "careless-1: at the end of an attempt",
    ]


async def test_a_crash_that_is_never_reached_is_an_error_that_names_what_was() -> None:
    with pytest.raises(
        SimulationError, match=r"never came to the crash after the checkpoint of chrage; .*'a day', .*'first', "
    ):
        await simulate(simple, None, crash="chrage")
    simulation = Simulation()
    simulation.crash(CrashPoint("first", job="simple-1", write=2))
    with pytest.raises(
        SimulationError, match=r"never came to the crash simple-1: after the checkpoint of first \(number 2\)"
    ):
        await simulation.run(simple, None).wait()


async def test_a_job_whose_worker_is_lost_too_often_without_progress_fails() -> None:
    simulation = Simulation()
    job = simulation.run(simple, None, max_stalled=2)
    for number in range(1, 4):
        simulation.crash(CrashPoint("first", kept=False, write=number))
    await job.finish()
    assert (job.state, done["first"]) == ("failed", 3)
    with pytest.raises(Exception, match="StalledError: its worker was lost 3 times in a row"):
        _ = job.output


async def test_progress_between_crashes_lets_a_job_go_on() -> None:
    simulation = Simulation()
    job = simulation.run(simple, None, max_stalled=1)
    for name in ("first", "second", "ship"):
        simulation.crash(name)
    assert await job.wait() == "secondcarry tea"
    assert crashes_of(job) == 3


async def test_an_event_is_not_lost_with_the_worker_that_was_taking_it() -> None:
    async def wait(ctx: Context[None]) -> list[str]:
        return [await ctx.step.wait_for_event(name, type=str) for name in ("a", "b")]

    for kept in (True, False):
        for name in ("a", "b"):
            job = await simulate(wait, None, events={"b": "2", "a": "1"}, crash=CrashPoint(name, kept=kept))
            assert job.output == ["1", "2"]


async def test_a_job_cancelled_while_its_worker_is_lost_ends_as_cancelled() -> None:
    async def wait(ctx: Context[None]) -> None:
        await ctx.step.do("cancel", cancel)

    async def cancel() -> None:
        job.cancel("enough")

    simulation = Simulation()
    simulation.crash(CrashPoint("cancel"))
    job = simulation.run(wait, None)
    await job.finish()
    assert job.state == "cancelled"
