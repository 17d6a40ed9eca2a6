"""How ``job.wait(timeout=...)`` and ``execute(timeout=...)`` treat short timeouts."""

import pytest

from lanner import Context, JobFailedError, JobNotFoundError, WaitTimeoutError, WorkflowNamespace
from support.servers import Server


@pytest.mark.parametrize("short", [0, 0.000_001, 30])
async def test_what_has_ended_is_given_however_short_the_timeout(
    server: Server, namespace_id: str, short: float
) -> None:
    async def run(ctx: Context[bool]) -> str:
        if not ctx.input:
            raise ValueError("no")
        return "done"

    async with WorkflowNamespace(namespace_id, redis=server.url) as ns:
        workflow = ns.create_workflow("answer", run=run)
        async with workflow.worker():
            good, bad = await workflow.run_many([True, False])
            assert await good.wait(timeout=30) == "done"
            with pytest.raises(JobFailedError):
                await bad.wait(timeout=30)
            assert await workflow.get_job(good.id).wait(timeout=short) == "done"
            with pytest.raises(JobFailedError):
                await workflow.get_job(bad.id).wait(timeout=short)
            with pytest.raises(JobNotFoundError):
                await workflow.get_job("nothing").wait(timeout=short)


@pytest.mark.parametrize("short", [0, 0.05])
async def test_what_has_not_ended_is_told_when_the_timeout_is_over(
    server: Server, namespace_id: str, short: float
) -> None:
    async def run(ctx: Context[None]) -> None: ...

    async with WorkflowNamespace(namespace_id, redis=server.url, producer_timeout=60) as ns:
        workflow = ns.create_workflow("never", run=run)
        job = await workflow.run(None)
        with pytest.raises(WaitTimeoutError, match=f"had not ended after {short:g} s"):
            await job.wait(timeout=short)
        await job.cancel()


@pytest.mark.parametrize("short", [0, 0.001, 0.05])
async def test_what_is_said_to_go_on_has_been_added(server: Server, namespace_id: str, short: float) -> None:
    async def run(ctx: Context[str]) -> str:
        return ctx.input

    async with WorkflowNamespace(namespace_id, redis=server.url, producer_timeout=60) as ns:
        workflow = ns.create_workflow("answer", run=run)
        last = ""
        for _ in range(2):
            with pytest.raises(WaitTimeoutError, match=f"had not ended after {short:g} s; it goes on") as caught:
                await workflow.execute("x", timeout=short)
            last = caught.value.job_id
            assert await workflow.get_job(last).state() == "waiting"
        with pytest.raises(WaitTimeoutError, match=f"job {last!r} .* had not ended after {short:g} s; it goes on"):
            await workflow.execute("y", timeout=short, id=last, if_exists="return")
        async with workflow.worker():
            assert await workflow.get_job(last).wait(timeout=30) == "x"
        assert await workflow.execute("z", timeout=short, id=last, unique="retained", if_exists="return") == "x"
