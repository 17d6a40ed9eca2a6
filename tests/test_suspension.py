import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest

from lanner.errors import InvalidArgumentError
from lanner.queue.outcome import Failed, Outcome, Suspended
from lanner.workflow.context import Context
from lanner.workflow.threads import Threads
from support.runs import MemoryJob, completed, plain_threads
from support.waiting import wait_until

HOUR = 3600


@pytest.fixture
def threads() -> Iterator[Threads]:
    with plain_threads() as threads:
        yield threads


class Trace:
    """What the steps of a workflow did, in order."""

    def __init__(self) -> None:
        self.done: list[str] = []

    async def note(self, name: str, after: float = 0) -> str:
        await asyncio.sleep(after)
        self.done.append(name)
        return name


def until_of(outcome: Outcome) -> int:
    assert isinstance(outcome, Suspended)
    assert outcome.until_ms is not None
    return outcome.until_ms


async def test_a_wait_suspends_the_job_and_goes_on_after_its_instant(threads: Threads) -> None:
    trace = Trace()

    async def workflow(ctx: Context[None]) -> list[str]:
        await ctx.step.do("before", trace.note, "before")
        await ctx.step.wait("a while", timedelta(hours=1))
        await ctx.step.do("after", trace.note, f"after, in attempt {ctx.attempt}")
        return trace.done

    job = MemoryJob(workflow, threads=threads)
    begun = job.record.now_ms()
    until = until_of(await job.attempt())
    assert begun + HOUR * 1000 <= until <= job.record.now_ms() + HOUR * 1000
    assert trace.done == ["before"]
    job.record.move_clock(HOUR)
    assert await job.attempt() == completed(["before", "after, in attempt 1"])


async def test_the_instant_of_a_wait_is_fixed_the_first_time(threads: Threads) -> None:
    async def workflow(ctx: Context[None]) -> None:
        await ctx.step.wait("a while", HOUR)

    async def edited(ctx: Context[None]) -> None:
        await ctx.step.wait("a while", 2 * HOUR)

    job = MemoryJob(workflow, threads=threads)
    first = until_of(await job.attempt())
    job.record.move_clock(HOUR / 2)
    assert until_of(await job.attempt()) == first  # a worker died, say, and another took over
    assert until_of(await job.attempt(edited)) == first
    job.record.move_clock(HOUR / 2)
    assert await job.attempt() == completed(None)
    assert len(job.record.writes) == 1


async def test_a_wait_until_an_instant_suspends_until_it(threads: Threads) -> None:
    opening = datetime.now(UTC).replace(microsecond=0) + timedelta(days=365)

    async def workflow(ctx: Context[None]) -> None:
        await ctx.step.wait_until("opening", opening)

    job = MemoryJob(workflow, threads=threads)
    assert await job.attempt() == Suspended(int(opening.timestamp()) * 1000)
    job.record.move_clock(366 * 24 * HOUR)
    assert await job.attempt() == completed(None)


async def test_a_wait_that_is_over_is_no_wait(threads: Threads) -> None:
    async def workflow(ctx: Context[None]) -> None:
        await ctx.step.wait("nothing", 0)
        await ctx.step.wait_until("the past", datetime(2020, 1, 1, tzinfo=UTC))

    assert await MemoryJob(workflow, threads=threads).attempt() == completed(None)


async def test_a_short_wait_is_slept_through_in_place(threads: Threads) -> None:
    async def workflow(ctx: Context[None]) -> bool:
        begun = job.journal.now_ms()
        await ctx.step.wait("a moment", 0.3)
        return job.journal.now_ms() >= begun + 300

    job = MemoryJob(workflow, threads=threads)
    assert await job.attempt() == completed(value=True)


async def test_a_short_wait_keeps_a_long_one_from_suspending(threads: Threads) -> None:
    async def workflow(ctx: Context[None]) -> None:
        async def short() -> None:
            await ctx.step.wait("short", 0.3)
            await ctx.step.do("after short", Trace().note, "x")

        await asyncio.gather(ctx.step.wait("long", HOUR), short())

    job = MemoryJob(workflow, threads=threads)
    until_of(await job.attempt())
    assert "after short" in job.record.steps


async def in_gather(*branches: Awaitable[object]) -> None:
    await asyncio.gather(*branches)


async def in_task_group(*branches: Awaitable[object]) -> None:
    async def run(branch: Awaitable[object]) -> None:
        await branch

    async with asyncio.TaskGroup() as group:
        for branch in branches:
            group.create_task(run(branch))


async def in_anyio_group(*branches: Awaitable[object]) -> None:
    async def run(branch: Awaitable[object]) -> None:
        await branch

    async with anyio.create_task_group() as group:
        for branch in branches:
            group.start_soon(run, branch)


together = pytest.mark.parametrize("together", [in_gather, in_task_group, in_anyio_group])
Together = Callable[..., Awaitable[None]]


@together
async def test_a_wait_never_delays_what_another_branch_has_left_to_run(threads: Threads, together: Together) -> None:
    trace = Trace()

    async def workflow(ctx: Context[None]) -> list[str]:
        async def waits() -> None:
            await ctx.step.wait("long", HOUR)
            await ctx.step.do("last", trace.note, "last")

        async def works() -> None:
            for number in range(3):
                await ctx.step.do(f"work {number}", trace.note, f"work {number}", 0.1)

        await together(waits(), works())
        return trace.done

    job = MemoryJob(workflow, threads=threads)
    until_of(await job.attempt())
    assert trace.done == ["work 0", "work 1", "work 2"]
    job.record.move_clock(HOUR)
    assert await job.attempt() == completed(["work 0", "work 1", "work 2", "last"])


@together
async def test_parallel_waits_suspend_until_the_first_of_them(threads: Threads, together: Together) -> None:
    trace = Trace()

    async def workflow(ctx: Context[None]) -> list[str]:
        async def branch(hours: int) -> None:
            await ctx.step.wait(f"{hours} h", hours * HOUR)
            await ctx.step.do(f"after {hours} h", trace.note, f"{hours} h")

        await together(branch(3), branch(1), branch(2))
        return trace.done

    job = MemoryJob(workflow, threads=threads)
    begun = job.record.now_ms()
    for hours in (1, 2, 3):
        assert round((until_of(await job.attempt()) - begun) / 1000 / HOUR) == hours
        job.record.move_clock(HOUR)
    assert await job.attempt() == completed(["1 h", "2 h", "3 h"])


async def race(ctx: Context[None], step: Callable[[], Awaitable[str]], seconds: float) -> str:
    work = asyncio.create_task(ctx.step.do("work", step))
    deadline = asyncio.create_task(ctx.step.wait("deadline", seconds))
    await asyncio.wait({work, deadline}, return_when=asyncio.FIRST_COMPLETED)
    if work.done():
        return work.result()
    work.cancel()
    return "too late"


async def test_a_wait_raced_against_work_does_not_hold_the_run_that_has_its_result(threads: Threads) -> None:
    async def step() -> str:
        await asyncio.sleep(0.2)
        return "in time"

    async def workflow(ctx: Context[None]) -> str:
        return await race(ctx, step, HOUR)

    assert await MemoryJob(workflow, threads=threads).attempt() == completed("in time")


async def test_a_short_wait_that_nobody_awaits_is_not_slept_through(threads: Threads) -> None:
    left: list[asyncio.Task[None]] = []

    async def workflow(ctx: Context[None]) -> str:
        left.append(asyncio.create_task(ctx.step.wait("a moment", 0.9)))
        return await ctx.step.do("work", Trace().note, "work")

    assert await MemoryJob(workflow, threads=threads).attempt() == completed("work")
    await asyncio.wait(left)
    assert left[0].cancelled()


async def test_a_wait_raced_against_work_ends_while_the_work_still_runs(threads: Threads) -> None:
    begun = asyncio.Event()

    async def step() -> str:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def workflow(ctx: Context[None]) -> str:
        return await race(ctx, step, 1.2)

    assert await MemoryJob(workflow, threads=threads).attempt() == completed("too late")
    assert begun.is_set()


async def test_a_wait_raced_against_a_wait_suspends_and_the_first_wins(threads: Threads) -> None:
    async def workflow(ctx: Context[None]) -> str:
        waits = {
            asyncio.create_task(ctx.step.wait("long", 5 * HOUR), name="long"),
            asyncio.create_task(ctx.step.wait("short", HOUR), name="short"),
        }
        done, left = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for task in left:
            task.cancel()
        return done.pop().get_name()

    job = MemoryJob(workflow, threads=threads)
    until_of(await job.attempt())
    job.record.move_clock(HOUR)
    assert await job.attempt() == completed("short")


async def test_a_wait_inside_a_step_suspends_the_step(threads: Threads) -> None:
    trace = Trace()

    async def workflow(ctx: Context[None]) -> list[str]:
        async def outer() -> None:
            await ctx.step.do("inner", trace.note, "inner")
            await ctx.step.wait("a while", HOUR)
            await trace.note("end of outer")

        await ctx.step.do("outer", outer)
        return trace.done

    job = MemoryJob(workflow, threads=threads)
    until_of(await job.attempt())
    assert set(job.record.steps) == {"outer/inner", "outer/a while"}
    job.record.move_clock(HOUR)
    assert await job.attempt() == completed(["inner", "end of outer"])


async def test_an_outer_step_between_its_inner_steps_keeps_the_run_from_suspending(threads: Threads) -> None:
    trace = Trace()

    async def workflow(ctx: Context[None]) -> None:
        async def outer() -> None:
            for number in range(3):
                await ctx.step.do(str(number), trace.note, f"inner {number}")
                await asyncio.sleep(0.15)  # three times as long as what counts as quiet
            await trace.note("end of outer")

        await asyncio.gather(ctx.step.wait("long", HOUR), ctx.step.do("outer", outer))

    until_of(await MemoryJob(workflow, threads=threads).attempt())
    assert trace.done == ["inner 0", "inner 1", "inner 2", "end of outer"]


async def test_a_branch_between_two_steps_goes_on_to_the_next(threads: Threads) -> None:
    trace = Trace()

    async def workflow(ctx: Context[None]) -> None:
        async def works() -> None:
            for number in range(10):
                await ctx.step.do(str(number), trace.note, str(number))
                await asyncio.sleep(0.02)

        await asyncio.gather(ctx.step.wait("long", HOUR), works())

    until_of(await MemoryJob(workflow, threads=threads).attempt())
    assert len(trace.done) == 10


async def test_a_branch_that_was_held_up_by_a_blocked_loop_still_gets_its_turn(threads: Threads) -> None:
    trace = Trace()

    async def workflow(ctx: Context[None]) -> None:
        async def works() -> None:
            for number in range(5):
                await ctx.step.do(str(number), trace.note, str(number))
                time.sleep(0.2)  # noqa: ASYNC251 - blocking the loop is what this is about
                for _ in range(3):
                    await asyncio.sleep(0)

        await asyncio.gather(ctx.step.wait("long", HOUR), works())

    until_of(await MemoryJob(workflow, threads=threads).attempt())
    assert len(trace.done) == 5


async def test_what_is_awaited_outside_steps_may_be_cut_by_a_suspension(threads: Threads) -> None:
    cut: list[str] = []

    async def workflow(ctx: Context[None]) -> None:
        async def elsewhere() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                cut.append("cut")

        await asyncio.gather(ctx.step.wait("long", HOUR), elsewhere())

    until_of(await MemoryJob(workflow, threads=threads).attempt())
    assert cut == ["cut"]


async def test_clean_up_runs_on_suspension_without_durable_effects(threads: Threads) -> None:
    trace = Trace()

    async def workflow(ctx: Context[None]) -> None:
        try:
            await ctx.step.wait("long", HOUR)
        finally:
            await trace.note("cleaned up")
            await ctx.step.do("too late", trace.note, "never")

    job = MemoryJob(workflow, threads=threads)
    until_of(await job.attempt())
    assert trace.done == ["cleaned up"]
    assert set(job.record.steps) == {"long"}


async def test_a_run_that_swallows_its_suspension_is_suspended_all_the_same(threads: Threads) -> None:
    trace = Trace()

    async def workflow(ctx: Context[None]) -> str:
        for number in range(3):
            try:
                await ctx.step.wait("long", HOUR)
                await ctx.step.do(str(number), trace.note, str(number))
            except BaseException:  # noqa: BLE001, S112 - what a user may write
                continue
        return "got through"

    job = MemoryJob(workflow, threads=threads)
    until_of(await job.attempt())
    assert trace.done == []
    assert set(job.record.steps) == {"long"}


async def test_steps_of_a_run_that_has_returned_do_not_wait_for_ever(threads: Threads) -> None:
    async def workflow(ctx: Context[None]) -> str:
        async def outer() -> None:
            await ctx.step.wait("long", HOUR)

        left = asyncio.create_task(ctx.step.do("outer", outer))
        await asyncio.sleep(0)
        return left.get_name()[:4]

    job = MemoryJob(workflow, threads=threads)
    assert await job.attempt() == completed("Task")
    assert "outer" not in job.record.steps


@pytest.mark.parametrize("duration", [-1, float("nan"), float("inf"), True, "1h", None, timedelta(seconds=-1)])
async def test_a_bad_duration_is_an_error_and_nothing_is_written(threads: Threads, duration: Any) -> None:
    async def workflow(ctx: Context[None]) -> None:
        with pytest.raises(InvalidArgumentError, match="duration must be"):
            await ctx.step.wait("a while", duration)

    job = MemoryJob(workflow, threads=threads)
    assert await job.attempt() == completed(None)
    assert job.record.calls == 0


async def test_a_naive_instant_is_an_error(threads: Threads) -> None:
    async def workflow(ctx: Context[None]) -> None:
        await ctx.step.wait_until("opening", datetime(2040, 1, 1))  # noqa: DTZ001 - a naive one is what this is about

    outcome = await MemoryJob(workflow, threads=threads, max_attempts=1).attempt()
    assert isinstance(outcome, Failed)
    assert "has no time zone" in outcome.failure.message


async def test_a_long_wait_is_over_in_place_while_other_steps_still_run(threads: Threads) -> None:
    trace = Trace()

    async def work() -> None:
        await wait_until(lambda: trace.done)
        await trace.note("work")

    async def workflow(ctx: Context[None]) -> list[str]:
        async def waits() -> None:
            await ctx.step.wait("long", 1.3)
            await ctx.step.do("after", trace.note, "after the wait")

        await asyncio.gather(waits(), ctx.step.do("work", work))
        return trace.done

    assert await MemoryJob(workflow, threads=threads).attempt() == completed(["after the wait", "work"])
