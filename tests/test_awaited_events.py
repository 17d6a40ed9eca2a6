import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from lanner.errors import EventTimeoutError, InvalidArgumentError
from lanner.queue.claim import EndReason
from lanner.queue.outcome import Failed, Released, Retry, Suspended
from lanner.workflow import serializer
from lanner.workflow.context import Context
from lanner.workflow.threads import Threads
from support.runs import MemoryJob, completed, plain_threads
from support.waiting import wait_until

HOUR = 3600


@pytest.fixture
def threads() -> Iterator[Threads]:
    with plain_threads() as threads:
        yield threads


async def approved(ctx: Context[Any]) -> Any:
    return await ctx.step.wait_for_event("approved")


async def approved_in_an_hour(ctx: Context[Any]) -> Any:
    return await ctx.step.wait_for_event("approved", timeout=timedelta(hours=1))


async def test_a_wait_for_an_event_suspends_and_an_event_brings_it_back(threads: Threads) -> None:
    job = MemoryJob(approved, threads=threads)
    assert await job.attempt() == Suspended(None, ("approved",))
    job.send("approved", {"by": "Ada"})
    assert await job.attempt() == completed({"by": "Ada"})


async def test_an_event_sent_before_it_is_awaited_is_kept(threads: Threads) -> None:
    job = MemoryJob(approved, threads=threads)
    job.send("other", 1)
    job.send("approved", 2)
    assert await job.attempt() == completed(2)
    assert list(job.record.events) == [("other", serializer.dumps(1))]


async def test_an_event_reaches_a_running_job(threads: Threads) -> None:
    async def workflow(ctx: Context[None]) -> Any:
        async def busy() -> None:
            await asyncio.sleep(0.2)
            job.send("approved", "yes")
            await asyncio.sleep(0.2)

        both = await asyncio.gather(ctx.step.wait_for_event("approved"), ctx.step.do("busy", busy))
        return both[0]

    job = MemoryJob(workflow, threads=threads)
    assert await job.attempt() == completed("yes")


async def test_an_event_that_arrives_while_it_is_looked_for_is_not_missed(threads: Threads) -> None:
    """The look has found nothing, and its answer is on its way when the event arrives."""
    job = MemoryJob(approved, threads=threads)
    running = job.begin()
    take = job.journal.take_event
    answers: list[str | None] = []

    async def slow(name: str, path: str, otherwise: str = "") -> str | None:
        answer = await take(name, path, otherwise)
        answers.append(answer)
        if len(answers) == 1:
            job.send("approved", "in between")
        return answer

    job.journal.take_event = slow  # type: ignore[method-assign] # one journal of one test is held up
    assert await running == completed("in between")
    assert answers == [None, serializer.dumps("in between")]


async def test_events_of_one_name_come_in_order(threads: Threads) -> None:
    async def workflow(ctx: Context[None]) -> list[Any]:
        got: list[Any] = []
        for number in range(3):
            with ctx.step.scope(str(number)):
                got.append(await ctx.step.wait_for_event("message"))
        return got

    job = MemoryJob(workflow, threads=threads)
    job.claim()
    job.send("message", "first")
    job.send("message", "second")
    assert await job.attempt() == Suspended(None, ("message",))
    job.send("message", "third")
    assert await job.attempt() == completed(["first", "second", "third"])


async def test_an_event_that_was_taken_is_replayed(threads: Threads) -> None:
    async def workflow(ctx: Context[None]) -> list[Any]:
        got = await ctx.step.wait_for_event("approved")
        if ctx.attempt == 1:
            raise OSError
        return [got]

    job = MemoryJob(workflow, threads=threads)
    job.claim()
    job.send("approved", None)
    assert isinstance(await job.attempt(), Retry)
    assert await job.attempt() == completed([None])


async def test_waits_for_several_events_suspend_for_all_of_them(threads: Threads) -> None:
    async def workflow(ctx: Context[None]) -> None:
        await asyncio.gather(
            ctx.step.wait_for_event("paid"),
            ctx.step.wait_for_event("approved", timeout=HOUR),
            ctx.step.wait("a day", 24 * HOUR),
        )

    job = MemoryJob(workflow, threads=threads)
    before = job.record.now_ms()
    outcome = await job.attempt()
    assert isinstance(outcome, Suspended)
    assert outcome.events == ("approved", "paid")
    assert outcome.until_ms is not None
    assert before + HOUR * 1000 <= outcome.until_ms <= job.record.now_ms() + HOUR * 1000


async def test_no_event_in_time_gives_none(threads: Threads) -> None:
    job = MemoryJob(approved_in_an_hour, threads=threads)
    first = await job.attempt()
    assert isinstance(first, Suspended)
    job.record.move_clock(HOUR / 2)
    assert await job.attempt() == first, "the timeout counts from the first time"
    job.record.move_clock(HOUR / 2)
    assert await job.attempt() == completed(None)
    job.send("approved", "too late")
    assert await job.attempt() == completed(None), "and stays so"


async def test_no_event_in_time_raises_where_that_was_chosen(threads: Threads) -> None:
    async def workflow(ctx: Context[None]) -> list[str]:
        try:
            await ctx.step.wait_for_event("approved", timeout=HOUR, on_timeout="raise")
        except TimeoutError as caught:
            if isinstance(caught, EventTimeoutError):
                return [caught.step, caught.event, str(caught)]
        raise AssertionError

    job = MemoryJob(workflow, threads=threads)
    await job.attempt()
    job.record.move_clock(HOUR)
    said = ["approved", "approved", "step 'approved': no event 'approved' came before its timeout"]
    assert await job.attempt() == completed(said)
    assert await job.attempt() == completed(said)


async def test_a_short_timeout_is_waited_out_in_place(threads: Threads) -> None:
    async def workflow(ctx: Context[None]) -> Any:
        return await ctx.step.wait_for_event("approved", timeout=0.2)

    assert await MemoryJob(workflow, threads=threads).attempt() == completed(None)


async def test_no_timeout_at_all_looks_once(threads: Threads) -> None:
    async def workflow(ctx: Context[None]) -> Any:
        return await ctx.step.wait_for_event("approved", timeout=0)

    job = MemoryJob(workflow, threads=threads)
    assert await job.attempt() == completed(None)
    assert job.record.calls == 1


async def test_an_event_beats_a_timeout_that_was_not_written(threads: Threads) -> None:
    job = MemoryJob(approved_in_an_hour, threads=threads)
    await job.attempt()
    job.record.move_clock(2 * HOUR)
    job.send("approved", "late, and still")
    assert await job.attempt() == completed("late, and still")


async def test_an_event_is_not_lost_when_its_wait_is_cut_off(threads: Threads) -> None:
    """The wait is cancelled when the event was taken and the answer is on its way; the wait is then made again."""

    async def workflow(ctx: Context[None]) -> list[Any]:
        waiting = asyncio.create_task(ctx.step.wait_for_event("message"))
        await wait_until(lambda: "message" in job.record.steps)
        waiting.cancel()
        await asyncio.wait({waiting})
        assert waiting.cancelled()
        return [await ctx.step.wait_for_event("message"), len(job.record.events)]

    job = MemoryJob(workflow, threads=threads)
    job.send("message", 1)
    job.send("message", 2)
    running = job.begin()
    take = job.journal.take_event

    async def slow(name: str, path: str, otherwise: str = "") -> str | None:
        answer = await take(name, path, otherwise)
        await asyncio.sleep(0.05)
        return answer

    job.journal.take_event = slow  # type: ignore[method-assign] # one journal of one test is held up
    assert await running == completed([1, 1])


async def test_an_event_is_read_as_the_type_that_was_asked_for(threads: Threads) -> None:
    class Approval(msgspec.Struct):
        by: str

    async def workflow(ctx: Context[None]) -> str:
        approval = await ctx.step.wait_for_event("approved", type=Approval)
        return approval.by

    job = MemoryJob(workflow, threads=threads)
    job.send("approved", {"by": "Ada"})
    assert await job.attempt() == completed("Ada")

    job = MemoryJob(workflow, threads=threads)
    job.send("approved", {"by": 7})
    outcome = await job.attempt()
    assert isinstance(outcome, Retry)
    assert outcome.failure.message.startswith(
        "workflow 'shop', job 'job-1', step 'approved': event 'approved' cannot be read: "
    )


async def test_an_event_that_cannot_be_read_gives_its_place_to_another(
    threads: Threads, caplog: pytest.LogCaptureFixture
) -> None:
    async def workflow(ctx: Context[None]) -> int:
        return await ctx.step.wait_for_event("number", timeout=timedelta(hours=1), type=int, on_timeout="raise")

    job = MemoryJob(workflow, threads=threads)
    job.send("number", "one")
    assert isinstance(await job.attempt(), Retry)
    outcome = await job.attempt()
    assert isinstance(outcome, Suspended)
    assert outcome.events == ("number",)
    assert "step 'number': event 'number' cannot be read" in caplog.text
    assert "it waits for another one" in caplog.text
    job.send("number", "two")
    assert isinstance(await job.attempt(), Retry)
    job.send("number", 3)
    job.send("number", 4)
    assert await job.attempt() == completed(3)
    assert list(job.record.events) == [("number", serializer.dumps(4))]


async def test_an_event_that_can_be_read_when_the_workflow_was_mended_is_the_one(threads: Threads) -> None:
    type_of_number: Any = int

    async def workflow(ctx: Context[None]) -> Any:
        return await ctx.step.wait_for_event("number", type=type_of_number)

    job = MemoryJob(workflow, threads=threads)
    job.send("number", "one")
    assert isinstance(await job.attempt(), Retry)
    type_of_number = str
    job.send("number", "two")
    assert await job.attempt() == completed("one")


async def test_an_event_that_was_read_before_is_never_given_up(threads: Threads) -> None:
    type_of_number: Any = int
    mended = False

    async def workflow(ctx: Context[None]) -> Any:
        number = await ctx.step.wait_for_event("number", type=type_of_number)
        if not mended:
            raise ValueError("not yet")
        return number

    job = MemoryJob(workflow, threads=threads)
    job.send("number", 1)
    assert isinstance(await job.attempt(), Retry)
    type_of_number = str
    for _ in range(2):
        outcome = await job.attempt()
        assert isinstance(outcome, Retry | Failed)
        assert "event 'number' cannot be read" in outcome.failure.message
    type_of_number, mended = int, True
    job.send("number", 2)
    assert await job.attempt() == completed(1)


async def test_an_event_is_not_taken_by_a_claim_that_is_lost(threads: Threads) -> None:
    job = MemoryJob(approved, threads=threads)
    run = job.claim()
    job.send("approved", "for the one who holds it")
    job.record.take_over()
    assert await run.execute() == Released()
    assert run.ended is EndReason.LOST
    assert await job.attempt() == completed("for the one who holds it")


@pytest.mark.parametrize("bad", [-1, float("nan"), "soon"])
async def test_a_bad_timeout_is_an_error(threads: Threads, bad: Any) -> None:
    async def workflow(ctx: Context[None]) -> None:
        with pytest.raises(InvalidArgumentError, match="timeout must be"):
            await ctx.step.wait_for_event("approved", timeout=bad)

    job = MemoryJob(workflow, threads=threads)
    assert await job.attempt() == completed(None)
    assert job.record.calls == 0


async def test_a_bad_choice_for_the_timeout_is_an_error(threads: Threads) -> None:
    async def workflow(ctx: Context[None]) -> None:
        choice: Any = "None"
        with pytest.raises(InvalidArgumentError, match="on_timeout must be one of 'none', 'raise'"):
            await ctx.step.wait_for_event("approved", timeout=1, on_timeout=choice)

    assert await MemoryJob(workflow, threads=threads).attempt() == completed(None)
