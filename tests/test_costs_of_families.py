"""What one script does for a job with children is bounded, however many they are; nothing is lost between portions."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from lanner.queue import KeepFailed, Namespace
from lanner.queue.claim import Claim
from lanner.queue.outcome import Cancelled, Completed, Continued, Failed, Failure, Outcome
from lanner.queue.queue import Added
from lanner.queue.scripts.claiming import settle
from lanner.queue.scripts.controlling import remove_job, retry_job
from lanner.queue.scripts.descending import NewChild, end_descendants, start_children
from support.client import Client
from support.costs import executed
from support.servers import PrivateServer

FEW, MANY, PORTION = 300, 3000, 50
FAILURE = Failed(Failure("ValueError", "broken", ""))
READS_ALL = {"copy", "smembers", "zremrangebylex", "zunionstore", "keys"}


class Family:
    """A parent that runs, and its children: each portion is a call of its own, and what it executes is counted."""

    def __init__(self, namespace: Namespace, client: Client) -> None:
        self.namespace = namespace
        self.parents = namespace.queue("parent")
        self.children = namespace.queue("child", keep_failed=KeepFailed(count=None))
        self.base = namespace.base
        self._client = client
        self._number = 0

    async def settle(self, workflow: str, total: int, outcomes: Sequence[tuple[Claim, Outcome]] = ()) -> list[Claim]:
        """Commit, and claim."""
        self._number += 3
        settled = await settle(
            (await self.namespace.runtime()).call,
            worker="clerk",
            number=self._number,
            lease=600_000,
            total=total,
            outcomes=outcomes,
            wants=[(workflow, total)],
        )
        assert all(settled.applied)
        return list(settled.claims)

    async def begin(self, count: int, *, ends: Outcome | None) -> Claim:
        """Run a parent, and its children to their ends (None: they wait)."""
        await self.parents.add("x", id="p")
        (claim,) = await self.settle("parent", 1)
        call = (await self.namespace.runtime()).call
        spec = self.children.prepare("x", Added(), {}).spec
        for start in range(0, count, 100):
            batch = [NewChild(f"b/{n}", "child", f"c{n}", spec, "x") for n in range(start, start + 100)]
            assert await start_children(
                call,
                workflow="parent",
                id="p",
                token=claim.token,
                barrier="b",
                policy="continue",
                most=0,
                children=batch,
            )
        if ends is not None:
            claims = await self.settle("child", 50)
            while claims:
                claims = await self.settle("child", 50, [(claim, ends) for claim in claims])
        return claim

    async def portions(self, first: Callable[[], Awaitable[Any]]) -> list[dict[str, int]]:
        """What a call executes, and each portion that is done after it."""
        call = (await self.namespace.runtime()).call
        _, cost = await executed(self._client, first)
        costs, done = [cost], PORTION
        while done >= PORTION:
            done, cost = await executed(self._client, lambda: end_descendants(call, limit=PORTION))
            costs.append(cost)
        assert not self._client("EXISTS", f"{self.base}:cascades")
        assert not self._client("KEYS", f"{self.base}:@cascade:*")
        return costs


async def completes(family: Family, claim: Claim) -> list[list[dict[str, int]]]:
    return [await family.portions(lambda: family.settle("parent", 0, [(claim, Completed("1"))]))]


async def is_retried(family: Family, claim: Claim) -> list[list[dict[str, int]]]:
    await family.settle("parent", 0, [(claim, FAILURE)])
    call = (await family.namespace.runtime()).call
    costs = await family.portions(lambda: retry_job(call, workflow="parent", id="p"))
    assert (await family.parents.counts()).waiting == 1
    said = await family.parents.get_step("p", "b/0")
    assert said in {None, "child:1"}, "one that failed is started again"
    return [costs]


async def goes_on_as_new(family: Family, claim: Claim) -> list[list[dict[str, int]]]:
    costs = await family.portions(lambda: family.settle("parent", 0, [(claim, Continued("y"))]))
    assert (await family.parents.counts()).waiting == 1
    assert [child async for child in family.parents.job("p").children()] == []
    return [costs]


async def undoes(family: Family, claim: Claim) -> list[list[dict[str, int]]]:
    costs = await family.portions(lambda: family.settle("parent", 0, [(claim, Cancelled("", undo=1))]))
    (claim,) = await family.settle("parent", 1)
    return [costs, await family.portions(lambda: family.settle("parent", 0, [(claim, Cancelled(""))]))]


async def is_removed(family: Family, claim: Claim) -> list[list[dict[str, int]]]:
    del claim
    call = (await family.namespace.runtime()).call
    costs = await family.portions(lambda: remove_job(call, workflow="parent", id="p"))
    counts = await family.children.counts()
    assert (counts.waiting, counts.completed, counts.cancelled) == (0, 0, 0)
    return [costs]


@pytest.mark.parametrize(
    ("what", "ends"),
    [
        (completes, Completed("1")),
        (completes, None),
        (is_retried, FAILURE),
        (is_retried, Completed("1")),
        (goes_on_as_new, Completed("1")),
        (goes_on_as_new, None),
        (undoes, None),
        (is_removed, None),
        (is_removed, Completed("1")),
    ],
)
async def test_what_a_parent_meets_costs_each_script_the_same_however_many_children_it_has(
    own_server: PrivateServer,
    what: Callable[[Family, Claim], Awaitable[list[list[dict[str, int]]]]],
    ends: Outcome | None,
) -> None:
    most: list[dict[str, int]] = []
    with own_server.client() as client:
        for count in (FEW, MANY):
            async with Namespace(f"n{count}", redis=own_server.url) as namespace:
                family = Family(namespace, client)
                claim = await family.begin(count, ends=ends)
                portions = [cost for costs in await what(family, claim) for cost in costs]
                assert not any(cost.keys() & READS_ALL for cost in portions)
                # one portion may do what another does not: the most of each command is compared
                most.append({name: max(cost.get(name, 0) for cost in portions) for cost in portions for name in cost})
    grown = {name: (most[0].get(name, 0), calls) for name, calls in most[1].items() if calls > most[0].get(name, 0) + 2}
    assert not grown


async def test_a_parent_that_is_being_prepared_waits_whatever_its_children_do(own_server: PrivateServer) -> None:
    async with Namespace("n", redis=own_server.url) as namespace:
        with own_server.client() as client:
            family = Family(namespace, client)
            claim = await family.begin(FEW, ends=FAILURE)
            await family.settle("parent", 0, [(claim, FAILURE)])
            call = (await namespace.runtime()).call
            assert await retry_job(call, workflow="parent", id="p") == 1
            assert (await family.parents.counts()).parked == 1
            assert await family.parents.job("p").send_event("e", "x", event_id="1")
            assert await family.settle("parent", 1) == [], "a portion was done along, and more is to be"
            assert (await family.parents.counts()).parked == 1
            await namespace.end_descendants("Done")
            assert len(await family.settle("parent", 1)) == 1


@pytest.mark.parametrize("then", ["cancelled", "removed"])
async def test_a_retry_that_is_given_up_half_way_leaves_nothing(own_server: PrivateServer, then: str) -> None:
    async with Namespace("n", redis=own_server.url) as namespace:
        with own_server.client() as client:
            family = Family(namespace, client)
            claim = await family.begin(FEW, ends=FAILURE)
            await family.settle("parent", 0, [(claim, FAILURE)])
            await retry_job((await namespace.runtime()).call, workflow="parent", id="p")
            assert await (family.parents.job("p").cancel() if then == "cancelled" else family.parents.remove("p"))
            assert not client("EXISTS", f"{family.base}:cascades")
            assert not client("KEYS", f"{family.base}:@cascade:*")
            counts = await family.parents.counts()
            assert (counts.waiting, counts.parked, counts.cancelled) == (0, 0, int(then == "cancelled"))


async def test_an_id_that_is_used_again_while_its_children_are_released_begins_clean(own_server: PrivateServer) -> None:
    async with Namespace("n", redis=own_server.url) as namespace:
        with own_server.client() as client:
            family = Family(namespace, client)
            claim = await family.begin(FEW, ends=Completed("1"))
            await family.settle("parent", 0, [(claim, Completed("1"))])
            assert client("EXISTS", f"{family.base}:cascades")
            await family.parents.add("y", id="p")
            assert [child async for child in family.parents.job("p").children()] == []
            await namespace.end_descendants("Done")
            assert client("PTTL", f"{family.base}:parent:j:p") == -1
            assert all(client("PTTL", f"{family.base}:child:j:c{n}") > 0 for n in range(FEW))
