"""What a run says of itself while it runs: how far it is, and lines of a log."""

import asyncio
from typing import Any

import pytest

from lanner import Context, InvalidArgumentError, JobFailedError, SyncContext, WorkflowNamespace
from lanner.queue import Claim, Failed, Failure, Namespace, Outcome, Suspended
from lanner.queue.notes import LOG_LINES, LONGEST_LINE, LONGEST_PROGRESS
from lanner.queue.scripts.loader import load
from support.jobs import PATIENCE, Desk, Look, worker_of
from support.proxy import Proxy
from support.servers import Server
from support.waiting import wait_until


async def test_progress_is_in_the_record_and_the_last_value_counts(namespace: Namespace) -> None:
    queue = namespace.queue("q")

    async def handle(claim: Claim) -> str:
        for done in range(5):
            assert await queue.set_progress(claim.id, f"{done} of 5", token=claim.token)
        return ""

    job = await queue.add("x")
    assert (await job.record()).progress is None
    async with worker_of(queue, handle):
        await job.wait(PATIENCE)
    assert (await job.record()).progress == "4 of 5"


async def test_progress_and_log_stay_over_waits_and_attempts(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    turns: list[int] = []

    async def handle(claim: Claim) -> Outcome | str:
        turns.append(claim.attempt)
        assert await queue.append_log(claim.id, f"turn {len(turns)}", token=claim.token)
        if len(turns) == 1:
            assert await queue.set_progress(claim.id, "begun", token=claim.token)
            return Suspended(claim.now_ms() + 10)
        return ""

    job = await queue.add("x")
    async with worker_of(queue, handle):
        await job.wait(PATIENCE)
    assert (await job.record()).progress == "begun"
    assert await job.log() == ["turn 1", "turn 2"]


async def test_progress_of_any_length_up_to_the_bound_is_kept_and_more_refused(namespace: Namespace) -> None:
    queue, desk = namespace.queue("q"), Desk()
    job = await queue.add("x")
    async with worker_of(queue, desk):
        await desk.runs(job.id)
        token = desk.claims[job.id].token
        longest = "ö" * LONGEST_PROGRESS
        assert await queue.set_progress(job.id, longest, token=token)
        with pytest.raises(InvalidArgumentError, match="up to 65,536 characters as text, not 65,537"):
            await queue.set_progress(job.id, longest + "x", token=token)
        assert (await job.record()).progress == longest
        desk.open()
        await job.wait(PATIENCE)


async def test_a_log_keeps_the_latest_thousand_lines(namespace: Namespace) -> None:
    queue, desk = namespace.queue("q"), Desk()
    job = await queue.add("x")
    async with worker_of(queue, desk):
        await desk.runs(job.id)
        token = desk.claims[job.id].token
        for start in range(0, 1200, 100):
            # lines that are written at once are kept in the order in which they were written
            await asyncio.gather(*(queue.append_log(job.id, str(start + i), token=token) for i in range(100)))
        assert await job.log() == [str(number) for number in range(200, 1200)]
        desk.open()
        await job.wait(PATIENCE)
    assert len(await job.log()) == LOG_LINES


async def test_a_line_is_kept_as_it_is_and_a_long_one_is_cut(namespace: Namespace) -> None:
    queue, desk = namespace.queue("q"), Desk()
    lines = ["", "two\nlines", "the same", "the same", "täglich \U0001f600", "x" * (LONGEST_LINE + 1)]
    job = await queue.add("x")
    async with worker_of(queue, desk):
        await desk.runs(job.id)
        for line in lines:
            assert await queue.append_log(job.id, line, token=desk.claims[job.id].token)
        desk.open()
        await job.wait(PATIENCE)
    assert await job.log() == [*lines[:-1], "x" * LONGEST_LINE]


@pytest.mark.parametrize("why", ["taken over", "ended", "removed", "another life", "never claimed"])
async def test_what_a_lost_claim_says_is_refused(namespace: Namespace, look: Look, why: str) -> None:
    queue, desk, token = namespace.queue("q"), Desk(), "worker:1"
    job = await queue.add("x", id="a")
    if why == "never claimed":
        for job_id in ("a", "b"):
            assert not await queue.set_progress(job_id, "half", token=token)
            assert not await queue.append_log(job_id, "line", token=token)
        await queue.remove("a")
        return
    async with worker_of(queue, desk):
        await desk.runs("a")
        token = desk.claims["a"].token
        assert await queue.set_progress("a", "half", token=token)
        assert await queue.append_log("a", "line", token=token)
        match why:
            case "taken over":
                look.give_claim("q", "a", "another:7")
            case "ended":
                desk.open()
                await job.wait(PATIENCE)
            case _:
                await queue.pause()
                await queue.remove("a")
                if why == "another life":
                    await queue.add("y", id="a")
        assert not await queue.set_progress("a", "more", token=token)
        assert not await queue.append_log("a", "more", token=token)
        if why in ("taken over", "ended"):
            assert (look.field("q", "a", "progress"), await job.log()) == ("half", ["line"])
        else:
            # a removed job is not resurrected, and another life inherits nothing
            assert look.field("q", "a", "progress") is None
            assert not look("EXISTS", "q:log:a")
            assert look("EXISTS", "q:j:a") == int(why == "another life")
        if why == "taken over":
            look.give_claim("q", "a", token)
        desk.open()
        await queue.remove("a")
        await wait_until(lambda: not desk.running)


async def test_the_log_goes_with_the_record(namespace: Namespace, look: Look) -> None:
    queue, desk = namespace.queue("q", keep_failed=1), Desk(is_open=True)

    async def handle(claim: Claim) -> Outcome | str:
        await queue.append_log(claim.id, "line", token=claim.token)
        return Failed(Failure("Oops", "bad")) if claim.data == "fails" else await desk(claim)

    async with worker_of(queue, handle):
        kept, dropped = await queue.add("x", id="kept"), await queue.add("x", id="dropped", result_ttl=0)
        await kept.wait(PATIENCE)
        await wait_until(lambda: not look("EXISTS", f"q:j:{dropped.id}"))
        for name in ("first", "second"):
            with pytest.raises(JobFailedError):
                await (await queue.add("fails", id=name)).wait(PATIENCE)
    left = look("PTTL", "q:j:kept")
    assert 0 < look("PTTL", "q:log:kept") <= left + 1000
    assert [look("EXISTS", f"q:log:{name}") for name in ("dropped", "first")] == [0, 0]
    # a failed job's log stays with it, for whoever looks why
    assert look("PTTL", "q:log:second") == -1
    assert await queue.job("second").log() == ["line"]


async def test_a_log_line_whose_answer_is_lost_is_written_once(namespace: Namespace, proxy: Proxy) -> None:
    lines = [str(number) for number in range(60)]

    async def talk(ctx: Context[None]) -> None:
        for line in lines[:20]:
            await ctx.log(line)
        # those of parallel branches travel together
        await asyncio.gather(*(ctx.log(line) for line in lines[20:]))

    proxy.lose_answers(load("append_log").sha, every=3)
    async with WorkflowNamespace(namespace.id, redis=proxy.url) as other:
        talking = other.create_workflow("q", run=talk)
        async with talking.worker():
            job = await talking.run(None)
            await job.wait(60)
        log = await job.log()
    assert proxy.lost_answers >= 10
    assert (log[:20], sorted(log)) == (lines[:20], sorted(lines))


async def test_a_log_line_of_a_queue_whose_answer_is_lost_is_written_once(namespace: Namespace, proxy: Proxy) -> None:
    queue, desk = namespace.queue("q"), Desk()
    job = await queue.add("x")
    async with worker_of(queue, desk), Namespace(namespace.id, redis=proxy.url) as other:
        await desk.runs(job.id)
        await other.limits()
        proxy.lose_answers(load("append_log").sha, every=2)
        for number in range(6):
            assert await other.queue("q").append_log(job.id, str(number), token=desk.claims[job.id].token)
        assert proxy.lost_answers >= 3
        desk.open()
        await job.wait(PATIENCE)
    assert await job.log() == [str(number) for number in range(6)]


async def test_a_workflow_s_progress_and_log(server: Server, namespace_id: str) -> None:
    async def count(ctx: Context[int]) -> None:
        for done in range(ctx.input):
            await ctx.progress({"done": done, "of": ctx.input})
            await ctx.log(f"{done} are done")

    def count_plainly(ctx: SyncContext[int]) -> None:
        for done in range(ctx.input):
            ctx.progress({"done": done, "of": ctx.input})
            ctx.log(f"{done} are done")

    async with WorkflowNamespace(namespace_id, redis=server.url) as namespace:
        workflows: list[Any] = [
            namespace.create_workflow("count", run=count),
            namespace.create_workflow("plainly", run=count_plainly),
        ]
        async with namespace.worker():
            for workflow in workflows:
                job = await workflow.run(3)
                await job.wait(PATIENCE)
                assert await job.log() == ["0 are done", "1 are done", "2 are done"]
                assert await job.progress() == {"done": 2, "of": 3}


async def test_a_workflow_s_progress_that_is_too_long_fails_the_attempt_with_that_reason(
    server: Server, namespace_id: str
) -> None:
    async def boast(ctx: Context[None]) -> None:
        await ctx.progress("x" * 70_000)

    async with WorkflowNamespace(namespace_id, redis=server.url) as namespace:
        boasting = namespace.create_workflow("boast", run=boast)
        async with boasting.worker():
            with pytest.raises(JobFailedError, match="up to 65,536 characters"):
                await boasting.execute(None, timeout=20)


@pytest.mark.parametrize(
    ("argument", "value", "why"),
    [
        ("job_id", "", "job id"),
        ("job_id", "a\n", "job id"),
        ("text", 5, "must be a str"),
        ("text", None, "must be a str"),
        ("text", "\ud800", "lone surrogate"),
        ("token", "", "token"),
        ("token", None, "token must be"),
    ],
)
@pytest.mark.parametrize("name", ["set_progress", "append_log", "set_step"])
async def test_an_unfit_argument_is_refused_by_name(
    namespace: Namespace, name: str, argument: str, value: Any, why: str
) -> None:
    given: dict[str, Any] = {"job_id": "a", "text": "x", "token": "w:1", argument: value}
    method: Any = getattr(namespace.queue("q"), name)
    step = ["step"] if name == "set_step" else []
    with pytest.raises(InvalidArgumentError, match=why):
        await method(given["job_id"], *step, given["text"], token=given["token"])
