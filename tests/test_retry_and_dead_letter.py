"""Attempts that fail: when the next comes, what is kept of a job that failed for good, and what can be done with it."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from lanner.errors import InvalidArgumentError, JobFailedError, JobNotFoundError, NonRetryableError, RetryAfter
from lanner.queue import Backoff, Claim, EndReason, Job, KeepFailed, Namespace, Suspended
from lanner.queue.queue import Added
from support.jobs import PATIENCE, Desk, Look, results_of, worker_of
from support.waiting import wait_until

AT_ONCE = Backoff(first=0)


async def fail(claim: Claim) -> None:
    raise ValueError(claim.data)


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "oldest are dropped" in record.getMessage()]


async def fails(job: Job, match: str | None = None) -> JobFailedError:
    """Wait for a job that must fail."""
    with pytest.raises(JobFailedError, match=match) as raised:
        await job.wait(PATIENCE)
    return raised.value


async def test_a_job_is_attempted_as_often_as_it_may(namespace: Namespace) -> None:
    queue = namespace.queue("q", backoff=AT_ONCE)
    attempts: list[int] = []

    async def handle(claim: Claim) -> str:
        attempts.append(claim.attempt)
        if claim.data == "never" or claim.attempt < 3:
            raise ValueError(f"attempt {claim.attempt}")
        return "at last"

    async with worker_of(queue, handle):
        assert await (await queue.add("x", max_attempts=3)).wait(PATIENCE) == "at last"
        assert attempts == [1, 2, 3]
        error = await fails(await queue.add("never", max_attempts=4), "attempt 4")
        assert attempts[3:] == [1, 2, 3, 4]
        assert error.type == "ValueError"
        await fails(await queue.add("never"), "attempt 1")


async def test_the_last_reason_is_visible_while_the_job_waits_for_its_next_attempt(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    async with worker_of(queue, fail):
        job = await queue.add("the reason", max_attempts=2, backoff=Backoff(first=10_000, longest=10_000))
        await wait_until(lambda: in_state(job, "delayed"))
        record = await job.record()
        assert record.attempt == 2
        assert record.failure is not None
        assert (record.failure.type, record.failure.message) == ("ValueError", "the reason")
        assert "raise ValueError" in record.failure.traceback
        assert await queue.promote(job.id)
        await fails(job)


async def in_state(job: Job, state: str) -> bool:
    return await job.state() == state


async def test_an_error_may_choose_the_delay_of_the_next_attempt(namespace: Namespace, look: Look) -> None:
    queue = namespace.queue("q")

    async def handle(claim: Claim) -> str:
        if claim.attempt == 1:
            raise RetryAfter(0.3)
        return str(claim.now_ms())

    async with worker_of(queue, handle):
        began = look.now()
        job = await queue.add("x", max_attempts=2, backoff=Backoff(first=3600, longest=3600))
        assert int(await job.wait(PATIENCE)) >= began + 300


async def test_an_error_for_good_leaves_no_further_attempt(namespace: Namespace) -> None:
    queue, attempts = namespace.queue("q"), 0

    async def handle(_: Claim) -> None:
        nonlocal attempts
        attempts += 1
        raise NonRetryableError("it will never work")

    async with worker_of(queue, handle):
        error = await fails(await queue.add("x", max_attempts=9, backoff=AT_ONCE), "it will never work")
    assert (error.type, attempts) == ("NonRetryableError", 1)


class Rude(BaseException):
    """What a library may raise that nobody expects."""


RUDE: list[Callable[[], BaseException]] = [Rude, SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError]


@pytest.mark.parametrize("make", RUDE)
async def test_whatever_is_raised_fails_its_job_and_not_the_worker(
    namespace: Namespace, make: Callable[[], BaseException]
) -> None:
    async def handle(claim: Claim) -> str:
        if claim.data == "rude":
            raise make()
        return claim.data

    queue = namespace.queue("q")
    async with worker_of(queue, handle):
        error = await fails(await queue.add("rude"))
        assert error.type == make().__class__.__name__
        assert await (await queue.add("polite")).wait(PATIENCE) == "polite"


@pytest.mark.parametrize("swallows", ["ends", "swallows the cancellation", "returns a result all the same"])
async def test_an_attempt_that_takes_too_long_is_timed_out(
    namespace: Namespace, swallows: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lanner.queue.worker.CLEAN_UP", 0.2)
    queue, release = namespace.queue("q"), asyncio.Event()

    async def handle(claim: Claim) -> str:
        if claim.attempt == 2:
            return "in time"
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                assert claim.ended is EndReason.TIMEOUT
                if swallows == "ends":
                    raise
                if swallows == "returns a result all the same":
                    return "too late"
        return "far too late"

    async with worker_of(queue, handle):
        job = await queue.add("x", timeout=0.1, max_attempts=2, backoff=AT_ONCE)
        assert await job.wait(PATIENCE) == "in time"
        once = await queue.add("x", timeout=0.1)
        error = await fails(once, "the attempt took longer than its timeout of 0.1 s")
        assert error.type == "TimeoutError"
        release.set()


async def test_a_dead_letter_has_reason_type_traceback_and_steps(namespace: Namespace) -> None:
    queue = namespace.queue("q")

    async def handle(claim: Claim) -> None:
        await queue.set_step(claim.id, "charge", "paid", token=claim.token)
        try:
            raise KeyError("inner")
        except KeyError as inner:
            raise ValueError("x" * 100_000) from inner

    async with worker_of(queue, handle):
        job = await queue.add("the input", id="a", group="g", priority=3)
        await fails(job)
    record = await job.record()
    assert (record.state, record.data, record.steps) == ("failed", "the input", {"charge": "paid"})
    assert record.failure is not None
    assert record.failure.type == "ValueError"
    assert 1000 < len(record.failure.message) < 10_000
    assert len(record.failure.traceback) < 50_000
    assert record.finished is not None
    assert abs((record.finished - datetime.now(UTC)).total_seconds()) < PATIENCE
    assert await queue.list_jobs("failed") == ["a"]


async def test_a_retry_by_hand_goes_on_from_the_steps_with_all_its_attempts(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    seen: list[tuple[int, dict[str, str]]] = []
    broken = True

    async def handle(claim: Claim) -> str:
        seen.append((claim.attempt, dict(claim.steps)))
        await queue.set_step(claim.id, "charge", "paid", token=claim.token)
        if broken:
            raise ValueError("no")
        return "done"

    async with worker_of(queue, handle):
        job = await queue.add("x", max_attempts=2, backoff=AT_ONCE)
        await fails(job)
        assert [attempt for attempt, _ in seen] == [1, 2]
        broken = False
        assert await queue.retry(job.id)
        assert await job.wait(PATIENCE) == "done"
        assert seen[2] == (1, {"charge": "paid"})
        assert not await queue.retry(job.id)
        assert not await queue.retry("nobody")
        record = await job.record()
        assert (record.state, record.failure) == ("completed", None)
        assert await queue.list_jobs("failed") == []


async def test_all_failed_jobs_can_be_retried_at_once(namespace: Namespace) -> None:
    queue, broken = namespace.queue("q"), True

    async def handle(claim: Claim) -> str:
        if broken:
            raise ValueError("no")
        return claim.data

    async with worker_of(queue, handle, concurrency=50):
        jobs = await queue.add_many([str(n) for n in range(250)], keep_failed=None)
        await asyncio.gather(*(fails(job) for job in jobs))
        assert (await queue.counts()).failed == 250
        broken = False
        assert await queue.retry_all() == 250
        assert await results_of(jobs) == [str(n) for n in range(250)]
        assert await queue.retry_all() == 0


async def test_of_failed_jobs_the_latest_are_kept_and_it_is_said_that_others_are_dropped(
    namespace: Namespace, look: Look, caplog: pytest.LogCaptureFixture
) -> None:
    queue = namespace.queue("q")

    async def handle(claim: Claim) -> None:
        await queue.set_step(claim.id, "step", "x", token=claim.token)
        raise ValueError(claim.data)

    async with worker_of(queue, handle, concurrency=1):
        jobs = [await queue.add("x", id=str(n), keep_failed=3) for n in range(6)]
        await asyncio.gather(*(fails(job) for job in jobs[3:]))
    assert await queue.list_jobs("failed") == ["3", "4", "5"]
    for n in range(3):
        assert not look("EXISTS", f"q:j:{n}")
        assert not look("EXISTS", f"q:steps:{n}")
    [said] = warnings_of(caplog)
    assert said.startswith("workflow 'q' has more failed jobs than are kept: the oldest are dropped (keep_failed=3)")


@pytest.mark.parametrize("kept", [0, None, 5, KeepFailed(None, age=0.01)], ids=["none", "all", "enough", "by age"])
async def test_nothing_is_said_where_what_is_dropped_is_not_to_be_kept(
    namespace: Namespace, caplog: pytest.LogCaptureFixture, kept: Any
) -> None:
    queue = namespace.queue("q")
    async with worker_of(queue, fail, concurrency=1):
        for _ in range(5):
            with pytest.raises(JobFailedError):
                await queue.execute("x", Added(), {"keep_failed": kept}, timeout=PATIENCE)
    assert warnings_of(caplog) == []


async def test_where_no_failed_job_is_kept_its_waiters_hear_of_the_failure_all_the_same(
    namespace: Namespace, look: Look
) -> None:
    queue, desk = namespace.queue("q"), Desk()

    async def handle(claim: Claim) -> None:
        await desk(claim)
        raise ValueError("long reason " * 3000)

    async with worker_of(queue, handle):
        job = await queue.add("x", keep_failed=0)
        await desk.runs(job.id)
        wait = asyncio.create_task(fails(job, "long reason"))
        await wait_until(lambda: look.field("q", job.id, "waiters") is not None, PATIENCE)
        desk.open()
        await wait
    with pytest.raises(JobNotFoundError):
        await queue.job(job.id).record()


async def test_failed_jobs_are_kept_for_as_long_as_they_are_to_be(namespace: Namespace, look: Look) -> None:
    """Without another failure that would tidy them away."""
    queue = namespace.queue("q")
    async with worker_of(queue, fail, lease=0.3):
        short = await queue.add("x", id="short", keep_failed=KeepFailed(None, age=0.2))
        await fails(short)
        await wait_until(lambda: not look("EXISTS", "q:j:short"), PATIENCE)
        assert await queue.list_jobs("failed") == []
        long = await queue.add("x", id="long", keep_failed=KeepFailed(None, age=3600))
        await fails(long)
        await asyncio.sleep(0.5)  # several sweeps
        assert await queue.list_jobs("failed") == ["long"]


async def test_jobs_of_a_state_are_removed_by_age(namespace: Namespace, look: Look) -> None:
    queue = namespace.queue("q")
    async with worker_of(queue, fail):
        jobs = [await queue.add("x", id=str(n)) for n in range(4)]
        for job in jobs:
            await fails(job)
        for n in range(2):
            look("HSET", f"q:j:{n}", "finished", look.now() - 2 * 3_600_000)
            look("ZADD", "q:failed", look.now() - 2 * 3_600_000, str(n))
        assert await queue.remove_all("failed", older_than=3600) == 2
        assert await queue.list_jobs("failed") == ["2", "3"]
        assert await queue.remove_all("failed") == 2
        with pytest.raises(InvalidArgumentError, match="older_than"):
            await queue.remove_all("waiting", older_than=5)


@pytest.mark.parametrize("state", ["waiting", "delayed", "active", "completed", "failed", "cancelled", "parked"])
@pytest.mark.parametrize("group", [None, "g"])
async def test_a_job_of_any_state_is_removed_with_all_that_is_its(
    namespace: Namespace, look: Look, state: str, group: str | None
) -> None:
    queue, desk = namespace.queue("q"), Desk()

    async def handle(claim: Claim) -> Any:
        await queue.set_step(claim.id, "step", "x", token=claim.token)
        match claim.data:
            case "failed":
                raise ValueError("no")
            case "parked":
                return Suspended(None, ("event",))
            case "completed":
                return "x"
            case _:
                return await desk(claim)

    async with worker_of(queue, handle):
        if state == "waiting":
            await queue.pause()
        run_in = 3600 if state in {"delayed", "cancelled"} else None
        job = await queue.add(state, id="a", group=group, run_in=run_in, expires=3600)
        if state == "cancelled":
            await job.cancel()
        await wait_until(lambda: in_state(job, state))
        if state == "active":
            await desk.runs("a")
        assert await queue.remove("a")
        assert not await queue.remove("a")
        if state == "active":
            await desk.ended("a")
            assert desk.claims["a"].ended is EndReason.LOST
        names = look.names()
        assert [name for name in names if name.startswith("q:") and name not in {"q:limits", "q:wake", "q:clock"}] == []


async def test_the_slot_of_a_removed_job_is_used_at_once(namespace: Namespace) -> None:
    queue, first, second = namespace.queue("q", concurrency=1), Desk(), Desk()
    async with worker_of(queue, first, concurrency=1), worker_of(queue, second, concurrency=1):
        one = await queue.add("x", id="one")
        await wait_until(lambda: first.running or second.running)
        two = await queue.add("x", id="two")
        assert await queue.remove(one.id)
        await wait_until(lambda: "two" in first.running or "two" in second.running, PATIENCE)
        first.open()
        second.open()
        await two.wait(PATIENCE)


async def test_an_attempt_far_into_the_thousands_has_a_delay_like_any_other(namespace: Namespace, look: Look) -> None:
    queue = namespace.queue("q")
    async with worker_of(queue, fail):
        await queue.pause()
        job = await queue.add("x", id="a", max_attempts=10_000, backoff=Backoff(first=1, factor=10, longest=60))
        look("HSET", "q:j:a", "failures", 5000)
        await queue.resume()
        await wait_until(lambda: look.field("q", "a", "failures") == "5001")
        assert 0 <= float(look("ZSCORE", "q:delayed", "a")) - look.now() <= 60_000 or await job.state() != "delayed"
        await queue.remove("a")
