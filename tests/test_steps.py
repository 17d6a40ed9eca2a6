import asyncio
import dataclasses
import enum
import itertools
import logging
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, cast

import anyio
import pytest

from lanner.errors import NonRetryableError, StepFailedError
from lanner.queue.claim import EndReason
from lanner.queue.outcome import Failed, Released, Retry
from lanner.workflow import serializer
from lanner.workflow.context import Context
from lanner.workflow.threads import Threads
from support.runs import Counted, MemoryJob, completed, failure_of, plain_threads
from support.waiting import wait_until


@pytest.fixture
def threads() -> Iterator[Threads]:
    with plain_threads() as threads:
        yield threads


async def kept_of(job: MemoryJob, name: str) -> str:
    """The checkpoint of a step, once it is there."""
    return await wait_until(lambda: job.record.steps.get(name, ""))


async def test_finished_steps_do_not_run_again(threads: Threads) -> None:
    counted = Counted()

    async def workflow(ctx: Context[int]) -> list[object]:
        stock = await ctx.step.do("reserve", counted.of, "reserve", {"items": ctx.input})
        paid = await ctx.step.do("charge", counted.of, "charge", result=12.5)
        if ctx.attempt == 1:
            raise OSError("the carrier is away")
        return [stock, paid, await ctx.step.do("ship", counted.of, "ship", "sent")]

    job = MemoryJob(workflow, 3, threads=threads)
    assert failure_of(await job.attempt()) == "OSError: the carrier is away"
    assert await job.attempt() == completed([{"items": 3}, 12.5, "sent"])
    assert counted.runs == {"reserve": 1, "charge": 1, "ship": 1}


async def test_a_first_attempt_makes_one_call_a_step(threads: Threads) -> None:
    async def workflow(ctx: Context[None]) -> None:
        for number in range(5):
            await ctx.step.do(f"step {number}", Counted().of, "x")

    job = MemoryJob(workflow, threads=threads)
    await job.attempt()
    assert job.record.calls == 5


@pytest.mark.parametrize("value", [None, False, 0, 0.0, "", [], {}])
async def test_empty_results_are_checkpoints_like_others(threads: Threads, value: object) -> None:
    counted = Counted()

    async def workflow(ctx: Context[None]) -> object:
        got = await ctx.step.do("look", counted.of, "look", value)
        if ctx.attempt == 1:
            raise OSError
        return [got, counted.runs["look"]]

    job = MemoryJob(workflow, threads=threads)
    await job.attempt()
    assert await job.attempt() == completed([value, 1])


class Size(enum.Enum):
    SMALL = "s"


@dataclasses.dataclass(frozen=True)
class Parcel:
    size: Size
    price: Decimal
    posted: datetime
    tags: tuple[str, ...] = ()


PARCEL = Parcel(Size.SMALL, Decimal("12.50"), datetime(2030, 1, 1, 18, tzinfo=UTC), ("a", "b"))


async def parcel() -> Parcel:
    return PARCEL


async def wrongly_annotated() -> int:
    value: Any = [PARCEL, PARCEL.posted, Size.SMALL, PARCEL.price, {1, 2}, (3,)]
    return cast("int", value)


@pytest.mark.parametrize("function", [parcel, wrongly_annotated])
async def test_a_replayed_result_is_of_the_same_type_and_value(threads: Threads, function: Any) -> None:
    got: list[Any] = []

    async def workflow(ctx: Context[None]) -> None:
        got.append(await ctx.step.do("parcel", function))
        if ctx.attempt == 1:
            raise OSError

    job = MemoryJob(workflow, threads=threads)
    await job.attempt()
    await job.attempt()
    assert got[0] == got[1]
    assert repr(got[0]) == repr(got[1])


async def test_a_checkpoint_that_cannot_be_read_names_workflow_and_step(threads: Threads) -> None:
    async def workflow(ctx: Context[None]) -> None:
        await ctx.step.do("step", Counted().of, "x")

    job = MemoryJob(workflow, threads=threads)
    job.record.steps["step"] = "do:{"
    said = failure_of(await job.attempt())
    assert said.startswith("SerializationError: workflow 'shop', job 'job-1', step 'step': its result cannot be read: ")


@pytest.mark.parametrize("order", list(itertools.permutations(["a1", "a2", "b1", "b2"])))
@pytest.mark.parametrize("killed_after", range(5))
async def test_parallel_branches_resume_where_they_were_killed(
    threads: Threads, order: tuple[str, ...], killed_after: int
) -> None:
    """Two branches of two steps, finishing in any order, killed after any number of checkpoints."""
    finished = Counted()
    turns = {name: asyncio.Event() for name in order}

    async def step(name: str) -> str:
        await turns[name].wait()
        return await finished.of(name, name.upper())

    async def branch(ctx: Context[None], letter: str) -> list[str]:
        return [await ctx.step.do(f"{letter}{number}", step, f"{letter}{number}") for number in (1, 2)]

    async def workflow(ctx: Context[None]) -> list[list[str]]:
        return list(await asyncio.gather(branch(ctx, "a"), branch(ctx, "b")))

    job = MemoryJob(workflow, threads=threads)
    running = job.begin()
    for name in order[:killed_after]:
        turns[name].set()
        if name in {"a2", "b2"} and f"{name[0]}1" not in job.record.steps:
            continue
        await kept_of(job, name)
    kept = set(job.record.steps)
    if len(kept) < len(order):
        job.record.take_over()
        job.run.end(EndReason.LOST)
        assert await running == Released()
    assert set(job.record.steps) == kept

    before = Counter(finished.runs)
    for event in turns.values():
        event.set()
    assert await job.attempt() == completed([["A1", "A2"], ["B1", "B2"]])
    assert all(finished.runs[name] == before[name] for name in kept)
    assert set(finished.runs) == set(order)
    await asyncio.gather(running, return_exceptions=True)


async def test_steps_replay_by_name_after_the_code_was_edited(threads: Threads) -> None:
    counted = Counted()

    async def before(ctx: Context[None]) -> None:
        for name in ("one", "two", "three"):
            await ctx.step.do(name, counted.of, name, name)
        raise OSError

    async def after(ctx: Context[None]) -> list[str]:
        return [await ctx.step.do(name, counted.of, name, name) for name in ("three", "new", "one", "two, renamed")]

    job = MemoryJob(before, threads=threads)
    await job.attempt()
    assert await job.attempt(after) == completed(["three", "new", "one", "two, renamed"])
    assert counted.runs == {"one": 1, "two": 1, "three": 1, "new": 1, "two, renamed": 1}


async def test_an_outer_step_tried_again_does_not_repeat_its_inner_steps(threads: Threads) -> None:
    counted = Counted()

    async def workflow(ctx: Context[None]) -> str:
        async def outer() -> str:
            got: str = await ctx.step.do("inner", counted.of, "inner", "kept")
            await ctx.step.wait("a moment", 0)
            if counted.runs["outer"] < 2:
                await counted.of("outer")
                raise OSError
            return got

        for _ in range(2):
            try:
                await ctx.step.do("outer", outer)
            except OSError:
                continue
        return await ctx.step.do("outer", outer)

    job = MemoryJob(workflow, threads=threads)
    assert await job.attempt() == completed("kept")
    assert counted.runs == {"inner": 1, "outer": 2}


async def test_a_failure_that_was_caught_is_not_recorded(threads: Threads) -> None:
    counted = Counted()

    async def flaky() -> str:
        await counted.of("flaky")
        if counted.runs["flaky"] == 1:
            raise ValueError("not yet")
        return "better"

    async def workflow(ctx: Context[None]) -> str:
        try:
            return await ctx.step.do("ask", flaky)
        except ValueError:
            await ctx.step.do("note", counted.of, "note")
        raise OSError

    job = MemoryJob(workflow, threads=threads)
    await job.attempt()
    assert list(job.record.steps) == ["note"]
    assert await job.attempt() == completed("better")


class CardDeclinedError(Exception):
    def __init__(self, *, card: str, reason: str) -> None:
        super().__init__(f"{card}: {reason}")


@pytest.mark.parametrize("error", [NonRetryableError("declined"), CardDeclinedError(card="1234", reason="declined")])
async def test_a_failure_for_good_is_replayed_and_not_run_again(threads: Threads, error: Exception) -> None:
    counted = Counted()
    seen: list[Exception] = []

    async def charge() -> None:
        await counted.of("charge")
        raise error

    async def workflow(ctx: Context[None]) -> list[str]:
        try:
            await ctx.step.do("charge", charge)
        except (NonRetryableError, CardDeclinedError) as caught:
            if not isinstance(caught, StepFailedError):
                seen.append(caught)
                raise OSError from None
            return [caught.step, caught.type, caught.message, str("in charge" in caught.traceback)]
        raise AssertionError

    job = MemoryJob(workflow, threads=threads, non_retryable=(CardDeclinedError,))
    await job.attempt()
    assert await job.attempt() == completed(["charge", type(error).__name__, str(error), "True"])
    assert seen == [error]
    assert counted.runs == {"charge": 1}


async def test_a_failure_for_good_is_replayed_within_its_attempt_too(threads: Threads) -> None:
    counted = Counted()

    async def charge() -> None:
        await counted.of("charge")
        raise NonRetryableError

    async def workflow(ctx: Context[None]) -> None:
        for kind in (NonRetryableError, StepFailedError):
            with pytest.raises(kind):
                await ctx.step.do("charge", charge)

    assert await MemoryJob(workflow, threads=threads).attempt() == completed(None)
    assert counted.runs == {"charge": 1}


async def test_an_error_that_needs_arguments_is_recorded_as_text(threads: Threads) -> None:
    async def workflow(ctx: Context[None]) -> None:
        async def charge() -> None:
            raise CardDeclinedError(card="1234", reason="no cover")

        await ctx.step.do("charge", charge)

    outcome = await MemoryJob(workflow, threads=threads, max_attempts=1).attempt()
    assert isinstance(outcome, Failed)
    assert (outcome.failure.type, outcome.failure.message) == ("CardDeclinedError", "1234: no cover")
    assert "in charge" in outcome.failure.traceback


@pytest.mark.parametrize("kind", ["socket", "function"])
async def test_a_result_that_cannot_be_stored_names_workflow_and_step(threads: Threads, kind: str) -> None:
    with socket.socket() as open_socket:

        async def workflow(ctx: Context[None]) -> None:
            with ctx.step.scope("setup"):
                await ctx.step.do("connect", Counted().of, "x", open_socket if kind == "socket" else failure_of)

        job = MemoryJob(workflow, threads=threads)
        said = failure_of(await job.attempt())
    assert said.startswith(
        "SerializationError: workflow 'shop', job 'job-1', step 'setup/connect': its result cannot be stored: "
    )
    assert job.record.steps == {}


async def test_a_big_result_is_stored(threads: Threads) -> None:
    async def workflow(ctx: Context[None]) -> int:
        return len(await ctx.step.do("read", Counted().of, "x", "x" * 5_000_000))

    assert await MemoryJob(workflow, threads=threads).attempt() == completed(5000000)


async def test_a_run_whose_result_cannot_be_stored_fails_its_attempt(threads: Threads) -> None:
    async def workflow(_: Context[None]) -> object:
        return object()

    said = failure_of(await MemoryJob(workflow, threads=threads).attempt())
    assert said.startswith("SerializationError: workflow 'shop', job 'job-1': its result cannot be stored: ")


async def test_a_coroutine_in_place_of_a_function_is_an_error(threads: Threads) -> None:
    async def workflow(ctx: Context[None]) -> None:
        wrong: Any = Counted().of("x")
        await ctx.step.do("send", wrong)

    said = failure_of(await MemoryJob(workflow, threads=threads).attempt())
    assert "step 'send' was given a coroutine: give the function and its arguments instead" in said


async def in_gather(ctx: Context[None], step: Callable[[int], Awaitable[int]]) -> list[int]:
    return await asyncio.gather(*(ctx.step.do(f"n{n}", step, n) for n in range(5)))


async def in_task_group(ctx: Context[None], step: Callable[[int], Awaitable[int]]) -> list[int]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ctx.step.do(f"n{n}", step, n)) for n in range(5)]
    return [task.result() for task in tasks]


async def in_anyio_group(ctx: Context[None], step: Callable[[int], Awaitable[int]]) -> list[int]:
    found: list[int] = []

    async def one(n: int) -> None:
        found.append(await ctx.step.do(f"n{n}", step, n))

    async with anyio.create_task_group() as group:
        for n in range(5):
            group.start_soon(one, n)
    return sorted(found)


@pytest.mark.parametrize("together", [in_gather, in_task_group, in_anyio_group])
async def test_steps_run_in_parallel(
    threads: Threads, together: Callable[[Context[None], Callable[[int], Awaitable[int]]], Awaitable[list[int]]]
) -> None:
    counted = Counted()
    all_run = asyncio.Barrier(5)

    async def step(n: int) -> int:
        await all_run.wait()
        return await counted.of(str(n), n)

    async def workflow(ctx: Context[None]) -> list[int]:
        found = await together(ctx, step)
        if ctx.attempt == 1:
            raise OSError
        return found

    job = MemoryJob(workflow, threads=threads)
    await job.attempt()
    assert await job.attempt() == completed([0, 1, 2, 3, 4])
    assert set(counted.runs.values()) == {1}


@pytest.mark.parametrize("raises", [None, OSError("too bad")])
async def test_steps_still_running_when_the_run_ends_are_awaited_and_kept(
    threads: Threads, raises: Exception | None, caplog: pytest.LogCaptureFixture
) -> None:
    go_on = asyncio.Event()

    async def slow() -> str:
        await go_on.wait()
        return "kept"

    async def workflow(ctx: Context[None]) -> str:
        async def outer() -> str:
            return await ctx.step.do("inner", slow)

        left = asyncio.create_task(ctx.step.do("left behind", outer))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.01, go_on.set)
        if raises is not None:
            raise raises
        return left.get_name()[:4]

    job = MemoryJob(workflow, threads=threads)
    with caplog.at_level(logging.WARNING):
        outcome = await job.attempt()
    assert isinstance(outcome, Retry) if raises is not None else outcome == completed("Task")
    kept = "do:" + serializer.dumps("kept")
    assert job.record.steps == {"left behind": kept, "left behind/inner": kept}
    (warning,) = caplog.messages
    assert warning.startswith("workflow 'shop', job 'job-1': the run has returned or raised while steps were still")
    assert "'left behind', 'left behind/inner'" in warning


async def test_after_the_run_has_returned_only_steps_that_are_open_go_on(threads: Threads) -> None:
    counted = Counted()
    returned = asyncio.Event()
    branches: list[asyncio.Task[None]] = []

    async def workflow(ctx: Context[None]) -> None:
        async def first() -> None:
            await counted.of("first")
            await returned.wait()

        async def outer() -> None:
            await returned.wait()
            await ctx.step.do("inner", asyncio.sleep, 0.02)

        async def branch() -> None:
            await ctx.step.do("first", first)
            await ctx.step.do("second", counted.of, "second")

        branches.append(asyncio.create_task(branch()))
        branches.append(asyncio.create_task(ctx.step.do("outer", outer)))
        await wait_until(lambda: counted.runs)
        asyncio.get_running_loop().call_later(0.01, returned.set)

    job = MemoryJob(workflow, threads=threads)
    assert await job.attempt() == completed(None)
    await asyncio.wait(branches)
    assert branches[0].cancelled()
    assert counted.runs == {"first": 1}
    assert set(job.record.steps) == {"first", "outer", "outer/inner"}


async def test_a_run_inside_a_step_of_another_has_steps_of_its_own(threads: Threads) -> None:
    async def inner(ctx: Context[None]) -> None:
        await ctx.step.do("step", Counted().of, "x")

    async def without_result() -> None:
        await inner_job.attempt()

    async def workflow(ctx: Context[None]) -> None:
        await ctx.step.do("outer", without_result)

    inner_job, job = MemoryJob(inner, threads=threads), MemoryJob(workflow, threads=threads)
    assert await job.attempt() == completed(None)
    assert set(inner_job.record.steps) == {"step"}
    assert set(job.record.steps) == {"outer"}


async def test_the_context_says_which_job_it_is(threads: Threads) -> None:
    async def workflow(ctx: Context[str]) -> list[object]:
        if ctx.attempt == 1:
            raise OSError
        return [ctx.input, ctx.workflow, ctx.job_id, ctx.group, ctx.attempt]

    job = MemoryJob(workflow, "hello", threads=threads, group="tenant:7")
    await job.attempt()
    assert await job.attempt() == completed(["hello", "shop", "job-1", "tenant:7", 2])
