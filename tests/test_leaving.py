"""What a worker that stops leaves behind: nothing that keeps work from others."""

from functools import partial

import pytest

from lanner.queue import Namespace
from lanner.queue.scripts.claiming import settle
from lanner.queue.scripts.listing import leave_worker
from lanner.queue.scripts.loader import load
from support.jobs import PATIENCE, Desk, Look, worker_of
from support.proxy import Proxy


async def test_a_worker_leaves_in_good_order_although_an_answer_is_lost(
    namespace_id: str, proxy: Proxy, namespace: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lanner.queue.worker.SAYS_GOODBYE_FOR", PATIENCE)
    async with Namespace(namespace_id, redis=proxy.url) as slow:
        worker = worker_of(slow.queue("q"), Desk())
        async with worker:
            # one of each two passes on what the worker was woken for: before the grace, and at the end
            proxy.lose_answers(load("pass_wake").sha, every=2)
        assert proxy.lost_answers
    assert [(info.id, info.departed) for info in await namespace.workers()] == [(worker.id, "stopped")]


@pytest.mark.parametrize("later", [0, 3])
async def test_the_wake_up_before_a_claim_that_comes_to_nothing_is_for_others(
    namespace: Namespace, look: Look, later: int
) -> None:
    """A connection can have gone for the worker, which has claimed over another, and not for the server."""
    call = (await namespace.runtime()).call
    claim = partial(settle, call, worker="w", lease=60_000, outcomes=[], wants=[("q", 1)])
    await claim(number=5 + later, total=1)
    job = await namespace.queue("q").add("x")
    assert look("RPOP", "q:wake") == "1"
    assert (await claim(number=5, total=1)).claims == []
    assert look("LLEN", "q:wake") == 1
    async with worker_of(namespace.queue("q"), Desk(is_open=True)):
        await job.wait(PATIENCE)


async def test_a_withdrawn_claim_that_runs_after_its_worker_has_left_gets_nothing(namespace: Namespace) -> None:
    """The server may notice late that the connection with the pop, and the claim behind it, has gone."""
    call = (await namespace.runtime()).call
    claim = partial(settle, call, worker="w", number=5, lease=60_000, outcomes=[], wants=[("q", 1)])
    await claim(total=0)
    await leave_worker(call, worker="w")
    job = await namespace.queue("q").add("x")
    assert (await claim(total=1)).claims == []
    assert await job.state() == "waiting"
    await namespace.queue("q").remove(job.id)
