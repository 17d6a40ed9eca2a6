"""Which trace a job belongs to: that of who enqueued it, however it was enqueued."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased, Sampler, TraceIdRatioBased
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, TraceFlags, TraceState

from lanner import Backoff, Context, Job, JobFailedError, WorkflowNamespace
from support.servers import Server
from support.spans import Spans, attributes_of, id_of, parent_of, trace_of
from support.waiting import wait_until

AT_ONCE = Backoff(first=0)


@pytest.fixture
def spans() -> Spans:
    return Spans()


@pytest.fixture
async def namespace(server: Server, namespace_id: str, spans: Spans) -> AsyncIterator[WorkflowNamespace]:
    async with WorkflowNamespace(namespace_id, redis=server.url, tracer_provider=spans.provider) as namespace:
        yield namespace


async def nothing() -> None: ...


async def is_parked(job: Job[Any]) -> bool:
    return await job.state() == "parked"


async def echo(ctx: Context[Any]) -> Any:
    return ctx.input


async def test_children_belong_to_the_step_that_started_them(namespace: WorkflowNamespace, spans: Spans) -> None:
    child = namespace.create_workflow("child", run=echo)

    async def parent(ctx: Context[None]) -> Any:
        started = await ctx.step.start("start", child, 1)
        one = await ctx.step.run("run", child, 2)
        many = await ctx.step.map("map", child, [3, 4])
        return [await started.wait(), one, *many]

    workflow = namespace.create_workflow("parent", run=parent)
    async with namespace.worker():
        assert await workflow.execute(None, timeout=30) == [1, 2, 3, 4]
        await wait_until(spans.has("process child", 4))
    assert len({trace_of(span) for span in spans.ended}) == 1
    by_id = {id_of(span): span for span in spans.ended}
    above = sorted(by_id[parent_of(span) or 0].name for span in spans.named("process child"))
    assert above == ["step map", "step map", "step run", "step start"]
    assert {span.kind for name in ("start", "run", "map") for span in spans.named(f"step {name}")} == {
        SpanKind.PRODUCER
    }
    assert {parent_of(span) for span in spans.ended if span.name.startswith("step")} <= {
        id_of(span) for span in spans.named("process parent")
    }


async def test_each_fire_of_a_schedule_begins_a_trace_of_its_own(
    server: Server, namespace_id: str, namespace: WorkflowNamespace, spans: Spans
) -> None:
    workflow = namespace.create_workflow("flow", run=echo, max_attempts=2, backoff=AT_ONCE)

    async def run(ctx: Context[Any]) -> None:
        if ctx.attempt == 1:
            raise ValueError

    tracer = spans.provider.get_tracer("app")
    async with WorkflowNamespace(namespace_id, redis=server.url, tracer_provider=spans.provider) as other:
        twin = other.create_workflow("flow", run=run, max_attempts=2, backoff=AT_ONCE)
        with tracer.start_as_current_span("deployment"):
            await twin.upsert_schedule("ticks", None, None, every=1)
            # many workers look at the schedule; each fire happens once
            async with twin.worker(), twin.worker(), twin.worker():
                await wait_until(spans.has("process flow", 4), timeout=30)
                await workflow.remove_schedule("ticks")
    fires = spans.named("send flow")
    assert [span.parent for span in fires] == [None] * len(fires)
    assert len({trace_of(span) for span in fires}) == len(fires) >= 2
    for span in fires:
        told = attributes_of(span)
        assert (told["messaging.operation.name"], told["lanner.schedule.id"]) == ("fire", "ticks")
        assert told["messaging.batch.message_count"] == 1
        attempts = [each for each in spans.named("process flow") if trace_of(each) == trace_of(span)]
        assert {parent_of(each) for each in attempts} <= {id_of(span)}
        assert {attributes_of(each)["lanner.job.id"] for each in attempts} <= {told["lanner.job.id"]}
    first = [each for each in spans.named("process flow") if trace_of(each) == trace_of(fires[0])]
    assert [attributes_of(each)["lanner.outcome"] for each in first] == ["retry", "completed"]


async def test_a_skipped_fire_is_no_span(namespace: WorkflowNamespace, spans: Spans) -> None:
    async def run(ctx: Context[None]) -> None:
        await ctx.step.wait_for_event("over")

    workflow = namespace.create_workflow("flow", run=run)

    async def skipped() -> bool:
        return (await workflow.get_schedules())[0].skipped >= 2

    async with workflow.worker():
        await workflow.upsert_schedule("ticks", None, None, every=1)
        await wait_until(skipped)
        (schedule,) = await workflow.get_schedules()
        await workflow.remove_schedule("ticks")
        await workflow.get_job(str(schedule.last_job)).cancel()
    assert len(spans.named("send flow")) == 1


async def test_a_run_that_is_sent_after_a_transaction_belongs_to_where_it_was_collected(
    namespace: WorkflowNamespace, spans: Spans
) -> None:
    async def group(tenant: str) -> str:
        await asyncio.sleep(0)
        return tenant

    workflow = namespace.create_workflow("flow", run=echo, get_group_id=group)
    tracer = spans.provider.get_tracer("app")
    pending = namespace.pending()
    with tracer.start_as_current_span("order"):
        pending.run(workflow, "acme")
    with tracer.start_as_current_span("commit"):
        (job,) = await pending.send()
    async with workflow.worker():
        await job.wait(timeout=30)
        await wait_until(spans.has("process flow"))
    assert spans.tree() == ["order", "  send flow", "    process flow", "commit"]
    assert attributes_of(spans.one("process flow"))["lanner.group"] == "acme"


async def test_the_tracestate_of_the_caller_goes_along(namespace: WorkflowNamespace, spans: Spans) -> None:
    workflow = namespace.create_workflow("flow", run=echo)
    state = TraceState([("vendor", "x")])
    above = NonRecordingSpan(SpanContext(0xABC, 0xDEF, is_remote=True, trace_flags=TraceFlags(1), trace_state=state))
    with trace.use_span(above):
        job = await workflow.run(None)
    async with workflow.worker():
        await job.wait(timeout=30)
        await wait_until(spans.has("process flow"))
    processed = spans.one("process flow")
    assert trace_of(processed) == 0xABC
    assert processed.context is not None
    assert processed.context.trace_state.get("vendor") == "x"
    assert (await job.record()).spec.trace.startswith("00-00000000000000000000000000000abc-")


async def test_a_caller_that_is_not_sampled_has_its_jobs_not_sampled(
    server: Server, namespace_id: str, spans: Spans
) -> None:
    unsampled = Spans(ParentBased(ALWAYS_OFF))
    async with (
        WorkflowNamespace(namespace_id, redis=server.url, tracer_provider=unsampled.provider) as calling,
        WorkflowNamespace(namespace_id, redis=server.url, tracer_provider=spans.provider) as working,
    ):
        working_flow = working.create_workflow("flow", run=echo)
        async with working_flow.worker():
            await calling.create_workflow("flow", run=echo).execute(1, timeout=30)
            await working_flow.execute(2, timeout=30)
            await wait_until(spans.has("process flow"))
    assert unsampled.ended == []
    assert len(spans.named("process flow")) == 1


async def test_a_job_of_an_untraced_caller_does_not_belong_to_whatever_the_worker_was_started_in(
    server: Server, namespace_id: str, namespace: WorkflowNamespace, spans: Spans
) -> None:
    workflow = namespace.create_workflow("flow", run=echo)
    async with WorkflowNamespace(namespace_id, redis=server.url) as untraced:
        caller = untraced.create_workflow("flow", run=echo)
        with spans.provider.get_tracer("app").start_as_current_span("main"):
            async with workflow.worker():
                await caller.execute(1, timeout=30)
                await wait_until(spans.has("process flow"))
    assert trace_of(spans.one("process flow")) != trace_of(spans.one("main"))


async def test_a_job_of_an_untraced_caller_is_one_trace_too_through_retries_sleeps_and_a_retry_by_hand(
    server: Server, namespace_id: str, namespace: WorkflowNamespace, spans: Spans
) -> None:
    may_end = False

    async def run(ctx: Context[int]) -> None:
        await ctx.step.wait_for_event("go on")
        if not may_end:
            raise ValueError("not yet")

    workflow = namespace.create_workflow("flow", run=run, max_attempts=2, backoff=AT_ONCE)
    async with WorkflowNamespace(namespace_id, redis=server.url) as untraced:
        caller = untraced.create_workflow("flow", run=run, max_attempts=2, backoff=AT_ONCE)
        async with workflow.worker():
            jobs = await caller.run_many([1, 2])
            for job in jobs:
                await wait_until(partial(is_parked, job))
                await job.send_event("go on")
                with pytest.raises(JobFailedError):
                    await job.wait(timeout=30)
            may_end = True
            await workflow.retry(jobs[0].id)
            await jobs[0].wait(timeout=30)
            await wait_until(spans.has("process flow", 7))
    traces = [
        {trace_of(span) for span in spans.ended if attributes_of(span)["lanner.job.id"] == job.id} for job in jobs
    ]
    assert [len(each) for each in traces] == [1, 1]
    assert traces[0] != traces[1]
    outcomes = [attributes_of(span)["lanner.outcome"] for span in spans.named("process flow")]
    assert sorted(outcomes) == ["completed", "failed", "failed", "retry", "retry", "suspended", "suspended"]


@pytest.mark.parametrize("sampler", [ALWAYS_OFF, TraceIdRatioBased(0.5), ParentBased(TraceIdRatioBased(0.5))])
async def test_the_worker_samples_the_jobs_of_untraced_callers_each_as_a_whole(
    server: Server, namespace_id: str, sampler: Sampler
) -> None:
    spans = Spans(sampler)

    async def run(ctx: Context[None]) -> None:
        await ctx.step.do("work", nothing)
        if ctx.attempt == 1:
            raise ValueError("again")

    async with (
        WorkflowNamespace(namespace_id, redis=server.url) as untraced,
        WorkflowNamespace(namespace_id, redis=server.url, tracer_provider=spans.provider) as namespace,
    ):
        caller = untraced.create_workflow("flow", run=run, max_attempts=2, backoff=AT_ONCE)
        async with namespace.create_workflow("flow", run=run).worker():
            jobs = await caller.run_many([None] * 40)
            await asyncio.gather(*(job.wait(timeout=30) for job in jobs))
    sampled = Counter(attributes_of(span)["lanner.job.id"] for span in spans.ended)
    assert set(sampled.values()) <= {3}
    assert (0 < len(sampled) < 40) == (sampler is not ALWAYS_OFF)
