"""Events on their way from a sender through Redis to a workflow: none is lost, none counts twice, none overtakes."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

import pytest

from lanner import Context, EventTimeoutError, Job, JobFailedError, JobNotFoundError, WorkflowNamespace
from support.jobs import PATIENCE, RELIES_ON_WAKING, Look
from support.servers import Server
from support.waiting import wait_until


@dataclass(frozen=True)
class Approval:
    by: str


async def take(ctx: Context[int]) -> list[int]:
    """Take so many events of one name."""
    taken: list[int] = []
    for number in range(ctx.input):
        with ctx.step.scope(str(number)):
            taken.append(await ctx.step.wait_for_event("number", type=int))
    return taken


@pytest.fixture
async def ns(server: Server, namespace_id: str) -> AsyncIterator[WorkflowNamespace]:
    async with WorkflowNamespace(namespace_id, redis=server.url) as ns:
        yield ns


@pytest.fixture
async def elsewhere(server: Server, namespace_id: str) -> AsyncIterator[WorkflowNamespace]:
    """The same namespace as another process has it."""
    async with WorkflowNamespace(namespace_id, redis=server.url) as ns:
        yield ns


async def sleeps(job: Job[Any]) -> None:
    async def is_asleep() -> bool:
        return await job.state() in {"parked", "delayed"}

    await wait_until(is_asleep)


async def test_events_sent_before_the_job_starts_while_it_runs_and_while_it_sleeps_come_in_order(
    ns: WorkflowNamespace, elsewhere: WorkflowNamespace
) -> None:
    workflow = ns.create_workflow("flow", run=take)
    sender = elsewhere.create_workflow("flow", run=take)
    job = await workflow.run(6)
    by_id = sender.get_job(job.id)
    for number in (0, 1):
        assert await by_id.send_event("number", number)
    async with workflow.worker(safety=RELIES_ON_WAKING):
        await sleeps(job)
        assert await by_id.send_event("number", 2)
        # while it runs, or sleeps again
        assert await by_id.send_event("number", 3)
        await sleeps(job)
        await job.send_event("another", 99)
        await job.send_event("number", 4)
        await by_id.send_event("number", 5)
        assert await job.wait(PATIENCE) == [0, 1, 2, 3, 4, 5]
    assert not await by_id.send_event("number", 6)


async def test_an_event_that_its_sender_sends_again_counts_once(ns: WorkflowNamespace) -> None:
    workflow = ns.create_workflow("flow", run=take)
    job = await workflow.run(3)
    assert await job.send_event("number", 1, event_id="first")
    assert await job.send_event("number", 1, event_id="first")
    assert await job.send_event("number", 2, event_id="second")
    async with workflow.worker(safety=RELIES_ON_WAKING):
        await sleeps(job)
        # also when it was taken meanwhile
        assert await job.send_event("number", 1, event_id="first")
        assert await job.send_event("number", 2, event_id="second")
        assert await job.send_event("number", 3, event_id="third")
        assert await job.wait(PATIENCE) == [1, 2, 3]


async def test_an_event_of_a_type_arrives_as_that_type(ns: WorkflowNamespace) -> None:
    async def approve(ctx: Context[None]) -> Approval | None:
        return await ctx.step.wait_for_event("approved", timeout=timedelta(days=3), type=Approval)

    workflow = ns.create_workflow("flow", run=approve)
    async with workflow.worker(safety=RELIES_ON_WAKING):
        job = await workflow.run(None)
        await sleeps(job)
        await job.send_event("approved", {"by": "grace"})
        assert await job.wait(PATIENCE) == Approval("grace")


async def test_a_job_that_failed_for_an_event_of_another_type_waits_for_the_right_one_when_it_is_retried(
    ns: WorkflowNamespace,
) -> None:
    async def approve(ctx: Context[None]) -> Approval:
        return await ctx.step.wait_for_event("approved", type=Approval)

    workflow = ns.create_workflow("flow", run=approve)
    async with workflow.worker(safety=RELIES_ON_WAKING):
        job = await workflow.run(None)
        await job.send_event("approved", {"by": 7})
        with pytest.raises(JobFailedError, match=r"event 'approved' cannot be read: \$\.by: Expected `str`, got `int`"):
            await job.wait(PATIENCE)
        assert (await job.record()).steps == {"approved": 'event?{"json":{"by":7}}'}
        assert await workflow.retry(job.id)
        await sleeps(job)
        await job.send_event("approved", {"by": "grace"})
        assert await job.wait(PATIENCE) == Approval("grace")


async def test_an_event_that_was_taken_is_replayed_and_not_taken_again(ns: WorkflowNamespace) -> None:
    broken = True

    async def run(ctx: Context[None]) -> list[Any]:
        first = await ctx.step.wait_for_event("number")
        if broken:
            raise OSError
        with ctx.step.scope("again"):
            return [first, await ctx.step.wait_for_event("number")]

    workflow = ns.create_workflow("flow", run=run)
    async with workflow.worker(safety=RELIES_ON_WAKING):
        job = await workflow.run(None)
        await job.send_event("number", 1)
        await job.send_event("number", 2)
        with pytest.raises(JobFailedError, match="OSError"):
            await job.wait(PATIENCE)
        broken = False
        assert await workflow.retry(job.id)
        assert await job.wait(PATIENCE) == [1, 2]


async def test_an_event_that_arrives_between_the_decision_to_sleep_and_its_commit_is_seen(
    ns: WorkflowNamespace, elsewhere: WorkflowNamespace
) -> None:
    runs: list[str] = []

    async def run(ctx: Context[None]) -> int:
        runs.append("begun")
        try:
            return await ctx.step.wait_for_event("number", type=int)
        finally:
            if len(runs) == 1:  # the run is being ended for its sleep, of which Redis knows nothing yet
                runs.append(await sender.get_job(ctx.job_id).state())
                await sender.get_job(ctx.job_id).send_event("number", 7)

    workflow = ns.create_workflow("flow", run=run)
    sender = elsewhere.create_workflow("flow", run=run)
    async with workflow.worker(safety=RELIES_ON_WAKING):
        assert await workflow.execute(None, timeout=PATIENCE) == 7
    assert runs == ["begun", "active", "begun"]


async def test_an_event_resumes_a_running_job_that_does_other_work_meanwhile(ns: WorkflowNamespace) -> None:
    working, arrived = asyncio.Event(), asyncio.Event()
    runs: list[int] = []

    async def work() -> str:
        working.set()
        await arrived.wait()
        return "worked"

    async def run(ctx: Context[None]) -> tuple[str, int]:
        runs.append(ctx.attempt)

        async def listen() -> int:
            number = await ctx.step.wait_for_event("number", type=int)
            arrived.set()
            return number

        return await asyncio.gather(ctx.step.do("work", work), listen())

    workflow = ns.create_workflow("flow", run=run)
    async with workflow.worker(safety=RELIES_ON_WAKING):
        job = await workflow.run(None)
        await working.wait()
        await job.send_event("number", 7)
        assert list(await job.wait(PATIENCE)) == ["worked", 7]
    assert runs == [1]


@pytest.mark.parametrize("on_timeout", ["none", "raise"])
async def test_no_event_in_time_is_none_or_an_error_by_choice_and_stays_so(
    ns: WorkflowNamespace, on_timeout: Literal["none", "raise"]
) -> None:
    broken = True

    async def run(ctx: Context[None]) -> str:
        try:
            got = await ctx.step.wait_for_event("number", timeout=1.2, on_timeout=on_timeout)
        except EventTimeoutError as error:
            got = str(error)
        if broken:
            raise OSError
        return str(got)

    workflow = ns.create_workflow("flow", run=run)
    async with workflow.worker(safety=RELIES_ON_WAKING):
        job = await workflow.run(None)
        with pytest.raises(JobFailedError, match="OSError"):
            await job.wait(PATIENCE)
        # that none came in time is a checkpoint: one that comes later changes nothing
        broken = False
        await workflow.retry(job.id)
        await job.send_event("number", 1)
        said = {"none": "None", "raise": "step 'number': no event 'number' came before its timeout"}
        assert await job.wait(PATIENCE) == said[on_timeout]


async def test_an_event_beats_a_timeout_that_is_over_and_was_not_written(ns: WorkflowNamespace, look: Look) -> None:
    begun = asyncio.Event()

    async def run(ctx: Context[None]) -> int | None:
        begun.set()
        return await ctx.step.wait_for_event("number", timeout=2.5, type=int)

    workflow = ns.create_workflow("flow", run=run)
    # it comes to its sleep while its worker stops, which does not claim it again
    async with workflow.worker():
        job = await workflow.run(None)
        await begun.wait()
    until = look("ZRANGE", "flow:delayed", 0, 0, "WITHSCORES")[0][1]
    await wait_until(lambda: look.now() > until)
    await job.send_event("number", 7)
    async with workflow.worker(safety=RELIES_ON_WAKING):
        assert await job.wait(PATIENCE) == 7


async def test_an_event_for_a_job_that_never_was_is_an_error(ns: WorkflowNamespace) -> None:
    with pytest.raises(JobNotFoundError, match="there is no job 'nobody' of workflow 'flow'"):
        await ns.create_workflow("flow", run=take).get_job("nobody").send_event("number", 1)
