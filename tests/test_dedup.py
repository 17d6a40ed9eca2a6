"""Jobs that stand for others: by their id, or by a key and a window; and what frees each."""

import asyncio
from typing import Any, Literal

import pytest

from lanner import (
    Context,
    Dedup,
    InvalidArgumentError,
    JobAlreadyExistsError,
    JobFailedError,
    JobNotFoundError,
    ResultExpiredError,
    WorkflowNamespace,
)
from lanner.queue import Claim, Failed, Failure, Job, Namespace, Outcome
from lanner.queue.bulk import send_many
from lanner.queue.queue import Added
from lanner.queue.scripts.loader import load
from support.jobs import Desk, Look, results_of, worker_of
from support.proxy import Proxy
from support.servers import Server
from support.waiting import wait_until

HOUR = 3600


async def fails(_: Claim) -> Outcome:
    return Failed(Failure("Oops", "bad"))


def slots(look: Look) -> list[str]:
    """The keys of windows that are open."""
    return [f"q:dedup:{key}" for key in ("throttle:k", "debounce:k") if look("EXISTS", f"q:dedup:{key}")]


async def has_ended(job: Job, state: str) -> bool:
    return await job.state() == state


@pytest.mark.parametrize("state", ["waiting", "delayed", "active"])
async def test_a_live_id_collides_and_the_error_names_the_job(namespace: Namespace, state: str) -> None:
    queue, desk = namespace.queue("q"), Desk()
    async with worker_of(queue, desk):
        if state == "waiting":
            await queue.pause()
        job = await queue.add("first", id="order:42", run_in=HOUR if state == "delayed" else 0)
        await wait_until(lambda: has_ended(job, state))
        with pytest.raises(JobAlreadyExistsError, match=f"job 'order:42' of workflow 'q' exists and is {state}") as got:
            await queue.add("second", id="order:42")
        assert (got.value.workflow, got.value.job_id) == ("q", "order:42")
        same = await queue.add("second", id="order:42", if_exists="return")
        assert (same.id, same.run) == (job.id, job.run)
        assert (await same.record()).data == "first"
        await queue.remove("order:42")


async def test_of_many_adds_of_an_id_at_once_one_wins(server: Server, namespace: Namespace) -> None:
    queue = namespace.queue("q")
    async with Namespace(namespace.id, redis=server.url) as other:
        adds = [each.queue("q").add(str(n), id="a") for n in range(20) for each in (namespace, other)]
        answers = await asyncio.gather(*adds, return_exceptions=True)
    assert sum(isinstance(answer, Job) for answer in answers) == 1
    assert sum(isinstance(answer, JobAlreadyExistsError) for answer in answers) == 39
    assert (await queue.counts()).waiting == 1


async def test_of_many_adds_of_an_id_at_once_all_get_the_one_that_won(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    jobs = await asyncio.gather(*(queue.add(str(n), id="a", if_exists="return") for n in range(20)))
    assert len({(job.id, job.run) for job in jobs}) == 1
    async with worker_of(queue, Desk(is_open=True)):
        assert len(set(await results_of(jobs))) == 1


@pytest.mark.parametrize("end", ["completed", "cancelled"])
async def test_the_id_of_an_ended_job_is_free_at_once(namespace: Namespace, end: str) -> None:
    queue = namespace.queue("q")
    first = await queue.add("first", id="a")
    async with worker_of(queue, Desk(is_open=True)):
        if end == "cancelled":
            await first.cancel()
        await wait_until(lambda: has_ended(first, end))
        second = await queue.add("second", id="a")
        assert second.run != first.run
        assert await second.wait(20) == "second"


@pytest.mark.parametrize("end", ["completed", "cancelled"])
async def test_a_retained_id_is_free_when_its_record_is_gone(namespace: Namespace, look: Look, end: str) -> None:
    queue = namespace.queue("q")
    first = await queue.add("first", id="a", result_ttl=HOUR)
    async with worker_of(queue, Desk(is_open=True)):
        if end == "cancelled":
            await first.cancel()
        await wait_until(lambda: has_ended(first, end))
        with pytest.raises(JobAlreadyExistsError, match=f"is {end}"):
            await queue.add("second", id="a", unique="retained")
        same = await queue.add("second", id="a", unique="retained", if_exists="return")
        assert same.run == first.run
        # its time is over
        look("DEL", "q:j:a")
        second = await queue.add("second", id="a", unique="retained")
        assert await second.wait(20) == "second"


@pytest.mark.parametrize("unique", ["live", "retained"])
@pytest.mark.parametrize("how", ["alone", "delayed", "together"])
@pytest.mark.parametrize("end", ["completed", "cancelled"])
async def test_a_job_whose_id_is_used_again_is_not_listed_as_its_life_before(
    namespace: Namespace, look: Look, end: str, how: str, unique: Literal["live", "retained"]
) -> None:
    queue = namespace.queue("q")
    first = await queue.add("first", id="a", result_ttl=HOUR)
    if end == "cancelled":
        await first.cancel()
    else:
        async with worker_of(queue, Desk(is_open=True)):
            await first.wait(20)
    # its time is over
    look("DEL", "q:j:a")
    assert look("ZSCORE", f"q:{end}", "a") is not None
    if how == "together":
        new = [queue.prepare("second", Added(id=id, unique=unique), {}) for id in ("b", "a")]
        await send_many(queue, new)
    else:
        await queue.add("second", id="a", unique=unique, run_in=HOUR if how == "delayed" else None)
    assert look("ZSCORE", f"q:{end}", "a") is None
    assert await queue.job("a").state() == ("delayed" if how == "delayed" else "waiting")


async def test_a_failed_id_collides_until_it_is_retried_or_removed(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    async with worker_of(queue, fails):
        first = await queue.add("first", id="a")
        with pytest.raises(JobFailedError):
            await first.wait(20)
    for unique in ("live", "retained"):
        which: Any = unique
        with pytest.raises(JobAlreadyExistsError, match=r"is failed \(retry or remove it\)"):
            await queue.add("second", id="a", unique=which)
    assert await queue.remove("a")
    async with worker_of(queue, Desk(is_open=True)):
        assert await (await queue.add("second", id="a")).wait(20) == "second"


async def test_an_id_of_one_queue_is_none_of_another(namespace: Namespace) -> None:
    jobs = [await namespace.queue(name).add("x", id="a") for name in ("q", "r")]
    assert [job.id for job in jobs] == ["a", "a"]


async def test_the_first_job_of_a_window_stands_for_all_that_come_within_it(namespace: Namespace) -> None:
    queue, desk = namespace.queue("q"), Desk(is_open=True)
    hour = Dedup("user:42 mails", HOUR)
    jobs = [await queue.add(str(n), throttle=hour) for n in range(5)]
    other = await queue.add("other", throttle=Dedup("user:43 mails", HOUR))
    elsewhere = await namespace.queue("r").add("elsewhere", throttle=hour)
    assert len({(job.id, job.run) for job in jobs}) == 1
    assert len({jobs[0].id, other.id, elsewhere.id}) == 3
    async with worker_of(queue, desk):
        assert await results_of([*jobs, other]) == ["0"] * 5 + ["other"]
        # the window goes on when the job has ended
        assert (await queue.add("6", throttle=hour)).id == jobs[0].id
    assert len(desk.started) == 2


async def test_the_end_of_the_window_frees_a_throttle_and_nothing_else_does(namespace: Namespace, look: Look) -> None:
    queue = namespace.queue("q")
    first = await queue.add("first", throttle=Dedup("k", HOUR))
    await first.cancel()
    assert (await queue.add("x", throttle=Dedup("k", HOUR))).id == first.id
    await queue.remove(first.id)
    standing = await queue.add("x", throttle=Dedup("k", HOUR))
    assert standing.id == first.id
    with pytest.raises(JobNotFoundError):
        await standing.wait(20)
    assert (await queue.counts()).waiting == 0
    (slot,) = slots(look)
    assert HOUR * 1000 - 60_000 < look("PTTL", slot) <= HOUR * 1000
    look("PEXPIRE", slot, 1)
    await wait_until(lambda: not look("EXISTS", slot))
    second = await queue.add("second", throttle=Dedup("k", HOUR))
    assert second.id != first.id
    assert (await second.record()).data == "second"


async def test_a_throttled_job_may_be_delayed(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    first = await queue.add("x", throttle=Dedup("k", HOUR), run_in=HOUR)
    second = await queue.add("y", throttle=Dedup("k", HOUR))
    assert (second.id, await second.state()) == (first.id, "delayed")


@pytest.mark.parametrize("kind", ["throttle", "debounce"])
async def test_an_add_that_is_refused_opens_no_window(
    namespace: Namespace, look: Look, kind: Literal["throttle", "debounce"]
) -> None:
    queue = namespace.queue("q")
    await queue.add("first", id="a")
    options: dict[str, Any] = {kind: Dedup("k", HOUR)}
    with pytest.raises(JobAlreadyExistsError):
        await queue.add("second", id="a", **options)
    assert slots(look) == []
    job = await queue.add("third", **options)
    assert (job.id != "a", (await job.record()).data) == (True, "third")


async def test_jobs_of_a_key_come_together_in_one_that_has_the_payload_of_the_last(namespace: Namespace) -> None:
    queue, desk = namespace.queue("q"), Desk(is_open=True)
    async with worker_of(queue, desk):
        jobs = [await queue.add(str(number), debounce=Dedup("reindex:42", HOUR)) for number in range(9)]
        # it is the window of the last that counts
        jobs.append(await queue.add("9", debounce=Dedup("reindex:42", 0.05)))
        assert await results_of(jobs) == ["9"] * 10
        assert len({(job.id, job.run) for job in jobs}) == 1
        assert len(desk.started) == 1
        # it ran, so that the key is free
        late = await queue.add("late", debounce=Dedup("reindex:42", 0.01))
        assert late.id != jobs[0].id
        assert await late.wait(20) == "late"


async def test_a_debounced_job_waits_for_a_whole_window_after_the_last(namespace: Namespace, look: Look) -> None:
    queue = namespace.queue("q")
    first = await queue.add("1", debounce=Dedup("k", HOUR))
    # half an hour later
    before = float(look("ZSCORE", "q:delayed", first.id)) - HOUR * 500
    look("ZADD", "q:delayed", before, first.id)
    second = await queue.add("2", debounce=Dedup("k", HOUR))
    assert second.id == first.id
    assert float(look("ZSCORE", "q:delayed", first.id)) >= before + HOUR * 500
    assert (await first.record()).data == "2"
    # the window of the last counts
    await queue.add("3", debounce=Dedup("k", 1))
    assert float(look("ZSCORE", "q:delayed", first.id)) < before


@pytest.mark.parametrize("how", ["promoted", "running", "cancelled", "removed", "retrying"])
async def test_a_debounced_job_that_cannot_take_the_payload_any_more_frees_its_key(
    namespace: Namespace, how: str
) -> None:
    queue, desk = namespace.queue("q", max_attempts=2), Desk()

    async def handle(claim: Claim) -> str:
        if how == "retrying":
            raise ValueError
        return await desk(claim)

    first = await queue.add("1", debounce=Dedup("k", HOUR))
    async with worker_of(queue, handle):
        match how:
            case "promoted":
                await queue.pause()
                await queue.promote(first.id)
            case "running":
                await queue.promote(first.id)
                await desk.runs(first.id)
            case "retrying":
                await queue.promote(first.id)
                await wait_until(lambda: has_failed_once(first))
            case "cancelled":
                await first.cancel()
            case _:
                await queue.remove(first.id)
        second = await queue.add("2", debounce=Dedup("k", HOUR))
        third = await queue.add("3", debounce=Dedup("k", HOUR))
        assert len({first.id, second.id}) == 2
        assert (third.id, (await second.record()).data) == (second.id, "3")
        for job in (first, second):
            await queue.remove(job.id)


@pytest.mark.parametrize("how", ["throttle", "debounce"])
async def test_a_key_stands_for_no_other_job_that_has_the_id_of_its_own(namespace: Namespace, how: str) -> None:
    queue = namespace.queue("q")
    key: dict[str, Any] = {how: Dedup("k", HOUR)}
    first = await queue.add("first", id="a", **key)
    await queue.remove("a")
    other = await queue.add("another matter", id="a", run_in=HOUR)
    standing = await queue.add("second", **key)
    assert (await other.record()).data == "another matter"
    if how == "debounce":
        assert standing.id != "a"
        assert (await standing.record()).data == "second"
    else:
        assert (standing.id, standing.run) == (first.id, first.run)
        with pytest.raises(ResultExpiredError, match="used again"):
            await standing.wait(20)


async def has_failed_once(job: Job) -> bool:
    return (await job.record()).attempt == 2


async def test_a_debounced_job_does_not_expire_while_it_is_put_off(namespace: Namespace, look: Look) -> None:
    queue = namespace.queue("q")
    job = await queue.add("1", debounce=Dedup("k", HOUR), expires=60)
    for _ in range(3):
        look("ZINCRBY", "q:delayed", -HOUR * 500, job.id)
        look("ZINCRBY", "q:expiring", -HOUR * 500, job.id)
        await queue.add("2", debounce=Dedup("k", HOUR), expires=60)
        due, expiry = (float(look("ZSCORE", f"q:{key}", job.id)) for key in ("delayed", "expiring"))
        assert expiry == due + 60_000


async def test_a_throttle_and_a_debounce_of_the_same_key_know_nothing_of_each_other(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    throttled = await queue.add("throttled", throttle=Dedup("k", HOUR), run_in=HOUR)
    debounced = await queue.add("debounced", debounce=Dedup("k", HOUR))
    assert throttled.id != debounced.id
    assert (await queue.add("x", throttle=Dedup("k", HOUR))).id == throttled.id
    assert (await queue.add("last", debounce=Dedup("k", HOUR))).id == debounced.id
    assert [(await job.record()).data for job in (throttled, debounced)] == ["throttled", "last"]


@pytest.mark.parametrize("kind", ["throttle", "debounce"])
async def test_of_many_at_once_one_is_added(
    server: Server, namespace: Namespace, kind: Literal["throttle", "debounce"]
) -> None:
    options: dict[str, Any] = {kind: Dedup("k", HOUR)}
    async with Namespace(namespace.id, redis=server.url) as other:
        adds = [each.queue("q").add(str(n), **options) for n in range(20) for each in (namespace, other)]
        jobs = await asyncio.gather(*adds)
    assert len({(job.id, job.run) for job in jobs}) == 1


@pytest.mark.parametrize("kind", ["throttle", "debounce"])
async def test_lost_answers_add_no_second_job(
    namespace: Namespace, proxy: Proxy, kind: Literal["throttle", "debounce"]
) -> None:
    options: dict[str, Any] = {kind: Dedup("k", HOUR)}
    async with Namespace(namespace.id, redis=proxy.url) as other:
        await other.limits()
        proxy.lose_answers(load("add_jobs").sha, every=2)
        jobs = [await other.queue("q").add(str(n), **options) for n in range(6)]
        assert proxy.lost_answers >= 3
    assert len({(job.id, job.run) for job in jobs}) == 1
    counts = await namespace.queue("q").counts()
    assert counts.waiting + counts.delayed == 1
    record = await namespace.queue("q").job(jobs[0].id).record()
    assert record.data == ("0" if kind == "throttle" else "5")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"throttle": Dedup("", 1)}, "throttle key"),
        ({"throttle": Dedup("a\nb", 1)}, "throttle key"),
        ({"throttle": Dedup("k", 0)}, "throttle window"),
        ({"debounce": Dedup("k", -1)}, "debounce window"),
        ({"debounce": Dedup("k", float("nan"))}, "debounce window"),
        ({"throttle": "k"}, r"throttle must be a Dedup\(key, window\), not 'k'"),
        ({"debounce": ("k", 5)}, r"debounce must be a Dedup\(key, window\)"),
        ({"throttle": Dedup("k", 1), "debounce": Dedup("k", 1)}, "throttle or debounce, not both"),
        ({"debounce": Dedup("k", 1), "run_in": 5}, "leave run_in and run_at out"),
        ({"unique": "always"}, "unique"),
        ({"if_exists": "ignore"}, "if_exists"),
    ],
)
async def test_an_unfit_argument_is_refused_by_name_and_nothing_is_added(
    namespace: Namespace, options: dict[str, Any], why: str
) -> None:
    queue = namespace.queue("q")
    with pytest.raises(InvalidArgumentError, match=why):
        await queue.add("x", **options)
    assert (await queue.counts()).waiting == 0


async def test_a_workflow_s_jobs_are_deduplicated_however_they_are_run(server: Server, namespace_id: str) -> None:
    runs: list[str] = []

    async def echo(ctx: Context[str]) -> str:
        runs.append(ctx.input)
        return ctx.input

    async with WorkflowNamespace(namespace_id, redis=server.url) as namespace:
        echoing = namespace.create_workflow("echo", run=echo)
        hour = Dedup("k", HOUR)
        async with echoing.worker():
            first = await echoing.run("first", throttle=hour)
            assert await first.wait(20) == "first"
            # the result is that of the job which stands for the others
            assert await echoing.execute("second", throttle=hour, timeout=20) == "first"
            assert {job.id for job in await echoing.run_many(["x", "y"], throttle=hour)} == {first.id}
            watched = [event.value async for event in echoing.run_and_watch("third", throttle=hour)]
            assert watched == ["first"]
            assert await echoing.execute("x", id=first.id, unique="retained", if_exists="return", timeout=20) == "first"
            both = await asyncio.gather(
                *(echoing.execute(text, debounce=Dedup("d", 2), timeout=20) for text in ("early", "late"))
            )
            assert both == ["late", "late"]
    assert runs == ["first", "late"]
