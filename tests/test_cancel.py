"""Cancelling: wherever the job is, with a true answer, and never counted as a failure."""

import asyncio
from typing import Any

import pytest

from lanner.errors import InvalidArgumentError, JobCancelledError, ResultExpiredError
from lanner.queue import Backoff, Claim, Completed, EndReason, Job, Namespace, Suspended
from lanner.queue.scripts.loader import load
from support.jobs import PATIENCE, Desk, Look, results_of, settle_is_in_the_server, worker_of
from support.proxy import Proxy
from support.servers import Server
from support.unstoppable import Unstoppable
from support.waiting import wait_until

LONG = 3600


async def in_state(job: Job, state: str) -> bool:
    return await job.state() == state


async def is_cancelled(job: Job, reason: str = "") -> None:
    """Wait for a job that must have been cancelled for the reason."""
    with pytest.raises(JobCancelledError) as raised:
        await job.wait(PATIENCE)
    assert raised.value.reason == reason


@pytest.mark.parametrize("state", ["waiting", "delayed", "parked", "in backoff", "asleep", "active"])
@pytest.mark.parametrize("group", [None, "g"])
async def test_a_job_is_cancelled_wherever_it_is(
    namespace: Namespace, look: Look, state: str, group: str | None
) -> None:
    queue, desk = namespace.queue("q"), Desk()

    async def handle(claim: Claim) -> Any:
        await queue.set_step(claim.id, "step", "x", token=claim.token)
        match claim.data:
            case "parked":
                return Suspended(None, ("event",))
            case "asleep":
                return Suspended(claim.now_ms() + LONG * 1000)
            case "in backoff":
                raise ValueError("again")
            case _:
                return await desk(claim)

    async with worker_of(queue, handle):
        if state == "waiting":
            await queue.pause()
        job = await queue.add(
            state,
            id="a",
            group=group,
            run_in=LONG if state == "delayed" else None,
            max_attempts=2,
            backoff=Backoff(first=LONG, longest=LONG, factor=1),
            expires=LONG,
        )
        await wait_until(lambda: in_state(job, {"in backoff": "delayed", "asleep": "delayed"}.get(state, state)))
        if state == "active":
            await desk.runs("a")
        assert await job.cancel("changed my mind")
        await is_cancelled(job, "changed my mind")
        record = await job.record()
        assert (record.state, record.reason, record.steps) == ("cancelled", "changed my mind", {})
        counts = await queue.counts()
        assert (counts.cancelled, counts.failed, counts.active) == (1, 0, 0)
        assert await queue.list_jobs("cancelled") == ["a"]
        assert await job.cancel("again"), "it is cancelled"
        assert (await job.record()).reason == "changed my mind"
        if state == "active":
            assert desk.claims["a"].ended is EndReason.CANCELLED
            assert desk.claims["a"].detail == "changed my mind"
    left = [name for name in look.names() if name.startswith("q:") and not name.startswith(("q:limits", "q:j:a"))]
    assert set(left) <= {"q:cancelled", "q:wake", "q:clock"}


async def test_the_answer_says_whether_it_was_cancelled(namespace: Namespace) -> None:
    queue = namespace.queue("q")

    async def handle(claim: Claim) -> str:
        if claim.data == "fails":
            raise ValueError("no")
        return claim.data

    async with worker_of(queue, handle):
        done = await queue.add("x")
        await done.wait(PATIENCE)
        failed = await queue.add("fails")
        await wait_until(lambda: in_state(failed, "failed"))
        assert not await done.cancel()
        assert not await failed.cancel()
        assert not await queue.job("nobody").cancel()
        first = await queue.add("one", id="a", run_in=LONG)
        assert await first.cancel()
        second = await queue.add("two", id="a", run_in=LONG)
        assert not await first.cancel(), "that life of it is gone"
        assert await in_state(second, "delayed")
        assert await queue.job("a").cancel()
        with pytest.raises(InvalidArgumentError, match="reason"):
            await done.cancel("\ud800")


async def test_a_running_job_is_cancelled_where_it_awaits_and_may_clean_up(namespace: Namespace) -> None:
    queue, running = namespace.queue("q"), asyncio.Event()
    cleaned: list[str] = []

    async def handle(claim: Claim) -> None:
        running.set()
        try:
            await asyncio.sleep(LONG)
        finally:
            await asyncio.sleep(0.05)
            cleaned.append(claim.detail)

    async with worker_of(queue, handle):
        job = await queue.add("x")
        await running.wait()
        assert await job.cancel("stop")
        await is_cancelled(job, "stop")
        assert cleaned == ["stop"]


@pytest.mark.parametrize("then", ["returns", "raises", "returns an outcome", "goes on for ever"])
async def test_a_cancellation_that_is_swallowed_counts_all_the_same(
    namespace: Namespace, then: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lanner.queue.worker.CLEAN_UP", 0.2)
    queue, running, release = namespace.queue("q"), asyncio.Event(), asyncio.Event()

    async def handle(_: Claim) -> Any:
        running.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                match then:
                    case "returns":
                        return "as if nothing had happened"
                    case "raises":
                        raise ValueError("something else") from None
                    case "returns an outcome":
                        return Completed("as if nothing had happened")
                    case _:
                        continue
        return "at last"

    async with worker_of(queue, handle, concurrency=1):
        job = await queue.add("x", max_attempts=5)
        await running.wait()
        assert await job.cancel("stop")
        await is_cancelled(job, "stop")
        release.set()
        assert await (await queue.add("x")).wait(PATIENCE) == "at last"
    assert (await queue.counts()).failed == 0


async def test_a_thread_that_cannot_be_ended_keeps_its_slot_and_its_late_result_is_discarded(
    namespace: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lanner.queue.worker.CLEAN_UP", 0.1)
    queue, running, thread_ends = namespace.queue("q"), asyncio.Event(), asyncio.Event()
    started: list[str] = []

    async def handle(claim: Claim) -> str:
        started.append(claim.id)
        claim.run_by(Unstoppable(thread_ends))
        running.set()
        while not thread_ends.is_set():
            try:
                await thread_ends.wait()
            except asyncio.CancelledError:
                continue
        return "of the thread"

    async with worker_of(queue, handle, concurrency=1):
        job = await queue.add("x", id="a")
        await running.wait()
        assert await job.cancel("stop")
        behind = await queue.add("x", id="b")
        await asyncio.sleep(0.4)  # longer than it has to clean up
        assert started == ["a"]
        assert await job.state() == "active"
        thread_ends.set()
        await is_cancelled(job, "stop")
        assert await behind.wait(PATIENCE) == "of the thread"


async def test_a_slot_freed_by_a_cancellation_is_used_at_once(namespace: Namespace) -> None:
    queue, desk = namespace.queue("q", concurrency=1), Desk()
    async with worker_of(queue, desk, concurrency=1), worker_of(queue, desk, concurrency=1):
        one = await queue.add("x", id="one", group="g")
        await desk.runs("one")
        two = await queue.add("x", id="two", group="g")
        assert await one.cancel()
        await desk.runs("two")
        desk.open()
        await two.wait(PATIENCE)


async def test_where_nothing_is_kept_waiters_hear_of_a_cancellation_all_the_same(
    namespace: Namespace, look: Look
) -> None:
    queue = namespace.queue("q")
    job = await queue.add("x", run_in=LONG, result_ttl=0)
    wait = asyncio.create_task(is_cancelled(job, "why"))
    await wait_until(lambda: look.field("q", job.id, "waiters"), PATIENCE)
    assert await job.cancel("why")
    await wait
    with pytest.raises(ResultExpiredError):
        await job.wait(PATIENCE)


async def test_another_process_may_cancel(namespace: Namespace, server: Server) -> None:
    queue, desk = namespace.queue("q"), Desk()
    async with worker_of(queue, desk), Namespace(namespace.id, redis=server.url) as other:
        job = await queue.add("x", id="a")
        await desk.runs("a")
        assert await other.queue("q").job("a").cancel("from afar")
        await is_cancelled(job, "from afar")


async def test_many_jobs_are_cancelled_while_they_are_claimed(namespace: Namespace) -> None:
    """However the two meet, each job ends once, and is what its handle was told."""
    queue = namespace.queue("q")

    async def handle(_: Claim) -> str:
        await asyncio.sleep(0.002)
        return "done"

    async with worker_of(queue, handle, concurrency=10):
        jobs = await queue.add_many(["x"] * 200)
        told = await asyncio.gather(*(job.cancel() for job in jobs))
        ends = await asyncio.gather(*(job.wait(PATIENCE) for job in jobs), return_exceptions=True)
    for said, end in zip(told, ends, strict=True):
        assert isinstance(end, JobCancelledError) == said
        assert said or end == "done"


async def test_a_paused_queue_starts_nothing_and_goes_on_with_what_runs(namespace: Namespace) -> None:
    queue, desk = namespace.queue("q"), Desk()
    async with worker_of(queue, desk):
        one = await queue.add("x", id="one")
        await desk.runs("one")
        await queue.pause()
        two = await queue.add("x", id="two")
        desk.let_go("one")
        assert await one.wait(PATIENCE) == "x"
        assert await two.state() == "waiting"
        assert (await queue.limits()).paused
        await queue.resume()
        await desk.runs("two")
        desk.open()
        await two.wait(PATIENCE)


async def test_a_paused_namespace_starts_nothing_in_any_queue(namespace: Namespace) -> None:
    a, b, desk = namespace.queue("a"), namespace.queue("b"), Desk()
    async with worker_of(a, desk), worker_of(b, desk):
        await namespace.pause()
        jobs = [await a.add("x", id="in a"), await b.add("x", id="in b")]
        await asyncio.sleep(0.1)
        assert desk.started == []
        await namespace.resume()
        await desk.runs("in a", "in b")
        desk.open()
        await results_of(jobs)


async def test_what_a_run_that_does_not_end_holds_up_is_taken_by_another_worker(
    namespace: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lanner.queue.worker.CLEAN_UP", 0.2)
    queue, running, release = namespace.queue("q", concurrency=1), asyncio.Event(), asyncio.Event()

    async def stubborn(claim: Claim) -> str:
        running.set()
        while claim.id == "a" and not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return "x"

    async with worker_of(queue, stubborn, concurrency=1):
        job = await queue.add("x", id="a")
        await running.wait()
        async with worker_of(queue, stubborn, concurrency=1):
            behind = await queue.add("x", id="b")
            assert await job.cancel()
            assert await behind.wait(PATIENCE) == "x"
        release.set()


@pytest.mark.parametrize("ended_as", [EndReason.CANCELLED, EndReason.LOST])
async def test_what_overtakes_the_answer_with_the_claim_is_heard(
    namespace: Namespace, look: Look, proxy: Proxy, ended_as: EndReason
) -> None:
    """The claim and the news of its cancellation come over two connections, in any order."""
    begun: list[EndReason | None] = []
    idle = asyncio.Event()

    async def handle(claim: Claim) -> None:
        begun.append(claim.ended)
        await idle.wait()

    await settle_is_in_the_server(namespace)
    job = await namespace.queue("q").add("x")
    proxy.hold_answers(load("settle").sha)
    async with Namespace(namespace.id, redis=proxy.url) as far, worker_of(far.queue("q"), handle) as worker:
        await wait_until(lambda: in_state(job, "active"))
        await (job.cancel("stop") if ended_as is EndReason.CANCELLED else namespace.queue("q").remove(job.id))
        await wait_until(lambda: not look("EXISTS", f"@ctl:{worker.id}"))
        proxy.flow()
        await wait_until(lambda: begun)
        idle.set()
        if ended_as is EndReason.CANCELLED:
            await is_cancelled(job, "stop")
    assert begun == [ended_as]


async def test_what_takes_the_place_of_a_removed_job_begins_when_the_run_of_that_was_ended(
    namespace: Namespace, look: Look
) -> None:
    queue, desk = namespace.queue("q"), Desk()
    async with worker_of(queue, desk):
        names = [str(number) for number in range(8)]
        for name in names:
            await queue.add("x", id=name, group="g")
        for name in names:
            await desk.has_started(name)
            await wait_until(lambda: look.a_worker_listens("q"), PATIENCE)
            assert await queue.remove(name)
        await wait_until(lambda: not desk.running, PATIENCE)
    assert desk.most == 1
    assert desk.started == names
