"""Watching a job: everything that happens to it, in order, to its end; and what is left of a watch."""

import asyncio
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from typing import Any

import pytest

from lanner import (
    ClosedError,
    Context,
    JobAlreadyExistsError,
    JobNotFoundError,
    ResultExpiredError,
    RetryAfter,
    WorkflowNamespace,
)
from lanner.queue import Claim, Completed, Failed, Failure, Job, Namespace, Outcome, Retry, Suspended
from lanner.queue.scripts.loader import load
from lanner.queue.watch import Happening
from support.jobs import PATIENCE, Desk, Look, worker_of
from support.proxy import Proxy
from support.servers import PrivateServer, Server
from support.waiting import wait_until


class Watcher:
    """Watches a job in the background and keeps what it hears."""

    def __init__(self, job: Job) -> None:
        self.heard: list[Happening] = []
        self._task = asyncio.create_task(self._watch(job))

    async def _watch(self, job: Job) -> None:
        async for happening in job.watch():
            self.heard.append(happening)

    async def hears(self, kind: str) -> None:
        """Wait until something of the kind was heard."""
        await wait_until(lambda: kind in self.kinds or self._task.done())
        if self._task.done():
            self._task.result()
        assert kind in self.kinds

    @property
    def kinds(self) -> list[str]:
        return [happening.kind for happening in self.heard]

    async def ends(self) -> list[tuple[str, str]]:
        """Wait for the end of the watch; what was heard."""
        async with asyncio.timeout(PATIENCE):
            await self._task
        return [(happening.kind, happening.text) for happening in self.heard]

    async def gives_up(self) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task


async def watching(look: Look, job: Job) -> None:
    """Wait until the job's record knows of somebody who watches."""
    await wait_until(lambda: look.field("q", job.id, "watchers"))


async def test_everything_that_happens_to_a_job_is_heard_in_order(namespace: Namespace, look: Look) -> None:
    queue = namespace.queue("q", max_attempts=2)
    turns: list[Claim] = []

    async def handle(claim: Claim) -> Outcome | str:
        turns.append(claim)
        assert await queue.set_progress(claim.id, f"turn {len(turns)}", token=claim.token)
        match len(turns):
            case 1:
                return Suspended(claim.now_ms() + 20)
            case 2:
                return Retry(0, Failure("Oops", "no luck"))
            case 3:
                return Suspended(None, ("go",))
            case _:
                return "through"

    job = await queue.add("x")
    watcher = Watcher(job)
    await watching(look, job)
    async with worker_of(queue, handle):
        await wait_until(lambda: len(turns) == 3)
        await wait_until(lambda: look.state("q", job.id) == "parked")
        await job.send_event("go", "", event_id="1")
        heard = await watcher.ends()
    assert [(kind, text) for kind, text in heard if kind not in ("suspended", "retrying")] == [
        ("started", "0"),
        ("progress", "turn 1"),
        ("progress", "turn 2"),
        ("started", "1"),
        ("progress", "turn 3"),
        ("progress", "turn 4"),
        ("completed", "through"),
    ]
    assert [kind for kind, _ in heard] == [
        "started",
        "progress",
        "suspended",
        "progress",
        "retrying",
        "started",
        "progress",
        "suspended",
        "progress",
        "completed",
    ]
    until, nothing = (text for kind, text in heard if kind == "suspended")
    assert (int(until) > 0, nothing) == (True, "")
    assert Failure.loads(dict(heard)["retrying"]) == Failure("Oops", "no luck")


@pytest.mark.parametrize("end", ["completed", "failed", "cancelled", "cancelled while running"])
async def test_each_end_is_heard_by_who_watched_before_and_by_who_comes_after(
    namespace: Namespace, look: Look, end: str
) -> None:
    queue, desk = namespace.queue("q"), Desk()

    async def handle(claim: Claim) -> Outcome:
        await desk(claim)
        return Failed(Failure("Oops", "bad")) if end == "failed" else Completed("well")

    job = await queue.add("x")
    before = Watcher(job)
    await watching(look, job)
    if end == "cancelled":
        assert await job.cancel("changed my mind")
    else:
        async with worker_of(queue, handle):
            await desk.runs(job.id)
            if end == "cancelled while running":
                assert await job.cancel("changed my mind")
            desk.open()
            with suppress(Exception):
                await job.wait(PATIENCE)
    heard = await before.ends()
    after, other = await Watcher(job).ends(), await Watcher(queue.job(job.id)).ends()
    assert heard[-1:] == after == other
    (kind, text) = after[0]
    assert kind == end.split(maxsplit=1)[0]
    if kind == "failed":
        assert Failure.loads(text) == Failure("Oops", "bad")
    else:
        assert text == {"completed": "well", "cancelled": "changed my mind"}[kind]


async def test_who_comes_in_the_middle_hears_how_far_it_is(namespace: Namespace, look: Look) -> None:
    queue, desk = namespace.queue("q"), Desk()

    async def handle(claim: Claim) -> str:
        await queue.set_progress(claim.id, "half", token=claim.token)
        return await desk(claim)

    job = await queue.add("x")
    async with worker_of(queue, handle):
        await desk.runs(job.id)
        watcher = Watcher(queue.job(job.id))
        await watcher.hears("progress")
        desk.open()
        assert await watcher.ends() == [("progress", "half"), ("completed", "x")]
    assert look.field("q", job.id, "progress") == "half"


async def test_many_watches_of_one_process_share_a_connection(namespace: Namespace, look: Look, server: Server) -> None:
    queue = namespace.queue("q")
    jobs = await queue.add_many(["x"] * 50)
    watchers = [Watcher(job) for job in jobs for _ in range(4)]
    for job in jobs:
        await watching(look, job)
    with server.client() as client:
        listening = list(client("PUBSUB", "CHANNELS", f"{look.base}:*"))
        assert len(listening) == 1
        assert client("PUBSUB", "NUMSUB", *listening) in ([listening[0], 1], {listening[0]: 1})
    async with worker_of(queue, Desk(is_open=True)):
        for watcher in watchers:
            assert (await watcher.ends())[-1] == ("completed", "x")


@pytest.mark.parametrize("way", ["break", "cancelled", "closed"])
async def test_leaving_a_watch_unsubscribes(namespace: Namespace, look: Look, way: str) -> None:
    queue, desk = namespace.queue("q"), Desk()
    job = await queue.add("x")
    async with worker_of(queue, desk):
        await desk.runs(job.id)
        await queue.set_progress(job.id, "half", token=desk.claims[job.id].token)
        match way:
            case "break":
                async for happening in job.watch():
                    assert happening.kind == "progress"
                    break
            case "closed":
                async with aclosing(job.watch()) as watch:
                    await anext(watch)
            case _:
                watcher = Watcher(job)
                await watcher.hears("progress")
                await watcher.gives_up()
        await wait_until(lambda: look.field("q", job.id, "watchers") is None)
        desk.open()
        await job.wait(PATIENCE)


async def test_one_watch_of_two_that_leaves_does_not_silence_the_other(namespace: Namespace, look: Look) -> None:
    queue, desk = namespace.queue("q"), Desk()
    job = await queue.add("x")
    stays = Watcher(job)
    await watching(look, job)
    for _ in range(20):
        leaves = Watcher(job)
        await asyncio.sleep(0)
        await leaves.gives_up()
    async with worker_of(queue, desk):
        await desk.runs(job.id)
        # a watch that comes right after one that has left is not taken for it
        await stays.gives_up()
        comes = Watcher(job)
        await watching(look, job)
        await queue.set_progress(job.id, "half", token=desk.claims[job.id].token)
        desk.open()
        assert await comes.ends() == [("progress", "half"), ("completed", "x")]


@pytest.mark.parametrize("gone", ["never was", "expired", "another life"])
async def test_what_is_gone_cannot_be_watched(namespace: Namespace, look: Look, gone: str) -> None:
    queue = namespace.queue("q", result_ttl=0)
    if gone == "never was":
        with pytest.raises(JobNotFoundError, match="there is no job 'a'"):
            await Watcher(queue.job("a")).ends()
        return
    async with worker_of(queue, Desk(is_open=True)):
        job = await queue.add("x", id="a")
        await wait_until(lambda: look.state("q", "a") is None)
        if gone == "another life":
            await queue.pause()
            await queue.add("y", id="a")
        with pytest.raises(ResultExpiredError, match="its record is gone"):
            await Watcher(job).ends()
        await queue.remove("a")


async def test_a_watch_hears_of_the_end_of_a_job_that_keeps_nothing(namespace: Namespace, look: Look) -> None:
    queue, desk = namespace.queue("q", result_ttl=0), Desk(is_open=True)
    job = await queue.add("x" * 100_000)
    watcher = Watcher(job)
    await watching(look, job)
    async with worker_of(queue, desk):
        assert await watcher.ends() == [("started", "0"), ("completed", "x" * 100_000)]


async def test_the_watch_of_a_job_that_is_removed_ends(namespace: Namespace, look: Look) -> None:
    queue = namespace.queue("q")
    job = await queue.add("x")
    watcher = Watcher(job)
    await watching(look, job)
    await queue.remove(job.id)
    assert await watcher.ends() == [("removed", "")]


async def test_the_watch_of_a_workflow_s_job_that_is_removed_says_so(
    server: Server, namespace_id: str, look: Look
) -> None:
    async def nothing(_: Context[None]) -> None:
        pass

    async with WorkflowNamespace(namespace_id, redis=server.url) as namespace:
        workflow = namespace.create_workflow("q", run=nothing)
        job = await workflow.run(None)
        watch = asyncio.ensure_future(anext(job.watch()))
        await wait_until(lambda: look.field("q", job.id, "watchers"))
        await workflow.remove(job.id)
        with pytest.raises(JobNotFoundError, match="was removed"):
            await watch


async def test_closing_the_namespace_fails_its_watches_at_once(server: Server, namespace: Namespace) -> None:
    job = await namespace.queue("q").add("x")
    async with Namespace(namespace.id, redis=server.url) as other:
        watcher = Watcher(other.queue("q").job(job.id))
        with server.client() as client:
            await wait_until(lambda: client("HGET", f"{namespace.base}:q:j:{job.id}", "watchers"))
    with pytest.raises(ClosedError, match=job.id):
        await watcher.ends()
    with pytest.raises(ClosedError):
        await Watcher(other.queue("q").job(job.id)).ends()
    await namespace.queue("q").remove(job.id)


async def test_an_end_that_falls_into_a_gap_of_the_subscription_is_heard(
    namespace: Namespace, proxy: Proxy, look: Look
) -> None:
    queue = namespace.queue("q")
    job = await queue.add("x")
    async with Namespace(namespace.id, redis=proxy.url) as other:
        watcher = Watcher(other.queue("q").job(job.id))
        await watching(look, job)
        await proxy.refuse()
        async with worker_of(queue, Desk(is_open=True)):
            await job.wait(PATIENCE)
        await proxy.accept()
        assert (await watcher.ends())[-1] == ("completed", "x")


async def test_a_watch_survives_a_restart_of_redis(own_server: PrivateServer) -> None:
    async with Namespace("shop", redis=own_server.url, producer_timeout=30) as namespace:
        queue, desk = namespace.queue("q"), Desk()
        async with worker_of(queue, desk):
            job = await queue.add("x")
            await desk.runs(job.id)
            watcher = Watcher(job)
            with own_server.client() as client:
                await wait_until(lambda: client("HGET", f"{namespace.base}:q:j:{job.id}", "watchers"))
            own_server.restart()
            desk.open()
            assert (await watcher.ends())[-1] == ("completed", "x")


async def test_a_lost_answer_of_the_first_look_does_no_harm(namespace: Namespace, proxy: Proxy, look: Look) -> None:
    queue = namespace.queue("q")
    job = await queue.add("x")
    async with Namespace(namespace.id, redis=proxy.url) as other:
        await other.limits()
        proxy.lose_answers(load("watch_job").sha, every=2)
        watchers = [Watcher(other.queue("q").job(job.id)) for _ in range(4)]
        await wait_until(lambda: proxy.lost_answers >= 2)
        await watching(look, job)
        async with worker_of(queue, Desk(is_open=True)):
            for watcher in watchers:
                assert (await watcher.ends())[-1] == ("completed", "x")


async def test_run_and_watch_misses_nothing_of_the_fastest_job(server: Server, namespace_id: str) -> None:
    async def double(ctx: Context[int]) -> int:
        await ctx.progress({"half": ctx.input})
        return 2 * ctx.input

    async with WorkflowNamespace(namespace_id, redis=server.url) as namespace:
        doubling = namespace.create_workflow("doubling", run=double, result_ttl=0)

        async def watch(number: int) -> list[tuple[str, Any]]:
            return [(event.kind, event.value) async for event in doubling.run_and_watch(number)]

        async with doubling.worker(concurrency=20):
            heard = await asyncio.gather(*(watch(number) for number in range(40)))
    assert heard == [
        [("started", 1), ("progress", {"half": number}), ("completed", 2 * number)] for number in range(40)
    ]


async def test_what_happens_to_a_workflow_s_job_has_values(server: Server, namespace_id: str) -> None:
    runs: list[int] = []

    async def call(ctx: Context[str]) -> str:
        runs.append(ctx.attempt)
        if len(runs) == 1:
            raise RetryAfter(0, "not yet")
        await ctx.step.wait("a moment", 3)
        return ctx.input

    async with WorkflowNamespace(namespace_id, redis=server.url) as namespace:
        calls = namespace.create_workflow("calls", run=call, max_attempts=2)
        async with calls.worker():
            heard = [event async for event in calls.run_and_watch("x")]
    assert [event.kind for event in heard] == ["started", "retrying", "started", "suspended", "completed"]
    values: dict[str, Any] = {event.kind: event.value for event in heard}
    assert (values["retrying"].type, values["retrying"].message) == ("RetryAfter", "not yet")
    assert isinstance(values["suspended"], datetime)
    assert values["suspended"].tzinfo is UTC
    assert (values["started"], values["completed"]) == (2, "x")
    assert len({event.job_id for event in heard}) == 1


async def test_run_and_watch_of_an_id_in_use_follows_what_was_asked_for(server: Server, namespace_id: str) -> None:
    async def echo(ctx: Context[str]) -> str:
        return ctx.input

    async with WorkflowNamespace(namespace_id, redis=server.url) as namespace:
        echoing = namespace.create_workflow("q", run=echo)
        await echoing.run("first", id="a")
        with pytest.raises(JobAlreadyExistsError):
            await anext(echoing.run_and_watch("second", id="a"))
        watch = echoing.run_and_watch("second", id="a", if_exists="return")
        async with echoing.worker():
            heard = [event.value async for event in watch]
    assert heard[-1] == "first"


async def test_a_job_that_is_retried_by_hand_can_be_watched_again(namespace: Namespace, look: Look) -> None:
    queue = namespace.queue("q")
    outcomes: list[Outcome] = [Failed(Failure("Oops", "bad")), Completed("well")]

    async def handle(_: Claim) -> Outcome:
        return outcomes.pop(0)

    job = await queue.add("x")
    async with worker_of(queue, handle):
        assert (await Watcher(job).ends())[-1][0] == "failed"
        await queue.pause()
        assert await queue.retry(job.id)
        watcher = Watcher(job)
        await watching(look, job)
        await queue.resume()
        assert await watcher.ends() == [("started", "0"), ("completed", "well")]
