"""Many trees of jobs at once, and workers that are killed at random: all of them end right."""

import asyncio
import os
import random
from pathlib import Path

import pytest

from lanner import Flow, Job, JobCancelledError, WorkflowNamespace
from support.crew import Crew, crew
from support.family import notes_in
from support.forest import LEAVES, TWIGS, Place, define, expected
from support.jobs import Look
from support.orchard import define as define_orchard
from support.orchard import name_of
from support.waiting import wait_until

# fewer where a machine is too slow for the whole size
TREES = int(os.environ.get("LANNER_TEST_TREES", "1000"))
ENDS_WITHIN = 280.0
PAUSES = (0.1, 0.6)
LEAST_KILLS = 5


async def _fire(at: Crew, rng: random.Random) -> None:
    """Kill a worker every now and then, for ever."""
    while True:
        await asyncio.sleep(rng.uniform(*PAUSES))
        at.kill_one(rng)


async def test_all_trees_end_right_while_workers_are_killed(
    redis_url: str, namespace_id: str, tmp_path: Path, look: Look
) -> None:
    rng = random.Random(TREES)
    async with WorkflowNamespace(namespace_id, redis=redis_url) as ns:
        forest = define(ns)
        jobs = await forest.tree.run_many([Place(number) for number in range(TREES)])
        async with crew(define, namespace_id, redis_url, tmp_path, processes=3) as at_work:
            fire = asyncio.create_task(_fire(at_work, rng))
            values = await asyncio.gather(*(job.wait(ENDS_WITHIN) for job in jobs))
            # who kills may have got less of the processor than those who work
            while len(at_work.workers()) < 3 + min(LEAST_KILLS, TREES // 20):
                jobs.append(await forest.tree.run(Place(len(jobs))))
                values.append(await jobs[-1].wait(ENDS_WITHIN))
            fire.cancel()
            trees = len(jobs)
            assert values == [expected(number) for number in range(trees)]
            await wait_until(look.all_have_followed, ENDS_WITHIN)
        rotten = sum(Place(t, w, n).is_rotten for t in range(trees) for w in range(TWIGS) for n in range(LEAVES))
        counts = await forest.leaf.counts()
        assert counts.completed == trees * TWIGS * LEAVES - rotten
        assert counts.failed == min(rotten, 100)
        assert (await forest.twig.counts()).completed == trees * TWIGS


async def test_all_flows_end_right_while_workers_are_killed(
    redis_url: str, namespace_id: str, tmp_path: Path, look: Look
) -> None:
    rng = random.Random(TREES)
    async with WorkflowNamespace(namespace_id, redis=redis_url) as ns:
        forest = define(ns)
        jobs = [
            await ns.run_flow(
                Flow(forest.tree, Place(number), children=[
                    Flow(forest.twig, Place(number, 0), on_failure="continue", children=[
                        Flow(forest.leaf, Place(number, 1, 2), on_failure="continue"), Flow(forest.leaf, Place(number)),
                    ]),
                    Flow(forest.leaf, Place(number, 0, 1)),
                ])
            )
            for number in range(TREES // 2)
        ]  # fmt: skip
        async with crew(define, namespace_id, redis_url, tmp_path, processes=3) as at_work:
            fire = asyncio.create_task(_fire(at_work, rng))
            values = await asyncio.gather(*(job.wait(ENDS_WITHIN) for job in jobs))
            fire.cancel()
            assert values == [expected(number) for number in range(TREES // 2)]
            await wait_until(look.all_have_followed, ENDS_WITHIN)


async def test_all_trees_are_undone_from_below_when_they_are_cancelled_while_workers_are_killed(
    redis_url: str, namespace_id: str, tmp_path: Path, look: Look
) -> None:
    rng = random.Random(TREES)
    number_of_trees = max(TREES // 10, 1)

    async def cancel(job: Job[None]) -> None:
        await asyncio.sleep(rng.uniform(0, number_of_trees / 20))
        await job.cancel("enough")
        with pytest.raises(JobCancelledError, match="enough"):
            await job.wait(ENDS_WITHIN)

    async with WorkflowNamespace(namespace_id, redis=redis_url) as ns:
        trees = define_orchard(ns)
        jobs = await trees.run_many([Place(number) for number in range(number_of_trees)])
        # a worker that gets no processor for a lease may write down late what it undoes
        async with crew(define_orchard, namespace_id, redis_url, tmp_path, processes=3, lease=3) as at_work:
            fire = asyncio.create_task(_fire(at_work, rng))
            await wait_until(lambda: any(note.startswith("did leaf") for note in notes_in(tmp_path)), ENDS_WITHIN)
            await asyncio.gather(*map(cancel, jobs))
            fire.cancel()
            await wait_until(look.all_have_followed, ENDS_WITHIN)
        for workflow in ns.workflows:
            counts = await workflow.counts()
            assert (counts.waiting, counts.delayed, counts.parked, counts.active) == (0, 0, 0, 0)
    notes = notes_in(tmp_path)
    did = {note.removeprefix("did ") for note in notes if note.startswith("did ")}
    undid = [note.removeprefix("undid ") for note in notes if note.startswith("undid ")]
    assert did <= set(undid)
    first, last = {name: undid.index(name) for name in undid}, {name: place for place, name in enumerate(undid)}
    for name, place in last.items():
        kind, tree, *rest = name.split()
        if kind != "tree":
            above = (
                name_of("twig", Place(int(tree), int(rest[0]))) if kind == "leaf" else name_of("tree", Place(int(tree)))
            )
            assert place < first[above], f"{name} is undone before {above}"
