"""Watching a workflow's job gives values and not texts, of the types that the workflow has."""

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pydantic
import pytest

from lanner import (
    Backoff,
    Context,
    Job,
    JobCancelled,
    JobCompleted,
    JobEvent,
    JobFailed,
    JobFailedError,
    JobNotFoundError,
    JobProgress,
    JobRetrying,
    JobStarted,
    JobSuspended,
    SerializationError,
    SyncContext,
    WorkflowNamespace,
)
from support.servers import Server
from support.waiting import wait_until

SOON = Backoff(first=0)


class Done(msgspec.Struct):
    files: int
    of: int


class Loaded(pydantic.BaseModel):
    percent: float = pydantic.Field(ge=0, le=100)


@dataclass
class Report:
    pages: int
    at: datetime


async def events_of(job: Job[Any]) -> list[JobEvent[Any]]:
    async with asyncio.timeout(30), aclosing(job.watch()) as events:
        return [event async for event in events]


@pytest.fixture
async def namespace(server: Server, namespace_id: str) -> Any:
    async with WorkflowNamespace(namespace_id, redis=server.url) as namespace:
        yield namespace


async def test_everything_that_happens_is_heard_with_its_value(namespace: WorkflowNamespace) -> None:
    at = datetime(2030, 1, 1, tzinfo=UTC)
    wakes: list[datetime] = []

    async def run(ctx: Context[int]) -> Report:
        await ctx.progress(Done(ctx.attempt, 3))
        if ctx.attempt == 1:
            raise KeyError("first")
        # so late that it suspends
        wakes.append(datetime.now(UTC) + timedelta(seconds=4))
        await ctx.step.wait_until("a moment", wakes[-1])
        return Report(ctx.input, at)

    workflow = namespace.create_workflow("flow", run=run, progress=Done, max_attempts=2, backoff=SOON)
    async with workflow.worker(), asyncio.timeout(30), aclosing(workflow.run_and_watch(7, id="a")) as watch:
        events = [event async for event in watch]
    started, progress, retrying, again, more, suspended, *rest = events
    assert started == JobStarted("a", 1)
    assert progress == JobProgress("a", Done(1, 3))
    assert isinstance(retrying, JobRetrying)
    assert (retrying.value.type, retrying.value.message) == ("KeyError", "'first'")
    assert 'raise KeyError("first")' in retrying.value.traceback
    assert (again, more) == (JobStarted("a", 2), JobProgress("a", Done(2, 3)))
    assert isinstance(suspended, JobSuspended)
    assert suspended.value is not None
    assert abs(suspended.value - wakes[0]) < timedelta(milliseconds=1)
    # it goes on where it was, and says again how far it is
    assert rest == [JobProgress("a", Done(2, 3)), JobCompleted("a", Report(7, at))]
    assert [event.kind for event in events] == [
        "started", "progress", "retrying", "started", "progress", "suspended", "progress", "completed",
    ]  # fmt: skip


async def test_a_job_that_waits_for_an_event_alone_sleeps_until_no_instant(namespace: WorkflowNamespace) -> None:
    async def run(ctx: Context[None]) -> Any:
        return await ctx.step.wait_for_event("approved")

    workflow = namespace.create_workflow("flow", run=run)
    events: list[JobEvent[Any]] = []
    async with workflow.worker(), asyncio.timeout(30), aclosing(workflow.run_and_watch(None, id="a")) as watch:
        async for event in watch:
            events.append(event)
            if isinstance(event, JobSuspended):
                await workflow.get_job("a").send_event("approved", {"by": "Ada"})
    assert JobSuspended("a", None) in events
    assert events[-1] == JobCompleted("a", {"by": "Ada"})


async def test_a_failure_is_heard_as_the_error_that_waiting_raises(namespace: WorkflowNamespace) -> None:
    async def run(ctx: Context[str]) -> None:
        raise ValueError(ctx.input)

    workflow = namespace.create_workflow("flow", run=run)
    async with workflow.worker():
        job = await workflow.run("no good")
        with pytest.raises(JobFailedError) as raised:
            await job.wait(timeout=30)
        (event,) = await events_of(job)
    assert isinstance(event, JobFailed)
    assert (event.kind, event.job_id) == ("failed", job.id)
    assert (event.value.type, event.value.message) == ("ValueError", "no good")
    assert event.value.traceback == raised.value.traceback
    assert str(event.value) == str(raised.value)


async def test_a_cancellation_is_heard_with_its_reason(namespace: WorkflowNamespace) -> None:
    async def run(ctx: Context[None]) -> None: ...

    workflow = namespace.create_workflow("flow", run=run)
    job = await workflow.run_in(None, timedelta(hours=1))
    watching = asyncio.create_task(events_of(job))
    await wait_until(lambda: job.cancel("too late"))
    assert await watching == [JobCancelled(job.id, "too late")]


async def test_watching_a_job_that_is_removed_ends_with_an_error(namespace: WorkflowNamespace) -> None:
    async def run(ctx: Context[None]) -> None: ...

    workflow = namespace.create_workflow("flow", run=run)
    job = await workflow.run_in(None, timedelta(hours=1))
    watching = asyncio.create_task(events_of(job))

    async def watched() -> bool:
        return bool(
            await (await namespace.queues.runtime()).call.link.call(
                "HGET", f"{namespace.queues.base}:flow:j:{job.id}", "watchers"
            )
        )

    await wait_until(watched)
    await workflow.remove(job.id)
    with pytest.raises(JobNotFoundError, match="was removed"):
        await watching


async def test_progress_is_what_its_type_says_for_all_who_ask(namespace: WorkflowNamespace) -> None:
    go_on = asyncio.Event()

    async def run(ctx: Context[None]) -> None:
        await ctx.progress(Loaded(percent=12.5))
        await go_on.wait()

    def plain(ctx: SyncContext[None]) -> None:
        ctx.progress({"percent": 50})

    async_one = namespace.create_workflow("async", run=run, progress=Loaded)
    plain_one = namespace.create_workflow("plain", run=plain, progress=Loaded)
    async with namespace.worker():
        job = await async_one.run(None)
        assert await wait_until(job.progress) == Loaded(percent=12.5)
        go_on.set()
        await job.wait(timeout=30)
        # what fits the type becomes it
        events = [event async for event in plain_one.run_and_watch(None)]
    assert [event.value for event in events if isinstance(event, JobProgress)] == [Loaded(percent=50)]


async def test_the_annotation_of_the_context_says_the_type_of_progress_as_it_does_of_the_input(
    namespace: WorkflowNamespace,
) -> None:
    async def run(ctx: Context[None, Done]) -> None:
        await ctx.progress(Done(1, 2))

    def plain(ctx: SyncContext[str, Done]) -> None:
        said: Any = ctx.input
        ctx.progress(said)

    async_one = namespace.create_workflow("async", run=run)
    plain_one = namespace.create_workflow("plain", run=plain)
    async with namespace.worker():
        job = await async_one.run(None)
        await job.wait(timeout=30)
        assert await job.progress() == Done(1, 2)
        with pytest.raises(JobFailedError, match="its progress is not of its type"):
            await plain_one.execute("half", timeout=30)


async def test_progress_without_a_type_is_what_was_said(namespace: WorkflowNamespace) -> None:
    async def run(ctx: Context[None]) -> None:
        await ctx.progress(Done(1, 2))
        await ctx.progress({1, 2})

    workflow = namespace.create_workflow("flow", run=run)
    async with workflow.worker():
        job = await workflow.run(None)
        await job.wait(timeout=30)
        assert await job.progress() == {1, 2}


async def test_a_job_that_has_said_nothing_has_no_progress(namespace: WorkflowNamespace) -> None:
    async def run(ctx: Context[None]) -> None: ...

    workflow = namespace.create_workflow("flow", run=run, progress=Done)
    async with workflow.worker():
        job = await workflow.run(None)
        await job.wait(timeout=30)
        assert await job.progress() is None


@pytest.mark.parametrize(
    ("kind", "said", "why"),
    [
        (Done, {"files": "three", "of": 3}, r"Expected `int`, got `str`.*\$\.files"),
        (Loaded, {"percent": 101}, r"\$\.percent.*less than or equal to 100"),
        (int, "one", "Expected `int`"),
    ],
)
async def test_progress_that_does_not_fit_its_type_fails_the_attempt_and_is_told_to_nobody(
    namespace: WorkflowNamespace, kind: Any, said: Any, why: str
) -> None:
    async def run(ctx: Context[None]) -> None:
        await ctx.progress(said)

    workflow = namespace.create_workflow("flow", run=run, progress=kind)
    async with workflow.worker():
        job = await workflow.run(None)
        with pytest.raises(JobFailedError, match=why) as failed:
            await job.wait(timeout=30)
        assert failed.value.message.startswith(f"workflow 'flow', job {job.id!r}: its progress is not of its type: ")
        assert await job.progress() is None


async def test_a_watch_with_another_type_than_the_run_has_says_what_does_not_fit(
    namespace: WorkflowNamespace, server: Server, namespace_id: str
) -> None:
    async def run(ctx: Context[None]) -> None:
        await ctx.progress("half")

    workflow = namespace.create_workflow("flow", run=run)
    async with WorkflowNamespace(namespace_id, redis=server.url) as elsewhere, workflow.worker():
        elsewhere_flow = elsewhere.create_workflow("flow", run=run, progress=Done)
        with pytest.raises(SerializationError, match="workflow 'flow': the progress is not of its type: "):
            async for _ in elsewhere_flow.run_and_watch(None, id="a"):
                pass
        await workflow.get_job("a").wait(timeout=30)
