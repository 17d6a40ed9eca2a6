"""Many trees of jobs at once, and workers that are killed at random: all of them end right."""

import asyncio
import os
import random
from pathlib import Path

from lanner import Flow, WorkflowNamespace
from support.crew import Crew, crew
from support.forest import LEAVES, TWIGS, Place, define, expected
from support.jobs import Look
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
            fire.cancel()
            assert values == [expected(number) for number in range(TREES)]
            await wait_until(look.all_have_followed, ENDS_WITHIN)
        assert len(at_work.workers()) >= 3 + min(LEAST_KILLS, TREES // 20), "some were killed"
        rotten = sum(Place(t, w, n).is_rotten for t in range(TREES) for w in range(TWIGS) for n in range(LEAVES))
        counts = await forest.leaf.counts()
        assert counts.completed == TREES * TWIGS * LEAVES - rotten
        assert counts.failed == min(rotten, 100)
        assert (await forest.twig.counts()).completed == TREES * TWIGS


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
