"""Rate limiters with a budget for each group: a group that has spent its own stands in nobody's way."""

from functools import partial

import pytest

from lanner.queue import Claim, Job, Namespace, Outcome, RateLimit, Suspended
from support.client import Client
from support.jobs import PATIENCE
from support.rate_limits import LONG, SAFETY, done, looked_in_vain
from support.servers import Server
from support.starts import most_within, starts_of
from support.waiting import wait_until


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
                await job.wait(PATIENCE)
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
                    await job.wait(PATIENCE)
                assert most_within(await starts_of(of_group), 0.15) <= 2


async def test_the_last_group_of_all_goes_on_by_itself_when_its_budget_opens(
    server: Server, namespace_id: str, client: Client
) -> None:
    limiters = {"tenant": RateLimit(1, 1, per="group")}
    async with Namespace(namespace_id, redis=server.url, limiters=limiters) as namespace:
        queue = namespace.queue("calls")
        async with queue.worker(done, safety=SAFETY):
            while True:
                last = await queue.add("x", group="g")
                # it ends at once where a second has gone by since the one before it
                if await wait_until(partial(has_been_refused_or_ended, client, last)) == "refused":
                    break
            await last.wait(PATIENCE)


async def has_been_refused_or_ended(client: Client, job: Job) -> str | None:
    if client("ZCARD", f"{job.queue.namespace.base}:{job.queue.id}:throttled"):
        return "refused"
    return "ended" if await job.state() == "completed" else None


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
            assert await sleeper.wait(PATIENCE) == "through"
            assert await refused.state() == "waiting"
    assert turns == ["sleeper", "sleeper"]


@pytest.mark.parametrize("way", ["cancelled", "removed", "expired"])
async def test_a_job_goes_on_when_the_refused_job_before_it_in_its_group_is_gone(
    server: Server, namespace_id: str, client: Client, way: str
) -> None:
    turns: list[str] = []

    async def handle(claim: Claim) -> Outcome | str:
        turns.append(claim.data)
        return Suspended(None, ("go",)) if len(turns) == 1 else "through"

    limiters = {"tenant": RateLimit(1, LONG, per="group")}
    async with Namespace(namespace_id, redis=server.url, limiters=limiters) as namespace:
        queue = namespace.queue("calls")
        async with queue.worker(handle, safety=SAFETY):
            sleeper = await queue.add("sleeper", group="g")
            await wait_until(lambda: client("EXISTS", f"{namespace.base}:calls:parked"))
            refused = await queue.add("refused", group="g", priority=5, expires=2 if way == "expired" else None)
            await wait_until(lambda: client("ZCARD", f"{namespace.base}:calls:throttled"))
            await sleeper.send_event("go", "", event_id="1")
            if way != "expired":
                await looked_in_vain(queue, client)
                assert await sleeper.state() == "waiting"
            if way == "cancelled":
                await refused.cancel()
            elif way == "removed":
                await queue.remove(refused.id)
            assert await sleeper.wait(PATIENCE) == "through"
    assert turns == ["sleeper", "sleeper"]


async def test_a_budget_of_the_group_and_one_of_all_hold_together(server: Server, namespace_id: str) -> None:
    limiters = {"tenant": RateLimit(1, 0.2, per="group"), "all": RateLimit(3, 0.2)}
    async with Namespace(namespace_id, redis=server.url, limiters=limiters) as namespace:
        queue = namespace.queue("calls", group_concurrency=None)
        jobs = {name: [await queue.add("x", group=name) for _ in range(3)] for name in "abcde"}
        async with queue.worker(done, safety=SAFETY):
            for of_group in jobs.values():
                for job in of_group:
                    await job.wait(PATIENCE)
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
                await job.wait(PATIENCE)
            await queue.pause()
            for group in groups:
                await queue.add("x", group=group)
            last = await queue.add("x", group="fresh")
            await queue.resume()
            await last.wait(PATIENCE)
