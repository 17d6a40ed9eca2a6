import asyncio
from functools import partial

import pytest

from lanner.queue import Claim, Namespace, Worker
from support.jobs import PATIENCE, Desk, is_refused
from support.servers import Server
from support.waiting import wait_until


async def shout(claim: Claim) -> str:
    return claim.data.upper()


async def test_a_worker_whose_own_task_breaks_stops_and_says_so(
    redis_url: str, namespace_id: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with Namespace(namespace_id, redis=redis_url) as namespace:
        queue = namespace.queue("q")
        worker: Worker = queue.worker(shout)

        def broken(*_: object) -> None:
            raise ZeroDivisionError("a mistake of ours")

        monkeypatch.setattr("lanner.queue.settling.Settler._plan", broken)
        with pytest.raises(ZeroDivisionError):
            await worker.run()
        assert "has broken down" in caplog.text
        monkeypatch.undo()
        async with queue.worker(shout):
            assert await (await queue.add("hello")).wait(PATIENCE) == "HELLO"


async def test_a_worker_that_cannot_renew_any_more_stops_and_says_so(
    redis_url: str, namespace_id: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its jobs would be taken over one after the other, and run twice."""
    desk = Desk()

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a mistake of ours")

    async with Namespace(namespace_id, redis=redis_url) as namespace:
        queue = namespace.queue("q")
        running = asyncio.create_task(queue.worker(desk, lease=1, grace=0).run())
        # a worker that gets no processor for a lease may lose it
        job = await queue.add("hello", id="a", max_stalled=100)
        await desk.runs("a")
        monkeypatch.setattr("lanner.queue.lease.renew_claims", broken)
        with pytest.raises(ZeroDivisionError):
            await running
        assert "has broken down" in caplog.text
        monkeypatch.undo()
        async with queue.worker(shout):
            assert await job.wait(PATIENCE) == "HELLO"


@pytest.mark.parametrize("name", ["lanner settler", "lanner listener", "lanner duty"])
async def test_a_worker_whose_own_task_was_cancelled_by_others_keeps_no_job(
    redis_url: str, namespace_id: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """It would renew the leases of its jobs for ever, and run none of them."""
    monkeypatch.setattr("lanner.queue.worker.CLEAN_UP", 0.5)
    begun = asyncio.Event()

    async def hang(_: Claim) -> str:
        begun.set()
        await asyncio.sleep(3600)
        return ""

    async with Namespace(namespace_id, redis=redis_url) as namespace:
        queue = namespace.queue("q")
        running = asyncio.create_task(queue.worker(hang, lease=0.5).run())
        # a worker that gets no processor for a lease may lose it
        job = await queue.add("hello", max_stalled=100)
        await begun.wait()
        for task in asyncio.all_tasks():
            if task.get_name() == name:
                task.cancel()
        with pytest.raises(RuntimeError, match="somebody has cancelled"):
            await running
        async with queue.worker(shout, lease=0.5):
            assert await job.wait(PATIENCE) == "HELLO"


async def test_wrong_credentials_are_a_clear_error_and_end_no_worker(own_server: Server, namespace_id: str) -> None:
    with own_server.client() as client:
        client("CONFIG", "SET", "requirepass", "right")
        url = own_server.tcp_url
        async with Namespace(namespace_id, redis=url, producer_timeout=0.5) as stranger:
            await wait_until(partial(is_refused, stranger.queue("q"), "auth"))
        client("AUTH", "right")
        with_password = url.replace("redis://", "redis://:right@")
        async with Namespace(namespace_id, redis=with_password) as namespace:
            queue = namespace.queue("q")
            async with queue.worker(shout) as worker:
                client("CONFIG", "SET", "requirepass", "changed")
                client("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
                client("CONFIG", "SET", "requirepass", "right")
                job = await queue.add("hello")
                assert await job.wait(PATIENCE) == "HELLO"
                await wait_until(lambda: len(worker.runs) == 0)
        client("CONFIG", "SET", "requirepass", "")
