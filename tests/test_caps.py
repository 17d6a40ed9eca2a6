"""The four caps: on a worker, a workflow, a namespace, a group. Alone, nested, changed at run time, and unreadable."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from enum import IntEnum
from functools import partial
from typing import Any

import pytest

from lanner.errors import InvalidArgumentError
from lanner.queue import Claim, Job, Limits, Namespace, Queue, QueueLimits, Worker
from lanner.queue.settling import Settler
from support.jobs import PATIENCE, RELIES_ON_WAKING, Desk, Look, results_of, worker_of
from support.mutations import Mutate, mutate
from support.servers import Server
from support.waiting import wait_until

__all__ = ["mutate"]

CAP = 3
WORKERS = 3
SLOTS = 10
JOBS = 24

KINDS = ("worker", "workflow", "namespace", "group")

# a check of each cap, and what it looks like without it
CHECKS: dict[str, list[tuple[str, str]]] = {
    "workflow": [("capacity = capacity - redis.call('HLEN', keyOf(base, workflow, 'active'))", "")],
    "namespace": [("local free = cap - runningJobs(base)", "local free = cap")],
    "group": [
        (
            "slotsOf(base, workflow, group) < own.group",
            "own.group > 0",
        ),
        ("slotsOf(base, workflow, group) < limits.group", "limits.group > 0"),
        ("if runs < most then", "if true then"),
        ("runs + 1 >= most", "false"),
    ],
}


@asynccontextmanager
async def crowd(kind: str, server: Server, namespace_id: str, desk: Desk) -> AsyncGenerator[list[Job]]:
    """More jobs and slots than the cap of one kind lets run, in several queues where the cap is one over queues."""
    names = ("a", "b") if kind == "namespace" else ("a",)
    async with AsyncExitStack() as stack:
        queues: list[Queue] = []
        for number in range(1 if kind == "worker" else WORKERS):
            namespace = await stack.enter_async_context(
                Namespace(namespace_id, redis=server.url, concurrency=CAP if kind == "namespace" else None)
            )
            queues = [
                namespace.queue(
                    name,
                    concurrency=CAP if kind == "workflow" else None,
                    group_concurrency=CAP if kind == "group" else None,
                )
                for name in names
            ]
            queue = queues[number % len(queues)]
            slots = CAP if kind == "worker" else SLOTS
            await stack.enter_async_context(worker_of(queue, desk, concurrency=slots))
        yield [await queues[n % len(names)].add("x", id=f"{n}", group="g") for n in range(JOBS)]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_cap_is_filled_and_never_exceeded(server: Server, namespace_id: str, kind: str) -> None:
    desk = Desk()
    async with crowd(kind, server, namespace_id, desk) as jobs:
        for _ in range(JOBS - CAP):
            await wait_until(lambda: len(desk.running) >= CAP, PATIENCE)
            desk.let_go(random.choice(desk.running))
        desk.open()
        await results_of(jobs)
    assert desk.most == CAP
    assert Counter(desk.started) == Counter(str(n) for n in range(JOBS))


@pytest.mark.parametrize("kind", KINDS)
async def test_without_its_check_a_cap_is_exceeded(
    server: Server, namespace_id: str, kind: str, mutate: Mutate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test above notices when the check is missing."""
    for piece, replacement in CHECKS.get(kind, ()):
        mutate(piece, replacement)
    if kind == "worker":
        monkeypatch.setattr(Settler, "_free", _always_free)
    desk = Desk()
    async with crowd(kind, server, namespace_id, desk) as jobs:
        await wait_until(lambda: desk.most > CAP, PATIENCE)
        desk.open()
        await results_of(jobs)


def _always_free(_: Settler) -> int:
    return SLOTS


class Gauge:
    """How many run at once, by whatever they are counted by."""

    def __init__(self) -> None:
        self.now: Counter[object] = Counter()
        self.most: Counter[object] = Counter()

    @contextmanager
    def count(self, *keys: object) -> Generator[None]:
        for key in keys:
            self.now[key] += 1
            self.most[key] = max(self.most[key], self.now[key])
        try:
            yield
        finally:
            self.now.subtract(keys)


@pytest.mark.parametrize(
    "caps",
    [(6, 4, 2, 3), (1, 4, 2, 3), (6, 1, 3, 3), (9, 9, 1, 9), (4, 9, 9, 1), (5, 3, 1, 2)],
)
async def test_no_cap_is_exceeded_where_all_of_them_hold(
    server: Server, namespace_id: str, caps: tuple[int, int, int, int]
) -> None:
    in_namespace, in_workflow, in_group, in_worker = caps
    gauge, ran = Gauge(), Counter[str]()

    def handler_of(number: int) -> Callable[[Claim], Any]:
        async def handle(claim: Claim) -> None:
            keys = ["all", claim.workflow, number]
            keys += [(claim.workflow, claim.spec.group)] if claim.spec.group else []
            with gauge.count(*keys):
                ran[claim.id] += 1
                await asyncio.sleep(random.uniform(0, 0.003))

        return handle

    async with AsyncExitStack() as stack:
        queues: dict[str, Queue] = {}
        for number in range(WORKERS):
            namespace = await stack.enter_async_context(
                Namespace(namespace_id, redis=server.url, concurrency=in_namespace)
            )
            queues = {
                name: namespace.queue(name, concurrency=in_workflow, group_concurrency=in_group) for name in ("a", "b")
            }
            handlers = dict.fromkeys(queues, handler_of(number))
            limits = {name: queue.declared for name, queue in queues.items()}
            worker = Worker(namespace, handlers, concurrency=in_worker, limits=limits, safety=RELIES_ON_WAKING, grace=0)
            await stack.enter_async_context(worker)
        rng = random.Random(in_namespace)
        jobs = [
            await queues[rng.choice("ab")].add(
                "x",
                id=str(number),
                group=rng.choice([None, "g", "h", "i"]),
                priority=rng.choice([0, 3]),
                run_in=rng.choice([None, 0, 0.02]),
            )
            for number in range(120)
        ]
        await results_of(jobs)
    most = gauge.most
    assert most["all"] <= in_namespace
    assert max(most[name] for name in "ab") <= in_workflow
    assert max((count for key, count in most.items() if isinstance(key, tuple)), default=0) <= in_group
    assert max(most[number] for number in range(WORKERS)) <= in_worker
    assert ran == Counter(str(number) for number in range(120))


async def test_a_group_runs_one_at_a_time_unless_told_otherwise(namespace: Namespace) -> None:
    queue, desk = namespace.queue("q"), Desk()
    jobs = [await queue.add("x", id=str(n), group="g") for n in range(4)]
    async with worker_of(queue, desk):
        for n in range(4):
            await desk.runs(str(n))
            desk.let_go(str(n))
        await results_of(jobs)
    assert desk.most == 1


@pytest.mark.parametrize("kind", ["workflow", "group", "namespace"])
async def test_a_cap_is_raised_and_lowered_and_lifted_while_jobs_run(namespace: Namespace, kind: str) -> None:
    queue, desk = namespace.queue("q", group_concurrency=None if kind != "group" else 1), Desk()

    async def set_cap(cap: int | None) -> None:
        if kind == "namespace":
            await namespace.set_limits(concurrency=cap)
        elif kind == "workflow":
            await queue.set_limits(concurrency=cap)
        else:
            await queue.set_limits(group_concurrency=cap)

    await set_cap(1)
    async with worker_of(queue, desk, concurrency=SLOTS), worker_of(queue, desk, concurrency=SLOTS):
        jobs = [await queue.add("x", id=str(n), group="g") for n in range(20)]
        await desk.runs("0")
        await set_cap(5)  # wakes, though nobody has anything to do
        await desk.runs("0", "1", "2", "3", "4")
        await set_cap(1)  # lets those go on that run
        for n in range(4):
            desk.let_go(str(n))
            await desk.ended(str(n))
        await wait_until(lambda: desk.running == ["4"], PATIENCE)
        assert len(desk.started) == 5
        desk.let_go("4")
        await desk.runs("5")
        await set_cap(None)
        await wait_until(lambda: len(desk.running) == 15, PATIENCE)
        desk.open()
        await results_of(jobs)


@pytest.mark.parametrize("kind", ["workflow", "namespace"])
async def test_a_raised_cap_wakes_as_many_workers_as_it_has_room_for(
    server: Server, namespace_id: str, kind: str
) -> None:
    desk = Desk()
    async with AsyncExitStack() as stack:
        namespace = await stack.enter_async_context(Namespace(namespace_id, redis=server.url))
        queue = namespace.queue("q")
        await (namespace if kind == "namespace" else queue).set_limits(concurrency=1)
        for _ in range(4):
            await stack.enter_async_context(worker_of(queue, desk, concurrency=1))
        jobs = await queue.add_many(["x"] * 4)
        await wait_until(lambda: len(desk.running) == 1, PATIENCE)
        await (namespace if kind == "namespace" else queue).set_limits(concurrency=None)
        await wait_until(lambda: len(desk.running) == 4, PATIENCE)
        desk.open()
        await results_of(jobs)


async def test_raising_the_cap_of_groups_reaches_all_of_many_groups(namespace: Namespace) -> None:
    queue, desk = namespace.queue("q", group_concurrency=1), Desk()
    groups = 300  # more than are brought in line in one call
    async with worker_of(queue, desk, concurrency=2 * groups):
        for n in range(groups):
            await asyncio.gather(queue.add("x", group=str(n)), queue.add("x", group=str(n)))
        await wait_until(lambda: len(desk.running) == groups, PATIENCE)
        await queue.set_limits(group_concurrency=2)
        await wait_until(lambda: len(desk.running) == 2 * groups, PATIENCE)
        desk.open()
        await wait_until(lambda: not desk.running, PATIENCE)


async def test_limits_say_what_holds_and_what_was_set_at_run_time(namespace: Namespace, look: Look) -> None:
    def limits(concurrency: int | None, group_concurrency: int | None, *overridden: str) -> QueueLimits:
        return QueueLimits(
            concurrency=concurrency,
            group_concurrency=group_concurrency,
            paused=False,
            overridden=frozenset(overridden),
        )

    assert await namespace.queue("other").limits() == limits(None, 1)
    queue, desk = namespace.queue("q", concurrency=4, group_concurrency=2), Desk()
    async with worker_of(queue, desk):
        assert await queue.limits() == limits(4, 2)
        await queue.set_limits(concurrency=7)
        assert await queue.limits() == limits(7, 2, "concurrency")
        await queue.set_limits(group_concurrency=None)
        assert await queue.limits() == limits(7, None, "concurrency", "group_concurrency")
        look("HSET", "q:limits", "override:concurrency", "seven")
        assert (await queue.limits()).concurrency == 0
        await queue.set_limits(concurrency=None)
        assert (await queue.limits()).concurrency is None
        assert await namespace.limits() == Limits(concurrency=None, paused=False, overridden=frozenset())
        await namespace.set_limits(concurrency=9)
        await namespace.pause()
        assert await namespace.limits() == Limits(concurrency=9, paused=True, overridden=frozenset({"concurrency"}))
        await namespace.resume()


async def test_what_was_set_at_run_time_outlives_a_worker_that_declares(namespace: Namespace) -> None:
    queue, desk = namespace.queue("q", concurrency=1), Desk()
    await queue.set_limits(concurrency=3)
    jobs = await queue.add_many(["x"] * 5)
    async with worker_of(queue, desk):
        await wait_until(lambda: len(desk.running) == 3, PATIENCE)
        desk.open()
        await results_of(jobs)
    assert desk.most == 3


class Size(IntEnum):
    SMALL = 2


@pytest.mark.parametrize("cap", [0, -1, True, False, 1.0, 2.5, "3", 2**31])
async def test_a_cap_that_is_none_is_refused(namespace: Namespace, look: Look, cap: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="concurrency"):
        Namespace("n", redis="redis://localhost", concurrency=cap)
    with pytest.raises(InvalidArgumentError, match="concurrency"):
        namespace.queue("q", concurrency=cap)
    with pytest.raises(InvalidArgumentError, match="group_concurrency"):
        namespace.queue("q", group_concurrency=cap)
    queue = namespace.queue("q")
    with pytest.raises(InvalidArgumentError, match="concurrency"):
        worker_of(queue, Desk(), concurrency=cap)
    with pytest.raises(InvalidArgumentError, match="concurrency"):
        await queue.set_limits(concurrency=cap)
    with pytest.raises(InvalidArgumentError, match="group_concurrency"):
        await queue.set_limits(group_concurrency=cap)
    with pytest.raises(InvalidArgumentError, match="concurrency"):
        await namespace.set_limits(concurrency=cap)
    assert not look("EXISTS", "meta"), "something was sent"


async def test_an_int_enum_counts_as_its_int(namespace: Namespace) -> None:
    queue, desk = namespace.queue("q", concurrency=Size.SMALL), Desk()
    jobs = await queue.add_many(["x"] * 5)
    async with worker_of(queue, desk):
        await wait_until(lambda: len(desk.running) == 2, PATIENCE)
        desk.open()
        await results_of(jobs)
    assert desk.most == 2


@pytest.mark.parametrize("text", ["", "abc", "0", "-1", "1.5", "1e3", "0x10", " 3", "nil", "NONE"])
@pytest.mark.parametrize(
    "what", ["limits override:concurrency", "q:limits override:concurrency", "q:limits override:group"]
)
async def test_a_stored_limit_that_cannot_be_read_refuses_claims(
    namespace: Namespace, look: Look, what: str, text: str
) -> None:
    queue, desk = namespace.queue("q"), Desk(is_open=True)
    key, field = what.split()
    look("HSET", key, field, text)
    job = await queue.add("x", id="a", group="g")
    before = waiting_of(look)
    worker = worker_of(queue, desk)
    async with worker:
        await asked(look, worker)
        assert desk.started == []
        assert waiting_of(look) == before
        await namespace.set_limits(concurrency=None)
        await queue.set_limits(concurrency=None, group_concurrency=None)
        assert await job.wait(PATIENCE) == "x"


def waiting_of(look: Look) -> list[Any]:
    """What a claim would change: the job's record and its place; and who is active."""
    return [
        sorted(look("HGETALL", "q:j:a").items()),
        look("ZRANGE", "q:g:g", 0, -1, "WITHSCORES"),
        look("EXISTS", "q:active"),
        look("EXISTS", "running"),
        look("EXISTS", "q:ga"),
        look("GET", "q:pc"),
    ]


async def asked(look: Look, worker: Worker) -> None:
    """Wait until a worker has asked for work, and been answered."""
    await wait_until(lambda: look("EXISTS", f"@receipt:{worker.id}/0"), PATIENCE)


@pytest.mark.parametrize("kind", ["workflow", "namespace", "group"])
async def test_a_capped_claim_touches_nothing(namespace: Namespace, look: Look, kind: str) -> None:
    queue, desk = namespace.queue("q"), Desk()
    if kind == "workflow":
        await queue.set_limits(concurrency=1)
    elif kind == "namespace":
        await namespace.set_limits(concurrency=1)
    holds = await queue.add("x", id="holds", group="g")
    async with worker_of(queue, desk, concurrency=1):
        await desk.runs("holds")
        job = await queue.add("x", id="a", group="g", max_attempts=3)
        before = waiting_of(look)
        second = worker_of(queue, desk)
        async with second:
            await asked(look, second)
            assert waiting_of(look) == before
            desk.open()
            await results_of([holds, job])
            assert (await job.record()).attempt == 1


async def test_under_the_namespace_cap_the_workflow_refused_longest_is_next(namespace: Namespace, look: Look) -> None:
    await namespace.set_limits(concurrency=1)
    desk = Desk()
    queues = [namespace.queue(name) for name in "abc"]
    async with AsyncExitStack() as stack:
        for queue in queues:
            await stack.enter_async_context(worker_of(queue, desk, concurrency=SLOTS))
        # a long backlog, then the others are refused one after the other
        jobs = [await queues[0].add("x", id=f"a{n}") for n in range(10)]
        await desk.runs("a0")
        for name, queue in zip("bc", queues[1:], strict=True):
            jobs.append(await queue.add("x", id=f"{name}0"))
            await wait_until(partial(refused, namespace, name), PATIENCE)
            jobs.append(await queue.add("x", id=f"{name}1"))
            # who is refused in the same millisecond has been refused as long
            await wait_until(partial(_is_past, look, look.now() + 1))
        for n in range(14):
            await desk.starts(n + 1)
            desk.let_go(desk.started[-1])
        await results_of(jobs)
    assert desk.most == 1
    # the backlog was refused before the others, and whoever was served queues up behind them
    assert desk.started[:8] == ["a0", "a1", "b0", "c0", "a2", "b1", "c1", "a3"]


def _is_past(look: Look, moment: int) -> bool:
    return look.now() > moment


async def refused(namespace: Namespace, workflow: str) -> bool:
    link = (await namespace.runtime()).call.link
    return await link.call("ZSCORE", f"{namespace.base}:capped", workflow) is not None


async def test_two_workflows_under_one_slot_share_it(namespace: Namespace) -> None:
    await namespace.set_limits(concurrency=1)
    a, b, desk = namespace.queue("a"), namespace.queue("b"), Desk(is_open=True)
    async with worker_of(a, desk), worker_of(b, desk):
        jobs = [await a.add("x", id=f"a{n}") for n in range(60)]
        jobs += [await b.add("x", id=f"b{n}") for n in range(30)]
        await results_of(jobs)
    last = max(desk.started.index(f"b{n}") for n in range(30))
    first = min(desk.started.index(f"b{n}") for n in range(30))
    # from its first on, every second one or so: never 501 : 0
    assert last - first <= 2 * 30 + 5


async def test_one_worker_of_several_queues_takes_from_all_of_them(namespace: Namespace) -> None:
    desk = Desk(is_open=True)
    queues = {name: namespace.queue(name) for name in "abc"}
    jobs = [await queue.add("x", id=f"{name}{n}") for name, queue in queues.items() for n in range(20)]
    worker = Worker(namespace, dict.fromkeys(queues, desk), concurrency=1, safety=RELIES_ON_WAKING, grace=0)
    async with worker:
        await results_of(jobs)
    for start in range(0, 60, 3):
        assert {job_id[0] for job_id in desk.started[start : start + 3]} == set("abc")


async def test_a_ceiling_of_a_worker_keeps_its_other_slots_for_other_queues(namespace: Namespace) -> None:
    a, b, desk = namespace.queue("a"), namespace.queue("b"), Desk()
    jobs = [*await a.add_many(["x"] * 5), *await b.add_many(["x"] * 3)]
    worker = Worker(
        namespace, {"a": desk, "b": desk}, concurrency=4, ceilings={"a": 1}, safety=RELIES_ON_WAKING, grace=0
    )
    async with worker:
        await wait_until(lambda: len(desk.running) == 4, PATIENCE)
        assert Counter(desk.claims[job_id].workflow for job_id in desk.running) == {"a": 1, "b": 3}
        desk.open()
        await results_of(jobs)


async def test_a_worker_at_its_ceiling_leaves_wake_ups_to_others(namespace: Namespace) -> None:
    a, desk, other = namespace.queue("a"), Desk(), Desk()
    worker = Worker(
        namespace, {"a": desk, "b": desk}, concurrency=9, ceilings={"a": 1}, safety=RELIES_ON_WAKING, grace=0
    )
    async with worker:
        jobs = [await a.add("x")]
        await wait_until(lambda: len(desk.running) == 1, PATIENCE)
        async with worker_of(a, other, concurrency=20):
            for _ in range(10):
                jobs.append(await a.add("x"))
                await wait_until(lambda: len(other.running) == len(jobs) - 1, PATIENCE)
            desk.open()
            other.open()
            await results_of(jobs)


async def test_a_place_whose_workers_ask_no_more_is_over_by_itself(namespace: Namespace, look: Look) -> None:
    """Those of workers that were killed: nobody says that they are gone."""
    await namespace.set_limits(concurrency=1)
    a, b, desk = namespace.queue("a"), namespace.queue("b"), Desk(is_open=True)
    await b.add("x", id="b0")
    look("ZADD", "capped", look.now() - 60_000, "b")
    look("ZADD", "capped:seen", look.now() - 9_000, "b")
    async with worker_of(a, desk):
        assert await (await a.add("x", id="a0")).wait(PATIENCE) == "x"
    assert await b.remove("b0")


async def test_a_stopped_worker_holds_no_place_among_the_refused(namespace: Namespace) -> None:
    await namespace.set_limits(concurrency=1)
    a, b, desk = namespace.queue("a"), namespace.queue("b"), Desk()
    async with worker_of(a, desk):
        jobs = [await a.add("x", id=f"a{n}") for n in range(2)]
        await desk.runs("a0")
        async with worker_of(b, desk):
            await b.add("x", id="b0")
            await wait_until(lambda: refused(namespace, "b"), PATIENCE)
        desk.open()
        await results_of(jobs)
    assert await b.remove("b0")
