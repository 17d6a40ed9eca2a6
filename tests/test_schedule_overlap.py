"""A schedule that fires while the job of its last fire lives, or after it has ended in whatever way."""

import pytest

from lanner.queue import Claim, Namespace, Queue
from support.jobs import PATIENCE, Desk, Look, worker_of
from support.schedules import DAILY, fired, missed, nothing_left, the
from support.waiting import wait_until


async def test_a_fire_is_skipped_while_the_previous_job_lives(namespace: Namespace, look: Look) -> None:
    queue, desk = namespace.queue("q"), Desk()
    await queue.schedules.upsert("s", DAILY, "x")
    async with worker_of(queue, desk):
        for fires in (1, 2, 3):
            missed(look, await the(queue), 1)
            schedule = await fired(queue, fires)
            assert schedule.skipped == fires - 1
        await desk.starts(1)
        desk.let_go(*desk.started)
        await queue.job(desk.started[0]).wait(PATIENCE)
        missed(look, await the(queue), 1)
        schedule = await fired(queue, 4)
        assert (schedule.skipped, schedule.last_job == desk.started[0]) == (2, False)
        desk.open()
        await queue.job(str(schedule.last_job)).wait(PATIENCE)
    assert len(desk.started) == 2


@pytest.mark.parametrize("ended", ["failed", "cancelled", "removed", "completed"])
async def test_however_the_previous_job_ended_the_next_fire_runs(namespace: Namespace, look: Look, ended: str) -> None:
    async def handle(_: Claim) -> str:
        if ended == "failed":
            raise ValueError
        return ""

    queue = namespace.queue("q")
    await queue.schedules.upsert("s", DAILY, "x")
    if ended in ("cancelled", "removed"):
        await queue.pause()
    missed(look, await the(queue), 1)
    async with worker_of(queue, handle):
        job = queue.job(str((await fired(queue, 1)).last_job))
        if ended == "cancelled":
            assert await job.cancel()
        if ended == "removed":
            assert await queue.remove(job.id)
        else:
            await wait_until(lambda: has_ended(queue, job.id, ended))
        missed(look, await the(queue), 1)
        schedule = await fired(queue, 2)
        assert (schedule.skipped, schedule.last_job == job.id) == (0, False)
        await queue.resume()
        await wait_until(lambda: nothing_left(queue))


async def has_ended(queue: Queue, job_id: str, state: str) -> bool:
    return await queue.job(job_id).state() == state


async def test_overlapping_jobs_run_side_by_side_where_allowed(namespace: Namespace, look: Look) -> None:
    queue, desk = namespace.queue("q"), Desk()
    await queue.schedules.upsert("s", DAILY, "x", overlap="allow")
    async with worker_of(queue, desk):
        for fires in (1, 2, 3):
            missed(look, await the(queue), 1)
            await fired(queue, fires)
        await wait_until(lambda: len(desk.running) == 3)
        desk.open()
        await wait_until(lambda: nothing_left(queue))
    assert (await the(queue)).skipped == 0


async def test_the_previous_job_is_cancelled_where_asked_for(namespace: Namespace, look: Look) -> None:
    queue, desk = namespace.queue("q"), Desk()
    await queue.schedules.upsert("s", DAILY, "x", overlap="cancel")
    async with worker_of(queue, desk):
        missed(look, await the(queue), 1)
        first = str((await fired(queue, 1)).last_job)
        await desk.runs(first)
        missed(look, await the(queue), 1)
        second = str((await fired(queue, 2)).last_job)
        await desk.runs(second)
        record = await queue.job(first).record()
        assert (record.state, record.reason) == ("cancelled", "the schedule fired again")
        desk.open()
        await queue.job(second).wait(PATIENCE)
    # they are in one group: the second waited for the first to be gone
    assert desk.most == 1
