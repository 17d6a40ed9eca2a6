"""A job that sleeps is a record in Redis and nothing else, and goes on at its instant."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from lanner import Context, JobSuspended, SyncContext, Workflow, WorkflowNamespace
from support.jobs import PATIENCE, RELIES_ON_WAKING, Look
from support.servers import PrivateServer, Server
from support.waiting import wait_until

HOUR = timedelta(hours=1)


@pytest.mark.parametrize("kind", ["a wait", "an event", "a plain workflow"])
async def test_while_a_job_sleeps_every_slot_is_free_for_others(server: Server, namespace_id: str, kind: str) -> None:
    async def sleep(ctx: Context[timedelta | None]) -> str:
        if ctx.input:
            await (ctx.step.wait("long", ctx.input) if kind == "a wait" else ctx.step.wait_for_event("never"))
        return "done"

    def sleep_plainly(ctx: SyncContext[timedelta | None]) -> str:
        if ctx.input:
            ctx.step.wait("long", ctx.input)
        return "done"

    async with WorkflowNamespace(namespace_id, redis=server.url, concurrency=1) as ns:
        workflow: Workflow[timedelta | None, str] = (
            ns.create_workflow("flow", run=sleep_plainly, concurrency=1, group_concurrency=1)
            if kind == "a plain workflow"
            else ns.create_workflow("flow", run=sleep, concurrency=1, group_concurrency=1)
        )
        async with workflow.worker(concurrency=1, safety=RELIES_ON_WAKING):
            sleeper = await workflow.run(HOUR, group="ada")
            # the same group, workflow, namespace and worker, one slot each
            assert await workflow.execute(None, group="ada", timeout=PATIENCE) == "done"
            assert await sleeper.state() in {"delayed", "parked"}
        await workflow.remove(sleeper.id)


@pytest.mark.parametrize("duration", [timedelta(days=365), timedelta(days=400 * 365)])
async def test_a_job_may_sleep_for_years(server: Server, namespace_id: str, duration: timedelta) -> None:
    async def sleep(ctx: Context[None]) -> None:
        await ctx.step.wait("long", duration)

    async with WorkflowNamespace(namespace_id, redis=server.url) as ns:
        workflow = ns.create_workflow("flow", run=sleep)
        before = datetime.now(UTC)
        async with workflow.worker():
            async for event in workflow.run_and_watch(None, id="a"):
                if isinstance(event, JobSuspended):
                    assert event.value is not None
                    # another machine's clock, which may be another one than Redis'
                    assert abs(event.value - before - duration) < timedelta(minutes=5)
                    break
        assert (await workflow.counts()).delayed == 1
        await workflow.remove("a")


async def test_a_sleeping_job_survives_a_restart_of_redis_and_of_every_worker(own_server: PrivateServer) -> None:
    ran: list[str] = []

    async def note(what: str) -> None:
        ran.append(what)

    async def sleep(ctx: Context[None]) -> int:
        await ctx.step.do("before", note, "before")
        await ctx.step.wait("a while", 3)
        await ctx.step.do("after", note, "after")
        return ctx.attempt

    async with WorkflowNamespace("first", redis=own_server.url) as ns:
        workflow = ns.create_workflow("flow", run=sleep)
        # it comes to its sleep while its worker stops, which does not claim it again
        async with workflow.worker():
            job = await workflow.run(None)
            await wait_until(lambda: ran)
    await asyncio.to_thread(own_server.restart)
    async with WorkflowNamespace("first", redis=own_server.url) as ns:
        workflow = ns.create_workflow("flow", run=sleep)
        assert await workflow.get_job(job.id).state() == "delayed"
        async with workflow.worker(safety=RELIES_ON_WAKING):
            assert await workflow.get_job(job.id).wait(PATIENCE) == 1
    assert ran == ["before", "after"]


async def test_an_idle_worker_wakes_for_each_sleeper_not_before_its_instant_and_no_attempt_is_used(
    server: Server, namespace_id: str, look: Look
) -> None:
    early: list[timedelta] = []

    def redis_time() -> datetime:
        return datetime.fromtimestamp(look.now() / 1000, UTC)

    async def sleep(ctx: Context[list[datetime]]) -> int:
        for number, instant in enumerate(ctx.input):
            await ctx.step.wait_until(f"wait {number}", instant)
            if redis_time() < instant:
                early.append(instant - redis_time())
        return ctx.attempt

    async with WorkflowNamespace(namespace_id, redis=server.url) as ns:
        workflow = ns.create_workflow("flow", run=sleep, max_attempts=1)
        # nothing but the exact instant brings a sleeper back in time
        async with workflow.worker(concurrency=1, safety=RELIES_ON_WAKING):
            now = redis_time()
            pairs = [(1.2, 2.9), (1.6, 1.7), (1.3, 3.3), (1.9, 4.0)]
            jobs = await workflow.run_many([[now + timedelta(seconds=each) for each in pair] for pair in pairs])
            assert await asyncio.gather(*(job.wait(PATIENCE) for job in jobs)) == [1, 1, 1, 1]
    assert early == []
