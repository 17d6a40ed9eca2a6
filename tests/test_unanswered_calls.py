"""What callers are told where Redis does not answer in time: whether it may have been done all the same."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

import pytest

from lanner.errors import NonRetryableError, RedisUnavailableError
from lanner.queue import Claim, Namespace, Queue
from lanner.queue.link import NotSentError
from lanner.queue.queue import Added
from lanner.queue.scripts.loader import load
from support.jobs import PATIENCE
from support.proxy import Proxy
from support.servers import Server
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


LATER: Final[dict[str, tuple[str, str, Callable[[Queue], Coroutine[Any, Any, Any]]]]] = {
    "add many": (
        "add_jobs",
        r"400 of 450 jobs .* for certain.*\.",
        lambda queue: queue.add_many(["y"] * 450),
    ),
    "remove all": ("remove_jobs", r"100 had been removed before\.", lambda queue: queue.remove_all("waiting")),
    "retry all": ("retry_jobs", r"100 had been retried before\.", lambda queue: queue.retry_all()),
    "cancel": ("cancel_job", "Job 'a' is cancelled, and .*", lambda queue: queue.job("a").cancel()),
    "remove": ("remove_job", "Job 'a' is removed, and .*", lambda queue: queue.remove("a")),
    "retry": ("retry_job", "Job 'failed' is retried, and .*", lambda queue: queue.retry("failed")),
    "limit": ("set_limits", "The limits are set, and .*", lambda queue: queue.set_limits(group_concurrency=2)),
}


@pytest.mark.parametrize("call", LATER)
async def test_what_calls_before_have_done_is_not_called_nothing(
    namespace_id: str, server: Server, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    script, told, act = LATER[call]
    async with Namespace(namespace_id, redis=server.url) as patient:
        queue = patient.queue("q")
        async with queue.worker(fail, concurrency=100):
            await queue.add("x", id="failed")
            await queue.add_many(["x"] * 149, keep_failed=None)
            await wait_until(partial(have_failed, queue, 150), PATIENCE)
        await queue.add("x", id="a", group="g")
        await queue.add_many(["x"] * 149)
        async with Namespace(namespace_id, redis=server.url, producer_timeout=2) as namespace:
            runtime = await namespace.runtime()
            send = runtime.call.link.call
            texts = {load(script).sha, load(script).text}
            answered: list[bool] = []

            def refuse_all_after_the_first(*command: Any) -> asyncio.Future[Any]:
                if answered:
                    raise NotSentError("Redis cannot be reached")
                future = send(*command)
                if texts & set(command):
                    future.add_done_callback(lambda done: None if done.exception() else answered.append(True))
                return future

            monkeypatch.setattr(runtime.call.link, "call", refuse_all_after_the_first)
            with pytest.raises(RedisUnavailableError, match=rf": Redis cannot be reached\. {told}$"):
                await act(namespace.queue("q"))
        for state in ("waiting", "failed", "cancelled"):
            await queue.remove_all(state)


async def fail(claim: Claim) -> str:
    raise NonRetryableError(claim.data)


async def have_failed(queue: Queue, count: int) -> bool:
    return (await queue.counts()).failed == count
