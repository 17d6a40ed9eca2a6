"""Which job is next: priority first, then the moment of becoming runnable, over groups and jobs of their own alike."""

import random
from typing import Any

import pytest

from lanner.queue import Claim, Namespace, Queue, Released, Retry, Suspended
from lanner.queue.outcome import Failure
from support.jobs import PATIENCE, Desk, Look, lose_claim, results_of, worker_of
from support.waiting import wait_until

LONG_QUEUE = 10_000


async def order_of(queue: Queue, count: int, **settings: Any) -> list[str]:
    """The ids of the jobs in the order in which one slot takes them."""
    desk = Desk(is_open=True)
    async with worker_of(queue, desk, **{"concurrency": 1, **settings}):
        await wait_until(lambda: len(desk.started) == count, PATIENCE)
    return desk.started


async def test_first_come_first_served(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    for number in range(30):
        await queue.add("x", id=str(number), group="g" if number % 3 else None, result_ttl=0)
    assert await order_of(queue, 30) == [str(number) for number in range(30)]


async def test_the_higher_priority_first_over_groups_and_without(namespace: Namespace) -> None:
    queue, rng = namespace.queue("q"), random.Random(7)
    added: list[tuple[int, int, str]] = []
    for number in range(150):
        priority = rng.choice([0, 0, 1, 5, 2**21 - 1])
        group = rng.choice([None, None, "a", "b", "c"])
        await queue.add("x", id=str(number), priority=priority, group=group, result_ttl=0)
        added.append((-priority, number, str(number)))
    assert await order_of(queue, 150) == [job_id for _, _, job_id in sorted(added)]


@pytest.mark.parametrize("concurrency", [2, 7, 64])
async def test_slots_that_are_filled_at_once_are_filled_in_order(namespace: Namespace, concurrency: int) -> None:
    queue, rng = namespace.queue("q", group_concurrency=None), random.Random(concurrency)
    added: list[tuple[int, int, str]] = []
    for number in range(2 * concurrency):
        priority, group = rng.choice([0, 1, 2]), rng.choice([None, "a", "b"])
        await queue.add("x", id=str(number), priority=priority, group=group)
        added.append((-priority, number, str(number)))
    in_order = [job_id for _, _, job_id in sorted(added)]
    desk = Desk()
    async with worker_of(queue, desk, concurrency=concurrency):
        await wait_until(lambda: len(desk.running) == concurrency, PATIENCE)
        assert desk.started == in_order[:concurrency]
        desk.open()
        await wait_until(lambda: len(desk.started) == 2 * concurrency, PATIENCE)


async def test_one_of_higher_priority_passes_ten_thousand(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    await queue.add_many(["x"] * LONG_QUEUE, result_ttl=0)
    await queue.add("x", id="urgent", priority=5, result_ttl=0)
    desk = Desk()
    async with worker_of(queue, desk, concurrency=1):
        await desk.has_started("urgent")
        assert desk.started == ["urgent"]
        await queue.pause()
    assert await queue.remove_all("waiting") == LONG_QUEUE + 1


async def test_a_saturated_group_at_the_head_holds_up_nobody(namespace: Namespace) -> None:
    queue, desk = namespace.queue("q"), Desk()
    await queue.add("x", id="holds", group="full")
    async with worker_of(queue, desk):
        await desk.runs("holds")
        for number in range(50):
            await queue.add("x", id=f"full {number}", group="full", priority=9)
        await queue.add("x", id="free", group="free")
        await queue.add("x", id="single")
        await desk.runs("holds", "free", "single")
        desk.open()
        await wait_until(lambda: len(desk.started) == 53, PATIENCE)
    assert desk.started[3:] == [f"full {number}" for number in range(50)]


async def test_a_retry_goes_to_the_back(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    order: list[str] = []

    async def handle(claim: Claim) -> Any:
        order.append(claim.id)
        return Retry(0, Failure("E", "no")) if claim.id == "a" and claim.attempt == 1 else ""

    jobs = [await queue.add("x", id=job_id, max_attempts=2) for job_id in "abc"]
    async with worker_of(queue, handle, concurrency=1):
        await results_of(jobs)
    assert order == ["a", "b", "c", "a"]


@pytest.mark.parametrize("group", [None, "g"])
@pytest.mark.parametrize("outcome", [Released(), Suspended(1)], ids=["handed back", "resumed"])
async def test_a_job_that_goes_on_returns_to_its_place(
    namespace: Namespace, outcome: Released | Suspended, group: str | None
) -> None:
    queue = namespace.queue("q")
    order: list[str] = []

    async def handle(claim: Claim) -> Any:
        order.append(claim.id)
        return outcome if claim.id == "a" and order.count("a") < 3 else ""

    jobs = [await queue.add("x", id=job_id, group=group) for job_id in "abc"]
    async with worker_of(queue, handle, concurrency=1):
        await results_of(jobs)
    assert order == ["a", "a", "a", "b", "c"]


async def test_a_job_that_slept_while_others_came_is_before_them(namespace: Namespace, look: Look) -> None:
    queue, desk = namespace.queue("q"), Desk()

    async def handle(claim: Claim) -> Any:
        first = claim.id not in desk.started
        result = await desk(claim)
        return Suspended(claim.now_ms() + 3_600_000) if claim.id == "sleeps" and first else result

    desk.let_go("sleeps", "later")
    jobs = [await queue.add("x", id=job_id) for job_id in ("sleeps", "holds")]
    async with worker_of(queue, handle, concurrency=1):
        await desk.runs("holds")
        jobs.append(await queue.add("x", id="later"))
        look("ZADD", "q:delayed", 1, "sleeps")
        desk.let_go("holds")
        await results_of(jobs)
    assert desk.started == ["sleeps", "holds", "sleeps", "later"]


async def test_a_recovered_job_returns_to_its_place(namespace: Namespace, look: Look) -> None:
    queue, desk = namespace.queue("q"), Desk()
    jobs = [await queue.add("x", id=job_id, priority=1) for job_id in "abc"]
    async with worker_of(queue, desk, concurrency=1):
        await desk.runs("a")
        await queue.pause()
        await lose_claim(look, namespace, "q", "a")
        assert look.state("q", "a") == "waiting"
        await desk.runs()
        desk.open()
        await queue.resume()
        await results_of(jobs)
    assert desk.started == ["a", "a", "b", "c"]


@pytest.mark.parametrize("counted", [None, 3_000_000_000], ids=["as ever", "after billions of jobs"])
async def test_a_job_that_slept_while_the_queue_was_empty_is_before_those_that_came_later(
    namespace: Namespace, look: Look, counted: int | None
) -> None:
    queue = namespace.queue("q")
    order: list[str] = []

    async def handle(claim: Claim) -> Any:
        order.append(claim.id)
        return Suspended(None, ("go",)) if claim.id in {"y", "z"} and order.count(claim.id) == 1 else ""

    async with worker_of(queue, handle, concurrency=1):
        if counted:
            look("SET", "q:pc", counted)
        sleepers = [await queue.add("x", id=job_id) for job_id in ("z", "y")]
        await wait_until(lambda: look("ZCARD", "q:parked") == 2)
        for number in range(5):
            await (await queue.add("x", id=f"between {number}")).wait(PATIENCE)
        await queue.pause()
        later = [await queue.add("x", id=f"after {number}") for number in range(9)]
        for job in sleepers:
            await job.send_event("go", "", event_id="1")
        begun = len(order)
        await queue.resume()
        await results_of([*later, *sleepers])
    assert set(order[begun : begun + 2]) == {"z", "y"}
    assert counted or order[begun] == "z"
    assert order[begun + 2 :] == [f"after {number}" for number in range(9)]
    assert not look("EXISTS", "q:pc")


async def test_delayed_jobs_become_runnable_in_due_order(namespace: Namespace, look: Look) -> None:
    queue = namespace.queue("q")
    for number in (3, 1, 4, 0, 2):
        await queue.add("x", id=str(number), run_in=3600)
    for number in range(5):
        look("ZADD", "q:delayed", look.now() - 1000 + number, str(number))
    assert await order_of(queue, 5) == ["0", "1", "2", "3", "4"]


async def test_a_job_that_became_due_first_is_first_also_when_nobody_looked(namespace: Namespace, look: Look) -> None:
    """The moment of becoming runnable counts, not the one at which a worker notices it."""
    queue, desk = namespace.queue("q"), Desk()
    await queue.add("x", id="holds")
    async with worker_of(queue, desk, concurrency=1):
        await desk.runs("holds")
        await queue.add("x", id="due", run_in=0.05)
        await wait_until(lambda: look("ZCOUNT", "q:delayed", "-inf", look.now()) or not look("EXISTS", "q:delayed"))
        await queue.add("x", id="fresh")
        desk.let_go("holds", "due", "fresh")
        await desk.has_started("due", "fresh")
    assert desk.started == ["holds", "due", "fresh"]


async def test_ids_and_groups_may_be_any_text(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    names = ["user:42", "g:x", "j:y", "é 字", "{braces}", "a b\\c", "%d", '"quoted"', "[x]", "x" * 256]
    jobs = [await queue.add(name, id=name, group=name) for name in names]
    assert await order_of(queue, len(names)) == names
    assert await results_of(jobs) == names
