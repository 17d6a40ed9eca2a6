"""In a cluster: each namespace on the node that has its slot, which may be another one at any time."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from itertools import count

import pytest
import redis.asyncio
from redis.asyncio.cluster import ClusterNode

from lanner import Context, WorkflowNamespace
from lanner.errors import RedisUnavailableError
from lanner.queue import Namespace
from support.fleets import Cluster, open_cluster
from support.jobs import PATIENCE, Desk, echo, results_of
from support.leftovers import check_namespaces
from support.servers import ProcessServer
from support.waiting import wait_until

pytestmark = pytest.mark.usefixtures("impatience")


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with open_cluster() as cluster:
        yield cluster


def namespace_on(cluster: Cluster, master: ProcessServer) -> str:
    """The id of a namespace whose slot a master has."""
    ids = (f"n{number}" for number in count())
    return next(each for each in ids if cluster.master_of(f"lanner:{{{each}}}") is master)


def has_keys_of(server: ProcessServer, namespace_id: str) -> bool:
    with server.client() as client:
        return bool(client("KEYS", f"*{{{namespace_id}}}*"))


async def one() -> int:
    return 1


async def double(ctx: Context[int]) -> int:
    return 2 * ctx.input


async def test_three_namespaces_work_on_three_masters_by_default(cluster: Cluster) -> None:
    ids = [namespace_on(cluster, master) for master in cluster.masters]
    for namespace_id in ids:
        async with WorkflowNamespace(namespace_id, redis=cluster.url) as namespace:
            child = namespace.create_workflow("child", run=double)

            async def run(ctx: Context[int]) -> int:
                first = await ctx.step.do("one", one)
                await ctx.step.wait("a moment", 0.01)
                second = await ctx.step.run("child", child, ctx.input)  # noqa: B023 - called in this turn of the loop
                return first + second

            parent = namespace.create_workflow("parent", run=run, get_group_id=lambda number: f"g{number % 2}")
            async with namespace.worker():
                jobs = await parent.run_many([1, 2, 3])
                assert [await job.wait(PATIENCE) for job in jobs] == [3, 5, 7]
    for namespace_id in ids:
        assert sum(has_keys_of(server, namespace_id) for server in cluster.masters) == 1
    for server in cluster.masters:
        check_namespaces(server, "")


async def test_a_client_of_the_callers_is_used_for_its_settings(cluster: Cluster) -> None:
    nodes = [ClusterNode("127.0.0.1", 1), ClusterNode(cluster.masters[0].host, cluster.masters[0].port)]
    client = redis.asyncio.RedisCluster(startup_nodes=nodes)
    for master in cluster.masters:
        async with Namespace(namespace_on(cluster, master), redis=client) as namespace:
            queue = namespace.queue("q")
            async with queue.worker(echo):
                assert await (await queue.add("x")).wait(PATIENCE) == "x"
    await client.aclose()


@pytest.mark.parametrize("fate", ["is told", "is killed", "hangs"])
async def test_a_replica_that_takes_over_is_found(cluster: Cluster, fate: str) -> None:
    desk = Desk()
    namespace_id = namespace_on(cluster, cluster.masters[0])
    async with Namespace(namespace_id, redis=cluster.url, producer_timeout=PATIENCE) as namespace:
        queue = namespace.queue("q")
        async with queue.worker(desk, concurrency=100):
            jobs = await queue.add_many([str(n) for n in range(150)])
            waits = asyncio.create_task(results_of(jobs))
            await wait_until(lambda: len(desk.running) == 100, PATIENCE)
            await asyncio.to_thread(cluster.replicated, f"{{{namespace_id}}}")
            if fate == "is killed":
                cluster.masters[0].kill()
            elif fate == "hangs":
                cluster.masters[0].freeze()
            await asyncio.to_thread(cluster.fail_over)
            if fate == "is told":
                await asyncio.to_thread(cluster.demoted)
            desk.open()
            assert await waits == [str(n) for n in range(150)]
            jobs.append(await queue.add("idle again"))
            assert await jobs[-1].wait(PATIENCE) == "idle again"
    assert Counter(desk.started) == Counter(job.id for job in jobs)
    check_namespaces(cluster.replica, "")


async def test_a_slot_that_moves_while_jobs_run_and_are_added_takes_all_along(cluster: Cluster) -> None:
    source, target, _ = cluster.masters
    namespace_id = namespace_on(cluster, source)
    desk = Desk()
    async with Namespace(namespace_id, redis=cluster.url, producer_timeout=PATIENCE) as namespace:
        queue = namespace.queue("q")
        async with queue.worker(desk, concurrency=20):
            jobs = await queue.add_many([str(n) for n in range(60)])
            await wait_until(lambda: len(desk.running) == 20, PATIENCE)
            moving = cluster.moving(cluster.slot_of(f"lanner:{{{namespace_id}}}"), source, target)
            await asyncio.to_thread(moving.__enter__)
            desk.let_go(*desk.running[:10])
            adding = asyncio.create_task(queue.add("meanwhile"))
            await wait_until(lambda: len(desk.running) <= 10, PATIENCE)
            assert not adding.done()
            await asyncio.to_thread(moving.__exit__, None, None, None)
            desk.open()
            jobs.append(await adding)
            assert await results_of(jobs) == [*(str(n) for n in range(60)), "meanwhile"]
    assert Counter(desk.started) == Counter(job.id for job in jobs)
    assert not has_keys_of(source, namespace_id)
    check_namespaces(target, "")


async def test_who_comes_while_the_slot_moves_is_told_that_it_does(cluster: Cluster) -> None:
    source, target, _ = cluster.masters
    namespace_id = namespace_on(cluster, source)
    with cluster.moving(cluster.slot_of(f"lanner:{{{namespace_id}}}"), source, target):
        async with Namespace(namespace_id, redis=cluster.url, producer_timeout=2) as namespace:
            with pytest.raises(
                RedisUnavailableError,
                match=rf"the slot is being moved to {target.host}:{target.port}.*Nothing was done",
            ):
                await namespace.queue("q").add("x")
