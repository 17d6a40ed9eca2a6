"""Random trees to which random things are done end in a simulation as they end on a server."""

import os
import random
from typing import Any

import pytest

from lanner import Context, ContinueAsNew, Flow, WorkflowNamespace
from support.stages import Played, SimulatedStage, Stage, described, real_stage

# more of them where there is time
SEEDS = int(os.environ.get("LANNER_TEST_SEEDS", "6"))
ROUNDS = 12
MAPPED = 3


class Grove:
    """A random flow, some of whose jobs fail a few times, sleep, start children, go on as new, or have to be undone."""

    def __init__(self, ns: WorkflowNamespace, rng: random.Random) -> None:
        self.done: list[str] = []
        self._rng = rng
        self._failures: dict[str, int] = {}
        self._leaf = ns.create_workflow("leaf", run=self._run_leaf)
        self._join = ns.create_workflow("join", run=self._run_join)
        self.flow = Flow(self._join, "join 0", children=[self._tree(2) for _ in range(2)])

    def _tree(self, depth: int) -> Flow:
        rng, name = self._rng, str(len(self._failures))
        policy = rng.choice(["fail_parent", "continue"])
        if depth == 0 or rng.random() < 0.3:
            name = self._named("asleep" if rng.random() < 0.25 else "leaf", name, 0, 0, 1, 2)
            return Flow(self._leaf, name, on_failure=policy)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - chosen
        name = self._named(rng.choice(["join", "join", "mapping", "again"]), name, 0, 0, 0, 1)
        children = [self._tree(depth - 1) for _ in range(rng.randint(1, 3))]
        return Flow(self._join, name, on_failure=policy, children=children)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - chosen

    def _named(self, kind: str, number: str, *failures: int) -> str:
        name = f"{kind} {number}{self._rng.choice(['', '', ' undone'])}"
        self._failures[name] = self._rng.choice(failures)
        for index in range(MAPPED):
            self._failures[f"leaf {index} of {name}"] = self._rng.choice([0, 0, 1])
        return name

    async def _begin(self, ctx: Context[str]) -> None:
        name = ctx.input
        if name.endswith("undone"):
            ctx.on_failure("undo", self.done.append, f"undo {name}")
        await ctx.step.do("begin", self.done.append, name)
        if self._failures.get(name, 0) > 0:
            self._failures[name] -= 1
            raise ValueError(name)

    async def _run_leaf(self, ctx: Context[str]) -> str:
        await self._begin(ctx)
        if ctx.input.startswith("asleep"):
            await ctx.step.wait_for_event("go")
        return ctx.input

    async def _run_join(self, ctx: Context[str]) -> list[Any]:
        await self._begin(ctx)
        if ctx.input.startswith("again"):
            await ctx.step.run("before", self._leaf, f"leaf before {ctx.input}")
            raise ContinueAsNew(f"join {ctx.input}")
        results: list[Any] = [*ctx.children]
        if ctx.input.startswith("mapping"):
            names = [f"leaf {index} of {ctx.input}" for index in range(MAPPED)]
            results += await ctx.step.map("map", self._leaf, names, max_concurrency=1, on_failure="collect")
        return [*map(described, results)]


async def tree_of(job: Played) -> list[Played]:
    """A job and all that is below it."""
    found = [job]
    for each in found:
        found += await each.children()
    return found


async def play(at: Stage, seed: int) -> list[object]:
    """What is seen of a tree while its jobs are retried, woken and cancelled at random."""
    rng = random.Random(seed)
    grove = Grove(at.ns, rng)
    root = await at.run_flow(grove.flow)
    seen: list[object] = []
    for number in range(ROUNDS):
        await root.state()
        jobs = await tree_of(root)
        states = [await job.stands() for job in jobs]
        seen.append((states, sorted(grove.done)))
        act = rng.choice(["retry", "retry", "send", "send", "cancel"] if number < ROUNDS // 2 else ["retry", "send"])
        fit = [
            job
            for job, state in zip(jobs, states, strict=True)
            if state == {"retry": "failed", "send": "parked"}.get(act)
        ]
        job = rng.choice(fit or jobs)
        match act:
            case "retry":
                done = await job.retry()
            case "send":
                done = await job.send("go")
            case _:
                done = await job.cancel()
        seen.append((act, jobs.index(job), done))
    state = await root.state()
    return [*seen, await root.end() if state in {"completed", "failed", "cancelled"} else state]


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_a_random_tree_ends_alike(seed: int, redis_url: str, namespace_id: str) -> None:
    simulated = await play(SimulatedStage(), seed)
    async with real_stage(namespace_id, redis_url) as stage:
        assert await play(stage, seed) == simulated
