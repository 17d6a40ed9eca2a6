"""Schedules that are paused and resumed: what is not fired meanwhile, and what goes on afterwards."""

from lanner.queue import Namespace, cadence
from support.jobs import PATIENCE, Look, worker_of
from support.schedules import DAILY, done, fired, missed, ms_of, now_of, the


async def test_a_paused_schedule_fires_nothing_and_what_it_missed_stays_missed(
    namespace: Namespace, look: Look
) -> None:
    queue = namespace.queue("q")
    await queue.schedules.upsert("s", DAILY, "x")
    assert await queue.schedules.pause("s") is True
    assert await queue.schedules.pause("s") is True
    paused = await the(queue)
    assert (paused.paused, paused.next_fire) == (True, None)
    await queue.schedules.upsert("other", cadence(every=0.1), "x")
    look("HSET", "q:schedule:s", "armed", 1)
    async with worker_of(queue, done):
        await fired(queue, 2, "other")
        await queue.schedules.resume("s")
        schedule = await the(queue)
        assert schedule.paused is False
        assert ms_of(schedule.next_fire) > await now_of(namespace)
        # one more look at them
        await fired(queue, (await the(queue, "other")).fires + 2, "other")
        assert (await the(queue)).fires == 0


async def test_a_paused_schedule_stays_so_when_it_is_set_again(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    await queue.schedules.upsert("s", DAILY, "x")
    await queue.schedules.pause("s")
    await queue.schedules.upsert("s", cadence("0 0 1 1 *"), "y")
    schedule = await the(queue)
    assert (schedule.paused, schedule.next_fire, schedule.data) == (True, None, "y")
    await queue.schedules.resume("s")
    resumed = (await the(queue)).next_fire
    assert resumed is not None
    assert (resumed.month, resumed.day) == (1, 1)


async def test_a_paused_schedule_can_be_triggered(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    await queue.schedules.upsert("s", DAILY, "x")
    await queue.schedules.pause("s")
    async with worker_of(queue, done):
        await (await queue.schedules.trigger("s")).wait(PATIENCE)
    assert (await the(queue)).paused


async def test_a_resumed_schedule_wakes_an_idle_worker(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    await queue.schedules.upsert("s", cadence(every=0.1), "x")
    await queue.schedules.pause("s")
    async with worker_of(queue, done):
        await (await queue.add("x")).wait(PATIENCE)
        await queue.schedules.resume("s")
        await fired(queue, 2)


async def test_to_resume_what_is_not_paused_changes_nothing(namespace: Namespace, look: Look) -> None:
    queue = namespace.queue("q")
    await queue.schedules.upsert("s", DAILY, "x")
    first = missed(look, await the(queue), 2)
    assert await queue.schedules.resume("s") is True
    assert ms_of((await the(queue)).next_fire) == first
