"""Where Sentinels say who the master is: another one is found, whatever became of the one before."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from redis.asyncio.sentinel import Sentinel

from lanner.errors import InvalidArgumentError, RedisUnavailableError
from lanner.queue import Namespace
from support.fleets import SERVICE, Watched, open_watched
from support.jobs import PATIENCE, Desk, echo, results_of
from support.leftovers import check_namespaces
from support.waiting import wait_until

FATES = ["is told", "is killed", "hangs"]

pytestmark = pytest.mark.usefixtures("impatience")


@pytest.fixture
def watched() -> Iterator[Watched]:
    with open_watched() as watched:
        yield watched


async def become(watched: Watched, fate: str) -> None:
    """Have the replica be the master; what was answered before is known to it."""
    await asyncio.to_thread(watched.replicated)
    if fate == "is killed":
        watched.master.kill()
    elif fate == "hangs":
        watched.master.freeze()
    await asyncio.to_thread(watched.fail_over)
    if fate == "is told":
        await asyncio.to_thread(watched.demoted)


@pytest.mark.parametrize("fate", FATES)
async def test_an_idle_worker_and_a_producer_go_on_at_the_new_master(watched: Watched, fate: str) -> None:
    async with Namespace("n", redis=watched.url, producer_timeout=PATIENCE) as namespace:
        queue = namespace.queue("q")
        async with queue.worker(echo):
            assert await (await queue.add("before")).wait(PATIENCE) == "before"
            await become(watched, fate)
            assert await (await queue.add("after")).wait(PATIENCE) == "after"
    with watched.replica.client() as client:
        assert client("KEYS", "*{n}:q:j:*")
    check_namespaces(watched.replica, "")


@pytest.mark.parametrize("fate", FATES)
async def test_jobs_that_run_meanwhile_end_once_at_the_new_master(watched: Watched, fate: str) -> None:
    desk = Desk()
    async with Namespace("n", redis=watched.url, producer_timeout=PATIENCE) as namespace:
        queue = namespace.queue("q")
        async with queue.worker(desk, concurrency=100):
            jobs = await queue.add_many([str(n) for n in range(150)])
            waits = asyncio.create_task(results_of(jobs))
            await wait_until(lambda: len(desk.running) == 100, PATIENCE)
            changing = asyncio.create_task(become(watched, fate))
            await changing
            desk.open()
            assert await waits == [str(n) for n in range(150)]
        records = [await job.record() for job in jobs]
    assert Counter(desk.started) == Counter(job.id for job in jobs)
    assert {(record.attempt, record.stalls) for record in records} == {(1, 0)}
    check_namespaces(watched.replica, "")


async def test_a_client_of_the_callers_is_used_for_its_settings(watched: Watched) -> None:
    address = (watched.sentinel.host, watched.sentinel.port)
    manager: Any = Sentinel([address], sentinel_kwargs={"password": watched.password})  # type: ignore[no-untyped-call]
    async with Namespace("n", redis=manager.master_for(SERVICE, db=2)) as namespace:
        queue = namespace.queue("q")
        async with queue.worker(echo):
            assert await (await queue.add("x")).wait(PATIENCE) == "x"
            with watched.master.client() as client:
                assert not client("DBSIZE")
    with pytest.raises(InvalidArgumentError, match="replicas"):
        Namespace("n", redis=manager.slave_for(SERVICE))
    for client in manager.sentinels:
        await client.aclose()


async def test_one_of_the_sentinels_is_enough(watched: Watched) -> None:
    url = watched.url.replace("//", "//127.0.0.1:1,[::1]:1,")
    async with Namespace("n", redis=url, producer_timeout=PATIENCE) as namespace:
        assert (await namespace.queue("q").counts()).waiting == 0


async def test_a_master_of_another_name_is_a_clear_error(watched: Watched) -> None:
    async with Namespace("n", redis=watched.url.replace(SERVICE, "nobody"), producer_timeout=0.5) as namespace:
        with pytest.raises(
            RedisUnavailableError,
            match=f"no Sentinel names a master 'nobody' .*its masters are '{SERVICE}'.*Nothing was",
        ):
            await namespace.queue("q").add("x")
