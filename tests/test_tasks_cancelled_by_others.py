"""Somebody cancels every task that he finds in the loop, ours among them: what is asked for afterwards is done."""

import asyncio
from collections import Counter

import pytest

from lanner import JobFailedError
from lanner.errors import LannerError
from lanner.queue import Claim, Namespace
from support.jobs import PATIENCE, echo, results_of, worker_of

SEVERAL = 6
TURNS = range(9)


def cancel_tasks(*names: str) -> None:
    """Cancel the tasks with these names, be it before their first step."""
    for task in asyncio.all_tasks():
        if task.get_name() in names:
            task.cancel()


@pytest.mark.parametrize("opened", [True, False], ids=["opened", "opening"])
@pytest.mark.parametrize("turns", TURNS)
async def test_a_producer_adds_and_waits_afterwards(
    redis_url: str, namespace_id: str, namespace: Namespace, turns: int, *, opened: bool
) -> None:
    """However many turns of the loop its tasks have had; an add in their hands may say that its answer is lost."""
    async with Namespace(namespace_id, redis=redis_url) as producing, worker_of(namespace.queue("q"), echo):
        queue = producing.queue("q")
        if opened:
            await (await queue.add("first")).wait(PATIENCE)
        calls = [asyncio.create_task(queue.add(str(n))) for n in range(SEVERAL)]
        for _ in range(turns):
            await asyncio.sleep(0)
        cancel_tasks("lanner grouper", "lanner link")
        async with asyncio.timeout(PATIENCE):
            ends = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(end, LannerError) for end in ends if isinstance(end, BaseException)), ends
        jobs = await asyncio.gather(*(queue.add(str(n)) for n in range(SEVERAL)))
        waits = [asyncio.create_task(job.wait(PATIENCE)) for job in jobs]
        for _ in range(turns):
            await asyncio.sleep(0)
        cancel_tasks("lanner looker", "lanner link", "lanner grouper")
        assert await asyncio.gather(*waits) == [str(n) for n in range(SEVERAL)]


async def test_who_waits_after_the_subscription_was_cancelled_hears_of_the_end(
    redis_url: str, namespace_id: str, namespace: Namespace
) -> None:
    async with Namespace(namespace_id, redis=redis_url) as producing, worker_of(namespace.queue("q"), echo):
        queue = producing.queue("q")
        await (await queue.add("first")).wait(PATIENCE)
        cancel_tasks("lanner subscription")
        await asyncio.sleep(0)
        jobs = await asyncio.gather(*(queue.add(str(n), run_in=0.2) for n in range(SEVERAL)))
        assert await results_of(jobs) == [str(n) for n in range(SEVERAL)]


async def test_a_job_whose_task_is_cancelled_before_its_first_step_fails_its_attempt(namespace: Namespace) -> None:
    began = Counter[str]()

    async def handle(claim: Claim) -> str:
        began[claim.data] += 1
        if claim.data == "cancels":
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                if "_TaskRun" in repr(task.get_coro()):
                    task.cancel()
        return claim.data

    queue = namespace.queue("q")
    jobs = [await queue.add("cancels", priority=1), *(await queue.add_many(["x"] * SEVERAL))]
    again = await queue.add("again", max_attempts=2)
    async with worker_of(queue, handle, concurrency=10):
        assert await jobs[0].wait(PATIENCE) == "cancels"
        for job in jobs[1:]:
            with pytest.raises(JobFailedError, match="CancelledError"):
                await job.wait(PATIENCE)
        assert await again.wait(PATIENCE) == "again"
        # every slot is free again
        assert await results_of(await queue.add_many(["y"] * 20)) == ["y"] * 20
    assert "x" not in began
