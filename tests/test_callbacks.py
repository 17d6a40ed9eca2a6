"""``on_failed`` is called after every attempt that has failed, ``on_error`` for what is wrong with the worker."""

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from lanner import (
    Backoff,
    Context,
    InvalidArgumentError,
    Job,
    JobCancelledError,
    JobFailedError,
    NonRetryableError,
    RedisUnavailableError,
    SerializationError,
    StepFailedError,
    SyncContext,
    Workflow,
    WorkflowNamespace,
)
from support.jobs import Look
from support.proxy import Proxy
from support.servers import Server
from support.waiting import wait_until

AT_ONCE = Backoff(first=0)


class Told:
    """A callback that keeps what it is told of.

    Attributes:
        jobs: The workflow and id of each job.
        errors: What they failed with.
        states: Where each job stood when the callback looked.
    """

    def __init__(self) -> None:
        self.jobs: list[tuple[str, str]] = []
        self.errors: list[BaseException] = []
        self.states: list[str] = []

    def __call__(self, job: Job[Any], error: BaseException) -> None:
        self.jobs.append((job.workflow, job.id))
        self.errors.append(error)

    async def and_look(self, job: Job[Any], error: BaseException) -> None:
        self(job, error)
        self.states.append(await job.state())

    def number(self, count: int) -> bool:
        return len(self.errors) >= count


@pytest.fixture
async def namespace(server: Server, namespace_id: str) -> AsyncIterator[WorkflowNamespace]:
    async with WorkflowNamespace(namespace_id, redis=server.url) as namespace:
        yield namespace


async def ended(job: Job[Any]) -> None:
    with pytest.raises((JobFailedError, JobCancelledError)):
        await job.wait(timeout=30)


class OutOfStockError(Exception):
    def __init__(self, item: str, left: int) -> None:
        super().__init__(item)
        self.left = left


async def test_every_failed_attempt_is_told_of_with_the_exception_itself(namespace: WorkflowNamespace) -> None:
    async def run(ctx: Context[str]) -> None:
        raise OutOfStockError(ctx.input, ctx.attempt)

    told = Told()
    workflow = namespace.create_workflow("flow", run=run, max_attempts=3, backoff=AT_ONCE)
    async with workflow.worker(on_failed=told):
        job = await workflow.run("tea", id="a")
        await ended(job)
        await wait_until(lambda: told.number(3))
    assert told.jobs == [("flow", "a")] * 3
    assert [type(error) for error in told.errors] == [OutOfStockError] * 3
    assert [error.left for error in told.errors if isinstance(error, OutOfStockError)] == [1, 2, 3]


async def test_the_callback_finds_the_job_as_the_failure_has_left_it(namespace: WorkflowNamespace) -> None:
    async def run(ctx: Context[None]) -> None:
        raise ValueError(ctx.attempt)

    told = Told()
    workflow = namespace.create_workflow("flow", run=run, max_attempts=2, backoff=Backoff(first=timedelta(hours=1)))
    async with namespace.worker(on_failed=told.and_look):
        job = await workflow.run(None)
        await wait_until(lambda: told.states)
        await wait_until(lambda: workflow.promote(job.id))
        await ended(job)
    # leaving the block waits for callbacks that still run
    assert told.states == ["delayed", "failed"]


async def failing_step(ctx: Context[Any]) -> None:
    def refuse() -> None:
        raise PermissionError("no")

    await ctx.step.do("refuse", refuse)


def plain(_: SyncContext[Any]) -> None:
    raise LookupError("nothing")


async def final(_: Context[Any]) -> None:
    raise NonRetryableError("never")


async def too_long(_: Context[Any]) -> None:
    await asyncio.sleep(60)


async def unstorable(ctx: Context[Any]) -> Any:
    return lambda: ctx


async def typed(ctx: Context[int]) -> None: ...


async def exits(_: Context[Any]) -> None:
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("run", "kind", "text"),
    [
        (failing_step, PermissionError, "no"),
        (plain, LookupError, "nothing"),
        (final, NonRetryableError, "never"),
        (too_long, TimeoutError, "longer than its timeout"),
        (unstorable, SerializationError, "its result cannot be stored"),
        (typed, SerializationError, "the input does not fit its schema"),
        (exits, SystemExit, "3"),
    ],
)
async def test_whatever_fails_an_attempt_is_told_of(
    namespace: WorkflowNamespace, run: Any, kind: type[BaseException], text: str
) -> None:
    told = Told()
    workflow: Workflow[Any, Any] = namespace.create_workflow("flow", run=run, timeout=1 if run is too_long else None)
    async with workflow.worker(on_failed=told):
        job = await workflow.queue.add('{"json":"x"}')
        with pytest.raises(JobFailedError):
            await job.wait(30)
        await wait_until(lambda: told.number(1))
    assert [type(error) for error in told.errors] == [kind]
    assert text in str(told.errors[0])


async def test_what_is_no_failure_is_not_told_of(namespace: WorkflowNamespace) -> None:
    async def run(ctx: Context[str]) -> str:
        if ctx.input == "event":
            await ctx.step.wait_for_event("go on")
        if ctx.input == "caught":
            try:
                await ctx.step.do("refuse", refuse)
            except (NonRetryableError, StepFailedError):
                return "caught"
        if ctx.input == "long":
            await asyncio.sleep(60)
        return ctx.input

    async def refuse() -> None:
        raise NonRetryableError("no")

    told = Told()
    workflow = namespace.create_workflow("flow", run=run, max_attempts=2)
    async with workflow.worker(on_failed=told, grace=0):
        assert await workflow.execute("fine", timeout=30) == "fine"
        assert await workflow.execute("caught", timeout=30) == "caught"
        sleeper = await workflow.run("event")
        await wait_until(lambda: is_in(sleeper, "parked"))
        await sleeper.send_event("go on")
        assert await sleeper.wait(timeout=30) == "event"
        long = await workflow.run("long")
        await wait_until(lambda: is_in(long, "active"))
        await long.cancel("enough")
        await ended(long)
        handed_back = await workflow.run("long")
        await wait_until(lambda: is_in(handed_back, "active"))
    assert told.errors == []
    await handed_back.cancel()


async def is_in(job: Job[Any], state: str) -> bool:
    return await job.state() == state


async def test_a_job_that_is_undone_has_failed_once(namespace: WorkflowNamespace) -> None:
    undone: list[str] = []

    async def run(ctx: Context[str]) -> None:
        ctx.on_failure("undo", undone.append, ctx.input)
        raise NonRetryableError("no way")

    told = Told()
    workflow = namespace.create_workflow("flow", run=run)
    async with workflow.worker(on_failed=told):
        await ended(await workflow.run("x"))
    assert undone == ["x"]
    assert [str(error) for error in told.errors] == ["no way"]


async def test_a_compensation_that_fails_is_told_of(namespace: WorkflowNamespace) -> None:
    async def spoil() -> None:
        raise OSError("cannot be undone")

    async def run(ctx: Context[None]) -> None:
        ctx.on_failure("undo", spoil)
        raise NonRetryableError("no way")

    told = Told()
    workflow = namespace.create_workflow("flow", run=run, backoff=AT_ONCE)
    async with workflow.worker(on_failed=told):
        await ended(await workflow.run(None))
    first, *others = told.errors
    assert isinstance(first, NonRetryableError)
    # the third time it is given up, and the failure of the job says so
    assert [(type(error), error.message) for error in others if isinstance(error, JobFailedError)] == [
        (JobFailedError, "cannot be undone")
    ] * 2


async def test_a_callback_that_raises_costs_nothing(
    namespace: WorkflowNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    async def run(ctx: Context[None]) -> int:
        if ctx.attempt < 3:
            raise ValueError(ctx.attempt)
        return ctx.attempt

    def broken(job: Job[Any], _: BaseException) -> None:
        raise RuntimeError(f"the pager is broken: {job.id}")

    async def broken_later(job: Job[Any], _: BaseException) -> None:
        await asyncio.sleep(0)
        raise RuntimeError(f"the pager is broken: {job.id}")

    workflow = namespace.create_workflow("flow", run=run, max_attempts=3, backoff=AT_ONCE)
    for callback in (broken, broken_later):
        caplog.clear()
        async with workflow.worker(on_failed=callback):
            assert await workflow.execute(None, timeout=30) == 3
        said = [record for record in caplog.records if record.name == "lanner.workflow.callbacks"]
        assert [record.getMessage() for record in said] == ["on_failed raised; the worker goes on"] * 2
        assert all(record.exc_info and "the pager is broken" in str(record.exc_info[1]) for record in said)


async def test_a_callback_that_does_not_end_is_cancelled_when_the_worker_stops(
    namespace: WorkflowNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lanner.workflow.callbacks.CLEAN_UP", 0.1)
    cancelled = asyncio.Event()

    async def hang(*_: Any) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async def run(_: Context[None]) -> None:
        raise ValueError

    workflow = namespace.create_workflow("flow", run=run)
    async with workflow.worker(on_failed=hang):
        await ended(await workflow.run(None))
    async with asyncio.timeout(10):
        await cancelled.wait()


async def test_on_error_is_told_once_an_outage_that_redis_is_gone(proxy: Proxy, namespace_id: str) -> None:
    errors: list[BaseException] = []

    async def run(_: Context[None]) -> str:
        return "done"

    async with (
        WorkflowNamespace(namespace_id, redis=proxy.url, producer_timeout=60) as namespace,
        WorkflowNamespace(namespace_id, redis=proxy.url, producer_timeout=1) as hasty,
    ):
        workflow = namespace.create_workflow("flow", run=run)
        async with workflow.worker(on_error=errors.append):
            assert await workflow.execute(None, timeout=30) == "done"
            assert errors == []
            await proxy.refuse()
            await wait_until(lambda: errors)
            for _ in range(2):  # time in which the worker fails to come back, again and again
                with pytest.raises(RedisUnavailableError):
                    await hasty.limits()
            assert len(errors) == 1
            await proxy.accept()
            assert await workflow.execute(None, timeout=30) == "done"
    assert "Redis" in str(errors[0]) or "connection" in str(errors[0])


async def test_on_error_is_told_of_a_schedule_that_cannot_be_fired(namespace: WorkflowNamespace, look: Look) -> None:
    errors: list[BaseException] = []

    async def keep(error: BaseException) -> None:
        errors.append(error)

    async def run(ctx: Context[None]) -> None: ...

    workflow = namespace.create_workflow("flow", run=run)
    await workflow.upsert_schedule("ticks", "* * * * * *", None, tz="Europe/Berlin")
    cadence = look("HGET", "flow:schedule:ticks", "cadence")
    look("HSET", "flow:schedule:ticks", "cadence", cadence.replace("Berlin", "Nowhere"))
    async with workflow.worker(on_error=keep):
        await wait_until(lambda: errors)
        await workflow.execute(None, timeout=30)
    assert "Europe/Nowhere" in str(errors[0])
    assert len(errors) == 1
    await workflow.remove_schedule("ticks")


async def test_on_error_is_told_what_breaks_the_worker(
    namespace: WorkflowNamespace, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL + 1)
    errors: list[BaseException] = []

    async def broken(_: object) -> None:
        raise RuntimeError("a wheel came off")

    monkeypatch.setattr("lanner.queue.listener.Listener.listen", broken)

    async def run(ctx: Context[None]) -> None: ...

    with pytest.raises(RuntimeError, match="a wheel came off"):
        await namespace.create_workflow("flow", run=run).work(on_error=errors.append)
    assert [str(error) for error in errors] == ["a wheel came off"]


async def test_a_callback_may_stop_its_worker(namespace: WorkflowNamespace) -> None:
    async def run(_: Context[None]) -> None:
        raise ValueError

    async def stop(*_: Any) -> None:
        await worker.stop()

    workflow = namespace.create_workflow("flow", run=run)
    worker = workflow.worker(on_failed=stop)
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        group.create_task(worker.run())
        await ended(await workflow.run(None))


@pytest.mark.parametrize("name", ["on_failed", "on_error"])
def test_what_is_no_function_is_refused(name: str) -> None:
    async def run(ctx: Context[None]) -> None: ...

    workflow = WorkflowNamespace("shop").create_workflow("flow", run=run)
    with pytest.raises(InvalidArgumentError, match=f"{name} must be a function, not 'log'"):
        workflow.worker(**{name: "log"})  # type: ignore[arg-type]
