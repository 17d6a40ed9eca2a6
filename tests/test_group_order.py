"""Groups whose jobs never interleave: ``group_order="strict"`` holds the group through whatever comes between."""

import asyncio
from typing import Any, Literal

import pytest

from lanner.queue import Backoff, Claim, Job, Namespace, Suspended
from support.jobs import PATIENCE, Desk, Look, lose_claim, results_of, worker_of
from support.waiting import wait_until


class Diary:
    """A handler that notes when jobs begin and end, and stops between as their payload says."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.naps: set[str] = set()

    async def __call__(self, claim: Claim) -> Any:
        if claim.id not in self.naps:
            self.naps.add(claim.id)
            self.notes.append(f"{claim.id} begins")
            match claim.data:
                case "retries":
                    raise ValueError("again")
                case "waits":
                    return Suspended(claim.now_ms() + 50)
                case "waits for an event":
                    return Suspended(None, ("go",))
                case "waits for what has passed":
                    return Suspended(1)
                case _:
                    pass
        self.notes.append(f"{claim.id} ends")
        return ""


@pytest.mark.parametrize("between", ["retries", "waits", "waits for what has passed"])
async def test_jobs_of_a_strict_group_never_interleave(namespace: Namespace, look: Look, between: str) -> None:
    queue, diary = namespace.queue("q", group_order="strict", backoff=Backoff(first=0.05)), Diary()
    jobs = [await queue.add(between, id=str(n), group="g", max_attempts=2) for n in range(4)]
    jobs.append(await queue.add("", id="urgent", group="g", priority=9, run_in=0.02))
    async with worker_of(queue, diary):
        await results_of(jobs)
    order = [note.split()[0] for note in diary.notes]
    assert all(order.count(job.id) == 2 for job in jobs)
    assert all(one == other for one, other in zip(order[::2], order[1::2], strict=True))
    assert not look("HEXISTS", "q:ga", "g")


async def test_jobs_of_a_loose_group_go_on_while_one_waits(namespace: Namespace) -> None:
    queue, diary = namespace.queue("q"), Diary()
    waits = await queue.add("waits for an event", id="waits", group="g")
    jobs = [await queue.add("", id=str(n), group="g") for n in range(3)]
    async with worker_of(queue, diary):
        await results_of(jobs)
        assert await waits.send_event("go", "", event_id="1")
        await waits.wait(PATIENCE)


async def test_a_strict_group_waits_for_an_event_and_no_other_group_does(namespace: Namespace) -> None:
    queue, diary = namespace.queue("q", group_order="strict"), Diary()
    waits = await queue.add("waits for an event", id="waits", group="g")
    behind = await queue.add("", id="behind", group="g")
    async with worker_of(queue, diary):
        await wait_until(lambda: in_state(waits, "parked"))
        others = [await queue.add("", id=f"other {n}", group=f"h{n}") for n in range(5)]
        await results_of(others)
        assert "behind begins" not in diary.notes
        assert await waits.send_event("go", "", event_id="1")
        await results_of([waits, behind])
    assert diary.notes.index("waits ends") < diary.notes.index("behind begins")


async def in_state(job: Job, state: str) -> bool:
    return await job.state() == state


@pytest.mark.parametrize("how", ["cancel", "remove"])
async def test_a_job_that_holds_its_group_and_is_taken_away_gives_it_back(
    namespace: Namespace, look: Look, how: str
) -> None:
    queue, diary = namespace.queue("q", group_order="strict"), Diary()
    waits = await queue.add("waits for an event", id="waits", group="g")
    behind = await queue.add("", id="behind", group="g")
    async with worker_of(queue, diary):
        await wait_until(lambda: in_state(waits, "parked"))
        assert await (waits.cancel() if how == "cancel" else queue.remove("waits"))
        await behind.wait(PATIENCE)
    assert not look("HEXISTS", "q:ga", "g")


@pytest.mark.parametrize("how", ["crash", "shutdown"])
@pytest.mark.parametrize("order", ["strict", "loose"])
async def test_a_job_that_lost_its_worker_is_the_groups_next_in_a_strict_group(
    namespace: Namespace, look: Look, how: str, order: Literal["loose", "strict"]
) -> None:
    queue, first, second = namespace.queue("q"), Desk(), Desk()
    begun = await queue.add("x", id="begun", group="g", group_order=order)
    worker = worker_of(queue, first, concurrency=1)
    await worker.start()
    await first.runs("begun")
    urgent = await queue.add("x", id="urgent", group="g", priority=9, group_order=order)
    if how == "shutdown":
        await worker.stop()
    async with worker_of(queue, second, concurrency=1):
        if how == "crash":
            await queue.pause()
            await lose_claim(look, namespace, "q", "begun")
            assert await begun.state() == "waiting"
            await worker.stop()
            await queue.resume()
        await wait_until(lambda: len(second.running) == 1, PATIENCE)
        second.open()
        await results_of([begun, urgent])
    assert second.started == (["begun", "urgent"] if order == "strict" else ["urgent", "begun"])
    assert not look("HEXISTS", "q:ga", "g")


async def test_a_strict_group_with_room_for_two_runs_two(namespace: Namespace) -> None:
    queue, desk = namespace.queue("q", group_order="strict", group_concurrency=2), Desk()
    jobs = [await queue.add("x", id=str(n), group="g") for n in range(4)]
    async with worker_of(queue, desk):
        await desk.runs("0", "1")
        desk.let_go("0")
        await desk.runs("1", "2")
        desk.open()
        await results_of(jobs)


async def test_many_strict_groups_end_with_nothing_held(namespace: Namespace, look: Look) -> None:
    queue, diary = namespace.queue("q", group_order="strict", backoff=Backoff(first=0.01)), Diary()
    kinds = ["retries", "waits", "waits for what has passed", ""]
    jobs = [await queue.add(kinds[n % 4], id=str(n), group=f"g{n % 7}", max_attempts=2) for n in range(80)]
    async with worker_of(queue, diary, concurrency=5), worker_of(queue, diary, concurrency=5):
        await asyncio.sleep(0)
        await results_of(jobs)
    assert look.nothing_is_active("q")
