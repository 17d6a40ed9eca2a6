"""Runs that use no step have nothing of what steps share: they end, and are ended, all the same."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from lanner import Context, SyncContext, WorkflowNamespace
from lanner.errors import NonRetryableError
from lanner.queue.claim import EndReason
from lanner.queue.outcome import Cancelled, Failed, Released, Retry
from lanner.testing import simulate
from lanner.testing.memory import MemoryJournal
from lanner.workflow.calls import RunEnded
from lanner.workflow.engine import Engine
from lanner.workflow.threads import Threads
from support.runs import MemoryJob, failure_of, plain_threads

ASKING = 4


@pytest.fixture
def threads() -> Iterator[Threads]:
    with plain_threads() as threads:
        yield threads


async def refused(ctx: Context[Any]) -> None:
    """See that a step of a context does not begin any more."""

    async def step() -> None:
        raise AssertionError("the step began")

    with pytest.raises(RunEnded):
        await ctx.step.do("too late", step)


async def test_a_step_that_is_called_after_the_end_does_not_begin(threads: Threads) -> None:
    kept: list[Context[str]] = []

    async def workflow(ctx: Context[str]) -> str:
        kept.append(ctx)
        return ctx.input

    job = MemoryJob(workflow, "x", threads=threads)
    await job.attempt()
    await refused(kept[0])
    with pytest.raises(RunEnded):
        kept[0].on_failure("too late", print)
    assert not job.record.writes


@pytest.mark.parametrize("reason", [EndReason.CANCELLED, EndReason.SHUTDOWN, EndReason.TIMEOUT])
async def test_it_is_ended_and_its_steps_do_not_begin_any_more(threads: Threads, reason: EndReason) -> None:
    began = asyncio.Event()

    async def workflow(ctx: Context[None]) -> None:
        try:
            began.set()
            await asyncio.sleep(60)
        finally:
            await refused(ctx)

    job = MemoryJob(workflow, threads=threads)
    running = job.begin()
    await began.wait()
    job.run.end(reason)
    kind = {EndReason.CANCELLED: Cancelled, EndReason.SHUTDOWN: Released, EndReason.TIMEOUT: Retry}[reason]
    assert isinstance(await running, kind)


@pytest.mark.parametrize(("error", "kind"), [(ValueError("no"), Retry), (NonRetryableError("no"), Failed)])
async def test_what_it_raises_is_its_failure(threads: Threads, error: Exception, kind: type[Any]) -> None:
    async def workflow(_: Context[None]) -> None:
        raise error

    outcome = await MemoryJob(workflow, threads=threads).attempt()
    assert isinstance(outcome, kind)
    assert failure_of(outcome) == f"{type(error).__name__}: no"


async def test_a_result_that_cannot_be_stored_says_of_which_job_and_why(threads: Threads) -> None:
    async def workflow(_: Context[None]) -> object:
        return object()

    outcome = await MemoryJob(workflow, threads=threads).attempt()
    assert isinstance(outcome, Retry | Failed)
    assert outcome.failure.message.startswith("workflow 'shop', job 'job-1': its result cannot be stored: ")
    assert "The above exception was the direct cause" in outcome.failure.traceback


async def test_an_engine_that_a_thread_has_made_while_the_run_ended_lets_nothing_begin(threads: Threads) -> None:
    kept: list[Context[None]] = []
    asked, may_go_on = threading.Event(), threading.Event()

    class Held(MemoryJournal):
        """Has who is not in the loop's thread wait where an engine is made."""

        @property
        def recorded(self) -> Mapping[str, str]:
            if threading.current_thread() is not threading.main_thread():
                asked.set()
                assert may_go_on.wait(10)
            return {}

    async def workflow(ctx: Context[None]) -> None:
        kept.append(ctx)
        asking = threading.Thread(target=lambda: run.engine)
        asking.start()
        asks.append(asking)
        await asyncio.to_thread(asked.wait)

    asks: list[threading.Thread] = []
    job = MemoryJob(workflow, threads=threads)
    run = job.claim()
    run.journal = Held(job.record)
    await run.execute()
    may_go_on.set()
    await asyncio.to_thread(asks[0].join)
    await refused(kept[0])


async def test_what_is_undone_by_a_replay_without_steps_has_failed_all_the_same() -> None:
    namespace = WorkflowNamespace("shop")
    begun: list[str] = []

    async def order(ctx: Context[None]) -> str:
        begun.append(ctx.job_id)
        if len(begun) == 1:
            ctx.on_failure("refund", print)
            await ctx.step.do("charge", asyncio.sleep, 0)
            raise ValueError("sold out")
        return "as if nothing had been"

    job = await simulate(namespace.create_workflow("order", run=order, max_attempts=1), None)
    assert job.state == "failed"
    assert len(begun) == 2


@pytest.mark.parametrize("plain", [False, True])
async def test_threads_that_ask_at_once_are_given_the_same(threads: Threads, plain: bool) -> None:  # noqa: FBT001 - a case
    found: list[Engine] = []
    barrier = threading.Barrier(ASKING)

    def ask(job: MemoryJob) -> None:
        barrier.wait()
        found.append(job.run.engine)

    async def workflow(_: Context[None]) -> None:
        await asyncio.gather(*(asyncio.to_thread(ask, job) for _ in range(ASKING)))

    def plain_workflow(_: SyncContext[None]) -> None:
        asking = [threading.Thread(target=ask, args=(job,)) for _ in range(ASKING)]
        for each in asking:
            each.start()
        for each in asking:
            each.join()

    function: Callable[[Any], Any] = plain_workflow if plain else workflow
    job = MemoryJob(function, threads=threads)
    await job.attempt()
    assert len(found) == ASKING
    assert len(set(map(id, found))) == 1
