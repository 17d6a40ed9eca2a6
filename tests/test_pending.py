"""Runs that are collected during a transaction and sent when it has committed."""

import copy
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from sqlalchemy import create_engine, event, text
from sqlalchemy.orm import Session

from lanner import (
    Context,
    Dedup,
    InvalidArgumentError,
    JobAlreadyExistsError,
    Pending,
    RedisUnavailableError,
    ResultExpiredError,
    SerializationError,
    UnsentJobsError,
    Workflow,
    WorkflowNamespace,
)
from support.proxy import Proxy
from support.servers import PrivateServer
from support.waiting import wait_until


@dataclass
class Parcel:
    to: str


async def ship(ctx: Context[Parcel]) -> str:
    return f"to {ctx.input.to}"


async def count(ctx: Context[int]) -> int:
    return ctx.input


@pytest.fixture
async def ns(redis_url: str, namespace_id: str) -> AsyncIterator[WorkflowNamespace]:
    async with WorkflowNamespace(namespace_id, redis=redis_url) as ns:
        yield ns


@pytest.fixture
def shipping(ns: WorkflowNamespace) -> Workflow[Parcel, str]:
    return ns.create_workflow("shipping", run=ship)


@pytest.fixture
def counting(ns: WorkflowNamespace) -> Workflow[int, int]:
    return ns.create_workflow("counting", run=count)


async def waiting(workflow: Workflow[Parcel, str]) -> int:
    return (await workflow.counts()).waiting


async def test_what_is_collected_is_sent_when_it_is_asked_for(
    ns: WorkflowNamespace, shipping: Workflow[Parcel, str], counting: Workflow[int, int]
) -> None:
    pending = ns.pending()
    parcel, number = pending.run(shipping, Parcel("ada")), pending.run(counting, 5, id="five", priority=3)
    assert (len(pending), number.id) == (2, "five")
    assert await waiting(shipping) == 0
    sent = await pending.send()
    assert (len(pending), [job.id for job in sent]) == (0, [parcel.id, "five"])
    assert (await number.record()).spec.priority == 3
    async with ns.worker():
        assert await parcel.wait(timeout=30) == "to ada"
        assert await number.wait(timeout=30) == 5
    assert await pending.send() == []


async def test_the_end_of_the_block_sends_and_an_exception_discards(
    ns: WorkflowNamespace, shipping: Workflow[Parcel, str]
) -> None:
    async with ns.pending() as pending:
        pending.run(shipping, Parcel("ada"))
        assert await waiting(shipping) == 0
    assert await waiting(shipping) == 1

    async def fail(pending: Pending) -> None:
        async with pending:
            pending.run(shipping, Parcel("bob"))
            raise OSError("the database is gone")

    pending = ns.pending()
    with pytest.raises(OSError, match="database"):
        await fail(pending)
    assert (len(pending), await waiting(shipping)) == (0, 1)


async def test_a_job_that_was_never_sent_is_not_there(ns: WorkflowNamespace, shipping: Workflow[Parcel, str]) -> None:
    pending = ns.pending()
    job = pending.run(shipping, Parcel("ada"))
    pending.discard()
    with pytest.raises(ResultExpiredError, match="never sent"):
        await job.wait(timeout=5)


async def test_delays_and_instants_are_kept(ns: WorkflowNamespace, shipping: Workflow[Parcel, str]) -> None:
    async with ns.pending() as pending:
        pending.run_in(shipping, Parcel("ada"), timedelta(hours=1))
        pending.run_at(shipping, Parcel("ada"), datetime(2100, 1, 1, tzinfo=UTC))
        pending.run_at(shipping, Parcel("ada"), datetime(2000, 1, 1, tzinfo=UTC))
    counts = await shipping.counts()
    assert (counts.delayed, counts.waiting) == (2, 1)
    assert await shipping.remove_all("delayed") == 2


async def test_everything_is_checked_when_it_is_collected(
    ns: WorkflowNamespace, shipping: Workflow[Parcel, str], redis_url: str
) -> None:
    pending = ns.pending()
    foreign = WorkflowNamespace("elsewhere", redis=redis_url).create_workflow("shipping", run=ship)
    with pytest.raises(SerializationError, match="shipping"):
        pending.run(shipping, "ada")  # type: ignore[misc] # pyright: ignore[reportArgumentType] - as a user may
    with pytest.raises(InvalidArgumentError, match="priority"):
        pending.run(shipping, Parcel("ada"), priority=-1)
    with pytest.raises(InvalidArgumentError, match="retry"):
        pending.run(shipping, Parcel("ada"), retry=1)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue] - as a user may
    with pytest.raises(InvalidArgumentError, match="if_exists"):
        pending.run(shipping, Parcel("ada"), if_exists="ignore")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - as a user may
    with pytest.raises(InvalidArgumentError, match="run_at"):
        pending.run_at(shipping, Parcel("ada"), datetime(2030, 1, 1))  # noqa: DTZ001 - what is refused
    with pytest.raises(InvalidArgumentError, match="not of namespace"):
        pending.run(foreign, Parcel("ada"))
    pending.run(shipping, Parcel("ada"), id="x")
    with pytest.raises(InvalidArgumentError, match="'x' is collected already"):
        pending.run(shipping, Parcel("ada"), id="x")
    assert len(pending) == 1


async def test_the_group_of_an_input_may_be_found_in_any_way(ns: WorkflowNamespace) -> None:
    async def slowly(parcel: Parcel) -> str:
        if parcel.to == "nobody":
            raise LookupError("nobody has no group")
        return f"slow {parcel.to}"

    def plainly(parcel: Parcel) -> str:
        return f"plain {parcel.to}"

    slow = ns.create_workflow("slow", run=ship, get_group_id=slowly)
    plain = ns.create_workflow("plain", run=ship, get_group_id=plainly)
    pending = ns.pending()
    jobs = [pending.run(each, Parcel("ada")) for each in (slow, plain)]
    jobs.append(pending.run(slow, Parcel("ada"), group="given"))
    await pending.send()
    assert [(await job.record()).spec.group for job in jobs] == ["slow ada", "plain ada", "given"]

    unnamed = {"id": None}
    whose = pending.run(slow, Parcel("eve"), **unnamed)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - a caller's own variable
    await pending.send()
    assert (await whose.record()).spec.group == "slow eve"

    pending.run(slow, Parcel("bob"))
    pending.discard()
    pending.run(slow, Parcel("nobody"), id="nobody")
    pending.run(slow, Parcel("bob"), id="bob")
    with pytest.raises(UnsentJobsError, match=r"1 of 2 jobs were sent .*nobody has no group") as caught:
        await pending.send()
    assert caught.value.sent == [("slow", "bob")]
    assert isinstance(caught.value.refused["slow", "nobody"], LookupError)
    with pytest.raises(InvalidArgumentError, match="priority"):
        pending.run(slow, Parcel("bob"), priority=-1)


async def test_whoever_is_refused_takes_nobody_s_group_along(ns: WorkflowNamespace) -> None:
    async def slowly(parcel: Parcel) -> str:
        if parcel.to == "nobody":
            raise LookupError("nobody has no group")
        return f"of {parcel.to}"

    slow = ns.create_workflow("slow", run=ship, get_group_id=slowly)
    pending = ns.pending()
    pending.run(slow, Parcel("nobody"))
    jobs = [pending.run(slow, Parcel(f"{n}")) for n in range(220)]
    with pytest.raises(UnsentJobsError):
        await pending.send()
    assert [(await job.record()).spec.group for job in jobs] == [f"of {n}" for n in range(220)]


async def test_one_call_sends_a_chunk_of_whatever_workflows(
    ns: WorkflowNamespace,
    shipping: Workflow[Parcel, str],
    counting: Workflow[int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runtime = await ns.queues.runtime()
    sizes: list[int] = []
    add = runtime.add

    async def counted(jobs: list[object]) -> object:
        sizes.append(len(jobs))
        return await add(jobs)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - handed on

    monkeypatch.setattr(runtime, "add", counted)
    async with ns.pending() as pending:
        for number in range(225):
            pending.run(shipping, Parcel(str(number)))
            pending.run(counting, number)
    # each is of another workflow than the one before it
    assert sizes == [67, 67, 67, 67, 67, 67, 48]
    assert (await waiting(shipping), (await counting.counts()).waiting) == (225, 225)


async def test_a_job_whose_id_is_taken_is_refused_and_the_others_go(
    ns: WorkflowNamespace, shipping: Workflow[Parcel, str]
) -> None:
    await shipping.run(Parcel("ada"), id="taken")
    pending = ns.pending()
    for name in ("first", "taken", "last"):
        pending.run(shipping, Parcel(name), id=name)
    with pytest.raises(UnsentJobsError) as caught:
        await pending.send()
    error = caught.value
    assert error.sent == [("shipping", "first"), ("shipping", "last")]
    assert isinstance(error.refused["shipping", "taken"], JobAlreadyExistsError)
    assert error.unsent == []
    assert "2 of 3 jobs were sent (shipping 'first', shipping 'last'); 1 were refused (shipping 'taken')" in str(error)
    assert len(pending) == 0


async def test_the_job_that_stands_in_its_place_is_told(ns: WorkflowNamespace, shipping: Workflow[Parcel, str]) -> None:
    await shipping.run(Parcel("ada"), id="taken")
    pending = ns.pending()
    pending.run(shipping, Parcel("bob"), id="taken", if_exists="return")
    throttled = [pending.run(shipping, Parcel(name), throttle=Dedup("key", window=60)) for name in ("a", "b")]
    sent = await pending.send()
    assert [job.id for job in sent] == ["taken", throttled[0].id, throttled[0].id]


async def test_what_redis_did_not_answer_for_stays_and_can_be_sent_again(
    proxy: Proxy, namespace_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with WorkflowNamespace(namespace_id, redis=proxy.url) as ns:
        shipping = ns.create_workflow("shipping", run=ship)
        runtime = await ns.queues.runtime()
        add, calls = runtime.add, 0

        async def add_until_it_breaks(jobs: list[object]) -> object:
            nonlocal calls
            calls += 1
            answer = await add(jobs)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - handed on
            if calls == 2:
                raise RedisUnavailableError("no answer. It may have been done all the same.")
            return answer

        monkeypatch.setattr(runtime, "add", add_until_it_breaks)
        pending = ns.pending()
        jobs = [pending.run(shipping, Parcel(str(number))) for number in range(500)]
        with pytest.raises(UnsentJobsError, match=r"200 of 500 jobs were sent .*300 were not .*all the same") as caught:
            await pending.send()
        error = caught.value
        assert error.sent == [("shipping", job.id) for job in jobs[:200]]
        assert error.unsent == [("shipping", job.id) for job in jobs[200:]]
        assert isinstance(error.__cause__, RedisUnavailableError)
        assert copy.copy(error).unsent == error.unsent
        assert len(pending) == 300
        assert [job.id for job in await pending.send()] == [job.id for job in jobs[200:]]
        # what the call that was not answered has added is there once
        assert await waiting(shipping) == 500


async def test_nothing_is_lost_when_redis_is_away_from_the_start(own_server: PrivateServer) -> None:
    async with WorkflowNamespace("away", redis=own_server.url, producer_timeout=0.3) as ns:
        shipping = ns.create_workflow("shipping", run=ship)
        pending = ns.pending()
        pending.run(shipping, Parcel("ada"), id="ada")
        own_server.stop()
        with pytest.raises(UnsentJobsError, match="0 of 1 jobs were sent") as caught:
            await pending.send()
        assert caught.value.unsent == [("shipping", "ada")]
        own_server.start()
        assert await wait_until(partial(sent, pending)) == ["ada"]


async def sent(pending: Pending) -> list[str]:
    """The ids of what was sent: nothing, where Redis did not answer in time."""
    try:
        return [job.id for job in await pending.send()]
    except UnsentJobsError:
        return []


async def test_a_session_collects_until_its_commit(ns: WorkflowNamespace, shipping: Workflow[Parcel, str]) -> None:
    pending = ns.pending()
    engine = create_engine("sqlite://")
    with Session(engine) as session:
        committed: list[str] = []

        def note(_: Session) -> None:
            committed.append("commit")

        def discard(_: Session) -> None:
            pending.discard()

        event.listen(session, "after_commit", note)
        event.listen(session, "after_rollback", discard)
        session.execute(text("SELECT 1"))
        pending.run(shipping, Parcel("ada"))
        session.rollback()
        assert (len(pending), committed) == (0, [])
        session.execute(text("SELECT 1"))
        pending.run(shipping, Parcel("bob"))
        session.commit()
        assert (len(pending), committed) == (1, ["commit"])
    engine.dispose()
    await pending.send()
    assert await waiting(shipping) == 1
