"""One trace from who enqueues a job through the queue, all of its attempts and sleeps, and its children."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import SpanKind

from lanner import (
    Backoff,
    Context,
    Flow,
    Job,
    JobAlreadyExistsError,
    JobCancelledError,
    JobFailedError,
    NonRetryableError,
    StepFailedError,
    SyncContext,
    WorkflowNamespace,
)
from support.jobs import Look
from support.servers import Server
from support.spans import Spans, attributes_of, has_failed, id_of, parent_of, trace_of
from support.waiting import wait_until

AT_ONCE = Backoff(first=0)
# what is left of it when a slow machine comes to suspend its job must be more than a second
SLEEP = timedelta(seconds=3)


@pytest.fixture
def spans() -> Spans:
    return Spans()


@pytest.fixture
async def namespace(server: Server, namespace_id: str, spans: Spans) -> AsyncIterator[WorkflowNamespace]:
    async with WorkflowNamespace(namespace_id, redis=server.url, tracer_provider=spans.provider) as namespace:
        yield namespace


async def is_in(job: Job[Any], state: str) -> bool:
    return await job.state() == state


async def nothing(*_: Any) -> None: ...


async def echo(ctx: Context[Any]) -> Any:
    return ctx.input


async def test_a_job_is_one_trace_from_its_caller_through_queue_retries_and_sleeps(
    namespace: WorkflowNamespace, spans: Spans
) -> None:
    async def run(ctx: Context[None]) -> str:
        await ctx.step.do("prepare", nothing)
        await ctx.step.wait("a moment", SLEEP)
        if ctx.attempt == 1:
            raise ValueError("not yet")
        return await ctx.step.wait_for_event("approved", type=str)

    workflow = namespace.create_workflow("flow", run=run, max_attempts=2, backoff=AT_ONCE)
    async with workflow.worker():
        with spans.provider.get_tracer("app").start_as_current_span("request"):
            job = await workflow.run(None)
        await wait_until(lambda: is_in(job, "parked"))
        await job.send_event("approved", "yes")
        assert await job.wait(timeout=30) == "yes"
        await wait_until(spans.has("process flow", 4))
    assert spans.tree() == [
        "request",
        "  send flow",
        "    process flow",
        "      step prepare",
        "      step a moment",
        "    process flow",
        "    process flow",
        "      step approved",
        "    process flow",
        "      step approved",
    ]
    assert len({trace_of(span) for span in spans.ended}) == 1
    runs = [attributes_of(span) for span in spans.named("process flow")]
    assert [run["lanner.attempt"] for run in runs] == [1, 1, 2, 2]
    assert [run["lanner.outcome"] for run in runs] == ["suspended", "retry", "suspended", "completed"]
    # finished steps are replayed, which is no span of theirs
    assert [run.get("lanner.steps.replayed") for run in runs] == [None, 2, 2, 2]
    waits = [attributes_of(span)["lanner.outcome"] for span in spans.named("step approved")]
    assert waits == ["interrupted", "completed"]


async def test_a_failed_attempt_is_an_error_and_a_sleep_is_none(namespace: WorkflowNamespace, spans: Spans) -> None:
    async def refuse() -> None:
        raise LookupError("no such card")

    async def run(ctx: Context[None]) -> None:
        await ctx.step.wait("a moment", SLEEP)
        await ctx.step.do("charge", refuse)

    workflow = namespace.create_workflow("flow", run=run, max_attempts=2, backoff=Backoff(first=timedelta(seconds=0.5)))
    async with workflow.worker():
        job = await workflow.run(None)
        with pytest.raises(JobFailedError):
            await job.wait(timeout=30)
        await wait_until(spans.has("process flow", 3))
    asleep, retried, failed = spans.named("process flow")
    assert not has_failed(asleep)
    assert asleep.events == ()
    until = datetime.fromisoformat(attributes_of(asleep)["lanner.sleep.until"])
    assert timedelta(0) < until - datetime.now(UTC) + timedelta(seconds=30) < timedelta(seconds=60)
    for span, outcome in ((retried, "retry"), (failed, "failed")):
        assert has_failed(span)
        assert span.status.description == "no such card"
        assert attributes_of(span)["error.type"] == "LookupError"
        assert attributes_of(span)["lanner.outcome"] == outcome
        (event,) = span.events
        assert event.name == "exception"
        told = event.attributes or {}
        assert told["exception.type"] == "LookupError"
        assert told["exception.message"] == "no such card"
        assert 'raise LookupError("no such card")' in str(told["exception.stacktrace"])
    assert 0 <= attributes_of(retried)["lanner.retry.delay"] <= 0.5
    for step in spans.named("step charge"):
        assert has_failed(step)
        assert attributes_of(step)["lanner.outcome"] == "failed"
    assert [has_failed(span) for span in spans.named("step a moment")] == [False]


async def test_a_span_says_what_it_is_about(namespace: WorkflowNamespace, spans: Spans) -> None:
    async def run(ctx: Context[str]) -> None:
        with ctx.step.scope("item 7"):
            await ctx.step.do("pack", nothing)

    workflow = namespace.create_workflow("flow", run=run, get_group_id=lambda tenant: tenant)
    async with workflow.worker() as worker:
        await (await workflow.run("acme", id="one")).wait(timeout=30)
        await wait_until(spans.has("process flow"))
    shared = {"lanner.namespace": namespace.id, "lanner.workflow": "flow", "lanner.job.id": "one"}
    messaging = {"messaging.system": "lanner", "messaging.destination.name": "flow", "messaging.message.id": "one"}
    sent, processed, step = spans.one("send flow"), spans.one("process flow"), spans.one("step pack")
    assert sent.kind is SpanKind.PRODUCER
    assert attributes_of(sent) == {
        **shared,
        **messaging,
        "messaging.operation.name": "run",
        "messaging.operation.type": "send",
    }
    assert processed.kind is SpanKind.CONSUMER
    assert attributes_of(processed) == {
        **shared,
        **messaging,
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.client.id": worker.id,
        "lanner.group": "acme",
        "lanner.attempt": 1,
        "lanner.outcome": "completed",
    }
    assert step.kind is SpanKind.INTERNAL
    assert attributes_of(step) == {
        **shared,
        "lanner.step.name": "pack",
        "lanner.step.path": "item 7/pack",
        "lanner.step.kind": "do",
        "lanner.attempt": 1,
        "lanner.outcome": "completed",
    }
    assert {span.instrumentation_scope.name for span in spans.ended if span.instrumentation_scope} == {"lanner"}


async def test_every_call_that_enqueues_has_a_span_that_the_job_belongs_to(
    namespace: WorkflowNamespace, spans: Spans
) -> None:
    workflow = namespace.create_workflow("flow", run=echo)
    async with workflow.worker():
        await (await workflow.run(1)).wait(timeout=30)
        await (await workflow.run_in(2, 0.01)).wait(timeout=30)
        await (await workflow.run_at(3, datetime.now(UTC))).wait(timeout=30)
        assert await workflow.execute(4, timeout=30) == 4
        assert [event.kind async for event in workflow.run_and_watch(5)][-1] == "completed"
        for job in await workflow.run_many([6, 7]):
            await job.wait(timeout=30)
        assert await workflow.execute_many([12, 13]) == [12, 13]
        await workflow.upsert_schedule("yearly", "0 0 1 1 *", 8)
        await (await workflow.trigger_schedule("yearly")).wait(timeout=30)
        await (await namespace.run_flow(Flow(workflow, 9, children=[Flow(workflow, 10)]))).wait(timeout=30)
        async with namespace.pending() as pending:
            collected = pending.run(workflow, 11)
        await collected.wait(timeout=30)
        await wait_until(spans.has("process flow", 13))
    await workflow.remove_schedule("yearly")
    sent = spans.named("send flow")
    assert [attributes_of(span)["messaging.operation.name"] for span in sent] == [
        *("run", "run_in", "run_at", "execute", "run_and_watch", "run_many", "execute_many"),
        *("trigger_schedule", "run_flow", "pending"),
    ]
    below = {
        id_of(span): [each for each in spans.named("process flow") if parent_of(each) == id_of(span)] for span in sent
    }
    assert [len(below[id_of(span)]) for span in sent] == [1, 1, 1, 1, 1, 2, 2, 1, 2, 1]
    for span in sent[:5]:
        assert (
            attributes_of(span)["messaging.message.id"] == attributes_of(below[id_of(span)][0])["messaging.message.id"]
        )
    for several in (5, 6, 8):
        assert attributes_of(sent[several])["messaging.batch.message_count"] == 2
    assert [has_failed(span) for span in spans.ended] == [False] * len(spans.ended)


async def test_a_call_that_fails_is_an_error_of_its_span(namespace: WorkflowNamespace, spans: Spans) -> None:
    async def refuse(_: Context[None]) -> None:
        raise ValueError("no")

    workflow = namespace.create_workflow("flow", run=refuse)
    await workflow.run_in(None, 60, id="a")
    with pytest.raises(JobAlreadyExistsError):
        await workflow.run(None, id="a")
    async with workflow.worker():
        with pytest.raises(JobFailedError):
            await workflow.execute(None, timeout=30)
    first, second, third = spans.named("send flow")
    assert not has_failed(first)
    assert has_failed(second)
    assert attributes_of(second)["error.type"] == "JobAlreadyExistsError"
    assert has_failed(third)
    assert attributes_of(third)["error.type"] == "JobFailedError"
    await workflow.remove("a")


async def test_what_a_step_does_belongs_to_its_span(namespace: WorkflowNamespace, spans: Spans) -> None:
    tracer = spans.provider.get_tracer("app")

    async def call(name: str) -> None:
        with tracer.start_as_current_span(name):
            await asyncio.sleep(0)

    def in_thread() -> None:
        with tracer.start_as_current_span("in a thread"):
            pass

    async def outer(ctx: Context[None]) -> None:
        await ctx.step.do("inner", call, "deep")

    async def run(ctx: Context[None]) -> None:
        with tracer.start_as_current_span("own"):
            await ctx.step.do("outer", outer, ctx)
        await asyncio.gather(ctx.step.do("left", call, "a"), ctx.step.do("right", call, "b"))
        await ctx.step.do("plain", in_thread)

    workflow = namespace.create_workflow("flow", run=run)
    async with workflow.worker():
        await workflow.execute(None, timeout=30)
    tree = spans.tree()
    assert tree[:6] == [
        "send flow",
        "  process flow",
        "    own",
        "      step outer",
        "        step inner",
        "          deep",
    ]
    assert sorted(tree[6:10]) == sorted(["    step left", "      a", "    step right", "      b"])
    assert tree[tree.index("    step left") + 1] == "      a"
    assert tree[tree.index("    step right") + 1] == "      b"
    assert tree[10:] == ["    step plain", "      in a thread"]


async def test_a_plain_workflow_is_traced_like_any(namespace: WorkflowNamespace, spans: Spans) -> None:
    def plain(ctx: SyncContext[None]) -> None:
        ctx.span.set_attribute("mine", "plain")

        def work() -> None:
            with spans.provider.get_tracer("app").start_as_current_span("work"):
                pass

        ctx.step.do("step", work)
        ctx.step.wait("moment", 0.01)
        with spans.provider.get_tracer("app").start_as_current_span("after"):
            pass

    workflow = namespace.create_workflow("flow", run=plain)
    async with workflow.worker():
        await workflow.execute(None, timeout=30)
    assert spans.tree() == [
        "send flow",
        "  process flow",
        "    step step",
        "      work",
        "    step moment",
        "    after",
    ]
    assert attributes_of(spans.one("process flow"))["mine"] == "plain"


async def test_a_run_sets_attributes_and_events_on_its_own_span(namespace: WorkflowNamespace, spans: Spans) -> None:
    seen: list[bool] = []

    async def run(ctx: Context[None]) -> None:
        seen.append(ctx.span.recording)
        ctx.span.set_attribute("order.total", 99.5)
        ctx.span.set_attributes({"order.id": "a", "order.tags": ["x", "y"]})
        ctx.span.add_event("looked up", {"rows": 3})
        ctx.span.add_event("bare")
        # from inside a step it is still the run's
        await ctx.step.do("step", deep, ctx)
        assert ctx.span.otel is trace.get_current_span()

    async def deep(ctx: Context[None]) -> None:
        ctx.span.set_attribute("depth", 2)
        assert ctx.span.otel is not trace.get_current_span()

    workflow = namespace.create_workflow("flow", run=run)
    async with workflow.worker():
        await workflow.execute(None, timeout=30)
    span = spans.one("process flow")
    assert seen == [True]
    wanted = {"order.total": 99.5, "order.id": "a", "order.tags": ("x", "y"), "depth": 2}
    assert {name: attributes_of(span)[name] for name in wanted} == wanted
    assert [(event.name, dict(event.attributes or {})) for event in span.events] == [
        ("looked up", {"rows": 3}),
        ("bare", {}),
    ]


async def test_without_tracing_a_run_may_use_its_span_and_nothing_is_carried(
    server: Server, namespace_id: str, look: Look
) -> None:
    seen: list[Any] = []

    async def run(ctx: Context[None]) -> None:
        ctx.span.set_attribute("a", 1)
        ctx.span.set_attributes({"b": 2})
        ctx.span.add_event("c")
        seen.append((ctx.span.recording, ctx.span.otel))

    async with WorkflowNamespace(namespace_id, redis=server.url) as namespace:
        workflow = namespace.create_workflow("flow", run=run)
        async with workflow.worker():
            job = await workflow.run(None)
            await job.wait(timeout=30)
        assert (await job.record()).spec.trace == ""
    assert seen == [(False, None)]
    assert "trace" not in str(look.field("flow", job.id, "spec"))


async def test_a_run_that_is_ended_is_no_error(namespace: WorkflowNamespace, spans: Spans) -> None:
    begun: list[str] = []

    async def work(job_id: str) -> None:
        begun.append(job_id)
        await asyncio.Event().wait()

    async def run(ctx: Context[None]) -> None:
        await ctx.step.do("work", work, ctx.job_id)

    workflow = namespace.create_workflow("flow", run=run)
    async with workflow.worker(grace=0):
        job = await workflow.run(None)
        await wait_until(lambda: job.id in begun)
        await job.cancel("enough")
        with pytest.raises(JobCancelledError):
            await job.wait(timeout=30)
        handed_back = await workflow.run(None)
        await wait_until(lambda: handed_back.id in begun)
    await wait_until(spans.has("process flow", 2))
    cancelled, released = spans.named("process flow")
    assert attributes_of(cancelled)["lanner.outcome"] == "cancelled"
    assert attributes_of(released)["lanner.outcome"] == "released"
    assert [has_failed(span) for span in spans.ended] == [False] * len(spans.ended)
    assert {attributes_of(span)["lanner.outcome"] for span in spans.named("step work")} == {"interrupted"}
    await handed_back.cancel()


async def test_compensations_and_failures_that_are_kept_have_spans(namespace: WorkflowNamespace, spans: Spans) -> None:
    async def refuse() -> None:
        raise NonRetryableError("no way")

    async def run(ctx: Context[None]) -> None:
        ctx.on_failure("refund", nothing)
        try:
            await ctx.step.do("try", refuse)
        except (NonRetryableError, StepFailedError):
            await ctx.step.do("again", refuse)

    workflow = namespace.create_workflow("flow", run=run)
    async with workflow.worker():
        with pytest.raises(JobFailedError):
            await workflow.execute(None, timeout=30)
        await wait_until(spans.has("process flow", 2))
    undone = attributes_of(spans.one("step refund"))
    assert (undone["lanner.step.kind"], undone["lanner.outcome"]) == ("compensation", "completed")
    assert [has_failed(span) for span in (*spans.named("step try"), *spans.named("step again"))] == [True, True]
