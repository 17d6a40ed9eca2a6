"""What callers are told where Redis does not answer in time: whether it may have been done all the same."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

import pytest

from lanner.errors import RedisUnavailableError
from lanner.queue import Namespace, Queue
from lanner.queue.queue import Added
from support.jobs import PATIENCE
from support.proxy import Proxy
from support.waiting import wait_until

TIMEOUT: Final = 0.4
NOT_REACHED: Final = r"Redis cannot be reached: [^.]+(\.[^.]+)*\. Nothing was done\.$"
UNSURE: Final = r"no answer within 0\.4 s\. It may have been done all the same\.$"
CALLS: Final[dict[str, Callable[[Queue], Coroutine[Any, Any, Any]]]] = {
    "add": lambda queue: queue.add("x", id="a"),
    "add many": lambda queue: queue.add_many(["x"] * 3),
    "execute": lambda queue: queue.execute("x", Added(id="a"), {}, timeout=None),
    "execute briefly": lambda queue: queue.execute("x", Added(id="a"), {}, timeout=0.01),
    "add and watch": lambda queue: anext(queue.add_and_watch("x", Added(id="a"), {})),
    "read": lambda queue: queue.job("a").record(),
    "cancel": lambda queue: queue.job("a").cancel(),
    "remove": lambda queue: queue.remove("a"),
    "limit": lambda queue: queue.set_limits(concurrency=1),
}


async def go_away(proxy: Proxy, how: str) -> None:
    """Refuse connections, or accept them and say nothing; those that there are break."""
    if how == "refuses":
        await proxy.refuse()
    else:
        proxy.stall()
        proxy.cut()


async def come_back(proxy: Proxy) -> None:
    proxy.flow()
    await proxy.accept()


async def has_no_connection(namespace: Namespace) -> bool:
    runtime = await namespace.runtime()
    return runtime.call.link.absence is not None


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("how", ["refuses", "is silent"])
async def test_where_no_connection_comes_about_nothing_was_done(
    namespace_id: str, proxy: Proxy, how: str, call: str
) -> None:
    async with Namespace(namespace_id, redis=proxy.url, producer_timeout=TIMEOUT) as namespace:
        queue = namespace.queue("q")
        await namespace.runtime()
        await go_away(proxy, how)
        await wait_until(partial(has_no_connection, namespace), PATIENCE)
        with pytest.raises(RedisUnavailableError, match=NOT_REACHED):
            await CALLS[call](queue)
        await come_back(proxy)
        async with Namespace(namespace_id, redis=proxy.url) as patient:
            assert await patient.queue("q").list_jobs("waiting") == []
            assert not (await patient.queue("q").limits()).overridden


@pytest.mark.parametrize("how", ["refuses", "is silent"])
async def test_the_first_call_of_all_says_so_too(namespace_id: str, proxy: Proxy, how: str) -> None:
    await go_away(proxy, how)
    async with Namespace(namespace_id, redis=proxy.url, producer_timeout=TIMEOUT) as namespace:
        with pytest.raises(RedisUnavailableError, match=f"^connecting to Redis at {proxy.url}: " + NOT_REACHED):
            await namespace.queue("q").add("x")
    await come_back(proxy)


@pytest.mark.parametrize("call", CALLS)
async def test_what_was_sent_may_have_been_done(namespace_id: str, proxy: Proxy, call: str) -> None:
    async with Namespace(namespace_id, redis=proxy.url, producer_timeout=TIMEOUT) as namespace:
        queue = namespace.queue("q")
        await (await namespace.runtime()).waiters.ready()
        proxy.stall()
        with pytest.raises(RedisUnavailableError, match=UNSURE):
            await CALLS[call](queue)
        proxy.flow()
        await wait_until(partial(answers, queue), PATIENCE)
        await queue.remove_all("waiting")


async def answers(queue: Queue) -> bool:
    try:
        await queue.counts()
    except RedisUnavailableError:
        return False
    return True


async def test_what_was_sent_before_the_connection_broke_may_have_been_done(namespace_id: str, proxy: Proxy) -> None:
    async with Namespace(namespace_id, redis=proxy.url, producer_timeout=TIMEOUT) as namespace:
        queue = namespace.queue("q")
        runtime: Any = await namespace.runtime()
        proxy.stall()
        adding = asyncio.create_task(queue.add("x"))
        await wait_until(lambda: runtime.call.link._waiting, PATIENCE)  # noqa: SLF001 - it has been sent
        proxy.cut()  # no later try is ever sent: connections are accepted, and nothing more
        with pytest.raises(
            RedisUnavailableError, match=r"the connection broke .* It may have been done all the same\.$"
        ):
            await adding
        await come_back(proxy)
