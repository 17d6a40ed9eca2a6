"""Compensations that raise, hang or are in the way: each has attempts of its own, and the others go on."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from lanner import (
    Context,
    JobCancelledError,
    JobFailedError,
    NonRetryableError,
    WorkflowNamespace,
)
from support.diary import SOON, Diary, is_in_state
from support.jobs import PATIENCE


@pytest.fixture
async def ns(redis_url: str, namespace_id: str) -> AsyncIterator[WorkflowNamespace]:
    async with WorkflowNamespace(namespace_id, redis=redis_url) as ns:
        yield ns


async def test_one_that_raises_is_tried_again(ns: WorkflowNamespace) -> None:
    diary = Diary()

    def undo() -> None:
        diary.write("tries")
        if len(diary.lines) < 4:
            raise OSError("not yet")

    async def trip(ctx: Context[None]) -> None:
        ctx.on_failure("first", diary.write, "undid first")
        ctx.on_failure("stubborn", undo)
        ctx.on_failure("last", diary.write, "undid last")
        raise ValueError("no seats")

    workflow = ns.create_workflow("trip", run=trip, backoff=SOON)
    async with ns.worker():
        with pytest.raises(JobFailedError) as failed:
            await workflow.execute(None, timeout=PATIENCE)
    assert failed.value.message == "no seats"
    assert diary.lines == ["undid last", "tries", "tries", "tries", "undid first"]


@pytest.mark.parametrize(("attempts", "tries"), [(1, 3), (5, 5)])
async def test_each_is_given_up_after_attempts_of_its_own_and_the_failure_says_so(
    ns: WorkflowNamespace, attempts: int, tries: int
) -> None:
    diary = Diary()

    def refuse(what: str) -> None:
        diary.write(what)
        raise OSError(f"{what} is closed")

    async def trip(ctx: Context[str]) -> None:
        ctx.on_failure("bank", refuse, "bank")
        ctx.on_failure("between", diary.write, "between")
        ctx.on_failure("shop", refuse, "shop")
        if ctx.input == "waits":
            await ctx.step.wait_for_event("never")
        raise NonRetryableError("no seats")

    workflow = ns.create_workflow("trip", run=trip, backoff=SOON, max_attempts=attempts)
    said = "; ".join(f"compensation {what!r} has failed: OSError: {what} is closed" for what in ("bank", "shop"))
    async with ns.worker():
        with pytest.raises(JobFailedError) as failed:
            await workflow.execute("fails", timeout=PATIENCE)
        assert (failed.value.type, failed.value.message) == ("NonRetryableError", f"no seats; {said}")
        assert diary.lines == ["shop"] * tries + ["between"] + ["bank"] * tries
        job = await workflow.run("waits")
        await is_in_state(workflow, job.id, "parked")
        await job.cancel("not needed")
        with pytest.raises(JobCancelledError) as cancelled:
            await job.wait(PATIENCE)
        assert cancelled.value.reason == f"not needed; {said}"


async def test_an_error_for_good_gives_one_up_at_once(ns: WorkflowNamespace) -> None:
    diary = Diary()

    async def refuse() -> None:
        diary.write("refused")
        raise NonRetryableError("never")

    async def trip(ctx: Context[None]) -> None:
        ctx.on_failure("bank", refuse)
        raise ValueError("no seats")

    workflow = ns.create_workflow("trip", run=trip, max_attempts=9, backoff=SOON, non_retryable=[ValueError])
    async with ns.worker():
        with pytest.raises(JobFailedError, match="no seats; compensation 'bank' has failed: NonRetryableError: never"):
            await workflow.execute(None, timeout=PATIENCE)
    assert diary.lines == ["refused"]


async def test_the_timeout_of_an_attempt_is_that_of_each_compensation(ns: WorkflowNamespace) -> None:
    diary = Diary()

    async def slow() -> None:
        diary.write("begins")
        await asyncio.sleep(2.2)  # the two of them take longer than an attempt may
        diary.write("ends")

    async def trip(ctx: Context[None]) -> None:
        ctx.on_failure("first", slow)
        ctx.on_failure("second", slow)
        raise ValueError("no seats")

    workflow = ns.create_workflow("trip", run=trip, timeout=4, backoff=SOON)
    async with ns.worker():
        with pytest.raises(JobFailedError) as failed:
            await workflow.execute(None, timeout=PATIENCE)
    assert failed.value.message == "no seats"
    assert diary.lines == ["begins", "ends"] * 2


async def test_one_that_does_not_end_is_cut_off_by_the_timeout_of_an_attempt(ns: WorkflowNamespace) -> None:
    diary = Diary()

    async def endless() -> None:
        diary.write("endless")
        await asyncio.Event().wait()

    async def trip(ctx: Context[None]) -> None:
        ctx.on_failure("first", diary.write, "undid first")
        ctx.on_failure("endless", endless)
        raise ValueError("no seats")

    workflow = ns.create_workflow("trip", run=trip, timeout=1, backoff=SOON)
    async with ns.worker():
        with pytest.raises(JobFailedError) as failed:
            await workflow.execute(None, timeout=PATIENCE)
    assert failed.value.message == "no seats; compensation 'endless' has failed: TimeoutError: "
    assert diary.lines == ["endless"] * 3 + ["undid first"]


async def test_a_run_that_would_hang_on_the_way_to_what_it_undoes_does_not(ns: WorkflowNamespace) -> None:
    diary = Diary()

    async def trip(ctx: Context[None]) -> None:
        ctx.on_failure("flight", diary.write, "undid flight")
        await ctx.step.do("flight", diary.write, "flight")
        ctx.on_failure("hotel", diary.write, "undid hotel")
        await ctx.step.do("hotel", diary.write, "hotel")
        await asyncio.Event().wait()

    workflow = ns.create_workflow("trip", run=trip, timeout=2)  # in which it comes to where it hangs
    async with ns.worker():
        with pytest.raises(JobFailedError, match="took longer than its timeout"):
            await workflow.execute(None, timeout=PATIENCE)
    assert diary.lines == ["flight", "hotel", "undid hotel", "undid flight"]


async def test_undoing_is_not_cut_short_by_another_cancellation(ns: WorkflowNamespace) -> None:
    diary = Diary()

    async def trip(ctx: Context[None]) -> None:
        ctx.on_failure("flight", diary.hold, "undoes flight")
        raise ValueError("no seats")

    workflow = ns.create_workflow("trip", run=trip)
    async with ns.worker():
        job = await workflow.run(None)
        await diary.says("undoes flight")
        assert not await job.cancel(), "it will end as failed"
        diary.gate.set()
        with pytest.raises(JobFailedError, match="no seats"):
            await job.wait(PATIENCE)
    assert diary.lines == ["undoes flight"]
