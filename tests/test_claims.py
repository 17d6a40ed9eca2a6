"""What happens to a job while it runs is seen to when it ends, though most ends need not look at its record."""

import asyncio
import contextlib
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from lanner.errors import JobAlreadyExistsError, JobNotFoundError
from lanner.queue import Claim, Completed, Failure, Job, Namespace, Outcome, Released, Retry, Suspended
from lanner.queue.calling import Caller
from lanner.queue.queue import Added
from lanner.queue.scripts.claiming import Settlement, settle
from lanner.queue.scripts.descending import NewChild, start_children
from lanner.queue.scripts.recording import take_event
from support.jobs import PATIENCE, Desk, Look, sweep, worker_of
from support.waiting import wait_until

Happening = Callable[[Namespace, Job, str], Awaitable[object]]


async def _a_checkpoint(_: Namespace, job: Job, token: str) -> object:
    return await job.queue.set_step(job.id, "step", "1", token=token)


async def _a_log(_: Namespace, job: Job, token: str) -> object:
    return await job.queue.append_log(job.id, "line", token=token)


async def _an_event(_: Namespace, job: Job, __: str) -> object:
    return await job.send_event("event", "1", event_id="once")


async def _a_wait_for_an_event(namespace: Namespace, job: Job, token: str) -> object:
    return await take_event(
        (await namespace.runtime()).call,
        workflow=job.queue.id,
        id=job.id,
        token=token,
        name="event",
        path="step",
        before="event:",
        otherwise="waits",
    )


BESIDE: dict[str, tuple[Happening, str]] = {
    "a checkpoint": (_a_checkpoint, "steps"),
    "a log": (_a_log, "log"),
    "an event": (_an_event, "events"),
    "a wait for an event": (_a_wait_for_an_event, "steps"),
}


@pytest.mark.parametrize("group", [None, "g"])
@pytest.mark.parametrize("what", BESIDE)
async def test_what_lies_beside_a_record_goes_with_it(
    namespace: Namespace, look: Look, what: str, group: str | None
) -> None:
    queue, desk = namespace.queue("q"), Desk()
    happens, kind = BESIDE[what]
    async with worker_of(queue, desk):
        job = await queue.add("x", id="a", group=group)
        await desk.runs("a")
        await happens(namespace, job, desk.claims["a"].token)
        assert look("EXISTS", f"q:{kind}:a")
        desk.open()
        # nobody waits for it: that would be something out of the ordinary by itself
        await wait_until(lambda: look.state("q", "a") == "completed", PATIENCE)
        if kind == "log":
            assert look("PTTL", "q:log:a") > 0
        else:
            assert not look("EXISTS", f"q:{kind}:a")


@pytest.mark.parametrize("group", [None, "g", 'a "group" of 4 words'])
async def test_who_began_to_wait_before_and_after_the_claim_hears_of_the_end(
    namespace: Namespace, look: Look, group: str | None
) -> None:
    queue, desk = namespace.queue("q"), Desk()
    before, after = [await queue.add(text, id=text, group=group) for text in ("before", "after")]
    early = asyncio.create_task(before.wait(PATIENCE))
    await wait_until(lambda: look.field("q", "before", "waiters"), PATIENCE)
    async with worker_of(queue, desk):
        await desk.has_started("before")
        desk.let_go("before")
        assert await early == "before"
        await desk.has_started("after")
        late = asyncio.create_task(after.wait(PATIENCE))
        await wait_until(lambda: look.field("q", "after", "waiters"), PATIENCE)
        desk.open()
        assert await late == "after"
        await queue.add("third", group=group)
        await desk.starts(3)


async def test_who_waits_for_some_of_the_jobs_of_a_call_hears_of_these(namespace: Namespace, look: Look) -> None:
    queue, desk = namespace.queue("q"), Desk()
    jobs = [await queue.add(str(number), id=str(number)) for number in range(6)]
    waits = [asyncio.create_task(job.wait(PATIENCE)) for job in jobs[::2]]
    await wait_until(lambda: all(look.field("q", job.id, "waiters") for job in jobs[::2]), PATIENCE)
    async with worker_of(queue, desk):
        await desk.starts(len(jobs))
        desk.open()
        assert await asyncio.gather(*waits) == ["0", "2", "4"]


@pytest.mark.parametrize("jobs", [1, 3])
async def test_a_record_that_is_gone_is_not_made_again_by_its_end(
    namespace: Namespace, look: Look, jobs: int, caplog: pytest.LogCaptureFixture
) -> None:
    queue, desk = namespace.queue("q"), Desk()
    async with worker_of(queue, desk):
        for number in range(jobs):
            await queue.add("x", id=str(number))
        await desk.starts(jobs)
        look("DEL", "q:j:0")
        assert not await queue.set_progress("0", "half", token=desk.claims["0"].token)
        desk.open()
        await wait_until(lambda: "before its end" in caplog.text, PATIENCE)
        await wait_until(
            lambda: all(look.state("q", str(number)) == "completed" for number in range(1, jobs)), PATIENCE
        )
        assert not look("EXISTS", "q:j:0")
        assert not look("ZSCORE", "q:completed", "0")
        # its slot is free when its lease is over
        look.expire_lease("q", "0")
        await sweep(namespace)
        assert await (await queue.add("y")).wait(PATIENCE) == "y"


@pytest.mark.parametrize("then", [*BESIDE, "a wait"])
async def test_what_is_out_of_the_ordinary_stays_so(namespace: Namespace, look: Look, then: str) -> None:
    queue, desk, heard = namespace.queue("q"), Desk(), list[str]()

    async def watch(job: Job) -> None:
        async for happening in job.watch():
            heard.append(happening.kind)

    async with worker_of(queue, desk):
        job = await queue.add("x", id="a")
        await desk.runs("a")
        watching = asyncio.create_task(watch(job))
        await wait_until(lambda: look.field("q", "a", "watchers"), PATIENCE)
        if then == "a wait":
            waiting = asyncio.create_task(job.wait(PATIENCE))
            await wait_until(lambda: look.field("q", "a", "waiters"), PATIENCE)
            desk.open()
            await waiting
        else:
            await BESIDE[then][0](namespace, job, desk.claims["a"].token)
            desk.open()
        async with asyncio.timeout(PATIENCE):
            await watching
    assert heard[-1] == "completed"


async def _nothing(_: Namespace, __: Job, ___: str) -> object:
    return None


async def _progress(_: Namespace, job: Job, token: str) -> object:
    return await job.queue.set_progress(job.id, "half", token=token)


async def _a_child(namespace: Namespace, job: Job, token: str) -> object:
    spec = job.queue.prepare("x", Added(), {}).spec
    children = [NewChild("path", "others", "child", spec, "x")]
    call = (await namespace.runtime()).call
    return await start_children(
        call, workflow=job.queue.id, id=job.id, token=token, barrier="path", policy="fail", most=0, children=children
    )


HAPPENINGS: dict[str, Happening] = {
    "nothing": _nothing,
    "progress": _progress,
    "a child": _a_child,
    **{what: happens for what, (happens, _) in BESIDE.items()},
}


@pytest.mark.parametrize("outcome", [Completed("done"), Retry(60_000, Failure("E", "m")), Released(), Suspended(0)])
@pytest.mark.parametrize("what", HAPPENINGS)
@pytest.mark.parametrize("options", [{}, {"group": "g"}, {"result_ttl": 60}])
async def test_a_job_that_runs_says_so_and_since_when(
    namespace: Namespace, look: Look, what: str, options: dict[str, Any], outcome: Outcome
) -> None:
    queue, call = namespace.queue("q"), (await namespace.runtime()).call
    job = await queue.add("x", id="a", **options)
    assert (await job.record()).started is None
    before = look.now()
    (claim,) = (await _settle(call, 1, 1)).claims
    for happens in (_nothing, HAPPENINGS[what]):
        await happens(namespace, job, claim.token)
        record = await job.record()
        assert record.state == "active"
        assert record.started is not None
        assert before <= record.started.timestamp() * 1000 <= look.now()
    with pytest.raises(JobAlreadyExistsError, match="active"):
        await queue.add("y", id="a")
    await _settle(call, 2, 0, (claim, outcome))
    ended = await job.record()
    expected = {"Completed": "completed", "Retry": "delayed"}.get(type(outcome).__name__, "waiting")
    assert ended.state == expected
    # an attempt that failed is over, one that goes on began when it did
    assert ended.started == (None if isinstance(outcome, Retry) else record.started)


async def test_a_job_whose_worker_is_lost_goes_on_with_its_attempt(namespace: Namespace, look: Look) -> None:
    queue, call = namespace.queue("q"), (await namespace.runtime()).call
    job = await queue.add("x", id="a")
    (claim,) = (await _settle(call, 1, 1)).claims
    began = look.started("q", "a")
    look.expire_lease("q", "a")
    await sweep(namespace)
    record = await job.record()
    assert (record.state, record.stalls) == ("waiting", 1)
    assert record.started == datetime.fromtimestamp(began / 1000, UTC)
    (again,) = (await _settle(call, 2, 1)).claims
    assert (again.id, again.token) != (claim.id, claim.token)
    await _settle(call, 3, 0, (claim, Completed("late")), (again, Completed("done")))
    assert await job.wait(PATIENCE) == "done"
    assert look.nothing_is_active("q")


@pytest.mark.parametrize("how", ["swept", "removed"])
@pytest.mark.parametrize("group", [None, "g"])
async def test_what_was_written_beside_a_record_that_is_gone_goes_with_the_claim(
    namespace: Namespace, look: Look, how: str, group: str | None
) -> None:
    queue, desk = namespace.queue("q"), Desk()
    async with worker_of(queue, desk):
        await queue.add("x", id="a", group=group)
        await desk.runs("a")
        look("DEL", "q:j:a")
        for happens in (_a_checkpoint, _a_log):
            await happens(namespace, queue.job("a"), desk.claims["a"].token)
        if how == "removed":
            assert await queue.remove_all("active") == 1
        else:
            look.expire_lease("q", "a")
            await sweep(namespace)
        assert not any(look("EXISTS", f"q:{kind}:a") for kind in ("steps", "log"))
        assert look.nothing_is_active("q")
        desk.open()
        assert await (await queue.add("y", group=group)).wait(PATIENCE) == "y"


CHILDREN: Final = 60  # more than expire in one go


async def test_who_claims_a_parent_hears_of_a_child_that_ends_in_the_same_call(
    namespace: Namespace, look: Look
) -> None:
    queue, call = namespace.queue("q"), (await namespace.runtime()).call
    numbers = itertools.count(3, 3)

    async def settled(total: int, *outcomes: tuple[Claim, Outcome]) -> Sequence[Claim]:
        return (await _settle(call, next(numbers), total, *outcomes)).claims

    job = await queue.add("x", id="p")
    (claim,) = await settled(1)
    spec = queue.prepare("x", Added(), {"expires": 3600}).spec
    children = [NewChild(f"map/{n}", "q", f"c{n}", spec, "x") for n in range(CHILDREN)]
    await start_children(
        call, workflow="q", id="p", token=claim.token, barrier="map", policy="continue", most=0, children=children
    )
    await settled(0, (claim, Suspended(None, ("event", "\tmap"))))
    for child in children:
        look("ZADD", "q:expiring", 1, child.id)
    await job.send_event("event", "1", event_id="once")
    (claim,) = await settled(CHILDREN)
    assert (claim.id, look("EXISTS", "q:barrier:p")) == ("p", 0)
    assert f"child\nq\np\n{claim.token}\nmap" in look("LRANGE", "@ctl:w", 0, -1)
    await settled(0, (claim, Completed("done")))
    await namespace.end_descendants("the test is over")


@pytest.mark.parametrize("group", [None, "g"])
async def test_of_two_ends_of_a_job_in_a_call_the_first_counts(
    namespace: Namespace, look: Look, group: str | None
) -> None:
    queue, call = namespace.queue("q"), (await namespace.runtime()).call
    jobs = [await queue.add("x", id=id, group=group and f"{group}{id}") for id in ("a", "b")]
    (first, second) = (await _settle(call, 1, 2)).claims
    ends = [(first, "one"), (second, "two"), (first, "three"), (second, "four"), (first, "five")]
    settlement = await _settle(call, 2, 0, *((claim, Completed(text)) for claim, text in ends))
    assert settlement.applied == [True, True, False, False, False]
    assert [await job.wait(PATIENCE) for job in jobs] == ["one", "two"]
    assert look.nothing_is_active("q")


async def test_a_record_says_of_one_life_where_an_id_is_used_again_and_again(namespace: Namespace) -> None:
    """Its claim is read before it, and may be of the life before."""
    queue, calls = namespace.queue("q"), asyncio.Event()
    readers = [queue.job("same") for _ in range(4)]
    seen: Counter[str] = Counter()

    async def read(job: Job) -> None:
        while not calls.is_set():
            with contextlib.suppress(JobNotFoundError):
                record = await job.record()
                seen[record.state] += 1
                assert record.started is None or record.started >= record.created, record
                assert (record.started is None) == (record.state == "waiting"), record

    async with queue.worker(_at_once), asyncio.TaskGroup() as group:
        for job in readers:
            group.create_task(read(job))
        for _ in range(300):
            await (await queue.add("x", id="same")).wait(PATIENCE)
        calls.set()
    assert seen


async def test_a_job_that_ends_between_two_reads_and_comes_again_is_not_said_to_be_active(
    namespace: Namespace, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, call = namespace.queue("q"), (await namespace.runtime()).call
    await queue.add("x", id="a")
    (claim,) = (await _settle(call, 1, 1)).claims
    read = call.read_hash

    async def happens_before(key: str) -> dict[str, str]:
        monkeypatch.setattr(call, "read_hash", read)
        await _settle(call, 2, 0, (claim, Completed("done")))
        await queue.add("y", id="a")
        return await read(key)

    monkeypatch.setattr(call, "read_hash", happens_before)
    record = await queue.job("a").record()
    assert (record.state, record.data, record.started) == ("waiting", "y", None)
    assert look.state("q", "a") == "waiting"


async def test_a_group_is_free_though_the_record_of_its_job_is_gone_and_its_id_used_again(
    namespace: Namespace, look: Look
) -> None:
    queue, call = namespace.queue("q"), (await namespace.runtime()).call
    await queue.add("x", id="a", group="g")
    await _settle(call, 1, 1)
    look("DEL", "q:j:a")
    await queue.add("y", id="a", group="other")
    behind = await queue.add("z", group="g")
    look.expire_lease("q", "a")
    await sweep(namespace)
    async with queue.worker(_at_once):
        assert await behind.wait(PATIENCE) == "z"
        assert await queue.job("a").wait(PATIENCE) == "y"
    assert look.nothing_is_active("q")


async def _at_once(claim: Claim) -> str:
    return claim.data


async def _settle(call: Caller, number: int, total: int, *outcomes: tuple[Claim, Outcome]) -> Settlement:
    """Call as a worker does."""
    return await settle(
        call, worker="w", number=number, lease=60_000, total=total, outcomes=outcomes, wants=[("q", total)]
    )
