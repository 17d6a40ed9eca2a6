"""A queue's stream of events: what stands in it, how it is read and followed, and that it is bounded."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Any

import pytest

from lanner import ClosedError, Context, InvalidArgumentError, WorkflowNamespace
from lanner.queue import Claim, Failed, Failure, Namespace, Outcome, Queue, QueueEvent, Retry, Suspended
from support.jobs import Desk, Look, worker_of
from support.proxy import Proxy
from support.servers import PrivateServer, Server
from support.waiting import wait_until


class Follower:
    """Follows a stream in the background and keeps what it reads."""

    def __init__(self, events: AsyncGenerator[QueueEvent]) -> None:
        self.seen: list[tuple[str, str]] = []
        self._events = events
        self.task = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        async with aclosing(self._events) as events:
            async for event in events:
                self.seen.append((event.kind, event.job_id))

    async def sees(self, *expected: tuple[str, str]) -> None:
        """Wait until exactly this was read."""
        await wait_until(lambda: self.seen == list(expected) or self.task.done())
        assert self.seen == list(expected)

    async def gives_up(self) -> None:
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task


async def kinds(queue: Queue) -> list[tuple[str, str]]:
    return [(event.kind, event.job_id) for event in await queue.events(limit=1000)]


async def declared(queue: Queue) -> None:
    """Have a worker say how many events the queue keeps."""
    async with worker_of(queue, Desk(is_open=True)):
        pass


async def test_the_life_of_each_job_stands_in_the_stream(namespace: Namespace) -> None:
    queue = namespace.queue("q", events=100, max_attempts=2)
    turns: list[str] = []

    async def handle(claim: Claim) -> Outcome | str:
        turns.append(claim.id)
        match claim.id:
            case "fails":
                return Failed(Failure("Oops", "bad"))
            case "retried" if turns.count("retried") == 1:
                return Retry(0, Failure("Oops", "again"))
            case "sleeps" if turns.count("sleeps") == 1:
                return Suspended(claim.now_ms() + 10)
            case _:
                return "through"

    async with worker_of(queue, handle, concurrency=1):
        for name in ("runs", "fails", "retried", "sleeps"):
            await queue.add("x", id=name)
            await wait_until(lambda: is_over(queue, name))  # noqa: B023 - awaited at once
        for name in ("cancelled", "removed"):
            await queue.add("x", id=name, run_in=3600)
        await queue.job("cancelled").cancel()
        await queue.remove("removed")
    seen = await kinds(queue)
    # going on after a wait starts nothing; a further attempt does
    assert seen == [
        ("added", "runs"),
        ("started", "runs"),
        ("completed", "runs"),
        ("added", "fails"),
        ("started", "fails"),
        ("failed", "fails"),
        ("added", "retried"),
        ("started", "retried"),
        ("started", "retried"),
        ("completed", "retried"),
        ("added", "sleeps"),
        ("started", "sleeps"),
        ("completed", "sleeps"),
        ("added", "cancelled"),
        ("added", "removed"),
        ("cancelled", "cancelled"),
        ("removed", "removed"),
    ]


async def is_over(queue: Queue, job_id: str) -> bool:
    return await queue.job(job_id).state() in ("completed", "failed")


async def test_a_queue_has_no_stream_unless_it_is_asked_for(namespace: Namespace, look: Look) -> None:
    queue = namespace.queue("q")
    async with worker_of(queue, Desk(is_open=True)):
        await (await queue.add("x")).wait(20)
    assert not look("EXISTS", "q:stream")
    assert await queue.events() == []


async def test_a_stream_keeps_about_as_many_as_was_said_and_goes_when_nothing_happens(
    namespace: Namespace, look: Look
) -> None:
    queue = namespace.queue("q", events=200)
    await declared(queue)
    await queue.add_many(["x"] * 1000)
    # Redis trims whole nodes, of 100 entries each
    assert 200 <= look("XLEN", "q:stream") <= 400
    assert 0 < look("PTTL", "q:stream") <= 24 * 3600 * 1000
    await queue.remove_all("waiting")


async def test_events_are_read_by_page(namespace: Namespace) -> None:
    queue = namespace.queue("q", events=1000)
    await declared(queue)
    jobs = await queue.add_many(["x"] * 25)
    first = await queue.events(limit=10)
    second = await queue.events(after=first[-1].position, limit=10)
    third = await queue.events(after=second[-1].position, limit=10)
    assert [event.job_id for event in (*first, *second, *third)] == [job.id for job in jobs]
    assert await queue.events(after=third[-1].position) == []
    created = (await jobs[0].record()).created
    assert abs((first[0].at - created).total_seconds()) < 0.1
    assert first[0].at.tzinfo is not None


async def test_events_are_followed_as_they_happen_from_now_on(namespace: Namespace) -> None:
    queue = namespace.queue("q", events=1000)
    await declared(queue)
    await queue.add("x", id="before")
    last = (await queue.events())[-1]
    follower, again = Follower(queue.watch_events(after=last.position)), Follower(queue.watch_events(after="0-0"))
    await again.sees(("added", "before"))
    async with worker_of(queue, Desk(is_open=True)):
        await queue.job("before").wait(20)
        await follower.sees(("started", "before"), ("completed", "before"))
        await again.sees(("added", "before"), ("started", "before"), ("completed", "before"))
    for each in (follower, again):
        await each.gives_up()


async def test_a_stream_can_be_followed_before_anything_is_in_it(namespace: Namespace) -> None:
    queue = namespace.queue("q", events=1000)
    await declared(queue)
    follower = Follower(queue.watch_events())
    await wait_until(lambda: adds_and_sees(queue, follower))
    await follower.gives_up()
    assert {kind for kind, _ in follower.seen} == {"added"}


async def adds_and_sees(queue: Queue, follower: Follower) -> bool:
    """Add another job; whether any was seen by now. One is, once the follower has begun."""
    await queue.add("x")
    return bool(follower.seen)


async def test_leaving_closes_the_connection(own_server: PrivateServer) -> None:
    async with Namespace("shop", redis=own_server.url) as namespace:
        queue = namespace.queue("q", events=1000)
        await declared(queue)
        await queue.add("x")
        with own_server.client() as client:
            before = 2  # of the namespace and of this client; Redis notices at any time that others were closed
            await wait_until(lambda: int(client("INFO", "clients")["connected_clients"]) == before)
            async with aclosing(queue.watch_events(after="0-0")) as events:
                assert (await anext(events)).kind == "added"
                assert int(client("INFO", "clients")["connected_clients"]) == before + 1
            await wait_until(lambda: int(client("INFO", "clients")["connected_clients"]) == before)


async def test_closing_the_namespace_ends_what_follows_its_streams(server: Server, namespace_id: str) -> None:
    async with Namespace(namespace_id, redis=server.url) as namespace:
        queue = namespace.queue("q", events=1000)
        await declared(queue)
        await queue.add("x", id="a")
        follower = Follower(queue.watch_events(after="0-0"))
        await follower.sees(("added", "a"))
    with pytest.raises(ClosedError, match="has been closed"):
        await asyncio.wait_for(follower.task, 20)


async def test_nothing_is_missed_while_the_connection_is_gone(namespace: Namespace, proxy: Proxy) -> None:
    queue = namespace.queue("q", events=1000)
    await declared(queue)
    await queue.add("x", id="first")
    async with Namespace(namespace.id, redis=proxy.url) as other:
        follower = Follower(other.queue("q").watch_events(after="0-0"))
        await follower.sees(("added", "first"))
        await proxy.refuse()
        await queue.add("x", id="second")
        await proxy.accept()
        await follower.sees(("added", "first"), ("added", "second"))
        await follower.gives_up()


async def test_a_follower_goes_on_after_a_restart_of_redis(own_server: PrivateServer) -> None:
    async with Namespace("shop", redis=own_server.url, producer_timeout=30) as namespace:
        queue = namespace.queue("q", events=1000)
        await declared(queue)
        await queue.add("x", id="first")
        follower = Follower(queue.watch_events(after="0-0"))
        await follower.sees(("added", "first"))
        own_server.restart()
        await queue.add("x", id="second")
        await follower.sees(("added", "first"), ("added", "second"))
        await follower.gives_up()


@pytest.mark.parametrize("after", ["", "0", "$", "soon", "1-", 5])
async def test_a_position_that_is_none_is_refused(namespace: Namespace, after: Any) -> None:
    queue = namespace.queue("q")
    with pytest.raises(InvalidArgumentError, match="after must be the position of an event"):
        await queue.events(after=after)
    with pytest.raises(InvalidArgumentError, match="after must be the position of an event"):
        await anext(queue.watch_events(after=after))


@pytest.mark.parametrize("events", [-1, True, 1.5, 10_000_001, None])
def test_an_unfit_number_of_events_is_refused(events: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="events"):
        Namespace("shop").queue("q", events=events)


async def test_a_workflow_s_events(server: Server, namespace_id: str) -> None:
    async def nothing(_: Context[None]) -> None:
        pass

    async with WorkflowNamespace(namespace_id, redis=server.url) as namespace:
        workflow = namespace.create_workflow("q", run=nothing, events=100)
        async with workflow.worker():
            follower = Follower(workflow.watch_events(after="0-0"))
            job = await workflow.run(None)
            await job.wait(20)
            await follower.sees(("added", job.id), ("started", job.id), ("completed", job.id))
            assert [event.kind for event in await workflow.events()] == ["added", "started", "completed"]
            await follower.gives_up()
