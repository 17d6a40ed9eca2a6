"""Schedules as their users set them: again, anew, by hand, with what names and options, and for workflows."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lanner import Context, InvalidArgumentError, ScheduleNotFoundError, WorkflowNamespace
from lanner.queue import Namespace, cadence
from support.jobs import PATIENCE, Desk, Look, worker_of
from support.schedules import DAILY, GRID, completed, done, fired, instants, missed, ms_of, nothing_left, the
from support.servers import Server
from support.waiting import wait_until


async def test_setting_a_schedule_again_changes_nothing(namespace: Namespace, look: Look) -> None:
    queue = namespace.queue("q")
    assert await queue.schedules.upsert("s", DAILY, "data") is True
    before, stored = await the(queue), look("HGETALL", "q:schedule:s")
    assert await queue.schedules.upsert("s", DAILY, "data") is False
    again = look("HGETALL", "q:schedule:s")
    assert await the(queue) == before
    assert {name for name in stored if stored[name] != again[name]} <= {"spec"}  # of which the nonce alone is new
    assert await queue.schedules.list() == [before]


async def test_unchanged_timing_keeps_an_instant_that_is_overdue(namespace: Namespace, look: Look) -> None:
    queue = namespace.queue("q")
    await queue.schedules.upsert("s", DAILY, "old")
    first = missed(look, await the(queue), 3)
    await queue.schedules.upsert("s", DAILY, "new", overlap="allow", priority=7)
    assert ms_of((await the(queue)).next_fire) == first
    async with worker_of(queue, done):
        schedule = await fired(queue, 1)
        record = await queue.job(str(schedule.last_job)).record()
    assert (record.data, record.spec.priority, record.spec.group) == ("new", 7, "")


@pytest.mark.parametrize("change", [{"every": 90_000}, {"pattern": "0 0 1 1 *"}, {"jitter": 1}])
async def test_changed_timing_is_armed_anew_and_the_last_fire_is_remembered(
    namespace: Namespace, look: Look, change: dict[str, Any]
) -> None:
    queue = namespace.queue("q")
    await queue.schedules.upsert("s", DAILY, "x")
    missed(look, await the(queue), 5)
    async with worker_of(queue, done):
        before = await fired(queue, 1)
    missed(look, before, 3)
    timing: dict[str, Any] = {**({} if "pattern" in change else {"every": timedelta(days=1), "start": GRID}), **change}
    assert await queue.schedules.upsert("s", cadence(**timing), "x") is False
    after = await the(queue)
    assert ms_of(after.next_fire) > ms_of(before.last_fire)
    kept = [(one.last_fire, one.last_job, one.fires, one.skipped) for one in (before, after)]
    assert kept[0] == kept[1]


async def test_another_way_to_catch_up_is_no_other_timing(namespace: Namespace, look: Look) -> None:
    queue = namespace.queue("q")
    await queue.schedules.upsert("s", DAILY, "x", overlap="allow")
    first = missed(look, await the(queue), 3)
    await queue.schedules.upsert(
        "s", cadence(every=timedelta(days=1), start=GRID, catch_up="all"), "x", overlap="allow"
    )
    assert ms_of((await the(queue)).next_fire) == first
    async with worker_of(queue, done):
        await fired(queue, 1)
        await wait_until(lambda: completed(queue, 3))
    assert (await instants(queue))[0] == first


async def test_a_trigger_leaves_the_cadence_alone(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    await queue.schedules.upsert("s", DAILY, "data", priority=5)
    before = await the(queue)
    async with worker_of(queue, done):
        job = await queue.schedules.trigger("s")
        await job.wait(PATIENCE)
    record = await job.record()
    assert (record.data, record.spec.priority, record.spec.scheduled) == ("data", 5, 0)
    assert record.spec.group == "schedule:s"
    assert await the(queue) == before


async def test_triggers_do_not_share_a_life(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    await queue.schedules.upsert("s", DAILY, "x")
    first, second = await queue.schedules.trigger("s"), await queue.schedules.trigger("s")
    assert first.id != second.id
    assert first.run != second.run


async def test_a_schedule_that_is_not_there_cannot_be_triggered(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    with pytest.raises(ScheduleNotFoundError, match="no schedule 'nightly' of workflow 'q'"):
        await queue.schedules.trigger("nightly")
    assert await queue.schedules.get("nightly") is None
    assert [
        await queue.schedules.remove("nightly"),
        await queue.schedules.pause("nightly"),
        await queue.schedules.resume("nightly"),
    ] == [False] * 3


async def test_a_removed_schedule_fires_no_more_and_its_jobs_stay(namespace: Namespace, look: Look) -> None:
    queue, desk = namespace.queue("q"), Desk()
    await queue.schedules.upsert("s", DAILY, "x")
    missed(look, await the(queue), 1)
    async with worker_of(queue, desk):
        job_id = str((await fired(queue, 1)).last_job)
        await desk.runs(job_id)
        assert await queue.schedules.remove("s") is True
        assert await queue.schedules.list() == []
        desk.open()
        await queue.job(job_id).wait(PATIENCE)
    assert not look("EXISTS", "q:due")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"schedule_id": ""}, "schedule id"),
        ({"schedule_id": "x" * 257}, "schedule id"),
        ({"schedule_id": "a\nb"}, "schedule id"),
        ({"cadence": "0 3 * * *"}, r"cadence must be made by cadence\(pattern\)"),
        ({"data": 5}, "data must be a str"),
        ({"overlap": "both"}, "overlap"),
        ({"id": "mine"}, "no option 'id'"),
        ({"run_in": 5}, "no option run_in="),
        ({"throttle": None}, "no option 'throttle'"),
        ({"priority": -1}, "priority"),
        ({"group": ""}, "group"),
    ],
)
async def test_an_unfit_argument_is_refused_by_name_and_nothing_is_stored(
    namespace: Namespace, look: Look, arguments: dict[str, Any], why: str
) -> None:
    queue = namespace.queue("q")
    given: dict[str, Any] = {"schedule_id": "s", "cadence": DAILY, "data": "x", **arguments}
    with pytest.raises(InvalidArgumentError, match=why):
        await queue.schedules.upsert(**given)
    assert not look("EXISTS", "q:due")


async def test_schedule_ids_are_free_text(namespace: Namespace, look: Look) -> None:
    queue = namespace.queue("q")
    ids = ["user:42", "täglich um 3", "{x}", "a b", "*", "x" * 256]
    for schedule_id in ids:
        await queue.schedules.upsert(schedule_id, DAILY, schedule_id)
        missed(look, await the(queue, schedule_id), 1)
    async with worker_of(queue, done):
        await wait_until(lambda: completed(queue, len(ids)))
    for schedule_id in ids:
        schedule = await the(queue, schedule_id)
        assert (schedule.fires, schedule.data) == (1, schedule_id)
        assert await queue.schedules.remove(schedule_id)


async def test_a_workflow_s_schedule_runs_it_by_the_clock(server: Server, namespace_id: str) -> None:
    seen: list[tuple[str, datetime | None]] = []

    async def report(ctx: Context[str]) -> str:
        seen.append((ctx.input, ctx.scheduled))
        return ctx.group

    async with WorkflowNamespace(namespace_id, redis=server.url) as namespace:
        reports = namespace.create_workflow("reports", run=report)
        assert await reports.upsert_schedule("often", None, "all", every=timedelta(seconds=0.1), max_attempts=3)
        assert await reports.upsert_schedule("nightly", "0 3 * * *", "some", tz="Europe/Berlin")
        async with reports.worker(safety=120):
            await wait_until(lambda: len(seen) >= 2)
            job = await reports.trigger_schedule("nightly")
            assert await job.wait(PATIENCE) == "schedule:nightly"
            assert await reports.pause_schedule("often")
            assert await reports.resume_schedule("often")
            often, nightly = await reports.get_schedules()
            assert (often.id, often.paused, nightly.id, nightly.fires) == ("often", False, "nightly", 0)
            assert nightly.cadence == cadence("0 3 * * *", tz="Europe/Berlin")
            assert await reports.remove_schedule("often")
            await wait_until(lambda: nothing_left(reports.queue))
    scheduled = [instant for text, instant in seen if text == "all" and instant is not None]
    assert len(scheduled) >= 2
    assert all(ms_of(instant) % 100 == 0 and instant.tzinfo is UTC for instant in scheduled)
    assert ("some", None) in seen


async def test_a_workflow_s_group_is_that_of_its_schedules(server: Server, namespace_id: str) -> None:
    async def report(ctx: Context[str]) -> str:
        return ctx.group

    async with WorkflowNamespace(namespace_id, redis=server.url) as namespace:
        reports = namespace.create_workflow("reports", run=report, get_group_id=lambda tenant: tenant)
        await reports.upsert_schedule("a", "@daily", "acme")
        await reports.upsert_schedule("b", "@daily", "acme", group="other")
        async with reports.worker(safety=120):
            assert await (await reports.trigger_schedule("a")).wait(PATIENCE) == "acme"
            assert await (await reports.trigger_schedule("b")).wait(PATIENCE) == "other"


@pytest.mark.parametrize("option", ["id", "unique", "if_exists", "throttle", "debounce", "run_in"])
async def test_options_that_mean_nothing_to_a_workflow_s_schedule_are_refused(option: str) -> None:
    async def report(_: Context[str]) -> None:
        pass

    reports = WorkflowNamespace("shop").create_workflow("reports", run=report)
    options: dict[str, Any] = {option: "x"}
    with pytest.raises(InvalidArgumentError, match=f"no option '?{option}"):
        await reports.upsert_schedule("s", "@daily", "x", **options)
