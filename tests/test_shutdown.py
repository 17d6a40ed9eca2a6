"""Stopping a worker: what runs may end, the rest is handed back, nothing is lost, and nothing hangs."""

import asyncio
import threading
import time
from contextlib import AsyncExitStack
from typing import Literal

import pytest

from lanner.queue import Claim, Completed, Namespace
from lanner.queue.cadence import cadence
from lanner.queue.calling import Caller
from lanner.queue.scripts.loader import load
from lanner.queue.settling import Settler
from support.jobs import PATIENCE, Desk, Look, results_of, settle_is_in_the_server, worker_of
from support.proxy import Proxy
from support.servers import PrivateServer, Server
from support.unstoppable import Unstoppable
from support.waiting import wait_until

LONG = 3600
# far longer than a stop takes, far shorter than what a test would have to wait for if it were not one
AT_ONCE = 20


@pytest.fixture
def short_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a run that was ended may take to clean up, and the last commit, is short."""
    monkeypatch.setattr("lanner.queue.worker.CLEAN_UP", 0.5)


async def test_jobs_may_end_within_the_grace_and_no_other_is_begun(namespace: Namespace) -> None:
    queue, desk = namespace.queue("q"), Desk()
    worker = worker_of(queue, desk, concurrency=2, grace=LONG)
    await worker.start()
    jobs = [await queue.add(str(n), id=str(n)) for n in range(4)]
    await desk.runs("0", "1")
    stopping = asyncio.create_task(worker.stop())
    await asyncio.sleep(0)
    desk.open()
    await stopping
    assert await results_of(jobs[:2]) == ["0", "1"]
    assert [await job.state() for job in jobs[2:]] == ["waiting", "waiting"]
    assert desk.started == ["0", "1"]
    await queue.remove_all("waiting")


@pytest.mark.parametrize("group", [None, "g"])
@pytest.mark.parametrize("order", ["loose", "strict"])
async def test_what_outlasts_the_grace_is_handed_back_at_once_and_no_attempt_is_used(
    namespace: Namespace, look: Look, group: str | None, order: Literal["loose", "strict"]
) -> None:
    queue, first, second = namespace.queue("q"), Desk(), Desk()
    job = await queue.add("x", id="a", group=group, group_order=order)
    behind = await queue.add("x", id="b", group=group)
    async with worker_of(queue, first, concurrency=1, grace=0.05):
        await first.runs("a")
    assert not look("EXISTS", "q:active")
    record = await job.record()
    assert (record.state, record.attempt, record.stalls) == ("waiting", 1, 0)
    async with worker_of(queue, second, concurrency=1):
        await second.runs("a")
        second.open()
        await results_of([job, behind])
    assert second.started == ["a", "b"]
    assert second.claims["a"].attempt == 1


async def test_a_job_that_is_handed_back_is_taken_by_another_worker_at_once(namespace: Namespace) -> None:
    queue, first, second = namespace.queue("q"), Desk(), Desk()
    worker = worker_of(queue, first)
    await worker.start()
    job = await queue.add("x")
    await first.runs(job.id)
    async with worker_of(queue, second):
        await worker.stop()
        await second.runs(job.id)
        second.open()
        await job.wait(PATIENCE)


async def test_a_second_stop_cuts_the_grace_short(namespace: Namespace) -> None:
    queue, desk = namespace.queue("q"), Desk()
    worker = worker_of(queue, desk, grace=LONG)
    await worker.start()
    job = await queue.add("x")
    await desk.runs(job.id)
    first = asyncio.create_task(worker.stop())
    await asyncio.sleep(0.05)
    assert not first.done()
    async with asyncio.timeout(AT_ONCE):
        await worker.stop()
        await first
    record = await job.record()
    assert (record.state, record.attempt) == ("waiting", 1)
    await queue.remove(job.id)


async def test_a_worker_whose_jobs_are_far_in_the_future_stops_at_once(namespace: Namespace) -> None:
    queue, desk = namespace.queue("q"), Desk()
    worker = worker_of(queue, desk, grace=LONG)
    await worker.start()
    job = await queue.add("x", run_in=LONG)
    await queue.schedules.upsert("nightly", cadence("0 3 * * *", tz="UTC"), "x")
    async with asyncio.timeout(AT_ONCE):
        await worker.stop()
    await queue.remove(job.id)
    await queue.schedules.remove("nightly")


async def test_a_worker_stops_at_once_also_when_its_next_claim_was_about_to_be_sent(
    namespace: Namespace, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lanner.queue.worker.CLEAN_UP", LONG)
    queue, desk, claim_behind = namespace.queue("q"), Desk(), Settler.claim_behind
    worker = worker_of(queue, desk)
    stops: list[asyncio.Task[None]] = []
    listens = False

    def claim_and_stop(settler: Settler, call: Caller) -> asyncio.Task[None] | None:
        if listens:
            # this task begins before the one that claims
            stops.append(asyncio.create_task(worker.stop()))
        return claim_behind(settler, call)

    monkeypatch.setattr(Settler, "claim_behind", claim_and_stop)
    await worker.start()
    await wait_until(lambda: look.a_worker_listens("q"), PATIENCE)
    listens = True
    job = await queue.add("x")
    await wait_until(lambda: len(stops) > 0, PATIENCE)
    async with asyncio.timeout(AT_ONCE):
        await asyncio.gather(*stops)
    assert await job.state() == "waiting"
    assert await queue.remove(job.id)


@pytest.mark.usefixtures("short_end")
@pytest.mark.parametrize("busy", ["idle", "busy"])
@pytest.mark.parametrize("how", ["refuse", "stall"])
async def test_a_worker_stops_also_when_redis_is_gone(
    namespace_id: str, proxy: Proxy, namespace: Namespace, how: str, busy: str
) -> None:
    desk = Desk()
    async with Namespace(namespace_id, redis=proxy.url) as cut_off:
        queue = cut_off.queue("q")
        worker = worker_of(queue, desk, lease=0.5)
        await worker.start()
        if busy == "busy":
            await queue.add("x", id="a")
            await desk.runs("a")
        if how == "refuse":
            await proxy.refuse()
        else:
            proxy.stall()
        async with asyncio.timeout(AT_ONCE):
            await worker.stop()
            await cut_off.aclose()
    assert not desk.running
    assert not [thread for thread in threading.enumerate() if worker.id in thread.name]
    assert not [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("lanner")]
    if busy == "busy":
        async with worker_of(namespace.queue("q"), Desk(is_open=True), lease=0.5):
            await namespace.queue("q").job("a").wait(PATIENCE)


async def test_what_is_claimed_while_the_worker_stops_is_handed_back(
    namespace_id: str, proxy: Proxy, namespace: Namespace, look: Look
) -> None:
    desk, other = Desk(), Desk(is_open=True)
    async with Namespace(namespace_id, redis=proxy.url) as slow:
        await settle_is_in_the_server(namespace)
        worker = worker_of(slow.queue("q"), desk)
        proxy.hold_answers(load("settle").sha)  # from the first on: one that waits behind a pop has been sent long ago
        await worker.start()
        await wait_until(lambda: look.a_worker_listens("q"), PATIENCE)
        job = await namespace.queue("q").add("x")
        let_go = 0

        def has_claimed_unawares() -> bool:
            nonlocal let_go
            held = proxy.held_answers  # first: an answer that is held now has claimed by the next line, or will not
            if look("EXISTS", "q:active"):
                return True
            if held > let_go:  # it had asked before
                let_go = held
                proxy.flow()
                proxy.hold_answers(load("settle").sha)
            return False

        await wait_until(has_claimed_unawares, PATIENCE)
        stopping = asyncio.create_task(worker.stop())
        await asyncio.sleep(0.05)
        proxy.flow()
        await stopping
    record = await job.record()
    assert (record.state, record.stalls, desk.started) == ("waiting", 0, [])
    async with worker_of(namespace.queue("q"), other):
        await job.wait(PATIENCE)


async def test_what_is_claimed_behind_the_pop_of_a_stopping_worker_is_handed_back(
    namespace_id: str, proxy: Proxy, namespace: Namespace, look: Look
) -> None:
    desk = Desk()
    async with Namespace(namespace_id, redis=proxy.url) as slow:
        worker = worker_of(slow.queue("q"), desk)
        await worker.start()
        # the first call looks, the second waits behind a pop
        await wait_until(lambda: proxy.requests_with(load("settle").sha) >= 2, PATIENCE)
        await wait_until(lambda: look.a_worker_listens("q"), PATIENCE)
        proxy.stall()
        job = await namespace.queue("q").add("x")
        await wait_until(lambda: look("EXISTS", "q:active"), PATIENCE)
        stopping = asyncio.create_task(worker.stop())
        await asyncio.sleep(0)
        proxy.flow()
        await stopping
    record = await job.record()
    assert (record.state, record.attempt, record.stalls, desk.started) == ("waiting", 1, 0, [])
    async with worker_of(namespace.queue("q"), Desk(is_open=True)):
        await job.wait(PATIENCE)


async def test_a_wake_up_that_was_on_its_way_to_a_stopping_worker_reaches_another(
    namespace_id: str, proxy: Proxy, namespace: Namespace, look: Look
) -> None:
    desk, other = Desk(), Desk(is_open=True)
    async with Namespace(namespace_id, redis=proxy.url) as slow:
        worker = worker_of(slow.queue("q"), desk)
        await worker.start()
        await wait_until(lambda: look.a_worker_listens("q"), PATIENCE)
        proxy.stall()
        job = await namespace.queue("q").add("x")
        await wait_until(lambda: not look("EXISTS", "q:wake"), PATIENCE)  # popped, and not heard of
        async with worker_of(namespace.queue("q"), other, concurrency=1):
            stopping = asyncio.create_task(worker.stop())
            await asyncio.sleep(0)
            proxy.flow()
            await stopping
            await job.wait(PATIENCE)
    assert desk.started == []


async def test_a_wake_up_that_comes_during_the_grace_reaches_another(own_server: PrivateServer) -> None:
    """The stopping worker has waited for one the longest, so that Redis would give it to that."""
    desk, other = Desk(), Desk(is_open=True)
    async with Namespace("x", redis=own_server.url) as namespace:
        queue = namespace.queue("q")
        with own_server.client() as client:
            look = Look(client, "x")
            worker = worker_of(queue, desk, grace=LONG)
            await worker.start()
            await queue.add("x", id="a")
            await desk.runs("a")
            await wait_until(lambda: look.listeners() == 1, PATIENCE)
            async with worker_of(queue, other):
                await wait_until(lambda: look.listeners() == 2, PATIENCE)
                stopping = asyncio.create_task(worker.stop())
                await wait_until(lambda: look.listeners() == 1, PATIENCE)
                await (await queue.add("x", id="b")).wait(PATIENCE)
                desk.open()
                await stopping
    assert (desk.started, other.started) == (["a"], ["b"])


async def test_slots_that_become_free_during_the_grace_are_used_by_others_at_once(namespace: Namespace) -> None:
    queue, desk, other = namespace.queue("q", concurrency=2), Desk(), Desk()
    worker = worker_of(queue, desk, grace=LONG)
    await worker.start()
    jobs = [await queue.add("x", id=str(n)) for n in range(4)]
    await desk.runs("0", "1")
    async with worker_of(queue, other):
        stopping = asyncio.create_task(worker.stop())
        await asyncio.sleep(0.05)
        desk.let_go("0")
        await other.runs("2")
        desk.let_go("1")
        await other.runs("2", "3")
        await stopping
        other.open()
        await results_of(jobs)


async def test_a_result_that_came_in_time_with_the_end_is_kept(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    running = asyncio.Event()

    async def handle(_: Claim) -> str:
        running.set()
        try:
            await asyncio.sleep(LONG)
        except asyncio.CancelledError:
            return "finished all the same"
        return ""

    async with worker_of(queue, handle):
        jobs = [await queue.add("x")]
        await running.wait()
    assert await results_of(jobs) == ["finished all the same"]


@pytest.mark.usefixtures("short_end")
async def test_a_run_that_does_not_end_is_handed_back_all_the_same(namespace: Namespace) -> None:
    queue, release = namespace.queue("q"), asyncio.Event()
    running = asyncio.Event()

    async def stubborn(_: Claim) -> str:
        running.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return "too late"

    job = await queue.add("x")
    async with worker_of(queue, stubborn):
        await running.wait()
    record = await job.record()
    assert (record.state, record.attempt, record.stalls) == ("waiting", 1, 0)
    async with worker_of(queue, Desk(is_open=True)):
        assert await job.wait(PATIENCE) == "x"
    release.set()


async def test_a_job_is_not_handed_back_while_its_thread_runs(namespace: Namespace) -> None:
    queue, thread_ends = namespace.queue("q"), asyncio.Event()
    running = asyncio.Event()

    async def handle(claim: Claim) -> Completed:
        claim.run_by(Unstoppable(thread_ends))
        running.set()
        while not thread_ends.is_set():
            try:
                await thread_ends.wait()
            except asyncio.CancelledError:
                continue
        return Completed("of the thread")

    job = await queue.add("x")
    worker = worker_of(queue, handle, lease=0.3)
    await worker.start()
    await running.wait()
    stopping = asyncio.create_task(worker.stop())
    began = time.monotonic()
    await wait_until(lambda: time.monotonic() - began > 1)  # three leases: it is kept
    assert not stopping.done()
    record = await job.record()
    assert (record.state, record.stalls) == ("active", 0)
    thread_ends.set()
    await stopping
    assert await job.wait(PATIENCE) == "of the thread"


async def test_closing_the_namespace_stops_its_workers_together(server: Server, namespace_id: str) -> None:
    desk = Desk()
    namespace = Namespace(namespace_id, redis=server.url)
    workers = [worker_of(namespace.queue(name), desk, grace=LONG) for name in "abc"]
    for worker in workers:
        await worker.start()
    jobs = [await namespace.queue(name).add("x", id=name) for name in "abc"]
    await desk.runs("a", "b", "c")
    closing = asyncio.create_task(namespace.aclose())
    await asyncio.sleep(0.1)
    async with Namespace(namespace_id, redis=server.url) as other:
        for name in "abc":
            await other.queue(name).add("x", id="later")
        await asyncio.sleep(0.1)  # long enough for one that has not been told to stop
        for name in "abc":
            await other.queue(name).remove("later")
    desk.open()
    await closing
    assert sorted(desk.started) == ["a", "b", "c"]
    async with Namespace(namespace_id, redis=server.url) as again:
        assert [await again.queue(job.queue.id).job(job.id).state() for job in jobs] == ["completed"] * 3


async def test_a_worker_whose_task_is_cancelled_hands_back(namespace: Namespace) -> None:
    queue, desk = namespace.queue("q"), Desk()
    job = await queue.add("x")
    running = asyncio.create_task(worker_of(queue, desk, grace=LONG).run())
    await desk.runs(job.id)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await job.state() == "waiting"
    await queue.remove(job.id)


async def test_stopping_before_and_while_it_starts_ends_it(namespace: Namespace) -> None:
    queue, desk = namespace.queue("q"), Desk()
    never = worker_of(queue, desk)
    await never.stop()
    starting = worker_of(queue, desk)
    run = asyncio.create_task(starting.run())
    await asyncio.sleep(0)
    async with asyncio.timeout(AT_ONCE):
        await starting.stop()
        await run
    job = await queue.add("x")
    assert desk.started == []
    await queue.remove(job.id)


async def test_a_stopped_worker_is_listed_as_departed(namespace: Namespace) -> None:
    queue, desk = namespace.queue("q"), Desk()
    worker = worker_of(queue, desk)
    async with worker:
        await wait_until(lambda: _listed(namespace, worker.id, None))
    assert await _listed(namespace, worker.id, "stopped")


async def _listed(namespace: Namespace, worker_id: str, departed: str | None) -> bool:
    return any(info.id == worker_id and info.departed == departed for info in await namespace.workers())


async def test_every_job_runs_once_while_workers_come_and_go(server: Server, namespace_id: str) -> None:
    """A rolling deployment: no job is lost, none is begun twice that was not handed back."""
    ended: list[str] = []
    handed_back: list[str] = []

    async def handle(claim: Claim) -> None:
        try:
            await asyncio.sleep(0.004)
        except asyncio.CancelledError:
            handed_back.append(claim.id)
            raise
        ended.append(claim.id)

    async with AsyncExitStack() as stack:
        namespace = await stack.enter_async_context(Namespace(namespace_id, redis=server.url))
        queue = namespace.queue("q")
        jobs = await queue.add_many(["x"] * 400)
        for _ in range(12):
            async with worker_of(queue, handle, concurrency=5):
                await asyncio.sleep(0.03)
        async with worker_of(queue, handle, concurrency=50):
            await results_of(jobs)
        stalls = [(await job.record()).stalls for job in jobs]
    assert sorted(ended) == sorted(job.id for job in jobs)
    assert stalls == [0] * 400
