"""What a call costs does not grow with what waits: counted in commands that the server executes, not in time."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from functools import partial
from importlib import resources
from typing import Any

import pytest

from lanner.queue import Completed, Namespace, Queue, RateLimit
from lanner.queue.bulk import send_many
from lanner.queue.queue import Added
from lanner.queue.scripts.claiming import settle, sweep_claims
from lanner.queue.scripts.recording import take_event
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
    await send_many(queue, jobs)


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


# what these read whole is bounded: fields of limits, checkpoints whose number and size were looked at, the fields of a
# record, 50 departures, the workflows of the namespace, those of which jobs run,
# and those that its cap refuses
WHOLE_READS = {
    "read_limits": "HGETALL",
    "read_steps": "HGETALL",
    "claim_ready": "HGETALL",
    "claim_simply": "HGETALL",
    "settle_simply": "HGETALL",
    "expired_claims": "HKEYS",
    "running_jobs": "HVALS",
    "list_workers": "LRANGE",
    "set_limits": "SMEMBERS",
    "set_paused": "SMEMBERS",
    "live_refusals": "ZRANGE",
}
READS_WHOLE = re.compile(
    r"\bcall\('(?:(SMEMBERS|HGETALL|HKEYS|HVALS|KEYS|SORT|COPY|ZUNIONSTORE|ZREMRANGEBYLEX|ZREMRANGEBYSCORE)"
    r"|([LZ]RANGE)',[^\n]*, 0, -1[,)])"
)


def test_no_script_reads_or_writes_a_whole_structure_that_may_be_large() -> None:
    folder = resources.files("lanner.queue") / "lua"
    found: dict[str, str] = {}
    for place in (folder, folder / "includes"):
        for file in place.iterdir():
            for match in READS_WHOLE.finditer(file.read_text() if file.name.endswith(".lua") else ""):
                found[file.name.removesuffix(".lua")] = match[1] or match[2]
    assert found == WHOLE_READS


async def test_an_event_is_found_among_any_number_of_others(own_server: PrivateServer) -> None:
    async with Namespace("n", redis=own_server.url) as namespace:
        queue = namespace.queue("q")
        job = await queue.add("x", id="a")
        call = (await namespace.runtime()).call
        (claim,) = (
            await settle(call, worker="w", number=3, lease=60_000, total=1, outcomes=[], wants=[("q", 1)])
        ).claims

        def take() -> Awaitable[Any]:
            return take_event(
                call, workflow="q", id="a", token=claim.token, name="last", path=f"p{sent}", before="", otherwise=""
            )

        costs: list[dict[str, int]] = []
        sent = 0
        with own_server.client() as client:
            for count in (10, 300):
                while sent < count:
                    sent += 1
                    await job.send_event(f"event {sent % 7}", str(sent), event_id=str(sent))
                for text in ("first", "second"):
                    await job.send_event("last", text, event_id=f"{text} {sent}")
                taken, cost = await executed(client, take)
                assert taken == "first"
                costs.append(cost)
                sent += 1
                assert await take() == "second"
    # the first time the server is given the script
    grown = {name: calls for name, calls in costs[1].items() if calls > costs[0].get(name, 0)}
    assert not grown


async def test_groups_whose_limiter_changes_stand_in_line_again_however_many(own_server: PrivateServer) -> None:
    """A portion at a time, and none is lost between two."""
    limit = RateLimit(1, 3600, per="group")
    async with Namespace("n", redis=own_server.url, limiters={"l": limit}) as namespace:
        queue = namespace.queue("q")
        await namespace.store_limits("", "declared", namespace.declared)
        await namespace.store_limits("q", "declared", queue.declared)
        clerk = Clerk(queue)
        await send_many(queue, [queue.prepare("x", Added(group=f"g{n % 120}"), {}) for n in range(360)])
        with own_server.client() as client:
            # a call that meets nothing but spent budgets claims nothing
            while client("ZCARD", f"{namespace.base}:q:throttled") < 120:
                await clerk()
            await namespace.store_limits("", "declared", {"limiters": "unset"})
            assert not client("EXISTS", f"{namespace.base}:q:throttled")
            assert client("ZCARD", f"{namespace.base}:q:ready") == 120


async def test_what_runs_is_looked_at_in_portions_and_counted_once_a_call(own_server: PrivateServer) -> None:
    names = [f"w{number}" for number in range(20)]
    async with Namespace("n", redis=own_server.url, concurrency=1000) as namespace:
        await namespace.store_limits("", "declared", namespace.declared)
        call = (await namespace.runtime()).call
        wants = [(name, 100) for name in names]
        for name in names:
            await namespace.queue(name).add_many(["x"] * 60)
        with own_server.client() as client:
            claiming = partial(settle, call, worker="gone", number=1, lease=1, total=400, outcomes=[], wants=wants)
            settled, cost = await executed(client, claiming)
            assert len(settled.claims) == 400
            assert cost["hvals"] == 1
            await asyncio.sleep(0.01)
            # a lease is over for all, and no call looks at more of them than it takes back
            sweeping = partial(sweep_claims, call, lease=60_000, interval=0, limit=50)
            for _ in range(8):
                swept, cost = await executed(client, sweeping)
                assert len(swept.recovered) == 50
                assert cost["hscan"] <= 4
