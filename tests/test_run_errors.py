"""Whatever leaves a run is the job's failure, and nobody else's."""

import asyncio
from collections.abc import Iterator

import pytest

from lanner.queue.outcome import Failed, Retry
from lanner.workflow.context import Context
from lanner.workflow.threads import Threads
from support.runs import MemoryJob, plain_threads


@pytest.fixture
def threads() -> Iterator[Threads]:
    with plain_threads() as threads:
        yield threads


class Stray(BaseException):
    """Something that is no ``Exception``."""


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError, Stray])
async def test_whatever_leaves_a_run_fails_the_job_and_not_the_worker(
    threads: Threads, kind: type[BaseException]
) -> None:
    async def workflow(_: Context[None]) -> None:
        raise kind(3)

    outcome = await MemoryJob(workflow, threads=threads, max_attempts=1).attempt()
    assert isinstance(outcome, Failed)
    assert (outcome.failure.type, outcome.failure.message) == (kind.__name__, "3")


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
async def test_a_step_that_exits_in_a_branch_fails_the_job_and_not_the_worker(
    threads: Threads, kind: type[BaseException]
) -> None:
    async def leave() -> None:
        raise kind(3)

    async def workflow(ctx: Context[None]) -> None:
        await asyncio.gather(ctx.step.do("leave", leave), ctx.step.wait("long", 3600))

    outcome = await MemoryJob(workflow, threads=threads).attempt()
    assert isinstance(outcome, Retry)
    assert outcome.failure.message == (
        f"step 'leave' raised {kind.__name__}(3), which would end the worker: raise an exception instead"
    )


async def test_a_task_that_cancels_itself_fails_its_attempt(threads: Threads) -> None:
    async def workflow(ctx: Context[None]) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await ctx.step.do("never", asyncio.sleep, 1)

    outcome = await MemoryJob(workflow, threads=threads).attempt()
    assert isinstance(outcome, Retry)
    assert outcome.failure.type == "CancelledError"


async def test_a_journal_that_fails_fails_the_attempt(threads: Threads) -> None:
    async def workflow(ctx: Context[None]) -> None:
        await ctx.step.do("step", asyncio.sleep, 0)

    async def fail(path: str, text: str) -> bool:
        raise ConnectionError(f"no answer for {path}: {text}")

    job = MemoryJob(workflow, threads=threads)
    run = job.claim()
    job.journal.record = fail  # type: ignore[method-assign] # this journal is out of order
    outcome = await run.execute()
    assert isinstance(outcome, Retry)
    assert outcome.failure.type == "ConnectionError"
