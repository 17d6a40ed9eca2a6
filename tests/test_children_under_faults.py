"""A child counts once, whatever crashes, is lost or comes at the wrong moment."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lanner import (
    Context,
    Workflow,
    WorkflowNamespace,
)
from lanner.queue import Claim, Namespace, Queue
from lanner.queue.outcome import Suspended
from lanner.queue.queue import Added
from lanner.queue.scripts.descending import NewChild
from lanner.queue.scripts.loader import load
from support.crew import crew
from support.family import MANY, deaths_in, define, define_to_die, notes_in
from support.jobs import PATIENCE, Look
from support.proxy import Proxy
from support.waiting import wait_until


@pytest.fixture
async def ns(redis_url: str, namespace_id: str) -> AsyncIterator[WorkflowNamespace]:
    async with WorkflowNamespace(namespace_id, redis=redis_url) as ns:
        yield ns


async def test_a_child_that_ends_between_its_parents_decision_to_sleep_and_the_commit_is_not_missed(
    namespace: Namespace,
) -> None:
    parents, children = namespace.queue("parent"), namespace.queue("child")
    child_done, sleeps = asyncio.Event(), 0
    await children.pause()

    async def parent(claim: Claim) -> Suspended | str:
        nonlocal sleeps
        if "child" in claim.steps:
            return claim.steps["child"]
        sleeps += 1
        new = children.prepare("x", Added(), {})
        kid = NewChild("child", "child", new.id, new.spec, new.data)
        await worker.recorder.start_children(claim, "child", policy="fail", most=0, children=[kid])
        await children.resume()
        await child_done.wait()
        return Suspended(None, ("\tchild",))

    async def child(claim: Claim) -> str:
        return claim.data.upper()

    worker = parents.worker(parent)
    async with worker, children.worker(child):
        job = await parents.add("x")
        waiting = asyncio.create_task(job.wait(PATIENCE))
        await wait_until(lambda: _completed(children), PATIENCE)
        child_done.set()
        assert await waiting == "child:X"
    assert sleeps == 1


async def _completed(queue: Queue) -> bool:
    return (await queue.counts()).completed == 1


async def test_lost_answers_start_no_child_twice_and_lose_none(
    redis_url: str, namespace_id: str, proxy: Proxy, look: Look
) -> None:
    runs: list[int] = []

    def definition(ns: WorkflowNamespace) -> Workflow[int, int]:
        async def count(ctx: Context[int]) -> int:
            runs.append(ctx.input)
            return ctx.input

        child = ns.create_workflow("child", run=count)

        async def parent(ctx: Context[int]) -> int:
            first = await ctx.step.run("first", child, 0)
            return first + sum(await ctx.step.map("all", child, list(range(1, 250)), max_concurrency=20))

        return ns.create_workflow("parent", run=parent)

    async with (
        WorkflowNamespace(namespace_id, redis=proxy.url) as working,
        WorkflowNamespace(namespace_id, redis=redis_url) as ns,
    ):
        definition(working)
        workflow = definition(ns)
        async with working.worker(concurrency=50):
            assert await workflow.execute(0, timeout=PATIENCE) == sum(range(250))
            runs.clear()
            for script in ("start_children", "settle", "record_steps"):
                proxy.lose_answers(load(script).sha, every=3)
            job = await workflow.run(0)
            assert await job.wait(PATIENCE) == sum(range(250))
            proxy.lose_no_answers()
            await wait_until(look.all_have_followed, PATIENCE)
        assert (await job.tree()).completed == 250
    assert proxy.lost_answers > 3
    assert sorted(runs) == list(range(250))


async def test_every_child_counts_once_wherever_a_worker_is_killed(
    redis_url: str, namespace_id: str, tmp_path: Path
) -> None:
    async with WorkflowNamespace(namespace_id, redis=redis_url) as ns:
        parent, child = define(ns)
        job = await parent.run(0)
        async with crew(define_to_die, namespace_id, redis_url, tmp_path, lease=None):
            numbers = [1, 2, *range(10, 10 + MANY)]
            assert await job.wait(PATIENCE) == 2 * sum(numbers)
        tree = await job.tree()
        assert (tree.size, tree.completed) == (len(numbers), len(numbers))
        assert (await child.counts()).completed == len(numbers)
    notes = notes_in(tmp_path)
    for number in numbers:
        # a step that was cut, as by the death of another job of its process, runs again; one that is stored does not
        ran = [place for place, note in enumerate(notes) if note == f"doubled {number}"]
        assert ran
        if f"stored {number}" in notes:
            assert ran[-1] < notes.index(f"stored {number}")
    assert any(note.startswith("stored") for note in notes)
    assert deaths_in(tmp_path) == {
        "parent begins", "first is about to be started", "first was started", "child begins", "child ends",
        "it has the first output", "later is about to be started", "later was started", "another is started",
        "many is about to be started", "many was started", "it has all outputs",
    }  # fmt: skip
