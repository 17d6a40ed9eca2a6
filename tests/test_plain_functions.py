import asyncio
import contextvars
import functools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from lanner.errors import NonRetryableError, StepError
from lanner.queue.claim import EndReason
from lanner.queue.outcome import Cancelled, Completed, Failed, Outcome, Released, Retry, Suspended
from lanner.workflow.context import Context, SyncContext
from lanner.workflow.threads import Threads
from support.jobs import PATIENCE
from support.runs import MemoryJob, completed, plain_threads
from support.waiting import wait_until

HOUR = 3600
tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant", default="nobody")


@pytest.fixture
def threads() -> Iterator[Threads]:
    with plain_threads(2) as threads:
        yield threads


class Gate:
    """A plain function that waits, in its thread, until it is let go."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.go_on = threading.Event()
        self.seen: list[str] = []

    def step(self) -> str:
        self.begun.set()
        if not self.go_on.wait(PATIENCE):
            raise TimeoutError
        self.seen.append("finished")
        return "late"


def this_thread() -> int:
    return threading.get_ident()


def failure_of(outcome: Outcome) -> str:
    assert isinstance(outcome, Retry | Failed)
    return f"{outcome.failure.type}: {outcome.failure.message}"


async def test_a_plain_step_runs_in_a_thread_with_its_context(threads: Threads) -> None:
    def look(prefix: str, *, suffix: str) -> list[Any]:
        return [prefix + tenant.get() + suffix, threading.current_thread() is threading.main_thread()]

    async def workflow(ctx: Context[None]) -> list[Any]:
        tenant.set("acme")
        return await ctx.step.do("look", look, "<", suffix=">")

    job = MemoryJob(workflow, threads=threads)
    assert await job.attempt() == completed(["<acme>", False])
    assert set(job.record.steps) == {"look"}


async def test_a_plain_step_that_raises_fails_the_attempt(threads: Threads) -> None:
    def fail(error: Exception) -> None:
        raise error

    async def workflow(ctx: Context[Exception]) -> None:
        await ctx.step.do("fail", fail, ctx.input)

    assert failure_of(await MemoryJob(workflow, OSError("too bad"), threads=threads).attempt()) == "OSError: too bad"
    # neither a future nor a coroutine can carry this one: it comes as the cause of another
    outcome = await MemoryJob(workflow, StopIteration("too bad"), threads=threads).attempt()
    assert isinstance(outcome, Retry)
    assert "StopIteration: too bad" in outcome.failure.traceback


async def test_a_function_that_gives_an_awaitable_is_awaited(threads: Threads) -> None:
    class Asynchronous:
        async def __call__(self) -> str:
            return "from an object"

    async def add(a: int, b: int) -> int:
        return a + b

    async def workflow(ctx: Context[None]) -> list[object]:
        return [
            await ctx.step.do("lambda", lambda: add(1, 2)),
            await ctx.step.do("partial", functools.partial(add, 1), 3),
            await ctx.step.do("object", Asynchronous()),
        ]

    assert await MemoryJob(workflow, threads=threads).attempt() == completed([3, 4, "from an object"])


async def test_plain_steps_run_in_no_more_threads_than_there_are(threads: Threads) -> None:
    running: list[int] = []
    most: list[int] = []
    lock, both = threading.Lock(), threading.Barrier(2)

    def step(number: int) -> int:
        with lock:
            running.append(number)
            most.append(len(running))
        both.wait(PATIENCE)
        time.sleep(0.02)
        with lock:
            running.remove(number)
        return number

    async def workflow(ctx: Context[None]) -> list[int]:
        return await asyncio.gather(*(ctx.step.do(str(n), step, n) for n in range(8)))

    assert await MemoryJob(workflow, threads=threads).attempt() == completed([0, 1, 2, 3, 4, 5, 6, 7])
    assert max(most) == 2


async def test_a_running_thread_keeps_the_job_from_suspending(threads: Threads) -> None:
    gate = Gate()

    async def workflow(ctx: Context[None]) -> None:
        async def in_a_hurry() -> None:
            slow = asyncio.create_task(ctx.step.do("slow", gate.step))
            await wait_until(gate.begun.is_set)
            slow.cancel()
            with pytest.raises(asyncio.CancelledError):
                await slow

        await asyncio.gather(ctx.step.wait("long", HOUR), in_a_hurry())

    job = MemoryJob(workflow, threads=threads)
    running = job.begin()
    await wait_until(gate.begun.is_set)
    await asyncio.sleep(0.3)
    assert not running.done()
    gate.go_on.set()
    assert isinstance(await running, Suspended)
    assert gate.seen == ["finished"]
    assert set(job.record.steps) == {"long"}


@pytest.mark.parametrize("reason", list(EndReason))
async def test_a_job_ends_after_its_thread_whose_late_result_is_discarded(
    threads: Threads, reason: EndReason, caplog: pytest.LogCaptureFixture
) -> None:
    gate = Gate()

    async def workflow(ctx: Context[None]) -> None:
        await ctx.step.do("slow", gate.step)

    job = MemoryJob(workflow, threads=threads, end_timeout=0.05)
    running = job.begin()
    await wait_until(gate.begun.is_set)
    with caplog.at_level(logging.WARNING):
        job.run.end(reason)
        await wait_until(lambda: caplog.messages)
    assert not running.done()
    assert job.run.count_threads() == 1
    assert "is kept until its 1 thread(s) return, which nothing can end" in caplog.messages[0]
    gate.go_on.set()
    outcome = await running
    assert isinstance(outcome, Retry if reason is EndReason.TIMEOUT else Cancelled | Released)
    assert job.run.count_threads() == 0
    assert job.record.writes == []


async def test_a_run_that_returns_while_a_thread_runs_ends_after_it(threads: Threads) -> None:
    gate = Gate()

    async def workflow(ctx: Context[None]) -> str:
        task = asyncio.create_task(ctx.step.do("slow", gate.step))
        await wait_until(gate.begun.is_set)
        task.cancel()
        return "done"

    job = MemoryJob(workflow, threads=threads)
    running = job.begin()
    await wait_until(gate.begun.is_set)
    await asyncio.sleep(0.05)
    assert not running.done()
    gate.go_on.set()
    assert await running == completed("done")
    assert job.record.writes == []


async def test_a_step_that_waits_for_a_thread_can_still_be_called_off(threads: Threads) -> None:
    gates = [Gate(), Gate(), Gate()]

    async def workflow(ctx: Context[None]) -> None:
        await asyncio.gather(*(ctx.step.do(str(n), gate.step) for n, gate in enumerate(gates)))

    job = MemoryJob(workflow, threads=threads)
    running = job.begin()
    await wait_until(lambda: gates[0].begun.is_set() and gates[1].begun.is_set())
    job.run.end(EndReason.SHUTDOWN)
    await wait_until(lambda: job.run.count_threads() == 2)
    for gate in gates:
        gate.go_on.set()
    assert await running == Released()
    assert not gates[2].begun.is_set()


async def test_a_plain_workflow_and_its_steps_share_a_thread(threads: Threads) -> None:
    def workflow(ctx: SyncContext[int]) -> Any:
        tenant.set("acme")
        inside = ctx.step.do("thread", this_thread)
        with ctx.step.scope("more"):
            again = ctx.step.do("thread", this_thread)
        who = ctx.step.do("who", lambda: tenant.get() + str(ctx.input))
        if ctx.attempt == 1:
            raise OSError
        return [inside == again, inside == threading.main_thread().ident, who, ctx.job_id, ctx.group]

    job = MemoryJob(workflow, 7, threads=threads, group="g")
    assert failure_of(await job.attempt()) == "OSError: "
    assert set(job.record.steps) == {"thread", "more/thread", "who"}
    assert await job.attempt() == completed([True, False, "acme7", "job-1", "g"])
    assert len(job.record.writes) == 3


async def test_plain_workflows_whose_number_is_that_of_the_threads_all_finish(threads: Threads) -> None:
    def workflow(ctx: SyncContext[None]) -> str:
        ctx.step.do("one", time.sleep, 0.01)
        ctx.step.wait("a moment", 0.05)
        return ctx.step.do("two", lambda: "done")

    jobs = [MemoryJob(workflow, threads=threads) for _ in range(6)]
    outcomes = await asyncio.gather(*(job.attempt() for job in jobs))
    assert outcomes == [completed("done")] * 6


async def test_a_plain_workflow_suspends_and_goes_on(threads: Threads) -> None:
    seen: list[str] = []

    def workflow(ctx: SyncContext[None]) -> Any:
        try:
            ctx.step.do("before", seen.append, "before")
            ctx.step.wait("long", HOUR)
            approval = ctx.step.wait_for_event("approved", timeout=HOUR)
            nothing = ctx.step.wait_for_event("never", timeout=0)
        finally:
            seen.append("left")
        return [approval, nothing]

    job = MemoryJob(workflow, threads=threads)
    outcome = await job.attempt()
    assert isinstance(outcome, Suspended)
    assert outcome.events == ()
    assert seen == ["before", "left"]
    job.record.move_clock(HOUR)
    outcome = await job.attempt()
    assert isinstance(outcome, Suspended)
    assert outcome.events == ("approved",)
    job.send("approved", "yes")
    assert await job.attempt() == completed(["yes", None])
    assert seen == ["before", "left", "left", "left"]


async def test_a_plain_workflow_nests_its_steps(threads: Threads) -> None:
    runs: list[str] = []

    def workflow(ctx: SyncContext[None]) -> str:
        def outer() -> str:
            ctx.step.do("inner", runs.append, "inner")
            ctx.step.wait("long", HOUR)
            return "through"

        return ctx.step.do("outer", outer)

    job = MemoryJob(workflow, threads=threads)
    assert isinstance(await job.attempt(), Suspended)
    assert set(job.record.steps) == {"outer/inner", "outer/long"}
    job.record.move_clock(HOUR)
    assert await job.attempt() == completed("through")
    assert runs == ["inner"]


async def test_a_plain_workflow_has_the_same_rules_for_names(threads: Threads) -> None:
    def workflow(ctx: SyncContext[None]) -> list[str]:
        said: list[str] = []

        def refused(call: Callable[[], object]) -> None:
            with pytest.raises(StepError) as caught:
                call()
            said.append(str(caught.value).partition(":")[0])

        ctx.step.do("send", lambda: None)
        refused(lambda: ctx.step.do("send", lambda: None))
        refused(lambda: ctx.step.wait("send", 0))
        refused(lambda: ctx.step.do("", lambda: None))
        refused(lambda: ctx.step.do("async", asyncio.sleep, 0))
        refused(lambda: ctx.step.do("later", 7))  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] # refused
        return said

    taken = "step 'send' was already used in its scope"
    assert await MemoryJob(workflow, threads=threads).attempt() == completed(
        [
            taken,
            taken,
            "a step's name must not be empty",
            "step 'async' of a plain workflow has an async function",
            "step 'later' was given 7, which is no function",
        ]
    )


async def test_a_plain_workflow_may_try_a_step_again(threads: Threads) -> None:
    runs: list[str] = []

    def workflow(ctx: SyncContext[None]) -> str:
        def outer() -> str:
            ctx.step.do("inner", runs.append, "inner")
            runs.append("outer")
            if runs.count("outer") == 1:
                raise OSError
            return "through"

        with suppress(OSError):
            ctx.step.do("outer", outer)
        return ctx.step.do("outer", outer)

    assert await MemoryJob(workflow, threads=threads).attempt() == completed("through")
    assert runs == ["inner", "outer", "outer"]


async def test_a_plain_step_fails_for_good_as_any_other(threads: Threads) -> None:
    runs: list[str] = []

    def charge() -> None:
        runs.append("charge")
        raise NonRetryableError("declined")

    def workflow(ctx: SyncContext[None]) -> list[str]:
        said: list[str] = []
        for _ in range(2):
            try:
                ctx.step.do("charge", charge)
            except NonRetryableError as caught:
                said.append(type(caught).__name__)
        if ctx.attempt == 1:
            raise OSError(str(said))
        return said

    job = MemoryJob(workflow, threads=threads)
    assert "['NonRetryableError', 'StepFailedError']" in failure_of(await job.attempt())
    assert await job.attempt() == completed(["StepFailedError", "StepFailedError"])
    assert runs == ["charge"]


@pytest.mark.parametrize("reason", list(EndReason))
async def test_a_plain_workflow_that_is_ended_ends_at_its_next_step(threads: Threads, reason: EndReason) -> None:
    gate = Gate()

    def workflow(ctx: SyncContext[None]) -> None:
        try:
            ctx.step.do("slow", gate.step)
            gate.seen.append("not reached")
        except Exception:  # noqa: BLE001 - the signal is no Exception
            gate.seen.append("not reached either")
        finally:
            gate.seen.append("cleaned up")

    job = MemoryJob(workflow, threads=threads, end_timeout=0.05)
    running = job.begin()
    await wait_until(gate.begun.is_set)
    job.run.end(reason)
    await asyncio.sleep(0.2)
    assert not running.done()
    assert job.run.count_threads() == 1
    gate.go_on.set()
    assert isinstance(await running, Retry if reason is EndReason.TIMEOUT else Cancelled | Released)
    assert gate.seen == ["finished", "cleaned up"]
    assert job.record.writes == []


async def test_a_plain_workflow_that_waits_is_ended_at_once(threads: Threads) -> None:
    seen: list[str] = []

    def workflow(ctx: SyncContext[None]) -> None:
        try:
            ctx.step.wait("a moment", HOUR)
        finally:
            seen.append("cleaned up")

    job = MemoryJob(workflow, threads=threads, in_place_ms=2 * HOUR * 1000)
    running = job.begin()
    await wait_until(lambda: job.record.steps)
    job.run.end(EndReason.CANCELLED, "no more")
    assert await running == Cancelled("no more")
    assert seen == ["cleaned up"]


async def test_a_plain_workflow_that_has_no_thread_yet_is_ended_at_once(threads: Threads) -> None:
    gates = [Gate(), Gate(), Gate()]

    def workflow(ctx: SyncContext[Gate]) -> str:
        return ctx.input.step()

    jobs = [MemoryJob(workflow, gate, threads=threads) for gate in gates]
    running = [job.begin() for job in jobs]
    await wait_until(lambda: gates[0].begun.is_set() and gates[1].begun.is_set())
    jobs[2].run.end(EndReason.SHUTDOWN)
    assert await running[2] == Released()
    for gate in gates:
        gate.go_on.set()
    assert [await run for run in running[:2]] == [completed("late")] * 2
    assert not gates[2].begun.is_set()


async def test_a_lost_claim_ends_a_plain_workflow(threads: Threads) -> None:
    def workflow(ctx: SyncContext[None]) -> None:
        ctx.step.do("first", job.record.take_over)
        raise AssertionError

    job = MemoryJob(workflow, threads=threads)
    assert await job.attempt() == Released()
    assert job.run.ended is EndReason.LOST
    assert job.record.steps == {}


async def test_the_steps_of_a_plain_workflow_are_for_its_own_thread(threads: Threads) -> None:
    def workflow(ctx: SyncContext[None]) -> list[str]:
        said: list[str] = []

        def elsewhere() -> None:
            for call in (lambda: ctx.step.do("x", this_thread), lambda: ctx.step.wait("y", 0)):
                try:
                    call()
                except StepError as caught:
                    said.append(str(caught))

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        return said

    outcome = await MemoryJob(workflow, threads=threads).attempt()
    assert isinstance(outcome, Completed)
    assert outcome.result.count("are used in its own thread, one after another") == 2


async def test_a_plain_workflow_that_gives_a_coroutine_is_an_error(threads: Threads) -> None:
    async def really(ctx: SyncContext[None], more: int) -> None:
        raise AssertionError(ctx, more)

    outcome = await MemoryJob(lambda ctx: really(ctx, 1), threads=threads).attempt()
    assert "is a plain function that returned an awaitable: write it `async def`" in failure_of(outcome)


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
async def test_a_plain_function_that_exits_fails_the_job_and_not_the_worker(
    threads: Threads, kind: type[BaseException]
) -> None:
    def leave() -> None:
        raise kind(3)

    async def workflow(ctx: Context[None]) -> None:
        await ctx.step.do("leave", leave)

    def plain_workflow(ctx: SyncContext[None]) -> None:
        ctx.step.do("leave", leave)

    def plain_exit(_: SyncContext[None]) -> None:
        raise kind(3)

    said = f"step 'leave' raised {kind.__name__}(3), which would end the worker"
    assert said in failure_of(await MemoryJob(workflow, threads=threads).attempt())
    assert said in failure_of(await MemoryJob(plain_workflow, threads=threads).attempt())
    assert failure_of(await MemoryJob(plain_exit, threads=threads).attempt()) == f"{kind.__name__}: 3"


async def test_threads_are_used_again_and_end_when_closed() -> None:
    before = threading.active_count()
    with plain_threads(3) as threads:

        async def workflow(ctx: Context[None]) -> list[int]:
            return [await ctx.step.do(str(n), this_thread) for n in range(20)]

        job = MemoryJob(workflow, threads=threads)
        await job.attempt()
        assert len({text for _, text in job.record.writes}) == 1
    await wait_until(lambda: threading.active_count() == before)
