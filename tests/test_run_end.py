import asyncio
import gc
import logging
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from typing import Any

import anyio
import pytest

from lanner.queue.claim import EndReason
from lanner.queue.outcome import Cancelled, Outcome, Released, Retry
from lanner.workflow.context import Context
from lanner.workflow.threads import Threads
from support.runs import MemoryJob, completed, plain_threads
from support.waiting import wait_until

HOUR = 3600


@pytest.fixture
def threads() -> Iterator[Threads]:
    with plain_threads() as threads:
        yield threads


class Busy:
    """A step that goes on until it is cut off, and what happened around it."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.seen: list[str] = []

    async def step(self) -> str:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.seen.append("step cut")
        raise AssertionError

    async def note(self, what: str) -> str:
        self.seen.append(what)
        return what


def assert_ended(outcome: Outcome, reason: EndReason) -> None:
    match reason:
        case EndReason.CANCELLED:
            assert outcome == Cancelled("not wanted any more")
        case EndReason.SHUTDOWN | EndReason.LOST:
            assert outcome == Released()
        case EndReason.TIMEOUT:
            assert isinstance(outcome, Retry)
            assert outcome.failure.type == "TimeoutError"
            assert outcome.failure.message.startswith("the attempt took longer than its timeout, 1.5 s")


def end(job: MemoryJob, reason: EndReason) -> None:
    job.run.end(reason, "not wanted any more" if reason is EndReason.CANCELLED else "")


every_reason = pytest.mark.parametrize("reason", list(EndReason))


@every_reason
async def test_a_run_that_is_ended_is_cut_where_it_awaits_and_cleans_up(threads: Threads, reason: EndReason) -> None:
    busy = Busy()

    async def workflow(ctx: Context[None]) -> None:
        try:
            await ctx.step.do("busy", busy.step)
        finally:
            await asyncio.sleep(0.01)
            await busy.note("cleaned up")

    job = MemoryJob(workflow, threads=threads)
    running = job.begin()
    await busy.begun.wait()
    end(job, reason)
    assert_ended(await running, reason)
    assert busy.seen == ["step cut", "cleaned up"]
    assert job.run.ended is reason
    assert job.record.steps == {}


@every_reason
async def test_steps_of_a_run_that_was_ended_write_nothing(threads: Threads, reason: EndReason) -> None:
    busy = Busy()

    async def swallows() -> str:
        try:
            await busy.step()
        except asyncio.CancelledError:
            return "a result all the same"
        raise AssertionError

    async def workflow(ctx: Context[None]) -> None:
        try:
            await ctx.step.do("swallows", swallows)
        finally:
            try:
                await ctx.step.do("clean up", busy.note, "never")
            finally:
                await ctx.step.wait_for_event("never")

    job = MemoryJob(workflow, threads=threads)
    job.send("never", 1)
    running = job.begin()
    await busy.begun.wait()
    end(job, reason)
    assert_ended(await running, reason)
    assert busy.seen == ["step cut"]
    assert job.record.writes == []
    assert len(job.record.events) == 1


@every_reason
async def test_a_run_that_swallows_its_end_still_ends_for_that_reason(threads: Threads, reason: EndReason) -> None:
    busy = Busy()

    async def workflow(ctx: Context[None]) -> str:
        try:
            await ctx.step.do("busy", busy.step)
        except BaseException:  # noqa: BLE001 - what a user may write
            return "as if nothing had happened"
        raise AssertionError

    job = MemoryJob(workflow, threads=threads)
    running = job.begin()
    await busy.begun.wait()
    end(job, reason)
    assert_ended(await running, reason)


async def test_a_timeout_says_which_steps_were_not_over(threads: Threads) -> None:
    busy = Busy()

    async def workflow(ctx: Context[None]) -> None:
        with ctx.step.scope("orders"):
            await asyncio.gather(ctx.step.do("ship", busy.step), ctx.step.wait("long", HOUR))

    job = MemoryJob(workflow, threads=threads)
    running = job.begin()
    await busy.begun.wait()
    end(job, EndReason.TIMEOUT)
    outcome = await running
    assert isinstance(outcome, Retry)
    assert outcome.failure.message.endswith("; steps that were not over: 'orders/long', 'orders/ship'")


async def test_the_first_reason_counts(threads: Threads) -> None:
    busy = Busy()

    async def workflow(ctx: Context[None]) -> None:
        await ctx.step.do("busy", busy.step)

    job = MemoryJob(workflow, threads=threads)
    running = job.begin()
    await busy.begun.wait()
    end(job, EndReason.CANCELLED)
    end(job, EndReason.SHUTDOWN)
    assert_ended(await running, EndReason.CANCELLED)


async def test_ending_a_run_that_is_over_changes_nothing(threads: Threads) -> None:
    async def workflow(_: Context[None]) -> str:
        return "done"

    job = MemoryJob(workflow, threads=threads)
    running = job.begin()
    await wait_until(running.done)
    end(job, EndReason.CANCELLED)
    assert running.result() == completed("done")
    assert job.run.ended is None


@every_reason
async def test_a_run_that_is_ended_before_it_starts_does_not_start(threads: Threads, reason: EndReason) -> None:
    busy = Busy()

    async def workflow(_: Context[None]) -> None:
        await busy.note("ran")

    job = MemoryJob(workflow, threads=threads)
    run = job.claim()
    end(job, reason)
    assert_ended(await run.execute(), reason)

    told = job.start()
    end(job, reason)
    assert_ended(await told.outcome, reason)
    assert busy.seen == []


async def test_a_checkpoint_of_a_lost_claim_is_refused_and_ends_the_run(threads: Threads) -> None:
    busy = Busy()

    async def workflow(ctx: Context[None]) -> None:
        await ctx.step.do("first", busy.note, "first")
        job.record.take_over()
        try:
            await ctx.step.do("second", busy.note, "second")
        finally:
            await asyncio.sleep(0.01)
            await busy.note("cleaned up")

    job = MemoryJob(workflow, threads=threads)
    assert await job.attempt() == Released()
    assert job.run.ended is EndReason.LOST
    assert set(job.record.steps) == {"first"}
    assert busy.seen == ["first", "second", "cleaned up"]


async def test_a_lost_claim_ends_the_other_branches_too(threads: Threads) -> None:
    busy = Busy()

    async def lose() -> None:
        await busy.begun.wait()
        job.record.take_over()

    async def workflow(ctx: Context[None]) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(ctx.step.do("busy", busy.step))
            group.create_task(ctx.step.do("lose", lose))

    job = MemoryJob(workflow, threads=threads)
    assert await job.attempt() == Released()
    assert busy.seen == ["step cut"]


async def in_gather(*branches: Coroutine[Any, Any, object]) -> None:
    await asyncio.gather(*branches)


async def in_task_groups(*branches: Coroutine[Any, Any, object]) -> None:
    """Each branch in a group of its own, four deep."""

    async def inside(branch: Coroutine[Any, Any, object], depth: int) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(inside(branch, depth - 1) if depth else branch)

    async with asyncio.TaskGroup() as group:
        for branch in branches:
            group.create_task(inside(branch, 3))


async def in_tasks_that_nobody_cancels(*branches: Coroutine[Any, Any, object]) -> None:
    tasks = {asyncio.create_task(branch) for branch in branches}
    await asyncio.wait(tasks)


@pytest.mark.parametrize("together", [in_gather, in_task_groups, in_tasks_that_nobody_cancels])
@every_reason
async def test_every_branch_cleans_up_to_its_end(
    threads: Threads,
    together: Callable[..., Coroutine[Any, Any, None]],
    reason: EndReason,
    caplog: pytest.LogCaptureFixture,
) -> None:
    begun: list[str] = []
    seen: list[str] = []

    async def step(name: str) -> None:
        begun.append(name)
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(10):
                await asyncio.sleep(0)
            seen.append(name)

    async def workflow(ctx: Context[None]) -> None:
        await together(*(ctx.step.do(name, step, name) for name in "abc"))

    job = MemoryJob(workflow, threads=threads)
    running = job.begin()
    await wait_until(lambda: len(begun) == 3)
    end(job, reason)
    assert_ended(await running, reason)
    assert sorted(seen) == ["a", "b", "c"]
    assert caplog.messages == [], "none of them had to be told twice"


@every_reason
async def test_an_anyio_task_group_ends_with_its_run(threads: Threads, reason: EndReason) -> None:
    busy = Busy()

    async def workflow(ctx: Context[None]) -> None:
        async def branch(name: str) -> None:
            await ctx.step.do(name, busy.step)

        async with anyio.create_task_group() as group:
            group.start_soon(branch, "a")
            group.start_soon(branch, "b")

    job = MemoryJob(workflow, threads=threads)
    running = job.begin()
    await busy.begun.wait()
    end(job, reason)
    assert_ended(await running, reason)
    assert busy.seen == ["step cut", "step cut"]


async def test_a_run_that_does_not_stop_is_left_behind_and_can_do_no_harm(
    threads: Threads, caplog: pytest.LogCaptureFixture
) -> None:
    stop = asyncio.Event()
    refused: list[str] = []
    busy = Busy()

    async def workflow(ctx: Context[None]) -> None:
        busy.begun.set()
        while not stop.is_set():
            try:
                await stop.wait()
                await ctx.step.do("late", busy.note, "late")
            except asyncio.CancelledError as caught:
                refused.append(str(caught))

    job = MemoryJob(workflow, threads=threads, end_timeout=0.1)
    running = job.begin()
    await busy.begun.wait()
    end(job, EndReason.CANCELLED)
    with caplog.at_level(logging.WARNING):
        assert_ended(await running, EndReason.CANCELLED)
    assert [record.levelname for record in caplog.records] == ["WARNING", "ERROR"]
    assert "still goes on after 0.1 s; it is cancelled again" in caplog.messages[0]
    assert "workflow 'shop', job 'job-1': the run was ended and does not stop" in caplog.messages[1]
    stop.set()
    await wait_until(lambda: len(refused) == 3)
    assert refused[-1] == "the run has ended: cancelled"
    assert busy.seen == []
    assert job.record.writes == []


async def test_a_run_that_tries_again_and_again_does_not_block_the_loop(threads: Threads) -> None:
    busy = Busy()
    tries: list[int] = []

    async def workflow(ctx: Context[None]) -> None:
        while len(tries) < 10_000 and "give up" not in busy.seen:
            with suppress(asyncio.CancelledError):
                tries.append(len(tries))
                await ctx.step.do("busy", busy.step)

    job = MemoryJob(workflow, threads=threads)
    running = job.begin()
    await busy.begun.wait()
    end(job, EndReason.SHUTDOWN)
    await wait_until(lambda: len(tries) > 2)
    await asyncio.sleep(0.1)
    busy.seen.append("give up")
    assert_ended(await running, EndReason.SHUTDOWN)
    assert 2 < len(tries) < 1_000


async def test_who_waits_for_a_run_and_is_cancelled_ends_it(threads: Threads) -> None:
    busy = Busy()

    async def workflow(ctx: Context[None]) -> None:
        try:
            await ctx.step.do("busy", busy.step)
        finally:
            await asyncio.sleep(0.01)
            await busy.note("cleaned up")

    job = MemoryJob(workflow, threads=threads)
    running = job.begin()
    await busy.begun.wait()
    running.cancel()
    await asyncio.wait({running})
    assert running.cancelled()
    assert busy.seen == ["step cut", "cleaned up"]
    assert job.run.ended is EndReason.SHUTDOWN


async def test_a_run_whose_outcome_nobody_awaits_can_be_ended(threads: Threads) -> None:
    busy = Busy()

    async def workflow(ctx: Context[None]) -> None:
        await ctx.step.do("busy", busy.step)

    job = MemoryJob(workflow, threads=threads)
    job.claim().start()
    await busy.begun.wait()
    end(job, EndReason.SHUTDOWN)
    await wait_until(lambda: busy.seen == ["step cut"])
    assert job.run.ended is EndReason.SHUTDOWN


async def test_an_end_while_left_over_steps_are_awaited_cuts_them(threads: Threads) -> None:
    busy = Busy()
    left: list[asyncio.Task[str]] = []

    async def workflow(ctx: Context[None]) -> str:
        left.append(asyncio.create_task(ctx.step.do("busy", busy.step)))
        await busy.begun.wait()
        return "returned"

    job = MemoryJob(workflow, threads=threads)
    running = job.begin()
    await busy.begun.wait()
    await asyncio.sleep(0.01)
    assert not running.done()
    end(job, EndReason.SHUTDOWN)
    assert_ended(await running, EndReason.SHUTDOWN)
    assert busy.seen == ["step cut"]


async def test_an_event_that_arrives_when_the_run_has_ended_is_not_taken(threads: Threads) -> None:
    async def workflow(ctx: Context[None]) -> None:
        await in_tasks_that_nobody_cancels(ctx.step.wait_for_event("approved", timeout=HOUR))

    job = MemoryJob(workflow, threads=threads, in_place_ms=2 * HOUR * 1000)
    running = job.begin()
    await wait_until(lambda: job.record.steps)
    end(job, EndReason.SHUTDOWN)
    job.send("approved", 1)
    assert_ended(await running, EndReason.SHUTDOWN)
    assert len(job.record.events) == 1
    assert len(job.record.writes) == 1


async def test_a_loop_that_is_torn_down_leaves_no_run_without_an_outcome(threads: Threads) -> None:
    async def workflow(ctx: Context[None]) -> None:
        await ctx.step.wait("long", HOUR)

    others = asyncio.all_tasks()
    told = MemoryJob(workflow, threads=threads).start()
    for task in asyncio.all_tasks() - others:
        task.cancel()  # before its first step
    assert isinstance(await told.outcome, Retry)


async def test_an_error_while_cleaning_up_is_logged_and_changes_nothing(
    threads: Threads, caplog: pytest.LogCaptureFixture
) -> None:
    busy = Busy()

    async def workflow(ctx: Context[None]) -> None:
        try:
            await ctx.step.do("busy", busy.step)
        finally:
            raise OSError("cannot clean up")

    job = MemoryJob(workflow, threads=threads)
    running = job.begin()
    await busy.begun.wait()
    end(job, EndReason.CANCELLED)
    with caplog.at_level(logging.WARNING):
        assert_ended(await running, EndReason.CANCELLED)
    assert caplog.messages == ["workflow 'shop', job 'job-1': the run raised while it was being ended"]
    assert caplog.records[0].exc_text is not None
    assert "OSError: cannot clean up" in caplog.records[0].exc_text


async def test_a_run_that_is_over_leaves_no_garbage(threads: Threads) -> None:
    async def step(n: int) -> int:
        return n

    async def workflow(ctx: Context[None]) -> None:
        for n in range(3):
            await ctx.step.do(str(n), step, n)

    async def runs(times: int) -> None:
        for _ in range(times):
            await MemoryJob(workflow, threads=threads).attempt()

    await runs(5)
    gc.collect()
    gc.disable()
    try:
        await runs(500)
        assert gc.collect() < 500  # not one object a run; other tests of the process leave some of their own
    finally:
        gc.enable()
