"""A namespace that is made once, at the top of a module, and used from whatever loop or process there is."""

import asyncio
import logging
import os
import threading
import warnings
from collections.abc import Coroutine

import pytest

from lanner import Context, Worker, Workflow, WorkflowNamespace
from lanner.queue import Namespace
from lanner.sync import sync
from support.jobs import PATIENCE

ATTEMPTS = 5


async def double(ctx: Context[int]) -> int:
    return 2 * ctx.input


def make(redis_url: str, namespace_id: str) -> tuple[WorkflowNamespace, Workflow[int, int]]:
    ns = WorkflowNamespace(namespace_id, redis=redis_url)
    return ns, ns.create_workflow("double", run=double)


def test_a_namespace_works_in_one_loop_after_another_and_leaves_no_connection_open(
    redis_url: str, namespace_id: str
) -> None:
    ns, workflow = make(redis_url, namespace_id)

    async def use(number: int) -> int:
        async with ns.worker(concurrency=2):
            return await workflow.execute(number, timeout=60)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert [asyncio.run(use(number)) for number in range(3)] == [0, 2, 4]
    assert [str(each.message) for each in caught if issubclass(each.category, ResourceWarning)] == []


def test_a_process_forked_from_a_running_worker_uses_connections_of_its_own(redis_url: str, namespace_id: str) -> None:
    ns, workflow = make(redis_url, namespace_id)

    async def use() -> None:
        for number in range(ATTEMPTS):
            assert await workflow.execute(number, timeout=60) == 2 * number

    def in_child() -> None:
        code = 1
        try:
            # the child is a copy of a process whose loop was running: it starts one of its own
            asyncio.events._set_running_loop(None)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
            asyncio.run(use())
            code = 0
        finally:
            os._exit(code)

    async def parent() -> int:
        async with ns, ns.worker(concurrency=2):
            await use()
            child = os.fork()
            if child == 0:
                in_child()
            await use()
            _, status = await asyncio.to_thread(os.waitpid, child, 0)
            await use()
            return os.waitstatus_to_exitcode(status)

    with warnings.catch_warnings():
        # the thread that keeps the leases is not copied, which the child has no use for
        warnings.simplefilter("ignore", DeprecationWarning)
        assert asyncio.run(parent()) == 0


@pytest.mark.parametrize("where", ["in a loop of its own", "by a blocking call"])
@pytest.mark.parametrize("how", ["as a program", "in the background"])
def test_closing_a_namespace_stops_a_worker_that_runs_in_another_loop(
    redis_url: str, namespace_id: str, how: str, where: str
) -> None:
    ns, workflow = make(redis_url, namespace_id)
    over, works = threading.Event(), threading.Event()
    worker = ns.worker(grace=60)

    async def work() -> None:
        if how == "as a program":
            asyncio.get_running_loop().call_soon(works.set)
            await worker.run()
        else:
            await worker.start()
            works.set()
            await asyncio.to_thread(over.wait)

    async def close() -> None:
        assert await workflow.execute(2, timeout=60) == 4
        await ns.aclose()

    thread = threading.Thread(target=lambda: asyncio.run(work()), daemon=True)
    thread.start()
    try:
        works.wait()
        if where == "by a blocking call":
            assert sync(workflow).execute(1, timeout=60) == 2
            sync(ns).close()
        else:
            asyncio.run(close())
    finally:
        over.set()
        thread.join(PATIENCE)
    assert not thread.is_alive()
    other = WorkflowNamespace(namespace_id, redis=redis_url)
    assert [each.departed for each in sync(other).workers()] == ["stopped"]
    sync(other).close()


@pytest.mark.parametrize("turns", range(8))
@pytest.mark.parametrize("first", ["the loop ends", "it is closed"])
def test_a_namespace_may_be_closed_while_its_loop_ends(
    redis_url: str, namespace_id: str, first: str, turns: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def later(what: Coroutine[None, None, None]) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        await what

    async def use_and_end() -> None:
        namespace = Namespace(namespace_id, redis=redis_url)
        await namespace.queue("q").counts()
        # as the end of a loop does it, while somebody in another loop closes the namespace
        ends, closes = asyncio.get_running_loop().shutdown_asyncgens(), namespace.aclose()
        await asyncio.gather(*((ends, later(closes)) if first == "the loop ends" else (closes, later(ends))))

    asyncio.run(use_and_end())
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_a_forked_process_that_closes_the_namespace_leaves_its_parent_s_worker_alone(
    redis_url: str, namespace_id: str
) -> None:
    ns, workflow = make(redis_url, namespace_id)

    def in_child() -> None:
        code = 1
        try:
            asyncio.events._set_running_loop(None)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
            asyncio.run(ns.aclose())
            code = 0
        finally:
            os._exit(code)

    async def parent() -> int:
        async with ns, ns.worker(concurrency=2):
            assert await workflow.execute(1, timeout=60) == 2
            child = os.fork()
            if child == 0:
                in_child()
            _, status = await asyncio.to_thread(os.waitpid, child, 0)
            assert await workflow.execute(2, timeout=60) == 4
            assert [each.departed for each in await ns.workers()] == [None]
            return os.waitstatus_to_exitcode(status)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # as above
        assert asyncio.run(parent()) == 0


@pytest.mark.parametrize("moment", ["before its start", "during its start", "at once after it", "while it works"])
async def test_a_worker_can_be_stopped_at_any_moment(redis_url: str, namespace_id: str, moment: str) -> None:
    ns, workflow = make(redis_url, namespace_id)
    async with ns:
        worker: Worker = workflow.worker()
        if moment == "before its start":
            await worker.stop()
            return
        starting = asyncio.create_task(worker.start())
        if moment == "during its start":
            await asyncio.sleep(0)
        else:
            await starting
        if moment == "while it works":
            assert await workflow.execute(1, timeout=60) == 2
        await worker.stop()
        await asyncio.wait([starting])
