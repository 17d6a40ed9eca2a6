"""Whatever leaves a run is the job's failure, and nobody else's."""

import asyncio
from collections.abc import Iterator

import pytest

from lanner.errors import StepError
from lanner.queue.outcome import Failed, Retry
from lanner.workflow.context import Context
from lanner.workflow.threads import Threads
from support.runs import MemoryJob, completed, plain_threads


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


def forgotten_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    said = "has returned, and steps that it has called never began: "
    return [message.partition(said)[2] for message in caplog.messages if said in message]


# Python says it too, where it happens, and cannot know which step it is
@pytest.mark.filterwarnings("ignore:coroutine 'Steps:RuntimeWarning")
async def test_steps_that_are_called_and_never_awaited_are_named(
    threads: Threads, caplog: pytest.LogCaptureFixture
) -> None:
    ran: list[str] = []

    async def charge() -> None:
        ran.append("charge")

    async def workflow(ctx: Context[None]) -> str:
        await ctx.step.do("reserve", ran.append, "reserve")
        ctx.step.do("charge", charge)  # type: ignore[unused-coroutine]  # the mistake
        with ctx.step.scope("later"):
            await ctx.step.do("charge", charge)
        ctx.step.wait("a day", 86_400)  # type: ignore[unused-coroutine]  # the mistake
        return "done"

    job = MemoryJob(workflow, threads=threads)
    assert await job.attempt() == completed("done")
    assert ran == ["reserve", "charge"]
    assert forgotten_in(caplog) == ["'charge', 'a day'. Await every step that is called."]


async def test_a_task_of_a_step_that_had_no_turn_before_the_run_ended_is_named(
    threads: Threads, caplog: pytest.LogCaptureFixture
) -> None:
    async def charge() -> None: ...

    tasks: list[asyncio.Task[None]] = []

    async def workflow(ctx: Context[None]) -> None:
        tasks.append(asyncio.create_task(ctx.step.do("charge", charge)))

    job = MemoryJob(workflow, threads=threads)
    assert await job.attempt() == completed(None)
    await asyncio.wait(tasks)
    assert tasks[0].cancelled()
    assert forgotten_in(caplog) == ["'charge'. Await every step that is called."]


async def test_nothing_is_said_of_steps_that_an_error_or_a_cancellation_kept_from_their_turn(
    threads: Threads, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None: ...

    async def workflow(ctx: Context[int]) -> None:
        steps = [ctx.step.do(str(number), work) for number in range(3)]
        if ctx.input == 1:
            for step in steps:
                step.close()
            raise ValueError("no")
        await asyncio.gather(*steps)
        if ctx.input == 2:
            with pytest.raises(StepError):
                await ctx.step.do("0", work)

    for number in range(3):
        await MemoryJob(workflow, number, threads=threads).attempt()
    assert forgotten_in(caplog) == []
