"""Adding jobs: what is stored, what collides, and what many producers at once see."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lanner.errors import (
    ClosedError,
    InvalidArgumentError,
    JobAlreadyExistsError,
    JobNotFoundError,
    RedisUnavailableError,
    ResultExpiredError,
)
from lanner.queue import Claim, Dedup, Job, Namespace, Suspended
from lanner.queue.scripts.adding import NewJob, count_at_once
from support.jobs import PATIENCE, Desk, Look, results_of, worker_of
from support.proxy import Proxy
from support.servers import Server
from support.waiting import wait_until


async def echo(claim: Claim) -> str:
    return claim.data


async def test_an_added_job_waits_until_a_worker_takes_it(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    job = await queue.add("hello")
    record = await job.record()
    assert (record.state, record.data, record.attempt) == ("waiting", "hello", 1)
    async with worker_of(queue, echo):
        assert await job.wait(PATIENCE) == "hello"
    assert await job.state() == "completed"


async def test_a_waiting_job_is_two_fields(namespace: Namespace, look: Look) -> None:
    queue = namespace.queue("q")
    job = await queue.add("hello", id="a", priority=3, group="g", max_attempts=7, expires=3600)
    assert set(look("HKEYS", "q:j:a")) == {"data", "spec"}
    await queue.remove(job.id)


async def test_an_ungrouped_job_costs_no_group_keys(namespace: Namespace, look: Look) -> None:
    queue = namespace.queue("q")
    async with worker_of(queue, echo):
        await (await queue.add("x")).wait(PATIENCE)
    assert not look("EXISTS", "q:groups")


async def test_adds_made_at_once_all_run_in_order(namespace: Namespace) -> None:
    queue, desk = namespace.queue("q"), Desk(is_open=True)
    jobs = await asyncio.gather(*(queue.add(str(number), id=str(number)) for number in range(500)))
    async with worker_of(queue, desk, concurrency=1):
        assert await results_of(jobs) == [str(number) for number in range(500)]
    assert desk.started == [str(number) for number in range(500)]


async def test_add_many_keeps_the_order_over_chunks(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    seen: list[str] = []

    async def note(claim: Claim) -> None:
        seen.append(claim.data)

    jobs = await queue.add_many([str(number) for number in range(450)], result_ttl=0)
    assert len({job.id for job in jobs}) == 450
    async with worker_of(queue, note, concurrency=1):
        await wait_until(lambda: len(seen) == 450, 60)
    assert seen == [str(number) for number in range(450)]


async def test_add_many_of_nothing_adds_nothing(namespace: Namespace) -> None:
    assert await namespace.queue("q").add_many([]) == []


@pytest.mark.parametrize("state", ["waiting", "delayed", "active", "failed", "parked"])
async def test_the_id_of_a_job_that_is_live_or_failed_collides(namespace: Namespace, state: str) -> None:
    queue, desk = namespace.queue("q"), Desk()

    async def handle(claim: Claim) -> Any:
        if state == "failed":
            raise ValueError(claim.data)
        if state == "parked":
            return Suspended(None, ("an event",))
        return await desk(claim)

    if state == "waiting":
        await queue.pause()
    first = await queue.add("one", id="a", run_in=3600 if state == "delayed" else None)
    async with worker_of(queue, handle):
        await wait_until(lambda: is_in(first, state))
        with pytest.raises(JobAlreadyExistsError, match=f"'a' of workflow 'q' exists and is {state}") as raised:
            await queue.add("two", id="a")
        assert raised.value.job_id == "a"
        same = await queue.add("two", id="a", if_exists="return")
        assert (same.id, same.run) == ("a", first.run)
        assert (await first.record()).data == "one"


async def is_in(job: Job, state: str) -> bool:
    return await job.state() == state


@pytest.mark.parametrize("state", ["completed", "cancelled"])
async def test_the_id_of_a_completed_or_cancelled_job_is_used_again_at_once(
    namespace: Namespace, look: Look, state: str
) -> None:
    queue = namespace.queue("q")
    first = await queue.add("one", id="a", run_in=3600 if state == "cancelled" else None)
    async with worker_of(queue, echo):
        if state == "cancelled":
            assert await first.cancel()
        else:
            await first.wait(PATIENCE)
        second = await queue.add("two", id="a")
        assert second.run != first.run
        assert await second.wait(PATIENCE) == "two"
        with pytest.raises(ResultExpiredError):
            await first.wait(PATIENCE)
        assert look("ZCARD", "q:cancelled") == 0
        assert look("ZCARD", "q:completed") == 1


async def test_a_retained_id_collides_until_its_record_is_gone(namespace: Namespace, look: Look) -> None:
    queue = namespace.queue("q")
    async with worker_of(queue, echo):
        await (await queue.add("one", id="a", result_ttl=3600)).wait(PATIENCE)
        with pytest.raises(JobAlreadyExistsError, match="is completed"):
            await queue.add("two", id="a", unique="retained")

        look("PEXPIRE", "q:j:a", 50)

        async def added() -> bool:
            try:
                await queue.add("two", id="a", unique="retained")
            except JobAlreadyExistsError:
                return False
            return True

        await wait_until(added, 30)


async def test_of_two_adds_of_an_id_at_once_one_wins(namespace: Namespace, redis_url: str) -> None:
    queue = namespace.queue("q")
    async with Namespace(namespace.id, redis=redis_url) as other:
        adds = [each.queue("q").add("x", id=f"j{i}") for i in range(50) for each in (namespace, other)]
        answers = await asyncio.gather(*adds, return_exceptions=True)
    won = [answer for answer in answers if not isinstance(answer, BaseException)]
    lost = [answer for answer in answers if isinstance(answer, JobAlreadyExistsError)]
    assert (len(won), len(lost)) == (50, 50)
    assert {job.id for job in won} == {f"j{i}" for i in range(50)}
    assert await queue.remove_all("waiting") == 50


async def test_a_past_instant_is_simply_due(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    job = await queue.add("x", run_at=datetime.now(UTC) - timedelta(days=1))
    assert await job.state() == "waiting"
    await queue.remove(job.id)


# what is refused, by what it is about; nothing may be sent
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "data that is no text": ({"data": 7}, "data"),
    "data that UTF-8 cannot write": ({"data": "\ud800"}, "data"),
    "an empty id": ({"id": ""}, "job id"),
    "a long id": ({"id": "x" * 257}, "job id"),
    "an id with a line break": ({"id": "a\nb"}, "job id"),
    "a group that is no text": ({"group": 5}, "group"),
    "an empty group": ({"group": ""}, "group"),
    "a naive instant": ({"run_at": datetime(2030, 1, 1)}, "run_at"),  # noqa: DTZ001 - what is refused
    "an instant and a delay": ({"run_at": datetime(2030, 1, 1, tzinfo=UTC), "run_in": 5}, "run_in"),
    "a negative delay": ({"run_in": -1}, "run_in"),
    "a delay of NaN": ({"run_in": float("nan")}, "run_in"),
    "a priority below": ({"priority": -1}, "priority"),
    "a priority above": ({"priority": 2**21}, "priority"),
    "a priority that is a float": ({"priority": 1.0}, "priority"),
    "a priority that is a bool": ({"priority": True}, "priority"),
    "a named priority": ({"priority": "high"}, "priority"),
    "no attempts": ({"max_attempts": 0}, "max_attempts"),
    "attempts that are a bool": ({"max_attempts": True}, "max_attempts"),
    "a timeout of nothing": ({"timeout": 0}, "timeout"),
    "an expiry of nothing": ({"expires": 0}, "expires"),
    "a negative result_ttl": ({"result_ttl": -5}, "result_ttl"),
    "a negative keep_failed": ({"keep_failed": -1}, "keep_failed"),
    "a backoff that is a number": ({"backoff": 5}, "backoff"),
    "an unknown order": ({"group_order": "exact"}, "group_order"),
    "an unknown unique": ({"unique": "always"}, "unique"),
    "an unknown if_exists": ({"if_exists": "ignore"}, "if_exists"),
    "retry=": ({"retry": 3}, "retry"),
    "repeat=": ({"repeat": 3}, "repeat"),
    "keep_completed=": ({"keep_completed": 3}, "keep_completed"),
    "an unknown option": ({"prioritty": 3}, "priority"),
    "a key of nothing": ({"throttle": Dedup("", 5)}, "throttle key"),
    "a window of nothing": ({"debounce": Dedup("k", 0)}, "debounce window"),
}


@pytest.mark.parametrize(("arguments", "named"), REFUSED.values(), ids=REFUSED)
async def test_what_cannot_be_used_is_refused_before_anything_is_sent(
    namespace: Namespace, look: Look, arguments: dict[str, Any], named: str
) -> None:
    given: dict[str, Any] = {"data": "x", **arguments}
    with pytest.raises(InvalidArgumentError, match=named):
        await namespace.queue("q").add(**given)
    assert not look("EXISTS", "meta"), "a connection was opened for it"


async def test_concurrent_chunks_are_all_added_whichever_is_sent_first(namespace_id: str, proxy: Proxy) -> None:
    """Calls that Redis could not be reached for are sent again in any order."""
    async with Namespace(namespace_id, redis=proxy.url, producer_timeout=60) as namespace:
        queue = namespace.queue("q")
        await namespace.runtime()
        await proxy.refuse()
        batches = [asyncio.create_task(queue.add_many([f"{batch}"] * 3)) for batch in range(20)]
        singles = [asyncio.create_task(queue.add("single")) for _ in range(20)]
        await asyncio.sleep(0.3)  # several have been tried by now, each with pauses of its own
        await proxy.accept()
        added = [job for batch in await asyncio.gather(*batches) for job in batch]
        added += await asyncio.gather(*singles)
        states = await asyncio.gather(*(job.state() for job in added))
        assert states == ["waiting"] * 80
        assert (await queue.counts()).waiting == 80
        assert await queue.remove_all("waiting") == 80


async def test_concurrent_chunks_whose_answers_are_lost_get_their_own_answers(namespace_id: str, proxy: Proxy) -> None:
    async with Namespace(namespace_id, redis=proxy.url, producer_timeout=60) as namespace:
        queue = namespace.queue("q")
        await queue.add("x", id="taken")
        proxy.lose_answers("EVALSHA", every=3)
        collides = [asyncio.create_task(queue.add("y", id="taken")) for _ in range(5)]
        batches = [asyncio.create_task(queue.add_many(["z"] * size)) for size in range(1, 8)]
        for task in collides:
            with pytest.raises(JobAlreadyExistsError):
                await task
        assert [len(batch) for batch in await asyncio.gather(*batches)] == list(range(1, 8))
        proxy.lose_no_answers()
        assert (await queue.counts()).waiting == 1 + sum(range(1, 8))
        await queue.remove_all("waiting")


async def test_a_chunk_that_could_not_be_added_says_how_many_were(namespace_id: str, proxy: Proxy) -> None:
    async with Namespace(namespace_id, redis=proxy.url, producer_timeout=3) as namespace:
        queue = namespace.queue("q")
        proxy.lose_answers("payload-333")
        # whether the last ones were answered for beside them
        said = r"same\. (200 of 450 jobs .* certain, and 250|250 of 450 jobs .* certain, and 200) more may have been\.$"
        with pytest.raises(RedisUnavailableError, match=said):
            await queue.add_many([f"payload-{number}" for number in range(450)])
        proxy.lose_no_answers()
        await queue.remove_all("waiting")


async def test_a_handle_by_id_of_no_job_says_so(namespace: Namespace) -> None:
    job = namespace.queue("q").job("nobody")
    with pytest.raises(JobNotFoundError, match="there is no job 'nobody' of workflow 'q'"):
        await job.record()
    with pytest.raises(JobNotFoundError):
        await job.wait(PATIENCE)


async def test_closing_while_jobs_are_added_is_a_clear_error_at_once(namespace_id: str, proxy: Proxy) -> None:
    namespace = Namespace(namespace_id, redis=proxy.url, producer_timeout=3600)
    queue = namespace.queue("q")
    await namespace.runtime()
    proxy.stall()
    calls: list[asyncio.Task[Any]] = [asyncio.create_task(queue.add("x")) for _ in range(3)]
    calls.append(asyncio.create_task(queue.add_many(["x"] * 3)))
    calls.append(asyncio.create_task(queue.job("a").state()))
    await asyncio.sleep(0.05)
    await namespace.aclose()
    for call in calls:
        with pytest.raises(ClosedError):
            await call
    with pytest.raises(ClosedError):
        await queue.add("x")


async def test_adds_that_were_about_to_be_sent_hear_of_the_closing(server: Server, namespace_id: str) -> None:
    async with Namespace(namespace_id, redis=server.url) as namespace:
        queue = namespace.queue("q")
        await queue.add("x")
        adds = [asyncio.create_task(queue.add("x")) for _ in range(3)]
        # the first is on the wire, and the task that is to send the others has not begun
        await asyncio.sleep(0)
        await namespace.aclose()
        async with asyncio.timeout(PATIENCE):
            ends = await asyncio.gather(*adds, return_exceptions=True)
    assert {type(end) for end in ends} <= {ClosedError, Job}


@pytest.mark.parametrize("size", [0, 1, 5_000_000])
async def test_a_payload_of_any_size_arrives(namespace: Namespace, size: int) -> None:
    queue = namespace.queue("q")
    async with worker_of(queue, echo):
        assert await (await queue.add("é" * size)).wait(PATIENCE) == "é" * size


def test_a_call_has_fewer_of_jobs_that_differ() -> None:
    def new(n: int, rest: str) -> NewJob:
        return NewJob("q", f"{n}", "nonce", rest, "data")

    assert count_at_once([]) == 0
    assert count_at_once([new(n, "}") for n in range(7)]) == 7
    assert count_at_once([new(n, "}") for n in range(500)]) == 200
    assert count_at_once([new(n, f',"group":"{n}"}}') for n in range(500)]) == 67
