"""Code that blocks the event loop: its worker keeps what it holds and says so, for as long as it may."""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Generator
from typing import Any

import pytest

from lanner.queue import Claim, Namespace
from support.jobs import PATIENCE, Desk, Look, worker_of
from support.proxy import Proxy
from support.servers import Server
from support.waiting import wait_until

# one that passes soon, and one that a machine which stands still for a moment does not let pass
LEASE, RENEWED_LEASE = 0.4, 3.0


@contextlib.contextmanager
def worker_in_a_thread(
    server: Server, namespace_id: str, handler: Callable[[Claim], Any], **settings: Any
) -> Generator[None]:
    """A worker of queue ``q`` with an event loop of its own, as another process has."""
    ready, stop = threading.Event(), threading.Event()

    async def work() -> None:
        async with (
            Namespace(namespace_id, redis=server.url) as namespace,
            worker_of(namespace.queue("q"), handler, **settings),
        ):
            ready.set()
            await asyncio.to_thread(stop.wait)

    thread = threading.Thread(target=lambda: asyncio.run(work()))
    thread.start()
    ready.wait()
    try:
        yield
    finally:
        stop.set()
        thread.join()


async def test_a_blocked_loop_keeps_its_jobs_and_is_named(
    namespace: Namespace, look: Look, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[tuple[float, list[str]]] = []

    def blocked_now() -> list[float]:
        return [seconds for seconds, ids in told if ids == ["blocks"]]

    async def block(claim: Claim) -> str:
        first, give_up = look.deadline("q", claim.id), time.monotonic() + PATIENCE

        def is_held_and_told_of() -> bool:
            return bool(blocked_now()) and look.deadline("q", claim.id) > first + 1.5 * RENEWED_LEASE * 1000

        while not is_held_and_told_of() and time.monotonic() < give_up:
            time.sleep(0.01)  # noqa: ASYNC251 - what is not to be done
        assert len(blocked_now()) == 1, "it is told of once, however long it takes"
        return claim.data

    def note(seconds: float, claims: list[Claim]) -> None:
        told.append((seconds, [claim.id for claim in claims]))

    queue = namespace.queue("q")
    look.hold_sweeps()
    async with worker_of(queue, block, lease=RENEWED_LEASE, warn_blocked=RENEWED_LEASE / 2, on_blocked=note):
        job = await queue.add("x", id="blocks")
        assert await job.wait(PATIENCE) == "x"
    assert (await job.record()).stalls == 0
    assert blocked_now()[0] > RENEWED_LEASE / 2
    said = [record.message for record in caplog.records if "event loop has been blocked" in record.message]
    assert any("q:blocks" in text for text in said)


async def test_a_loop_that_is_not_blocked_is_not_called_so_however_short_the_time_that_it_may_be(
    namespace: Namespace,
) -> None:
    told: list[float] = []

    def note(seconds: float, _: list[Claim]) -> None:
        told.append(seconds)

    async with worker_of(namespace.queue("q"), Desk(), warn_blocked=0.4, on_blocked=note):
        # longer than between two looks at it
        await asyncio.sleep(1.2)
    assert told == []


async def test_the_warning_of_a_blocked_loop_can_be_turned_off(
    namespace: Namespace, caplog: pytest.LogCaptureFixture
) -> None:
    async def block(_: Claim) -> None:
        time.sleep(3 * LEASE)  # noqa: ASYNC251 - what is not to be done

    queue = namespace.queue("q")
    async with worker_of(queue, block, lease=LEASE, warn_blocked=None):
        await (await queue.add("x")).wait(PATIENCE)
    assert "blocked" not in caplog.text


async def test_a_loop_that_is_blocked_for_too_long_loses_its_jobs(
    server: Server, namespace_id: str, namespace: Namespace
) -> None:
    queue, other = namespace.queue("q"), Desk(is_open=True)

    async def block(_: Claim) -> str:
        deadline = time.monotonic() + PATIENCE
        with worker_in_a_thread(server, namespace_id, other, lease=RENEWED_LEASE):
            while not other.started and time.monotonic() < deadline:
                time.sleep(0.01)  # noqa: ASYNC251 - what is not to be done
        return "too late"

    async with worker_of(queue, block, lease=LEASE, max_blocked=LEASE):
        assert await (await queue.add("in time", id="a")).wait(PATIENCE) == "in time"
    assert other.started == ["a"]


async def test_a_redis_that_hangs_is_not_taken_for_a_blocked_loop(
    namespace_id: str, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    """The thread that asks the loop whether it lives waits for Redis meanwhile."""
    caplog.set_level(logging.DEBUG, "lanner")
    desk, told = Desk(), list[float]()

    def note(blocked: float, _: list[Claim]) -> None:
        told.append(blocked)

    def tried(times: int) -> bool:
        return sum("leases were not renewed" in record.message for record in caplog.records) >= times

    async with Namespace(namespace_id, redis=proxy.url) as far:
        queue = far.queue("q")
        async with worker_of(queue, desk, lease=6, warn_blocked=1.8, on_blocked=note):
            job = await queue.add("x", id="runs")
            await desk.runs("runs")
            proxy.stall()
            await wait_until(lambda: tried(2), PATIENCE)
            proxy.flow()
            desk.open()
            await job.wait(PATIENCE)
    assert told == []
