"""What is measured of jobs: how long they wait and run, how they end, and how many there are of them."""

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import anyio
import pytest

from lanner import Backoff, Context, Job, JobFailedError, NonRetryableError, RetryAfter, SyncContext, WorkflowNamespace
from support.measured import Measured
from support.proxy import Proxy
from support.servers import Server
from support.waiting import wait_until

AT_ONCE = Backoff(first=0)


@pytest.fixture
def measured() -> Iterator[Measured]:
    measured = Measured()
    yield measured
    measured.close()


@pytest.fixture
async def namespace(server: Server, namespace_id: str, measured: Measured) -> AsyncIterator[WorkflowNamespace]:
    async with WorkflowNamespace(namespace_id, redis=server.url, meter_provider=measured.provider) as namespace:
        yield namespace


async def is_in(job: Job[Any], state: str) -> bool:
    return await job.state() == state


async def echo(ctx: Context[Any]) -> Any:
    return ctx.input


async def test_jobs_are_counted_by_how_they_end(namespace: WorkflowNamespace, measured: Measured) -> None:
    async def run(ctx: Context[str]) -> None:
        if ctx.input == "retry" and ctx.attempt < 3:
            raise ValueError
        if ctx.input == "fail":
            raise NonRetryableError

    workflow = namespace.create_workflow("flow", run=run, max_attempts=3, backoff=AT_ONCE)
    async with workflow.worker():
        for what in ("fine", "fine", "retry"):
            await workflow.execute(what, timeout=30)
        with pytest.raises(JobFailedError):
            await workflow.execute("fail", timeout=30)
        counted = {"namespace": namespace.id, "workflow": "flow"}
        await wait_until(lambda: measured.number("lanner.jobs.failed", **counted))
    assert measured.number("lanner.jobs.completed", **counted) == 3
    assert measured.number("lanner.jobs.retried", **counted) == 2
    assert measured.number("lanner.jobs.failed", **counted) == 1


async def test_a_job_that_is_undone_has_failed_once(namespace: WorkflowNamespace, measured: Measured) -> None:
    async def run(ctx: Context[None]) -> None:
        ctx.on_failure("undo", lambda: None)
        raise NonRetryableError

    workflow = namespace.create_workflow("flow", run=run)
    async with workflow.worker():
        with pytest.raises(JobFailedError):
            await workflow.execute(None, timeout=30)
        await wait_until(lambda: measured.count("lanner.run.duration", outcome="failed") == 2)
    assert measured.number("lanner.jobs.failed") == 1


async def test_attempts_and_steps_are_timed(namespace: WorkflowNamespace, measured: Measured) -> None:
    async def refuse() -> None:
        raise ValueError

    async def run(ctx: Context[None]) -> None:
        await ctx.step.do("work", asyncio.sleep, 0.05)
        await ctx.step.wait_for_event("go on")
        if ctx.attempt == 1:
            await ctx.step.do("charge", refuse)

    workflow = namespace.create_workflow("flow", run=run, max_attempts=2, backoff=AT_ONCE)
    async with workflow.worker():
        job = await workflow.run(None)
        await wait_until(lambda: is_in(job, "parked"))
        await job.send_event("go on")
        await job.wait(timeout=30)
        await wait_until(lambda: measured.count("lanner.run.duration", outcome="completed"))
    for outcome in ("suspended", "retry", "completed"):
        assert measured.count("lanner.run.duration", workflow="flow", outcome=outcome) == 1
    assert measured.total("lanner.run.duration", outcome="suspended") >= 0.05
    # each step that ran, once: neither replays nor waits are times of a step
    assert measured.count("lanner.step.duration", step__name="work", outcome="completed") == 1
    assert measured.total("lanner.step.duration", step__name="work") >= 0.05
    assert measured.count("lanner.step.duration", step__name="charge", outcome="failed") == 1
    assert measured.count("lanner.step.duration") == 2


async def test_a_plain_workflow_is_measured_like_any(namespace: WorkflowNamespace, measured: Measured) -> None:
    def plain(ctx: SyncContext[None]) -> None:
        ctx.step.do("work", lambda: None)

    workflow = namespace.create_workflow("flow", run=plain)
    async with workflow.worker():
        await workflow.execute(None, timeout=30)
        await wait_until(lambda: measured.number("lanner.jobs.completed"))
    assert measured.count("lanner.run.duration", outcome="completed") == 1
    assert measured.count("lanner.step.duration", step__name="work") == 1


async def test_the_wait_is_from_when_a_job_could_start_to_when_it_first_did(
    namespace: WorkflowNamespace, measured: Measured
) -> None:
    began: dict[str, float] = {}

    async def run(ctx: Context[str]) -> None:
        began.setdefault(ctx.input, time.time())
        if ctx.input == "again" and ctx.attempt == 1:
            raise RetryAfter(0.3)
        if ctx.input == "asleep":
            await ctx.step.wait_for_event("go on")

    workflow = namespace.create_workflow("flow", run=run, max_attempts=2)
    added = {"late": time.time()}
    late = await workflow.run("late")
    await anyio.sleep(0.5)
    async with workflow.worker():
        await late.wait(timeout=30)
        assert 0.5 <= measured.total("lanner.queue.wait", workflow="flow") < began["late"] - added["late"] + 0.1
        before = measured.total("lanner.queue.wait")
        # its delay is no wait; nor is what comes after a first start: a backoff, a sleep
        added["delayed"] = time.time() + 0.5
        await (await workflow.run_in("delayed", 0.5)).wait(timeout=30)
        added["again"] = time.time()
        await workflow.execute("again", timeout=30)
        added["asleep"] = time.time()
        asleep = await workflow.run("asleep")
        await wait_until(lambda: is_in(asleep, "parked"))
        await anyio.sleep(0.5)
        await asleep.send_event("go on")
        await asleep.wait(timeout=30)
    assert measured.count("lanner.queue.wait") == 4
    waited = sum(began[name] - added[name] for name in ("delayed", "again", "asleep"))
    assert measured.total("lanner.queue.wait") - before < waited + 0.1


async def test_a_retry_by_hand_is_no_first_start(namespace: WorkflowNamespace, measured: Measured) -> None:
    async def run(ctx: Context[None]) -> None:
        if not mended:
            raise ValueError(ctx.attempt)

    mended = False
    workflow = namespace.create_workflow("flow", run=run)
    async with workflow.worker():
        job = await workflow.run(None)
        with pytest.raises(JobFailedError):
            await job.wait(timeout=30)
        mended = True
        await workflow.retry(job.id)
        await job.wait(timeout=30)
        await wait_until(lambda: measured.count("lanner.run.duration") == 2)
    assert measured.count("lanner.queue.wait") == 1


async def test_times_fall_into_buckets_from_milliseconds_to_a_day(
    namespace: WorkflowNamespace, measured: Measured
) -> None:
    workflow = namespace.create_workflow("flow", run=echo)
    async with workflow.worker():
        await workflow.execute(None, timeout=30)
    metrics = measured.metrics()
    for name in ("lanner.queue.wait", "lanner.run.duration"):
        (point,) = measured.points(name)
        assert metrics[name].unit == "s"
        assert (point.explicit_bounds[0], point.explicit_bounds[-1]) == (0.001, 86_400)  # type: ignore[union-attr]


JOBS, OLDEST = "lanner.queue.jobs", "lanner.queue.oldest"


async def test_gauges_tell_how_many_jobs_are_where_once_they_are_asked_for(
    namespace: WorkflowNamespace, measured: Measured
) -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    async def run(ctx: Context[str]) -> None:
        if ctx.input == "fail":
            raise NonRetryableError
        if ctx.input == "asleep":
            await ctx.step.wait_for_event("go on")
        started.set()
        await go_on.wait()

    workflow = namespace.create_workflow("flow", run=run)
    other = namespace.create_workflow("other", run=echo)
    async with workflow.worker(concurrency=1):
        with pytest.raises(JobFailedError):
            await workflow.execute("fail", timeout=30)
        asleep = await workflow.run("asleep")
        await wait_until(lambda: is_in(asleep, "parked"))
        await workflow.run("active")
        await started.wait()
        await workflow.run_many(["waiting"] * 3)
        await workflow.run_in("delayed", 3600)
        await other.run_in("delayed", 3600)
        assert measured.points(JOBS) == []
        with namespace.metrics():
            await anyio.sleep(0.05)
            found: dict[str, dict[str, float]] = {}
            for id in ("flow", "other"):
                states = ("active", "waiting", "delayed", "parked", "failed")
                found[id] = {state: measured.number(JOBS, workflow=id, state=state) for state in states}
            assert found == {
                "flow": {"active": 1, "waiting": 3, "delayed": 1, "parked": 1, "failed": 1},
                "other": {"active": 0, "waiting": 0, "delayed": 1, "parked": 0, "failed": 0},
            }
            assert 0.05 <= measured.number(OLDEST, namespace=namespace.id, workflow="flow") < 30
            assert measured.number(OLDEST, workflow="other") == 0
        assert measured.points(JOBS) == []
        go_on.set()
        await asleep.send_event("go on")
        await wait_until(lambda: is_in(asleep, "completed"))
    await workflow.remove_all("delayed")
    await other.remove_all("delayed")


async def test_gauges_can_be_collected_in_any_thread(namespace: WorkflowNamespace, measured: Measured) -> None:
    workflow = namespace.create_workflow("flow", run=echo)
    await workflow.run_in(None, 3600)
    with namespace.metrics():
        # in that of the event loop, as a scrape that a web framework answers; in others, as exporters do
        assert measured.number(JOBS, state="delayed") == 1
        assert await anyio.to_thread.run_sync(lambda: measured.number(JOBS, state="delayed")) == 1
    await workflow.remove_all("delayed")


async def test_between_collections_nothing_is_read(measured: Measured, proxy: Proxy, namespace_id: str) -> None:
    async with WorkflowNamespace(namespace_id, redis=proxy.url, meter_provider=measured.provider) as namespace:
        namespace.create_workflow("flow", run=echo)
        with namespace.metrics():
            await anyio.to_thread.run_sync(measured.points, JOBS)
            asked = proxy.requests_with("EVALSHA")
            assert asked > 0
            await anyio.sleep(0.3)
            assert proxy.requests_with("EVALSHA") == asked
            await anyio.to_thread.run_sync(measured.points, JOBS)
            assert proxy.requests_with("EVALSHA") > asked


async def test_metrics_leave_nothing_behind(namespace: WorkflowNamespace, measured: Measured) -> None:
    def threads() -> list[str]:
        return [thread.name for thread in threading.enumerate() if thread.name == "lanner metrics"]

    namespace.create_workflow("flow", run=echo)
    metrics = namespace.metrics()
    assert threads() == []
    for _ in range(3):
        metrics.start()
        metrics.start()
        assert len(threads()) == 1
        assert len(measured.points(JOBS)) == 5
        metrics.stop()
        metrics.stop()
        assert threads() == []
        assert measured.points(JOBS) == []


async def test_two_namespaces_report_side_by_side(
    server: Server, namespace_id: str, measured: Measured, caplog: pytest.LogCaptureFixture
) -> None:
    names = [f"{namespace_id}-a", f"{namespace_id}-b"]
    async with (
        WorkflowNamespace(names[0], redis=server.url, meter_provider=measured.provider) as first,
        WorkflowNamespace(names[1], redis=server.url, meter_provider=measured.provider) as second,
    ):
        for number, namespace in enumerate((first, second), start=1):
            workflow = namespace.create_workflow("flow", run=echo)
            for _ in range(number):
                await workflow.run_in(None, 3600)
        with first.metrics(), second.metrics():
            assert [measured.number(JOBS, namespace=name, state="delayed") for name in names] == [1, 2]
        async with first.worker(), second.worker():
            for namespace in (first, second):
                await namespace.workflows[0].execute(None, timeout=30)
        assert [measured.number("lanner.jobs.completed", namespace=name) for name in names] == [1, 1]
        for namespace in (first, second):
            await namespace.workflows[0].remove_all("delayed")
    assert [record for record in caplog.records if record.name.startswith("opentelemetry")] == []


async def test_while_redis_is_away_gauges_are_silent(
    measured: Measured, proxy: Proxy, namespace_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "lanner")

    async def counted() -> bool:
        found = await anyio.to_thread.run_sync(measured.points, JOBS)
        assert len(found) in (0, 5)
        return bool(found)

    async with WorkflowNamespace(
        namespace_id, redis=proxy.url, meter_provider=measured.provider, producer_timeout=0.5
    ) as namespace:
        namespace.create_workflow("flow", run=echo)
        with namespace.metrics():
            await wait_until(counted)
            await proxy.refuse()
            assert not await counted()
            await proxy.accept()
            await wait_until(counted)
    said = {record.getMessage().partition(":")[0] for record in caplog.records}
    assert f"the jobs of namespace {namespace_id!r} could not be counted" in said


async def test_without_a_provider_nothing_is_measured(server: Server, namespace_id: str, measured: Measured) -> None:
    async with WorkflowNamespace(namespace_id, redis=server.url) as namespace:
        workflow = namespace.create_workflow("flow", run=echo)
        async with workflow.worker():
            await workflow.execute(None, timeout=30)
        with namespace.metrics():  # the API's own provider takes it, and does nothing
            assert measured.metrics() == {}
