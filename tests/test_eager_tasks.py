"""A loop whose tasks begin in the moment they are made, as the standard library offers since Python 3.12."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from lanner import Context, RedisUnavailableError, WorkflowNamespace
from lanner.queue import Claim, Namespace, Queue
from support.jobs import PATIENCE, results_of
from support.proxy import Proxy
from support.servers import Server
from support.waiting import wait_until

JOBS = 300
# before 3.12 there are no such tasks, and the same must hold
EAGER: Any = getattr(asyncio, "eager_task_factory", None)


@pytest.fixture(autouse=True)
async def _eager() -> AsyncGenerator[None]:
    loop = asyncio.get_running_loop()
    loop.set_task_factory(EAGER)
    yield
    loop.set_task_factory(None)


async def double(number: int) -> int:
    return 2 * number


async def test_workflows_run(server: Server, namespace_id: str) -> None:
    async def run(ctx: Context[int]) -> int:
        doubled = await ctx.step.do("double", double, ctx.input)
        return sum(await asyncio.gather(*(ctx.step.do(f"again {n}", double, doubled) for n in range(3))))

    async with WorkflowNamespace(namespace_id, redis=server.url) as namespace:
        workflow = namespace.create_workflow("w", run=run)
        async with workflow.worker(concurrency=50):
            results = await asyncio.gather(*(workflow.execute(n, timeout=PATIENCE) for n in range(JOBS)))
    assert results == [12 * n for n in range(JOBS)]


async def test_handlers_that_never_wait_run(server: Server, namespace_id: str) -> None:
    async def handle(claim: Claim) -> str:
        return claim.data

    async with Namespace(namespace_id, redis=server.url) as namespace:
        queue = namespace.queue("q")
        async with queue.worker(handle, concurrency=50):
            jobs = await asyncio.gather(*(queue.add(str(n)) for n in range(JOBS)))
            assert await results_of(jobs) == [str(n) for n in range(JOBS)]


async def test_a_server_that_is_gone_is_told_of(proxy: Proxy, namespace_id: str) -> None:
    async with Namespace(namespace_id, redis=proxy.url, producer_timeout=0.3) as namespace:
        queue = namespace.queue("q")
        await wait_until(lambda: is_added(queue))
        await proxy.refuse()
        for _ in range(2):
            with pytest.raises(RedisUnavailableError):
                await queue.add("x")
        await proxy.accept()
        await wait_until(lambda: is_added(queue))


async def is_added(queue: Queue) -> bool:
    """Whether it was possible to add a job in the short time that there is for it."""
    try:
        await queue.add("x")
    except RedisUnavailableError:
        return False
    return True
