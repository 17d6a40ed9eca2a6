"""A process that neither enqueues nor works waits for jobs of others, and needs none of their classes."""

import asyncio
import sys
import textwrap
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lanner import Context, WorkflowNamespace
from support.commands import Command, running
from support.servers import Server

WAITER = """
    import asyncio
    import sys

    from lanner import Context, JobFailedError, WorkflowNamespace

    async def elsewhere(_: Context[int]) -> int:
        raise AssertionError("this process only waits")

    async def main(url: str, namespace: str, job_id: str) -> None:
        async with WorkflowNamespace(namespace, redis=url) as ns:
            job = ns.create_workflow("flow", run=elsewhere).get_job(job_id)
            print("state:", await job.state(), flush=True)
            try:
                print("result:", await job.wait(timeout=60), flush=True)
            except JobFailedError as error:
                print("failed:", error.type, "|", error.message, "|", error.__cause__, flush=True)
                print(error.traceback, flush=True)

    asyncio.run(main(*sys.argv[1:]))
"""


@contextmanager
def waiting_for(job_id: str, directory: Path, server: Server, namespace: str) -> Generator[Command]:
    """A process that waits for a job whose id it was told."""
    directory.mkdir()
    program = textwrap.dedent(WAITER)
    command = (sys.executable, "-W", "error", "-c", program, server.url, namespace, job_id)
    with running(*command, directory=directory, environment={}) as process:
        yield process


async def test_another_process_may_wait_before_during_and_after_the_run(
    server: Server, namespace_id: str, tmp_path: Path
) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def run(ctx: Context[int]) -> int:
        begun.set()
        await go_on.wait()
        return ctx.input * 2

    async with WorkflowNamespace(namespace_id, redis=server.url) as ns:
        workflow = ns.create_workflow("flow", run=run)
        job = await workflow.run(21)
        with waiting_for(job.id, tmp_path / "before", server, namespace_id) as before:
            await before.until_it_says("state: waiting")
            async with workflow.worker():
                await begun.wait()
                with waiting_for(job.id, tmp_path / "during", server, namespace_id) as during:
                    await during.until_it_says("state: active")
                    go_on.set()
                    await during.until_it_says("result: 42")
                await before.until_it_says("result: 42")
            with waiting_for(job.id, tmp_path / "after", server, namespace_id) as after:
                await after.until_it_says("state: completed")
                await after.until_it_says("result: 42")
                assert [await each.exit_code() for each in (before, after)] == [0, 0]


class CardDeclinedError(Exception):
    """Cannot be made from its message alone, and must not be made where it is only read of."""

    made = 0

    def __init__(self, *, card: str, reason: str) -> None:
        super().__init__(f"{card}: {reason}")
        type(self).made += 1

    def __reduce__(self) -> Any:
        raise AssertionError("it is not to be pickled")


@pytest.mark.parametrize("in_step", [True, False])
async def test_an_error_whose_class_another_process_does_not_have_is_read_there_as_text(
    server: Server, namespace_id: str, tmp_path: Path, *, in_step: bool
) -> None:
    async def charge() -> None:
        raise CardDeclinedError(card="1234", reason="no cover")

    async def run(ctx: Context[int]) -> int:
        await (ctx.step.do("charge", charge) if in_step else charge())
        return 1

    made = CardDeclinedError.made
    async with WorkflowNamespace(namespace_id, redis=server.url) as ns:
        workflow = ns.create_workflow("flow", run=run)
        job = await workflow.run(1)
        with waiting_for(job.id, tmp_path / "elsewhere", server, namespace_id) as elsewhere:
            await elsewhere.until_it_says("state: waiting")
            async with workflow.worker():
                await elsewhere.until_it_says("failed: CardDeclinedError | 1234: no cover | None")
                await elsewhere.until_it_says("in charge")
            assert await elsewhere.exit_code() == 0
        await workflow.remove(job.id)
    assert CardDeclinedError.made == made + 1
