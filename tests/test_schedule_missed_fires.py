"""Fires that nobody made in time, and calls of schedules whose answers were lost: what is made up for, once."""

import asyncio
import itertools
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import pytest

from lanner.queue import Namespace, cadence
from lanner.queue.scripts.loader import load
from support.jobs import PATIENCE, Look, worker_of
from support.proxy import Proxy
from support.schedules import (
    DAILY,
    DAY,
    GRID,
    armed,
    completed,
    done,
    fired,
    instants,
    missed,
    nothing_left,
    the,
)
from support.servers import PrivateServer, Server
from support.waiting import wait_until


@pytest.mark.parametrize(
    ("settings", "made_up"),
    [
        ({}, [59]),
        ({"catch_up": "one"}, [59]),
        ({"catch_up": "all", "catch_up_limit": 7}, range(53, 60)),
        ({"catch_up": "all"}, range(60)),
    ],
)
async def test_sixty_missed_fires_are_made_up_for_once_by_five_workers_started_at_once(
    server: Server, namespace: Namespace, look: Look, settings: dict[str, Any], made_up: Sequence[int]
) -> None:
    queue = namespace.queue("q")
    timing = cadence(every=timedelta(days=1), start=GRID, **settings)
    await queue.schedules.upsert("s", timing, "x", overlap="allow")
    schedule = await the(queue)
    first = missed(look, schedule, 60)
    async with AsyncExitStack() as stack:
        others = [await stack.enter_async_context(Namespace(namespace.id, redis=server.url)) for _ in range(5)]
        workers = [other.queue("q").worker(done, safety=120) for other in others]
        await asyncio.gather(*(stack.enter_async_context(worker) for worker in workers))
        await wait_until(lambda: completed(queue, len(made_up)))
        after = await the(queue)
        assert (after.fires, after.skipped, after.next_fire) == (1, 0, schedule.next_fire)
    assert await instants(queue) == [first + number * DAY for number in made_up]


async def test_missed_fires_that_are_to_be_skipped_run_nothing_and_the_cadence_goes_on(
    namespace: Namespace, look: Look
) -> None:
    queue = namespace.queue("q")
    timing = cadence(every=timedelta(days=1), start=GRID, catch_up="skip")
    await queue.schedules.upsert("s", timing, "x")
    schedule = await the(queue)
    missed(look, schedule, 60)
    async with worker_of(queue, done):
        await wait_until(lambda: armed(queue, schedule.next_fire))
        after = await the(queue)
    assert (after.fires, after.last_fire, after.last_job) == (0, None, None)


async def test_lost_answers_neither_add_a_fire_nor_lose_one(namespace: Namespace, proxy: Proxy) -> None:
    queue = namespace.queue("q")
    proxy.lose_answers(load("fire_schedule").sha, every=2)
    async with Namespace(namespace.id, redis=proxy.url) as other, other.queue("q").worker(done, safety=1):
        await queue.schedules.upsert("s", cadence(every=0.1, catch_up="all"), "x", overlap="allow")
        await wait_until(lambda: completed(queue, 12), PATIENCE)
        # what a slow machine has missed is one fire of many jobs
        await wait_until(lambda: proxy.lost_answers >= 3, PATIENCE)
        await queue.schedules.remove("s")
        await wait_until(lambda: nothing_left(queue))
    found = await instants(queue)
    assert found == list(range(found[0], found[-1] + 1, 100))


async def test_lost_answers_change_nothing_in_what_calls_say_and_do(namespace: Namespace, proxy: Proxy) -> None:
    queue = namespace.queue("q")
    async with Namespace(namespace.id, redis=proxy.url) as other:
        remote = other.queue("q").schedules
        await remote.list()
        for script in ("set_schedule", "pause_schedule", "add_jobs"):
            proxy.lose_answers(load(script).sha, every=2)
        await other.queue("q").pause()
        for name in ("a", "b", "c", "d"):
            assert await remote.upsert(name, DAILY, "x") is True
            assert await remote.upsert(name, DAILY, "x") is False
            assert await remote.pause(name) is True
            assert await remote.resume(name) is True
            await remote.trigger(name)
        assert proxy.lost_answers >= 6
    assert (await queue.counts()).waiting == 4
    assert [schedule.paused for schedule in await queue.schedules.list()] == [False] * 4


async def test_fires_that_nobody_could_make_while_redis_was_away_are_made_up_for_once(
    own_server: PrivateServer,
) -> None:
    async with Namespace("shop", redis=own_server.url, producer_timeout=30) as namespace:
        queue = namespace.queue("q")
        await queue.schedules.upsert("s", cadence(every=0.1), "x", overlap="allow")
        async with queue.worker(done, safety=120):
            await fired(queue, 2)
            own_server.stop()
            await asyncio.sleep(0.5)  # five of its fires come to nothing
            own_server.start()
            before = await the(queue)
            await fired(queue, before.fires + 3)
            await queue.schedules.remove("s")
            await wait_until(lambda: nothing_left(queue))
        found = await instants(queue)
    assert len(set(found)) == len(found)
    gaps = [later - earlier for earlier, later in itertools.pairwise(found)]
    assert max(gaps) >= 300
