"""The proxy with which other tests lose answers."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import redis
import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from support.proxy import Proxy, open_proxy
from support.servers import Server
from support.waiting import wait_until


@asynccontextmanager
async def connected(proxy: Proxy, **settings: Any) -> AsyncGenerator[Any]:
    """A client of the proxy that sends nothing again by itself."""
    made: Any = redis.asyncio.Redis
    client = made.from_url(proxy.url, decode_responses=True, retry=Retry(NoBackoff(), 0), **settings)
    try:
        yield client
    finally:
        await client.aclose()


async def test_the_answer_of_every_nth_matching_request_is_lost_after_it_was_executed(
    server: Server, namespace_id: str
) -> None:
    counter = f"lanner:{{{namespace_id}}}:swept"
    async with open_proxy(server) as proxy, connected(proxy) as client:
        proxy.lose_answers("INCR", every=3)
        answers: list[int | None] = []
        for _ in range(7):
            try:
                answers.append(await client.incr(counter))
            except redis.ConnectionError:
                answers.append(None)
        assert answers == [1, 2, None, 4, 5, None, 7]
        assert proxy.lost_answers == 2
        assert proxy.requests_with("INCR") == 7


async def test_a_request_that_is_lost_is_never_executed_and_the_next_is(server: Server, namespace_id: str) -> None:
    counter = f"lanner:{{{namespace_id}}}:swept"
    async with open_proxy(server) as proxy, connected(proxy) as client, connected(proxy) as other:
        await other.ping()
        proxy.lose_request("INCR")
        with pytest.raises(redis.ConnectionError):
            await client.incr(counter)
        assert await other.incr(counter) == 1
        assert await client.incr(counter) == 2
        assert (proxy.lost_requests, proxy.requests_with("INCR")) == (1, 2)


async def test_answers_before_the_lost_one_on_its_connection_arrive(server: Server, namespace_id: str) -> None:
    key = f"lanner:{{{namespace_id}}}:swept"
    async with open_proxy(server) as proxy:
        proxy.lose_answers("INCR")
        reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.url.split(":")[2].split("/")[0]))
        writer.write(b"*1\r\n$4\r\nPING\r\n*2\r\n$4\r\nECHO\r\n$2\r\n\r\n\r\n")
        writer.write(f"*2\r\n$4\r\nINCR\r\n${len(key)}\r\n{key}\r\n".encode())
        with pytest.raises(asyncio.IncompleteReadError) as ended:
            await reader.readexactly(1000)
        assert ended.value.partial == b"+PONG\r\n$2\r\n\r\n\r\n"
        writer.close()
    with server.client() as client:
        assert client("GET", key) == "1"


@pytest.mark.parametrize("protocol", [2, 3])
async def test_everything_else_passes_unchanged(server: Server, namespace_id: str, protocol: int) -> None:
    base = f"lanner:{{{namespace_id}}}"
    async with open_proxy(server) as proxy, connected(proxy, protocol=protocol) as client:
        proxy.lose_answers("no request contains this")
        text = "é\r\n$5\r\n" * 100_000
        assert await client.set(f"{base}:w:big", text, ex=60)
        assert await client.get(f"{base}:w:big") == text
        assert await client.get(f"{base}:none") is None
        async with client.pipeline(transaction=True) as pipe:
            pipe.hset(f"{base}:meta", mapping={"a": "1"})
            pipe.hgetall(f"{base}:meta")
            pipe.hgetall(f"{base}:none")
            assert await pipe.execute() == [1, {"a": "1"}, {}]
        with pytest.raises(redis.ResponseError):
            await client.incr(f"{base}:meta")


@pytest.mark.parametrize("protocol", [2, 3])
async def test_messages_reach_subscribers(server: Server, namespace_id: str, protocol: int) -> None:
    async with open_proxy(server) as proxy, connected(proxy, protocol=protocol) as client:
        proxy.lose_answers("PUBLISH", every=2)
        async with client.pubsub(ignore_subscribe_messages=True) as subscribed:
            await subscribed.subscribe(namespace_id)
            await subscribed.get_message(timeout=5)
            await client.publish(namespace_id, "one")
            with pytest.raises(redis.ConnectionError):
                await client.publish(namespace_id, "two")
            heard: list[str] = []
            while len(heard) < 2:
                message = await subscribed.get_message(timeout=5)
                heard += [message["data"]] if message else []
            assert heard == ["one", "two"]


async def test_while_it_stalls_nothing_passes_and_nothing_is_lost(server: Server) -> None:
    async with open_proxy(server) as proxy, connected(proxy) as client:
        assert await client.ping()
        proxy.stall()
        asked = asyncio.create_task(client.ping())
        done, _ = await asyncio.wait([asked], timeout=0.1)
        assert not done
        proxy.flow()
        assert await asked


async def test_while_it_refuses_nobody_connects(server: Server) -> None:
    async with open_proxy(server) as proxy, connected(proxy) as client:
        assert await client.ping()
        await proxy.refuse()
        for _ in range(2):
            with pytest.raises(redis.ConnectionError):
                await client.ping()
        await proxy.accept()
        assert await client.ping()


async def test_a_cut_ends_every_connection_and_the_next_one_works(server: Server) -> None:
    async with open_proxy(server) as proxy, connected(proxy) as client:
        blocked = asyncio.create_task(client.blpop("nothing", timeout=30))
        await wait_until(lambda: proxy.requests_with("BLPOP"))
        proxy.cut()
        with pytest.raises(redis.ConnectionError):
            await blocked
        assert await client.ping()


async def test_held_answers_arrive_once_they_are_let_go(server: Server, namespace_id: str) -> None:
    key = f"lanner:{{{namespace_id}}}:swept"
    async with open_proxy(server) as proxy, connected(proxy) as client:
        proxy.hold_answers("INCR")
        assert await client.get(key) is None
        answer = asyncio.create_task(client.incr(key))
        await wait_until(lambda: proxy.held_answers == 1)
        with server.client() as direct:
            assert direct("GET", key) == "1"
        assert not answer.done()
        proxy.flow()
        assert await answer == 1
        assert await client.incr(key) == 2


async def test_connections_that_are_silenced_stay_open_and_say_nothing(server: Server, namespace_id: str) -> None:
    key = f"lanner:{{{namespace_id}}}:swept"
    async with open_proxy(server) as proxy, connected(proxy) as client, connected(proxy) as other:
        assert await client.get(key) is None
        proxy.silence()
        answer = asyncio.create_task(client.incr(key))
        assert await other.incr(key) == 1
        assert not answer.done()
        answer.cancel()
