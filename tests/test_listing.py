"""What a queue tells of its jobs and workers, and what it does with many jobs at once."""

import asyncio
import os
import signal
import socket
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest

from lanner import Context, InvalidArgumentError, JobFailedError, WorkflowNamespace
from lanner.queue import Claim, Counts, Failed, Failure, Job, Namespace, Outcome, Queue, Suspended, WorkerInfo
from lanner.queue.listing import STATES, State
from lanner.queue.scripts.loader import load
from support.jobs import PATIENCE, Desk, Look, results_of, worker_of
from support.proxy import Proxy
from support.servers import Server
from support.waiting import wait_until

HOUR = 3600

WORKER = """
import asyncio, sys
from lanner.queue import Namespace

async def main(url, name):
    async with Namespace(name, redis=url) as namespace:
        async def handle(claim):
            await asyncio.sleep(3600)
        async with namespace.queue("q").worker(handle, concurrency=3, grace=0):
            await asyncio.to_thread(sys.stdin.read)

asyncio.run(main(*sys.argv[1:]))
"""


async def fails(_: Claim) -> Outcome:
    return Failed(Failure("Oops", "bad"))


async def all_pages(queue: Queue, state: State, limit: int) -> list[str]:
    """The ids of all jobs in a state, by page."""
    ids: list[str] = []
    while page := await queue.list_jobs(state, skip=len(ids), limit=limit):
        assert len(page) <= limit
        ids += page
    return ids


async def is_in(job: Job, state: str) -> bool:
    return await job.state() == state


async def in_every_state(queue: Queue) -> dict[State, str]:
    """Have a job in every state, under a worker that goes on running: the ids by state."""
    ids: dict[State, str] = {}
    ids["delayed"] = (await queue.add("delayed", run_in=HOUR)).id
    ids["cancelled"] = (await queue.add("cancelled", run_in=HOUR)).id
    await queue.job(ids["cancelled"]).cancel()
    for state in ("parked", "active", "completed", "failed"):
        job = await queue.add(state)
        ids[state] = job.id
        await wait_until(lambda: is_in(job, state))  # noqa: B023 - awaited at once
    await queue.pause()
    ids["waiting"] = (await queue.add("waiting")).id
    return ids


class Staff:
    """A handler whose jobs end up where their payload says."""

    def __init__(self) -> None:
        self.desk = Desk()

    async def __call__(self, claim: Claim) -> Outcome | str:
        match claim.data:
            case "parked":
                return Suspended(None, ("go",))
            case "failed":
                return Failed(Failure("Oops", "bad"))
            case "active":
                return await self.desk(claim)
            case _:
                return ""


async def test_each_job_is_counted_and_listed_in_its_state_alone(namespace: Namespace) -> None:
    queue, staff = namespace.queue("q"), Staff()
    assert await queue.counts() == Counts(0, 0, 0, 0, 0, 0, 0)
    async with worker_of(queue, staff):
        ids = await in_every_state(queue)
        assert await queue.counts() == Counts(1, 1, 1, 1, 1, 1, 1)
        for state in STATES:
            assert await queue.list_jobs(state) == [ids[state]]
        assert await namespace.queue("r").counts() == Counts(0, 0, 0, 0, 0, 0, 0)
        staff.desk.open()
        await queue.job(ids["active"]).wait(20)


@pytest.mark.parametrize("groups", [1, 450])
async def test_waiting_jobs_are_counted_and_listed_over_any_number_of_groups(
    namespace: Namespace, proxy: Proxy, groups: int
) -> None:
    queue = namespace.queue("q")
    expected = [job.id for job in await queue.add_many(["x"] * 30)]
    adds = [queue.add("x", group=f"group {number}") for number in range(groups) for _ in range(3)]
    grouped = [job.id for job in await asyncio.gather(*adds)]
    async with Namespace(namespace.id, redis=proxy.url) as other:
        counts = await other.queue("q").counts()
        calls = proxy.requests_with(load("count_groups").sha)
    assert counts.waiting == 30 + 3 * groups
    assert calls <= 2 + groups / 100
    listed = await all_pages(queue, "waiting", 100)
    # those without a group in order, then the others
    assert listed[:30] == expected
    assert sorted(listed[30:]) == sorted(grouped)
    assert len(set(listed)) == len(listed)


async def test_jobs_of_a_group_at_its_cap_wait(namespace: Namespace) -> None:
    queue, desk = namespace.queue("q"), Desk()
    jobs = [await queue.add("x", group=group) for group in ("a", "a", "a", "b", "b")]
    async with worker_of(queue, desk):
        await desk.runs(jobs[0].id, jobs[3].id)
        counts = await queue.counts()
        assert (counts.waiting, counts.active) == (3, 2)
        assert sorted(await queue.list_jobs("waiting")) == sorted(jobs[at].id for at in (1, 2, 4))
        assert await queue.list_group("a") == [jobs[1].id, jobs[2].id]
        assert sorted(await queue.list_jobs("active")) == sorted([jobs[0].id, jobs[3].id])
        desk.open()
        await results_of(jobs)


async def test_a_group_s_waiting_jobs_are_listed_in_order_by_page(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    adds = [queue.add("x", id=f"job {n}", group="user:42", priority=int(n == 7)) for n in range(25)]
    await asyncio.gather(*adds)
    pages = [await queue.list_group("user:42", skip=skip, limit=10) for skip in (0, 10, 20, 30)]
    first = ["job 7", *(f"job {n}" for n in range(25) if n != 7)]
    assert pages == [first[:10], first[10:20], first[20:], []]
    assert await queue.list_group("nobody") == []


@pytest.mark.parametrize("state", ["waiting", "delayed", "parked", "completed", "failed", "cancelled"])
async def test_every_job_of_a_state_is_on_one_page(namespace: Namespace, state: State) -> None:
    queue, staff = namespace.queue("q", keep_failed=1000), Staff()
    jobs = await queue.add_many([state] * 45)
    if state == "delayed":
        await queue.remove_all("waiting")
        jobs = [await queue.add("x", run_in=HOUR + number) for number in range(45)]
    elif state == "cancelled":
        for job in jobs:
            await job.cancel()
    elif state != "waiting":
        async with worker_of(queue, staff, concurrency=1):
            for job in jobs:
                await wait_until(lambda: is_in(job, state))  # noqa: B023 - awaited at once
    listed = await all_pages(queue, state, 10)
    assert sorted(listed) == sorted(job.id for job in jobs)
    if state in ("waiting", "delayed"):
        assert listed == [job.id for job in jobs]


async def test_a_page_deep_among_many_waiting_jobs_is_found(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    jobs = await queue.add_many(["x"] * 1500)
    assert await queue.list_jobs("waiting", skip=1490, limit=1000) == [job.id for job in jobs[1490:]]
    await queue.add("x", group="g", id="grouped")
    assert await queue.list_jobs("waiting", skip=1490, limit=1000) == [*(job.id for job in jobs[1490:]), "grouped"]
    assert await queue.list_jobs("waiting", skip=1501) == []


async def test_what_has_expired_is_neither_counted_nor_listed(namespace: Namespace, look: Look) -> None:
    queue = namespace.queue("q")
    kept, over = await queue.add("x"), await queue.add("x")
    await queue.add("x", id="dropped")
    async with worker_of(queue, Desk(is_open=True)):
        await results_of([kept, over])
        await queue.job("dropped").wait(20)
    look("DEL", f"q:j:{over.id}")
    look("ZADD", "q:completed", 1, over.id)
    counts = await queue.counts()
    assert counts.completed == 2
    assert set(await queue.list_jobs("completed")) == {kept.id, "dropped"}
    assert await queue.remove_all("completed") == 2
    # the next sweep or commit of a worker forgets it
    look("DEL", "swept")  # which is due
    async with worker_of(queue, Desk(is_open=True)):
        await queue.add("x", result_ttl=0)
        await wait_until(lambda: not look("EXISTS", "q:completed"))


async def test_the_age_of_the_oldest_waiting_job(namespace: Namespace, look: Look) -> None:
    queue, desk = namespace.queue("q"), Desk(is_open=True)
    assert await queue.oldest_waiting() is None
    await queue.add("x", run_in=HOUR)
    assert await queue.oldest_waiting() is None
    await queue.add("x", id="urgent", priority=9)
    ages: list[float] = []
    for name, group in (("plain", None), ("first", "g"), ("second", "h")):
        await queue.add("x", id=name, group=group)
        age = len(ages) + 1
        older(look, name, age * HOUR)
        ages.append(await queue.oldest_waiting() or 0)
    assert [age // HOUR for age in ages] == [1, 2, 3]
    await queue.remove("second")
    assert (await queue.oldest_waiting() or 0) // HOUR == 2
    async with worker_of(queue, desk):
        await wait_until(lambda: nothing_waits(queue))
    assert await queue.oldest_waiting() is None


def older(look: Look, job_id: str, seconds: int) -> None:
    """Have a job been added so long ago."""
    spec = str(look.field("q", job_id, "spec"))
    (created,) = (part for part in spec.strip("{}").split(",") if part.startswith('"created"'))
    before = int(created.split(":")[1]) - seconds * 1000
    look("HSET", f"q:j:{job_id}", "spec", spec.replace(created, f'"created":{before}'))


async def nothing_waits(queue: Queue) -> bool:
    counts = await queue.counts()
    return counts.waiting + counts.active == 0


async def test_all_failed_jobs_are_retried_over_any_number_of_pages(namespace: Namespace, proxy: Proxy) -> None:
    queue, desk = namespace.queue("q", keep_failed=1000), Desk(is_open=True)
    jobs = await queue.add_many(["x"] * 250)
    async with worker_of(queue, fails, concurrency=50):
        await wait_until(lambda: failed(queue, 250), 30)
    async with Namespace(namespace.id, redis=proxy.url) as other:
        assert await other.queue("q").retry_all() == 250
        assert proxy.requests_with(load("retry_jobs").sha) == 3
    assert (await queue.counts()) == Counts(250, 0, 0, 0, 0, 0, 0)
    async with worker_of(queue, desk, concurrency=50):
        assert await results_of(jobs) == ["x"] * 250
    assert await queue.retry_all() == 0


async def failed(queue: Queue, jobs: int) -> bool:
    return (await queue.counts()).failed == jobs


async def test_what_fails_anew_while_all_are_retried_is_not_retried_over_and_over(namespace: Namespace) -> None:
    queue = namespace.queue("q", keep_failed=1000)
    runs: list[str] = []

    async def handle(claim: Claim) -> Outcome:
        runs.append(claim.id)
        return Failed(Failure("Oops", "bad"))

    await queue.add_many(["x"] * 300)
    async with worker_of(queue, handle, concurrency=50):
        await wait_until(lambda: failed(queue, 300), 30)
        async with asyncio.timeout(60):
            assert await queue.retry_all() == 300
        await wait_until(lambda: failed(queue, 300), 30)
    assert len(runs) == 600


@pytest.mark.parametrize("state", STATES)
async def test_all_jobs_of_a_state_are_removed_over_any_number_of_pages(
    namespace: Namespace, look: Look, state: State
) -> None:
    queue, staff = namespace.queue("q", keep_failed=1000, group_concurrency=None), Staff()
    await queue.add("x", id="other", run_in=HOUR) if state != "delayed" else await queue.add("parked", id="other")
    async with worker_of(queue, staff, concurrency=500):
        if state == "waiting":
            await queue.pause()
        if state in ("delayed", "cancelled"):
            jobs = [await queue.add(state, run_in=HOUR) for _ in range(220)]
            for job in jobs if state == "cancelled" else ():
                await job.cancel()
        else:
            adds = [queue.add(state, group=f"g{n % 7}" if n % 2 else None) for n in range(220)]
            jobs = await asyncio.gather(*adds)
        await wait_until(lambda: counted(queue, state, 220), 30)
        assert await queue.remove_all(state) == 220
        assert await queue.list_jobs(state) == []
        # the run of what was removed is stopped
        await wait_until(lambda: not staff.desk.running)
        assert look("EXISTS", f"q:j:{jobs[0].id}") == 0
        assert look("EXISTS", "q:j:other") == 1
        await queue.remove("other")


async def counted(queue: Queue, state: str, jobs: int) -> bool:
    count: int = getattr(await queue.counts(), state)
    return count == jobs


@pytest.mark.parametrize("state", ["completed", "failed", "cancelled"])
async def test_only_what_ended_long_ago_is_removed_where_asked_for(
    namespace: Namespace, look: Look, state: State
) -> None:
    queue = namespace.queue("q", keep_failed=1000, result_ttl=None)
    jobs = await queue.add_many(["x"] * 250)
    if state == "cancelled":
        for job in jobs:
            await job.cancel()
    async with worker_of(queue, fails if state == "failed" else Desk(is_open=True), concurrency=50):
        await wait_until(lambda: counted(queue, state, 250), 30)
    old = jobs[::2]
    two_hours_ago = round((datetime.now(UTC) - timedelta(hours=2)).timestamp() * 1000)
    for job in old:
        look("HSET", f"q:j:{job.id}", "finished", two_hours_ago)
    assert await queue.remove_all(state, older_than=3 * HOUR) == 0
    assert await queue.remove_all(state, older_than=timedelta(hours=1)) == len(old)
    assert sorted(await all_pages(queue, state, 100)) == sorted(job.id for job in jobs[1::2])
    assert await queue.remove_all(state, older_than=0) == len(jobs) - len(old)


async def test_a_job_s_whole_record_can_be_read(namespace: Namespace) -> None:
    queue, desk = namespace.queue("q"), Desk()

    async def handle(claim: Claim) -> Outcome | str:
        assert await queue.set_step(claim.id, "charge", "paid", token=claim.token)
        await queue.set_progress(claim.id, "half", token=claim.token)
        return await desk(claim) if claim.attempt == 2 else Failed(Failure("Oops", "bad", "Traceback ..."))

    job = await queue.add("data", id="order:42", group="g", priority=5, max_attempts=2, result_ttl=60)
    waiting = await job.record()
    assert (waiting.state, waiting.started, waiting.finished, waiting.steps) == ("waiting", None, None, {})
    async with worker_of(queue, handle):
        with pytest.raises(JobFailedError):
            await job.wait(20)
    record = await queue.job("order:42").record()
    assert record.started is not None
    assert record.finished is not None
    assert waiting.created <= record.started <= record.finished
    assert (record.id, record.state, record.data, record.progress) == ("order:42", "failed", "data", "half")
    assert record.failure == Failure("Oops", "bad", "Traceback ...")
    assert record.steps == {"charge": "paid"}
    spec = record.spec
    assert (spec.group, spec.priority, spec.max_attempts, spec.result_ttl) == ("g", 5, 2, 60_000)


async def workers_of(namespace: Namespace, departed: str | None) -> list[WorkerInfo]:
    return [worker for worker in await namespace.workers() if worker.departed == departed]


async def one_worker(namespace: Namespace) -> bool:
    return len(await workers_of(namespace, None)) == 1


@pytest.fixture
def _slow_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a stopping worker says is said, however long that takes."""
    monkeypatch.setattr("lanner.queue.worker.SAYS_GOODBYE_FOR", PATIENCE)


@pytest.mark.usefixtures("_slow_machine")
async def test_workers_say_who_they_are_and_how_they_went(namespace: Namespace, look: Look) -> None:
    queue, other, desk = namespace.queue("q"), namespace.queue("r"), Desk()
    worker = worker_of(queue, desk, concurrency=7)
    async with worker_of(other, desk, concurrency=2), worker:
        await wait_until(lambda: all_seen(namespace, 2))
        living = {info.about.workflows[0]: info for info in await namespace.workers()}
        mine = living["q"]
        assert (mine.id, mine.departed, mine.about.slots) == (worker.id, None, 7)
        assert (mine.about.host, mine.about.pid, mine.about.stopping) == (socket.gethostname(), os.getpid(), False)
        assert abs((datetime.now(UTC) - mine.seen).total_seconds()) < HOUR
    assert await workers_of(namespace, None) == []
    gone = {info.about.workflows[0]: info for info in await workers_of(namespace, "stopped")}
    assert gone["q"].id == worker.id
    assert not look("EXISTS", "workers")


async def all_seen(namespace: Namespace, workers: int) -> bool:
    return len(await workers_of(namespace, None)) == workers


@pytest.mark.usefixtures("_slow_machine")
async def test_a_worker_that_stops_says_so_and_what_it_still_runs(namespace: Namespace) -> None:
    queue, desk = namespace.queue("q"), Desk()
    job = await queue.add("x")
    worker = worker_of(queue, desk, grace=60)
    await worker.start()
    await desk.runs(job.id)
    stop = asyncio.create_task(worker.stop())
    await wait_until(lambda: says_it_stops(namespace))
    (info,) = await workers_of(namespace, None)
    assert info.about.jobs == [f"q:{job.id}"]
    desk.open()
    await stop
    assert [info.id for info in await workers_of(namespace, "stopped")] == [worker.id]


async def says_it_stops(namespace: Namespace) -> bool:
    return any(worker.about.stopping for worker in await workers_of(namespace, None))


async def test_a_worker_that_was_killed_is_noted_as_lost_by_another(
    server: Server, namespace: Namespace, look: Look
) -> None:
    queue = namespace.queue("q")
    process = await anyio.open_process([sys.executable, "-c", WORKER, server.url, namespace.id], stderr=None)
    try:
        await wait_until(lambda: one_worker(namespace), 30)
        (info,) = await workers_of(namespace, None)
        assert info.about.pid == process.pid
        process.send_signal(signal.SIGKILL)
        await process.wait()
    finally:
        await process.aclose()
    # it has been silent for a minute
    look("ZINCRBY", "workers", -60_000, info.id)
    assert await workers_of(namespace, None) == []
    async with worker_of(queue, Desk(is_open=True)):
        await wait_until(lambda: has_lost(namespace, info.id))
        (lost,) = await workers_of(namespace, "lost")
        assert lost.about.pid == info.about.pid


async def has_lost(namespace: Namespace, worker: str) -> bool:
    return worker in [info.id for info in await workers_of(namespace, "lost")]


@pytest.mark.usefixtures("_slow_machine")
async def test_the_last_fifty_departures_are_kept(namespace: Namespace) -> None:
    queue, ids = namespace.queue("q"), list[str]()
    for _ in range(53):
        worker = worker_of(queue, Desk(is_open=True))
        async with worker:
            ids.append(worker.id)
            await wait_until(lambda: one_worker(namespace))
    assert [info.id for info in await namespace.workers()] == ids[:2:-1]


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("list_jobs", {"state": "done"}, "state"),
        ("list_jobs", {"state": "waiting", "skip": -1}, "skip"),
        ("list_jobs", {"state": "waiting", "limit": 0}, "limit"),
        ("list_jobs", {"state": "waiting", "limit": 1001}, "limit"),
        ("list_jobs", {"state": "waiting", "limit": True}, "limit"),
        ("list_group", {"group": ""}, "group"),
        ("list_group", {"group": "g", "skip": 1.5}, "skip"),
        ("list_group", {"group": "g", "limit": 1001}, "limit"),
        ("remove_all", {"state": "done"}, "state"),
        ("remove_all", {"state": "waiting", "older_than": 5}, "older_than is for jobs that have ended"),
        ("remove_all", {"state": "failed", "older_than": -1}, "older_than"),
        ("remove_all", {"state": "failed", "older_than": float("nan")}, "older_than"),
    ],
)
async def test_an_unfit_argument_is_refused_by_name(
    namespace: Namespace, name: str, arguments: dict[str, Any], why: str
) -> None:
    method: Any = getattr(namespace.queue("q"), name)
    with pytest.raises(InvalidArgumentError, match=why):
        await method(**arguments)


async def test_a_workflow_s_jobs_are_counted_listed_and_retried(server: Server, namespace_id: str) -> None:
    broken = [True]

    async def work(ctx: Context[int]) -> int:
        if broken[0]:
            raise ValueError(ctx.input)
        return ctx.input

    async with WorkflowNamespace(namespace_id, redis=server.url) as namespace:
        workflow = namespace.create_workflow("work", run=work)
        jobs = await workflow.run_many(range(3))
        assert (await workflow.counts()).waiting == 3
        assert [job.id for job in await workflow.list_jobs("waiting", skip=1, limit=1)] == [jobs[1].id]
        assert await workflow.oldest_waiting() is not None
        async with workflow.worker():
            await wait_until(lambda: failed(workflow.queue, 3))
            broken[0] = False
            assert await workflow.retry_all() == 3
            assert [await job.wait(20) for job in jobs] == [0, 1, 2]
            assert await wait_until(namespace.workers)
        assert await workflow.remove_all("completed") == 3
        assert (await workflow.counts()).completed == 0
