"""What a call costs does not grow with what waits: counted in commands that the server executes, not in time."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from lanner.queue import Completed, Namespace, Queue
from lanner.queue.queue import Added
from lanner.queue.scripts.claiming import settle
from support.costs import executed
from support.servers import PrivateServer

FEW, MANY = 200, 10_000
JOBS_PER_GROUP = 10
READ_ALL = {"keys", "scan", "smembers", "sscan", "zscan", "sort"}


class Clerk:
    """Claims and commits as a worker of several slots does, one call at a time."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self._number = 0
        self._claims: list[Any] = []

    async def __call__(self) -> int:
        """Commit what it has, and claim in place of that."""
        self._number += 1
        settled = await settle(
            (await self.queue.namespace.runtime()).call,
            worker="clerk",
            number=self._number,
            lease=60_000,
            total=3,
            outcomes=[(claim, Completed("")) for claim in self._claims],
            wants=[(self.queue.id, 3)],
        )
        assert all(settled.applied)
        self._claims = list(settled.claims)
        return len(self._claims)


async def fill(queue: Queue, prefix: str, count: int) -> None:
    """Jobs in groups, without one, and far in the future."""
    options = {"result_ttl": 0}
    jobs = [
        queue.prepare("x", Added(id=f"{prefix}{n}", group=f"{prefix}{n // JOBS_PER_GROUP}"), options)
        for n in range(count)
    ]
    jobs += [queue.prepare("x", Added(id=f"{prefix}single {n}"), options) for n in range(count)]
    jobs += [queue.prepare("x", Added(id=f"{prefix}later {n}", run_in=3600), options) for n in range(count)]
    await queue.send_many(jobs)


@pytest.mark.parametrize("cap", [None, 50], ids=["without caps", "under caps"])
async def test_a_claim_costs_the_same_however_many_jobs_and_groups_wait(
    own_server: PrivateServer, cap: int | None
) -> None:
    async with Namespace("n", redis=own_server.url) as namespace:
        queue = namespace.queue("q")
        await namespace.set_limits(concurrency=cap)
        await queue.set_limits(concurrency=cap, group_concurrency=1)
        clerk = Clerk(queue)
        with own_server.client() as client:
            costs: list[dict[str, int]] = []
            for prefix, count in (("few", FEW), ("many", MANY)):
                await fill(queue, prefix, count)
                assert await clerk() == 3
                claimed, cost = await executed(client, clerk)
                assert claimed == 3
                costs.append(cost)
            assert (await queue.counts()).delayed == FEW + MANY
    assert costs[1] == costs[0]
    assert not costs[1].keys() & READ_ALL


async def test_other_calls_cost_no_more_however_many_jobs_wait(own_server: PrivateServer) -> None:
    async with Namespace("n", redis=own_server.url) as namespace:
        queue = namespace.queue("q", result_ttl=0)
        calls: dict[str, Callable[[], Awaitable[Any]]] = {
            "add": lambda: queue.add("x", id="new", group="few0"),
            "look": lambda: queue.job("new").record(),
            "remove": lambda: queue.remove("new"),
            "add later": lambda: queue.add("x", id="new later", run_in=60),
            "promote": lambda: queue.promote("new later"),
            "cancel": queue.job("new later").cancel,
            "list": lambda: queue.list_jobs("delayed", limit=10),
            "list a group": lambda: queue.list_group("few0", limit=10),
            "workers": namespace.workers,
            "limits": queue.limits,
        }
        with own_server.client() as client:
            costs: list[dict[str, dict[str, int]]] = []
            for prefix, count in (("few", FEW), ("many", MANY)):
                await fill(queue, prefix, count)
                costs.append({name: (await executed(client, call))[1] for name, call in calls.items()})
    for name in calls:
        # a script that is new to the server, or a marker that is not there yet, costs something the first time only
        grown = {command: count for command, count in costs[1][name].items() if count > costs[0][name].get(command, 0)}
        assert not grown, f"{name}: {grown}"
        assert not costs[1][name].keys() & READ_ALL
