"""What limiters there are, and for whom: lists, changes, and what cannot be one or cannot be read."""

from contextlib import AsyncExitStack
from typing import Any

import pytest

from lanner import InvalidArgumentError
from lanner.queue import Claim, Namespace, RateLimit
from support.client import Client
from support.jobs import PATIENCE
from support.rate_limits import LONG, SAFETY, done, looked_in_vain
from support.servers import Server


async def test_a_workflow_s_list_replaces_the_namespace_s(server: Server, namespace_id: str, client: Client) -> None:
    limiters = {"tight": RateLimit(1, LONG), "wide": RateLimit(3, LONG)}
    async with Namespace(namespace_id, redis=server.url, limiters=limiters) as namespace:
        both = namespace.queue("both")
        wide = namespace.queue("wide", limiters=["wide"])
        free = namespace.queue("free", limiters=[])
        async with AsyncExitStack() as stack:
            for queue in (both, wide, free):
                await stack.enter_async_context(queue.worker(done, safety=SAFETY))
            for job in await free.add_many(["x"] * 10):
                await job.wait(PATIENCE)
            added = await both.add_many(["x"] * 2)
            await added[0].wait(PATIENCE)
            await looked_in_vain(both, client)
            jobs = await wide.add_many(["x"] * 3)
            await jobs[0].wait(PATIENCE)
            await jobs[1].wait(PATIENCE)
            await looked_in_vain(wide, client)
            assert [await job.state() for job in (added[1], jobs[2])] == ["waiting", "waiting"]


def test_a_list_with_a_name_that_the_namespace_does_not_have_is_refused() -> None:
    namespace = Namespace("shop", limiters={"api": RateLimit(1, 1)})
    with pytest.raises(InvalidArgumentError, match=r"no limiter 'apu' \(it has 'api'\)"):
        namespace.queue("calls", limiters=["apu"])
    with pytest.raises(InvalidArgumentError, match="list of names"):
        namespace.queue("calls", limiters="api")


@pytest.mark.parametrize(
    ("limit", "window", "per", "why"),
    [
        (0, 1, "all", "rate limit"),
        (-1, 1, "all", "rate limit"),
        (True, 1, "all", "rate limit"),
        (1.5, 1, "all", "rate limit"),
        (100_001, 1, "all", "rate limit"),
        (1, 0, "all", "window"),
        (1, -1, "all", "window"),
        (1, float("nan"), "all", "window"),
        (1, 1, "tenant", "per"),
    ],
)
def test_an_unfit_rate_limit_is_refused_by_name(limit: Any, window: Any, per: Any, why: str) -> None:
    with pytest.raises(InvalidArgumentError, match=why):
        Namespace("shop", limiters={"api": RateLimit(limit, window, per)})


def test_limiters_that_are_none_are_refused() -> None:
    nonsense: Any = {"api": 5}
    with pytest.raises(InvalidArgumentError, match="must be a RateLimit"):
        Namespace("shop", limiters=nonsense)
    with pytest.raises(InvalidArgumentError, match="limiter name"):
        Namespace("shop", limiters={"a:b": RateLimit(1, 1)})


UNREADABLE = """ | [ | nonsense | 7 | null | true | "api" | [["api",1,1,0]] | {"api":5} | {"api":{}}
| {"api":[0,1000,0]} | {"api":[-1,1000,0]} | {"api":[1.5,1000,0]} | {"api":["x",1000,0]} | {"api":[1]}
| {"api":[1,-1000,0]} | {"api":[1,0,0]} | {"api":[1,1000,"x"]} | {"api":[1,1000]}
| {"api":[null,1000,0]} | {"api":[1e400,1000,0]}"""
UNREADABLE_LISTS = """ | nonsense | 7 | true | "api" | {} | {"api":true} | ["gone"] | [["api"]] | [7] | [null]"""


@pytest.mark.parametrize(
    ("key", "text"),
    [("limits", text.strip()) for text in UNREADABLE.split("|")]
    + [("calls:limits", text.strip()) for text in UNREADABLE_LISTS.split("|")],
)
async def test_a_limiter_that_cannot_be_read_lets_nothing_start(
    server: Server, namespace_id: str, client: Client, key: str, text: str
) -> None:
    async with Namespace(namespace_id, redis=server.url, limiters={"api": RateLimit(9, LONG)}) as namespace:
        queue = namespace.queue("calls")
        stored = f"{namespace.base}:{key}"
        client("HSET", stored, "override:limiters", text)
        async with queue.worker(done, safety=SAFETY):
            job = await queue.add("x")
            await looked_in_vain(queue, client)
            assert await job.state() == "waiting"
            assert client("EXISTS", f"{namespace.base}:running") == 0
            client("HDEL", stored, "override:limiters")
            await queue.resume()
            await job.wait(PATIENCE)


async def test_a_limiter_that_is_listed_where_there_are_none_lets_nothing_start(
    server: Server, namespace_id: str, client: Client
) -> None:
    async with Namespace(namespace_id, redis=server.url) as namespace:
        queue = namespace.queue("calls")
        stored = f"{namespace.base}:calls:limits"
        client("HSET", stored, "override:limiters", '["gone"]')
        async with queue.worker(done, safety=SAFETY):
            job = await queue.add("x")
            await looked_in_vain(queue, client)
            assert await job.state() == "waiting"
            client("HDEL", stored, "override:limiters")
            await queue.resume()
            await job.wait(PATIENCE)


async def test_a_limiter_that_cannot_be_read_does_not_harm_what_runs(
    server: Server, namespace_id: str, client: Client
) -> None:
    async with Namespace(namespace_id, redis=server.url, limiters={"api": RateLimit(9, LONG)}) as namespace:
        queue = namespace.queue("calls")
        field = (f"{namespace.base}:limits", "override:limiters")

        async def handle(_: Claim) -> str:
            client("HSET", *field, '{"api":5}')
            return "kept"

        async with queue.worker(handle, concurrency=1, safety=SAFETY):
            first, second = await queue.add("x"), await queue.add("y")
            assert await first.wait(PATIENCE) == "kept"
            assert await second.state() == "waiting"
            client("HDEL", *field)
            await queue.resume()
            assert await second.wait(PATIENCE) == "kept"


@pytest.mark.parametrize("per", ["all", "group"])
@pytest.mark.parametrize("change", ["raised", "taken away", "list emptied"])
async def test_a_change_of_limiters_holds_at_once_for_what_they_have_refused(
    server: Server, namespace_id: str, client: Client, per: Any, change: str
) -> None:
    tight = {"api": RateLimit(1, LONG, per=per)}
    wide = {"api": RateLimit(50, LONG, per=per)}
    after = {"raised": wide, "taken away": {}, "list emptied": wide}[change]
    listed: list[str] | None = [] if change == "list emptied" else None
    async with (
        Namespace(namespace_id, redis=server.url, limiters=tight) as before_it,
        Namespace(namespace_id, redis=server.url, limiters=after) as after_it,
    ):
        queue = before_it.queue("calls", group_concurrency=None)
        async with queue.worker(done, safety=SAFETY):
            jobs = [await queue.add("x", group="g") for _ in range(5)]
            await jobs[0].wait(PATIENCE)
            await looked_in_vain(queue, client)
            assert (await queue.counts()).waiting == 4
            async with after_it.queue("calls", group_concurrency=None, limiters=listed).worker(done, safety=SAFETY):
                for job in jobs:
                    await job.wait(PATIENCE)


async def test_more_limiters_than_a_claim_can_look_at_are_refused_where_they_would_hold(redis_url: str) -> None:
    many = {f"l{n}": RateLimit(1, 1) for n in range(101)}
    async with Namespace("n", redis=redis_url, limiters=many) as namespace:
        namespace.queue("own", limiters=["l100"])
        for limiters in (None, list(many)):
            with pytest.raises(InvalidArgumentError, match="at most 100"):
                namespace.queue("q", limiters=limiters)
