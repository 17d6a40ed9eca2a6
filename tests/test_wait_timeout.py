"""How ``job.wait(timeout=...)`` treats short timeouts."""

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
