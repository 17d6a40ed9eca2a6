"""Sequences of calls that the queue once got wrong: most were found by the machine that drives it against its model."""

from typing import Any

import pytest

from lanner.queue import Claim, Job, Namespace, Suspended
from support.jobs import PATIENCE, Look, worker_of
from support.waiting import wait_until


async def in_state(job: Job, state: str) -> bool:
    return await job.state() == state


@pytest.mark.parametrize("gone_on", ["by the clock", "by hand"])
async def test_a_job_sleeps_through_an_event_that_it_has_ceased_to_wait_for(
    namespace: Namespace, look: Look, gone_on: str
) -> None:
    queue, sleeps = namespace.queue("q"), 0

    async def handle(claim: Claim) -> Any:
        nonlocal sleeps
        sleeps += 1
        far = claim.now_ms() + 3_600_000
        soon = claim.now_ms() + 50 if gone_on == "by the clock" else far
        return Suspended(soon, ("go",)) if sleeps == 1 else Suspended(far) if sleeps == 2 else ""

    job = await queue.add("x", id="1")
    async with worker_of(queue, handle):
        if gone_on == "by hand":
            await wait_until(lambda: in_state(job, "delayed"), PATIENCE)
            assert await queue.promote("1")
        await wait_until(lambda: sleeps == 2, PATIENCE)
        await wait_until(lambda: in_state(job, "delayed"), PATIENCE)
        assert await job.send_event("go", "", event_id="1")
        assert await job.state() == "delayed"
        assert not look("HEXISTS", "q:j:1", "awaits")
    assert sleeps == 2
