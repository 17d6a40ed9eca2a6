"""Rate limiters: what they let start, what they cost a job that they refuse, and what a pause of one does."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import anyio
import pytest

from lanner import Context, InvalidArgumentError, RateLimited, WorkflowNamespace
from lanner.queue import Claim, Namespace, Outcome, Queue, RateLimit, Released, Retry, Suspended
from lanner.queue.outcome import Failure
from support.client import Client
from support.servers import Server
from support.starts import most_within, starts_of
from support.waiting import wait_until

LONG = timedelta(hours=1)
# an idle worker that is not woken looks again only after this: what relies on it fails these tests
SAFETY = 120

WORKER = """
import asyncio, sys
from lanner.queue import Namespace, RateLimit

async def main(url, name, limit, window):
    limiters = {"api": RateLimit(int(limit), float(window))}
    async with Namespace(name, redis=url, limiters=limiters) as namespace:
        async def handle(claim):
            return ""
        async with namespace.queue("calls").worker(handle, concurrency=4, safety=120):
            await asyncio.to_thread(sys.stdin.read)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture
async def client(server: Server) -> AsyncIterator[Client]:
    with server.client() as client:
        yield client


async def done(_: Claim) -> str:
    return ""


@pytest.mark.parametrize(("limit", "window", "jobs"), [(1, 0.02, 12), (7, 0.3, 30), (30, 0.5, 70)])
async def test_no_window_has_more_starts_than_the_limit_with_many_workers(
    server: Server, namespace_id: str, limit: int, window: float, jobs: int
) -> None:
    limiters = {"api": RateLimit(limit, window)}
    async with AsyncExitStack() as stack:
        for _ in range(4):
            namespace = await stack.enter_async_context(Namespace(namespace_id, redis=server.url, limiters=limiters))
            await stack.enter_async_context(namespace.queue("calls").worker(done, concurrency=5, safety=SAFETY))
        queue = Namespace(namespace_id, redis=server.url).queue("calls")
        async with queue.namespace:
            added = await queue.add_many(["x"] * jobs)
            for job in added:
                await job.wait(20)
            starts = await starts_of(added)
    assert len(starts) == jobs
    assert most_within(starts, window) == limit


async def test_no_window_has_more_starts_than_the_limit_with_many_processes(server: Server, namespace_id: str) -> None:
    command = [sys.executable, "-c", WORKER, server.url, namespace_id, "8", "0.25"]
    async with Namespace(namespace_id, redis=server.url) as namespace:
        workers = [await anyio.open_process(command, stderr=None) for _ in range(3)]
        try:
            await wait_until(lambda: all_started(namespace, len(workers)), 30)
            added = await namespace.queue("calls").add_many(["x"] * 40)
            for job in added:
                await job.wait(30)
            starts = await starts_of(added)
        finally:
            for worker in workers:
                assert worker.stdin is not None
                await worker.stdin.aclose()
                await worker.wait()
                await worker.aclose()
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    assert most_within(starts, 0.25) == 8


async def test_a_job_that_goes_on_after_a_wait_starts_nothing(
    server: Server, namespace_id: str, client: Client
) -> None:
    turns: list[str] = []

    async def handle(claim: Claim) -> Outcome | str:
        turns.append(claim.data)
        return Suspended(claim.now_ms() + 20) if len(turns) < 4 else "through"

    async with Namespace(namespace_id, redis=server.url, limiters={"api": RateLimit(1, LONG)}) as namespace:
        queue = namespace.queue("calls")
        first, second = await queue.add("first"), await queue.add("second")
        async with queue.worker(handle, safety=SAFETY):
            assert await first.wait(10) == "through"
            await looked_in_vain(queue, client)
            assert await second.state() == "waiting"
    assert turns == ["first"] * 4


@pytest.mark.parametrize("way", ["released", "worker stopped"])
async def test_a_job_that_was_handed_back_starts_nothing_when_it_goes_on(
    server: Server, namespace_id: str, way: str
) -> None:
    turns: list[str] = []
    begun = asyncio.Event()

    async def handle(claim: Claim) -> Outcome | str:
        turns.append(claim.data)
        begun.set()
        if len(turns) > 1:
            return "through"
        if way == "released":
            return Released()
        await asyncio.sleep(60)
        return "never"

    async with Namespace(namespace_id, redis=server.url, limiters={"api": RateLimit(1, LONG)}) as namespace:
        queue = namespace.queue("calls")
        job = await queue.add("first")
        worker = queue.worker(handle, safety=SAFETY)
        await worker.start()
        await begun.wait()
        if way == "worker stopped":
            await worker.stop(grace=0)
            worker = queue.worker(handle, safety=SAFETY)
            await worker.start()
        assert await job.wait(10) == "through"
        await worker.stop()
    assert turns == ["first", "first"]


async def test_a_retry_is_a_start(server: Server, namespace_id: str, client: Client) -> None:
    async def handle(_: Claim) -> Outcome:
        return Retry(0, Failure("Oops", "again"))

    async with Namespace(namespace_id, redis=server.url, limiters={"api": RateLimit(2, LONG)}) as namespace:
        queue = namespace.queue("calls", max_attempts=5)
        job = await queue.add("x")
        async with queue.worker(handle, safety=SAFETY):
            await wait_until(lambda: client("LLEN", f"{namespace.base}:@limiter:api") == 2)
            await wait_until(lambda: client("EXISTS", f"{namespace.base}:active") == 0)
            await looked_in_vain(queue, client)
            record = await job.record()
    assert (record.state, record.attempt) == ("waiting", 3)


async def test_a_refused_job_keeps_its_place_and_its_attempt(server: Server, namespace_id: str, client: Client) -> None:
    order: list[str] = []

    async def handle(claim: Claim) -> str:
        order.append(claim.data)
        return ""

    async with Namespace(namespace_id, redis=server.url, limiters={"api": RateLimit(1, 0.5)}) as namespace:
        queue = namespace.queue("calls", group_concurrency=1)
        await queue.pause()
        names = ["b", "c", "a", "d", "e"]
        jobs = [
            await queue.add(name, priority=9 if name == "a" else 1, group="g" if name in "cd" else None)
            for name in names
        ]
        ready = client("ZRANGE", f"{namespace.base}:calls:ready", 0, -1, "WITHSCORES")
        group = client("ZRANGE", f"{namespace.base}:calls:g:g", 0, -1, "WITHSCORES")
        async with queue.worker(handle, safety=SAFETY):
            await queue.resume()
            await wait_until(lambda: order == ["a"])
            await looked_in_vain(queue, client)
            # what is left after the first start stands as it stood
            assert client("ZRANGE", f"{namespace.base}:calls:ready", 0, -1, "WITHSCORES") == ready[1:]
            assert client("ZRANGE", f"{namespace.base}:calls:g:g", 0, -1, "WITHSCORES") == group
            for job in jobs:
                await job.wait(10)
        attempts = [(await job.record()).attempt for job in jobs]
    assert order == ["a", "b", "c", "d", "e"]
    assert attempts == [1] * 5


async def test_several_budgets_are_all_taken_or_none(server: Server, namespace_id: str, client: Client) -> None:
    limiters = {"account": RateLimit(3, LONG), "card": RateLimit(2, LONG)}
    async with Namespace(namespace_id, redis=server.url, limiters=limiters) as namespace:
        both, one = namespace.queue("both"), namespace.queue("one", limiters=["account"])
        async with both.worker(done, safety=SAFETY), one.worker(done, safety=SAFETY):
            paid = await both.add_many(["x"] * 5)
            await paid[1].wait(10)
            await looked_in_vain(both, client)
            assert client("LLEN", f"{namespace.base}:@limiter:card") == 2
            assert client("LLEN", f"{namespace.base}:@limiter:account") == 2
            # the third start of the account is still to be had, by whom the card does not concern
            await (await one.add("y")).wait(10)
            late = await one.add("z")
            await looked_in_vain(one, client)
            assert await late.state() == "waiting"
            assert [await job.state() for job in paid] == ["completed"] * 2 + ["waiting"] * 3
        assert client("LLEN", f"{namespace.base}:@limiter:account") == 3


async def test_a_group_whose_budget_is_spent_is_at_nobody_s_head(
    server: Server, namespace_id: str, client: Client
) -> None:
    limiters = {"tenant": RateLimit(1, LONG, per="group")}
    async with Namespace(namespace_id, redis=server.url, limiters=limiters) as namespace:
        queue = namespace.queue("calls")
        busy = [await queue.add("x", group="busy") for _ in range(50)]
        others = [await queue.add("x", group="calm"), await queue.add("x", group="shy"), await queue.add("x")]
        async with queue.worker(done, concurrency=2, safety=SAFETY):
            for job in (busy[0], *others):
                await job.wait(10)
            await looked_in_vain(queue, client)
            assert await busy[1].state() == "waiting"
            assert (await queue.counts()).waiting == 49


@pytest.mark.parametrize("cap", [None, 1])
async def test_a_group_goes_on_by_itself_when_its_budget_opens(
    server: Server, namespace_id: str, cap: int | None
) -> None:
    limiters = {"tenant": RateLimit(2, 0.15, per="group")}
    async with Namespace(namespace_id, redis=server.url, limiters=limiters) as namespace:
        queue = namespace.queue("calls", group_concurrency=cap)
        async with queue.worker(done, safety=SAFETY):
            jobs = {name: [await queue.add("x", group=name) for _ in range(7)] for name in ("a", "b", "c:d")}
            for of_group in jobs.values():
                for job in of_group:
                    await job.wait(10)
                assert most_within(await starts_of(of_group), 0.15) <= 2


async def test_the_last_group_of_all_goes_on_by_itself_when_its_budget_opens(
    server: Server, namespace_id: str, client: Client
) -> None:
    limiters = {"tenant": RateLimit(1, 1, per="group")}
    async with Namespace(namespace_id, redis=server.url, limiters=limiters) as namespace:
        queue = namespace.queue("calls")
        async with queue.worker(done, safety=SAFETY):
            await (await queue.add("x", group="g")).wait(10)
            last = await queue.add("x", group="g")
            await wait_until(lambda: client("ZCARD", f"{namespace.base}:calls:throttled"))
            await last.wait(10)


async def test_a_job_goes_on_while_its_group_s_budget_is_spent(
    server: Server, namespace_id: str, client: Client
) -> None:
    turns: list[str] = []

    async def handle(claim: Claim) -> Outcome | str:
        turns.append(claim.data)
        return Suspended(None, ("go",)) if len(turns) == 1 else "through"

    limiters = {"tenant": RateLimit(1, LONG, per="group")}
    async with Namespace(namespace_id, redis=server.url, limiters=limiters) as namespace:
        queue = namespace.queue("calls")
        sleeper, refused = await queue.add("sleeper", group="g"), await queue.add("refused", group="g")
        async with queue.worker(handle, safety=SAFETY):
            await wait_until(lambda: client("ZCARD", f"{namespace.base}:calls:throttled"))
            await sleeper.send_event("go", "", event_id="1")
            assert await sleeper.wait(10) == "through"
            assert await refused.state() == "waiting"
    assert turns == ["sleeper", "sleeper"]


async def test_a_budget_of_the_group_and_one_of_all_hold_together(server: Server, namespace_id: str) -> None:
    limiters = {"tenant": RateLimit(1, 0.2, per="group"), "all": RateLimit(3, 0.2)}
    async with Namespace(namespace_id, redis=server.url, limiters=limiters) as namespace:
        queue = namespace.queue("calls", group_concurrency=None)
        jobs = {name: [await queue.add("x", group=name) for _ in range(3)] for name in "abcde"}
        async with queue.worker(done, safety=SAFETY):
            for of_group in jobs.values():
                for job in of_group:
                    await job.wait(10)
        for of_group in jobs.values():
            assert most_within(await starts_of(of_group), 0.2) == 1
        assert most_within(await starts_of(job for each in jobs.values() for job in each), 0.2) <= 3


async def test_more_groups_than_a_claim_looks_at_do_not_hold_up_the_last(server: Server, namespace_id: str) -> None:
    limiters = {"tenant": RateLimit(1, LONG, per="group")}
    async with Namespace(namespace_id, redis=server.url, limiters=limiters) as namespace:
        queue = namespace.queue("calls")
        async with queue.worker(done, concurrency=3, safety=SAFETY):
            groups = [f"tenant {number}" for number in range(250)]
            for job in [await queue.add("x", group=group) for group in groups]:
                await job.wait(20)
            await queue.pause()
            for group in groups:
                await queue.add("x", group=group)
            last = await queue.add("x", group="fresh")
            await queue.resume()
            await last.wait(10)


async def test_rate_limited_pauses_the_limiter_for_everybody(server: Server, namespace_id: str, client: Client) -> None:
    order: list[tuple[str, int, dict[str, str]]] = []
    until: list[int] = []
    limiters = {"api": RateLimit(100, 1), "other": RateLimit(100, 1)}
    async with Namespace(namespace_id, redis=server.url, limiters=limiters) as namespace:
        first, second = namespace.queue("first"), namespace.queue("second", limiters=["api"])
        apart = namespace.queue("apart", limiters=["other"])

        async def handle(claim: Claim) -> str:
            order.append((claim.data, claim.attempt, dict(claim.steps)))
            if claim.data == "a" and not claim.steps:
                assert await first.set_step(claim.id, "asked", "yes", token=claim.token)
                until.append(claim.now_ms() + 300)
                raise RateLimited(0.3, limiter="api")
            return ""

        async with first.worker(handle, concurrency=1, safety=SAFETY), second.worker(handle, safety=SAFETY):
            a, b = await first.add("a"), await first.add("b")
            pause = await wait_until(lambda: client("GET", f"{namespace.base}:@limiter-pause:api"))
            c = await second.add("c")
            async with apart.worker(handle, safety=SAFETY):
                # no concern of the limiter that is paused
                d = await apart.add("d")
                await d.wait(10)
            for job in (a, b, c):
                await job.wait(10)
                assert (await starts_of([job]))[0] * 1000 >= int(pause) - 0.5
        assert int(pause) >= until[0]
    alone = [entry for entry in order if entry[0] != "c" and entry[0] != "d"]
    assert alone == [("a", 1, {}), ("a", 1, {"asked": "yes"}), ("b", 1, {})]


async def test_a_pause_never_shortens_an_earlier_one(server: Server, namespace_id: str, client: Client) -> None:
    both = asyncio.Barrier(2)
    turns: list[str] = []

    async def handle(claim: Claim) -> str:
        turns.append(claim.data)
        if len(turns) <= 2:
            await both.wait()
            if claim.data == "short":
                await wait_until(lambda: client("EXISTS", pause))
            raise RateLimited(0.5 if claim.data == "long" else 0.01, limiter="api")
        return ""

    async with Namespace(namespace_id, redis=server.url, limiters={"api": RateLimit(100, 1)}) as namespace:
        pause = f"{namespace.base}:@limiter-pause:api"
        queue = namespace.queue("calls")
        jobs = [await queue.add("long"), await queue.add("short")]
        async with queue.worker(handle, safety=SAFETY):
            until = await wait_until(lambda: client("GET", pause))
            for job in jobs:
                await job.wait(10)
            starts = await starts_of(jobs)
    assert min(starts) * 1000 >= int(until) - 0.5
    assert sorted(turns) == ["long", "long", "short", "short"]


async def test_a_longer_pause_extends_an_earlier_one(server: Server, namespace_id: str, client: Client) -> None:
    turns: list[str] = []
    async with Namespace(namespace_id, redis=server.url, limiters={"api": RateLimit(100, 1)}) as namespace:
        pause = f"{namespace.base}:@limiter-pause:api"

        async def handle(claim: Claim) -> str:
            turns.append(claim.data)
            if len(turns) == 1:
                await wait_until(lambda: len(turns) == 2)
                await wait_until(lambda: client("EXISTS", pause))
                raise RateLimited(0.6, limiter="api")
            if len(turns) == 2:
                raise RateLimited(0.3, limiter="api")
            return ""

        queue = namespace.queue("calls")
        jobs = [await queue.add("a"), await queue.add("b")]
        async with queue.worker(handle, safety=SAFETY):
            first = int(await wait_until(lambda: client("GET", pause)))
            await wait_until(lambda: int(client("GET", pause) or 0) > first)
            second = int(client("GET", pause))
            for job in jobs:
                await job.wait(10)
            starts = await starts_of(jobs)
    assert min(starts) * 1000 >= second - 0.5


async def test_a_pause_lets_jobs_go_on_that_have_started(server: Server, namespace_id: str, client: Client) -> None:
    async with Namespace(namespace_id, redis=server.url, limiters={"api": RateLimit(100, 1)}) as namespace:
        pause = f"{namespace.base}:@limiter-pause:api"
        turns: list[str] = []

        async def handle(claim: Claim) -> Outcome | str:
            turns.append(claim.data)
            if claim.data == "limited":
                raise RateLimited(LONG, limiter="api")
            if turns.count("sleeper") == 1:
                await wait_until(lambda: client("EXISTS", pause))
                return Suspended(claim.now_ms() + 10)
            return "through"

        queue = namespace.queue("calls")
        sleeper = await queue.add("sleeper")
        limited = await queue.add("limited")
        async with queue.worker(handle, safety=SAFETY):
            assert await sleeper.wait(10) == "through"
            assert await limited.state() == "waiting"
        client("DEL", pause)


async def test_rate_limited_without_a_limiter_puts_off_this_job_alone(
    server: Server, namespace_id: str, client: Client
) -> None:
    turns: list[tuple[str, int, int]] = []
    async with Namespace(namespace_id, redis=server.url, limiters={"api": RateLimit(100, 1)}) as namespace:

        async def handle(claim: Claim) -> str:
            turns.append((claim.data, claim.attempt, claim.now_ms()))
            if len(turns) == 1:
                raise RateLimited(0.25)
            return ""

        queue = namespace.queue("calls")
        a, b = await queue.add("a"), await queue.add("b")
        async with queue.worker(handle, concurrency=1, safety=SAFETY):
            await a.wait(10)
            await b.wait(10)
        assert client("EXISTS", f"{namespace.base}:@limiter-pause:api") == 0
    assert [(name, attempt) for name, attempt, _ in turns] == [("a", 1), ("b", 1), ("a", 1)]
    assert turns[2][2] - turns[0][2] >= 249


async def test_rate_limited_by_the_budget_of_groups_pauses_every_group(
    server: Server, namespace_id: str, client: Client
) -> None:
    turns: list[str] = []

    async def handle(claim: Claim) -> str:
        turns.append(claim.data)
        if len(turns) == 1:
            raise RateLimited(0.3, limiter="tenant")
        return ""

    limiters = {"tenant": RateLimit(100, 1, per="group")}
    async with Namespace(namespace_id, redis=server.url, limiters=limiters) as namespace:
        queue = namespace.queue("calls")
        async with queue.worker(handle, safety=SAFETY):
            jobs = [await queue.add("x", group="a")]
            until = int(await wait_until(lambda: client("GET", f"{namespace.base}:@limiter-pause:tenant")))
            jobs.append(await queue.add("x", group="b"))
            for job in jobs:
                await job.wait(10)
            assert min(await starts_of(jobs)) * 1000 >= until - 0.5


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
                await job.wait(10)
            added = await both.add_many(["x"] * 2)
            await added[0].wait(10)
            await looked_in_vain(both, client)
            jobs = await wide.add_many(["x"] * 3)
            await jobs[0].wait(10)
            await jobs[1].wait(10)
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
            assert client("ZCARD", f"{namespace.base}:active") == 0
            client("HDEL", stored, "override:limiters")
            await queue.resume()
            await job.wait(10)


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
            assert await first.wait(10) == "kept"
            assert await second.state() == "waiting"
            client("HDEL", *field)
            await queue.resume()
            assert await second.wait(10) == "kept"


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
            await jobs[0].wait(10)
            await looked_in_vain(queue, client)
            assert (await queue.counts()).waiting == 4
            async with after_it.queue("calls", group_concurrency=None, limiters=listed).worker(done, safety=SAFETY):
                for job in jobs:
                    await job.wait(10)


async def test_a_rate_limited_workflow_goes_on_with_its_checkpoints(server: Server, namespace_id: str) -> None:
    asked: list[str] = []
    runs: list[int] = []

    def ask(what: str) -> str:
        asked.append(what)
        return what.upper()

    async def call(ctx: Context[str]) -> str:
        runs.append(ctx.attempt)
        answer = await ctx.step.do("ask", ask, ctx.input)
        if len(runs) == 1:
            raise RateLimited(timedelta(milliseconds=50), limiter="api")
        return answer

    limiters = {"api": RateLimit(10, 1)}
    async with WorkflowNamespace(namespace_id, redis=server.url, limiters=limiters) as namespace:
        calls = namespace.create_workflow("calls", run=call)
        async with calls.worker(safety=SAFETY):
            assert await calls.execute("abc", timeout=10) == "ABC"
    assert (asked, runs) == (["abc"], [1, 1])


async def test_limiters_are_one_budget_over_workflows(server: Server, namespace_id: str, client: Client) -> None:
    async def nothing(_: Context[None]) -> None:
        pass

    limiters = {"api": RateLimit(2, LONG)}
    async with WorkflowNamespace(namespace_id, redis=server.url, limiters=limiters) as namespace:
        workflows = [namespace.create_workflow(name, run=nothing) for name in ("a", "b", "c")]
        async with namespace.worker(safety=SAFETY):
            jobs = [await workflow.run(None) for workflow in workflows]
            for workflow in workflows:
                await looked_in_vain(workflow.queue, client)
            states = sorted([await job.state() for job in jobs])
            assert states == ["completed", "completed", "waiting"]


async def all_started(namespace: Namespace, workers: int) -> bool:
    """Whether so many workers live."""
    return len([worker for worker in await namespace.workers() if worker.departed is None]) == workers


async def looked_in_vain(queue: Queue, client: Client) -> None:
    """Have a worker look for work again, and wait until it has, from the beginning to the end."""
    for _ in range(2):
        before = calls(queue, client)
        await queue.resume()
        await wait_until(lambda: calls(queue, client) > before)  # noqa: B023 - awaited at once


def calls(queue: Queue, client: Client) -> int:
    """How many numbered calls have been answered in the namespace, as their receipts say."""
    receipts = [key for keys in client.keys(f"{queue.namespace.base}:@receipt:*") for key in keys]
    return sum(int(receipt.split("\n")[0]) for receipt in client.many([("GET", key) for key in receipts]))
