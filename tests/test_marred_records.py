"""A record that something has marred, or that takes long to read, costs its own job at most."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from lanner import Backoff, Context, Job, JobFailedError, NonRetryableError, WorkflowNamespace
from lanner.queue.calling import Caller
from support.client import Client
from support.servers import Server
from support.waiting import wait_until

# more than a script sends along of one job's checkpoints
LARGE = "x" * 1_200_000


@pytest.fixture
async def namespace(server: Server, namespace_id: str) -> AsyncIterator[WorkflowNamespace]:
    async with WorkflowNamespace(namespace_id, redis=server.url) as namespace:
        yield namespace


class Told:
    """Callbacks of a worker, which keep what they are told."""

    def __init__(self) -> None:
        self.failures: list[str] = []
        self.errors: list[BaseException] = []

    def failed(self, _: Job[Any], error: BaseException) -> None:
        """An attempt has failed."""
        self.failures.append(type(error).__name__)

    def error(self, error: BaseException) -> None:
        """The worker has."""
        self.errors.append(error)


@pytest.mark.parametrize("path", ["//undos", "//undo"])
@pytest.mark.parametrize("watched", [False, True])
async def test_what_cannot_be_read_of_an_undoing_fails_its_job_and_no_other(
    namespace: WorkflowNamespace,
    client: Client,
    path: str,
    watched: bool,  # noqa: FBT001 - a case
) -> None:
    async def refund() -> None:
        raise OSError("the bank is away")

    async def order(ctx: Context[None]) -> None:
        ctx.on_failure("refund", refund)
        await ctx.step.do("charge", asyncio.sleep, 0)
        raise NonRetryableError("sold out")

    async def echo(ctx: Context[str]) -> str:
        return ctx.input

    orders = namespace.create_workflow("order", run=order, max_attempts=3, backoff=Backoff(first=0.5))
    echoes = namespace.create_workflow("echo", run=echo)
    told = Told()
    callbacks: dict[str, Any] = {"on_failed": told.failed, "on_error": told.error} if watched else {}
    async with namespace.worker(**callbacks):
        job = await orders.run(None)
        steps = f"{namespace.queues.base}:order:steps:{job.id}"
        await wait_until(lambda: client("HEXISTS", steps, "//undo"))
        client("HSET", steps, path, "marred")
        with pytest.raises(JobFailedError):
            await job.wait(timeout=60)
        assert await echoes.execute("still here", timeout=60) == "still here"
    assert not told.errors
    assert bool(told.failures) is watched


async def test_what_takes_long_to_read_does_not_time_out_before_it_is_undone(
    namespace: WorkflowNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_hash = Caller.read_hash
    timeout = 1.0

    async def slowly(self: Caller, key: str) -> dict[str, str]:
        await asyncio.sleep(1.3 * timeout)
        return await read_hash(self, key)

    monkeypatch.setattr(Caller, "read_hash", slowly)
    undone: list[str] = []

    async def refund() -> None:
        undone.append("refund")

    async def much() -> str:
        return LARGE

    async def order(ctx: Context[None]) -> None:
        ctx.on_failure("refund", refund)
        await ctx.step.do("charge", much)
        raise NonRetryableError("sold out")

    orders = namespace.create_workflow("order", run=order)
    async with orders.worker():
        with pytest.raises(JobFailedError, match="NonRetryableError: sold out"):
            await (await orders.run(None, timeout=timeout)).wait(timeout=60)
    assert undone == ["refund"]


async def test_an_attempt_that_hangs_after_its_checkpoints_were_read_times_out(namespace: WorkflowNamespace) -> None:
    begun: list[str] = []

    async def much() -> str:
        return LARGE

    async def order(ctx: Context[None]) -> None:
        begun.append(ctx.job_id)
        await ctx.step.do("charge", much)
        if len(begun) == 1:
            raise ValueError("again")
        await asyncio.Event().wait()

    orders = namespace.create_workflow("order", run=order)
    async with orders.worker():
        job = await orders.run(None, timeout=0.5, max_attempts=2, backoff=Backoff(first=0))
        with pytest.raises(JobFailedError, match="TimeoutError"):
            await job.wait(timeout=60)
    assert len(begun) == 2


@pytest.mark.parametrize("field", ["data", "steps"])
async def test_what_is_no_text_costs_its_own_job_at_most(
    namespace: WorkflowNamespace, client: Client, field: str
) -> None:
    async def order(ctx: Context[str]) -> str:
        await ctx.step.do("reserve", str, "a shelf")
        if await ctx.step.do("first", str, "yes") == "yes" and ctx.attempt == 1:
            raise OSError("the bank is away")
        return ctx.input

    orders = namespace.create_workflow("order", run=order, max_attempts=2, backoff=Backoff(first=0.01))
    job, other = await orders.run("cups", id="1"), await orders.run("plates", id="2")
    base = f"{namespace.queues.base}:order"
    key, name = (f"{base}:j:1", "data") if field == "data" else (f"{base}:steps:1", "reserve")
    client("EVAL", r"return redis.call('HSET', KEYS[1], ARGV[1], '\255')", 1, key, name)
    if field == "steps":
        client("HSET", f"{base}:j:1", "failures", 1)
    told = Told()
    async with namespace.worker(on_error=told.error):
        with pytest.raises(JobFailedError):
            await job.wait(timeout=60)
        assert await other.wait(timeout=60) == "plates"
    assert not told.errors
    assert (await job.record()).state == "failed"
