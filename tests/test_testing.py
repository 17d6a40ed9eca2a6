"""Workflows that are run in a simulation: no server, and no time that passes."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, assert_type
from unittest.mock import Mock

import pytest

from lanner import (
    Backoff,
    ChildFailedError,
    Context,
    ContinueAsNew,
    InvalidArgumentError,
    JobCancelledError,
    JobFailedError,
    RateLimited,
    RetryAfter,
    SerializationError,
    SyncContext,
    WaitTimeoutError,
    WorkflowNamespace,
)
from lanner.errors import SimulationError
from lanner.testing import SimulatedJob, Simulation, driving, simulate
from support.shop import DAY, Order, buying, charge, send, shipping, shop


async def test_a_wait_of_a_month_takes_no_time_and_steps_run_once() -> None:
    job = await simulate(buying, Order("tea"))
    assert_type(job, SimulatedJob[str])
    assert job.output == "sent tea for 10"
    assert job.elapsed == timedelta(days=30)
    assert (job.ran, job.replayed) == (["charge", "send"], ["charge"])
    assert [attempt.end for attempt in job.attempts] == ["suspended", "completed"]
    assert set(job.checkpoints) == {"charge", "a month", "send"}


async def test_a_function_is_run_as_a_workflow_is() -> None:
    async def double(ctx: Context[int]) -> int:
        return 2 * ctx.input

    def halve(ctx: SyncContext[int]) -> float:
        ctx.step.wait("a while", DAY)
        return ctx.step.do("halve", lambda: ctx.input / 2)

    doubled, halved = await simulate(double, 21), await simulate(halve, 21)
    assert_type(doubled, SimulatedJob[int])
    assert_type(halved, SimulatedJob[float])
    assert (doubled.output, halved.output) == (42, 10.5)
    assert (doubled.workflow, halved.elapsed) == ("double", DAY)


async def test_two_functions_of_one_name_are_two_workflows() -> None:
    def maker(number: int) -> Callable[[Context[None]], Awaitable[int]]:
        async def give(ctx: Context[None]) -> int:
            return await ctx.step.do("give", lambda: number)

        return give

    simulation = Simulation()
    jobs = [simulation.run(maker(number), None) for number in range(3)]
    assert [await job.wait() for job in jobs] == [0, 1, 2]
    assert len({job.workflow for job in jobs}) == 3


def test_a_simulation_goes_on_in_another_event_loop() -> None:
    simulation = Simulation()
    job = simulation.run(buying, Order("tea"))
    asyncio.run(simulation.advance(DAY))
    assert (job.state, job.ran) == ("delayed", ["charge"])
    assert asyncio.run(job.wait()) == "sent tea for 10"


async def test_the_clock_stands_still_but_for_what_is_asked_of_it() -> None:
    start = datetime(2030, 1, 1, tzinfo=UTC)
    simulation = Simulation(start=start)
    job = simulation.run(buying, Order("tea"))
    assert (job.state, simulation.now) == ("waiting", start)
    await simulation.settle()
    assert (job.state, job.due, simulation.now) == ("delayed", start + timedelta(days=30), start)
    await simulation.advance(29 * DAY)
    assert (job.state, simulation.now) == ("delayed", start + timedelta(days=29))
    await simulation.advance(DAY)
    assert (job.state, job.due, simulation.now) == ("completed", None, start + timedelta(days=30))


async def test_short_waits_are_no_exception() -> None:
    async def blink(ctx: Context[None]) -> None:
        for number in range(100):
            await ctx.step.wait(str(number), 0.9)

    job = await simulate(blink, None)
    assert job.elapsed == timedelta(seconds=90)


async def test_branches_wait_side_by_side() -> None:
    async def branches(ctx: Context[None]) -> list[str]:
        async def branch(name: str, days: int) -> str:
            await ctx.step.wait(f"wait {name}", days * DAY)
            return await ctx.step.do(f"send {name}", send, name)

        return list(await asyncio.gather(branch("slow", 3), branch("fast", 1)))

    job = await simulate(branches, None)
    assert job.output == ["sent slow", "sent fast"]
    assert (job.ran, job.elapsed) == (["send fast", "send slow"], 3 * DAY)


async def approve(ctx: Context[None]) -> str:
    approval = await ctx.step.wait_for_event("approved", timeout=3 * DAY, type=str)
    return approval or "nobody approved"


async def test_events_are_sent_beforehand_or_when_their_time_comes_or_not() -> None:
    assert (await simulate(approve, None, events={"approved": "ada"})).output == "ada"
    assert (await simulate(approve, None)).output == "nobody approved"

    simulation = Simulation()
    job = simulation.run(approve, None)
    simulation.after(2 * DAY, lambda: job.send_event("approved", "grace"))
    assert await job.wait() == "grace"
    assert job.elapsed == 2 * DAY
    assert not job.send_event("approved", "too late")


async def test_an_event_that_a_step_sends_wakes_another_job() -> None:
    simulation = Simulation()
    waiting = simulation.run(approve, None)

    async def announce(ctx: Context[None]) -> None:
        await ctx.step.wait("a day", DAY)
        await ctx.step.do("in the loop", send_approval)

    def announce_in_thread(ctx: SyncContext[None]) -> None:
        ctx.step.wait("a day", DAY)
        ctx.step.do("in a thread", lambda: waiting.send_event("approved", threading.current_thread().name))

    async def send_approval() -> None:
        waiting.send_event("approved", "ada")

    simulation.run(announce, None)
    assert await waiting.wait() == "ada"
    waiting = simulation.run(approve, None)
    simulation.run(announce_in_thread, None)
    assert await waiting.wait() != threading.main_thread().name


async def test_an_event_sent_twice_with_one_id_counts_once() -> None:
    async def scoped(ctx: Context[None]) -> list[int | None]:
        found: list[int | None] = []
        for number in range(2):
            with ctx.step.scope(str(number)):
                found.append(await ctx.step.wait_for_event("n", timeout=DAY, type=int))
        return found

    simulation = Simulation()
    job = simulation.run(scoped, None)
    assert job.send_event("n", 1, event_id="one")
    assert job.send_event("n", 1, event_id="one")
    assert await job.wait() == [1, None]


async def test_a_job_that_nobody_can_wake_is_an_error_that_says_what_it_waits_for() -> None:
    async def parent(ctx: Context[None]) -> str:
        return await ctx.step.run("child", waiting, None)

    async def wait(ctx: Context[None]) -> str:
        return await ctx.step.wait_for_event("approved", type=str)

    waiting = WorkflowNamespace("stuck", redis="redis://nobody.invalid").create_workflow("wait", run=wait)
    above = waiting.namespace.create_workflow("parent", run=parent)
    with pytest.raises(SimulationError, match=r"'parent-1' .* can never end.* 'parent-1/child' .*waits for 'approved'"):
        await simulate(above, None)


async def test_waiting_for_a_job_has_a_limit_in_simulated_time() -> None:
    simulation = Simulation()
    job = simulation.run(buying, Order("tea"))
    with pytest.raises(WaitTimeoutError, match=r"'buying-1' .*delayed"):
        await job.wait(timeout=7 * DAY)
    assert job.elapsed == 7 * DAY
    with pytest.raises(SimulationError, match="has not ended"):
        _ = job.output
    assert await job.wait(timeout=30 * DAY) == "sent tea for 10"


async def test_a_job_that_goes_round_for_ever_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def for_ever(ctx: Context[int]) -> None:
        await ctx.step.wait("a day", DAY)
        raise ContinueAsNew(ctx.input + 1)

    monkeypatch.setattr(driving, "MOST_ATTEMPTS", 20)
    with pytest.raises(SimulationError, match="has begun 20 times and does not end"):
        await simulate(for_ever, 0)


async def test_failed_attempts_come_back_after_their_backoff_in_no_time() -> None:
    async def flaky(ctx: Context[int]) -> int:
        await ctx.step.do("charge", charge, Order("tea"))
        if ctx.attempt < ctx.input:
            raise ValueError(f"attempt {ctx.attempt}")
        return ctx.attempt

    backoff = Backoff(first=3600, factor=10, longest=timedelta(days=365))
    job = await simulate(flaky, 4, max_attempts=4, backoff=backoff)
    assert job.output == 4
    assert DAY < job.elapsed < timedelta(hours=1 + 10 + 100)
    assert [attempt.error for attempt in job.attempts] == [*(f"ValueError: attempt {n}" for n in (1, 2, 3)), ""]
    assert (job.ran, job.replayed) == (["charge"], ["charge"] * 3)

    again = await simulate(flaky, 4, max_attempts=4, backoff=backoff)
    assert again.elapsed == job.elapsed, "the jitter is the same each time"

    failed = await simulate(flaky, 4, max_attempts=3, backoff=backoff)
    assert failed.state == "failed"
    with pytest.raises(JobFailedError, match="ValueError: attempt 3") as caught:
        _ = failed.output
    assert "where it ran" in str(caught.value)


async def test_a_delay_that_is_asked_for_is_kept_to_the_second() -> None:
    async def patient(ctx: Context[None]) -> int:
        if ctx.attempt == 1:
            raise RetryAfter(DAY)
        await ctx.step.do("call", call)
        return ctx.attempt

    calls = iter([RateLimited(timedelta(hours=1)), None])

    def call() -> None:
        if error := next(calls):
            raise error

    job = await simulate(patient, None, max_attempts=2)
    assert (job.output, job.elapsed) == (2, DAY + timedelta(hours=1))
    assert [attempt.end for attempt in job.attempts] == ["retrying", "put off", "completed"]


async def test_children_run_with_their_parent() -> None:
    async def parent(ctx: Context[list[str]]) -> list[str]:
        ahead = await ctx.step.start("ahead", shipping, "0")
        mapped = await ctx.step.map("rest", shipping, ctx.input, max_concurrency=2)
        return [await ahead.wait(), *mapped]

    above = shop.create_workflow("parent", run=parent)
    job = await simulate(above, ["1", "2", "3"])
    assert job.output == ["sent 0", "sent 1", "sent 2", "sent 3"]
    assert job.elapsed == 2 * DAY, "two at once: the third waits for one of them"
    assert [child.id for child in job.children] == [
        "parent-1/ahead",
        "parent-1/rest/0",
        "parent-1/rest/1",
        "parent-1/rest/2",
    ]
    assert [each.id for each in job.simulation.jobs] == [job.id, *(child.id for child in job.children)]


async def test_a_child_that_fails_is_raised_or_collected() -> None:
    async def strict(ctx: Context[list[str]]) -> list[str]:
        return await ctx.step.map("ship", shipping, ctx.input)

    async def lenient(ctx: Context[list[str]]) -> list[str]:
        found = await ctx.step.map("ship", shipping, ctx.input, on_failure="collect")
        return [each.type if isinstance(each, ChildFailedError) else str(each) for each in found]

    raised = await simulate(shop.create_workflow("strict", run=strict), ["tea", "lead"])
    assert raised.state == "failed"
    assert "ChildFailedError" in raised.attempts[-1].error
    collected = await simulate(shop.create_workflow("lenient", run=lenient), ["tea", "lead"])
    assert collected.output == ["sent tea", "NonRetryableError"]


async def test_a_cancelled_job_undoes_what_it_did_and_cancels_its_children() -> None:
    async def saga(ctx: Context[None]) -> None:
        ctx.on_failure("refund", undo)
        ctx.on_failure("restock", undo)
        await ctx.step.do("charge", charge, Order("tea"))
        await ctx.step.run("ship", shipping, "tea")

    undo = Mock()
    simulation = Simulation()
    job = simulation.run(shop.create_workflow("saga", run=saga), None)
    await simulation.settle()
    assert job.cancel("changed their mind")
    with pytest.raises(JobCancelledError, match="changed their mind"):
        await job.wait()
    assert (job.undone, undo.call_count) == (["restock", "refund"], 2)
    assert [child.state for child in job.children] == ["cancelled"]
    assert job.cancel()
    assert not job.retry()


async def test_a_running_job_is_cancelled_where_it_is() -> None:
    cleaned = False

    async def hang(ctx: Context[None]) -> None:
        nonlocal cleaned
        try:
            await ctx.step.do("hang", asyncio.Event().wait)
        finally:
            cleaned = True

    async def stop(ctx: Context[None]) -> bool:
        return await ctx.step.do("stop", cancel)

    async def cancel() -> bool:
        return job.cancel("enough")

    simulation = Simulation()
    job = simulation.run(hang, None)
    assert await simulation.run(stop, None).wait()
    with pytest.raises(JobCancelledError, match="enough"):
        await job.wait()
    assert cleaned


async def test_a_failed_job_goes_on_from_its_checkpoints_after_a_retry_by_hand() -> None:
    async def parent(ctx: Context[None]) -> str:
        await ctx.step.do("charge", charge, Order("tea"))
        return await ctx.step.run("ship", fragile, "tea")

    async def break_once(ctx: Context[str]) -> str:
        packed = await ctx.step.do("pack", send, ctx.input)
        return f"{packed}, {await ctx.step.do('carry', carry)}"

    broken = iter([ValueError("dropped"), None])

    def carry() -> str:
        if error := next(broken):
            raise error
        return "carried"

    fragile = shop.create_workflow("fragile", run=break_once)
    job = await simulate(shop.create_workflow("retried", run=parent), None)
    assert (job.state, job.children[0].state) == ("failed", "failed")
    assert job.retry()
    assert await job.wait() == "sent tea, carried"
    assert (job.ran, job.children[0].ran) == (["charge"], ["pack", "carry", "carry"])
    assert not job.retry()


async def test_a_loop_without_end_goes_on_as_new() -> None:
    async def poll(ctx: Context[int]) -> int:
        seen = await ctx.step.do("look", lambda: ctx.input + 1)
        await ctx.step.wait("an hour", 3600)
        if seen == 5:
            return seen
        raise ContinueAsNew(seen)

    job = await simulate(poll, 0)
    assert (job.output, job.elapsed) == (5, timedelta(hours=5))
    assert [attempt.end for attempt in job.attempts] == [*(["suspended", "continued"] * 4), "suspended", "completed"]
    assert job.ran == ["look"] * 5


async def test_progress_and_log_are_kept() -> None:
    async def talk(ctx: Context[None]) -> None:
        await ctx.progress({"done": 1})
        await ctx.log("half way")
        await ctx.progress({"done": 2})

    job = await simulate(talk, None)
    assert (job.progress, job.log) == ({"done": 2}, ["half way"])


async def test_input_and_results_are_checked_as_on_a_server() -> None:
    with pytest.raises(SerializationError, match="buying"):
        await simulate(buying, "tea")  # type: ignore[misc] # pyright: ignore[reportCallIssue, reportArgumentType] - as a user may

    async def leak(ctx: Context[None]) -> Any:
        return await ctx.step.do("open", lambda: open)

    job = await simulate(leak, None)
    assert "step 'open'" in job.attempts[0].error
    with pytest.raises(InvalidArgumentError, match="retry"):
        await simulate(buying, Order("tea"), retry=3)  # type: ignore[call-overload] # pyright: ignore[reportCallIssue] - as a user may
    simulation = Simulation()
    simulation.run(buying, Order("tea"), id="x")
    with pytest.raises(InvalidArgumentError, match="a job 'x' already"):
        simulation.run(buying, Order("tea"), id="x")


async def test_an_attempt_that_takes_too_long_times_out() -> None:
    async def hang(ctx: Context[None]) -> None:
        await ctx.step.do("hang", asyncio.Event().wait)

    job = await simulate(hang, None, timeout=0.05)
    assert "TimeoutError" in job.attempts[0].error


async def test_a_simulation_that_is_awaited_twice_at_once_is_an_error() -> None:
    simulation = Simulation()
    jobs = [simulation.run(buying, Order("tea")) for _ in range(2)]
    ended = await asyncio.gather(*(job.wait() for job in jobs), return_exceptions=True)
    assert ended[0] == "sent tea for 10"
    assert isinstance(ended[1], SimulationError)


async def test_a_test_that_is_interrupted_leaves_a_simulation_that_goes_on() -> None:
    started = asyncio.Event()
    blocked = asyncio.Event()

    async def hold(ctx: Context[None]) -> str:
        return await ctx.step.do("hold", held)

    async def held() -> str:
        started.set()
        await blocked.wait()
        return "held"

    simulation = Simulation()
    job = simulation.run(hold, None)
    waiting = asyncio.create_task(job.wait())
    await started.wait()
    waiting.cancel()
    await asyncio.wait([waiting])
    assert (job.state, job.attempts[0].end) == ("waiting", "handed back")
    blocked.set()
    assert await job.wait() == "held"
