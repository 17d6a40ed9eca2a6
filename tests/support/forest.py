"""Trees of jobs of depth 3, some of whose leaves fail, for worker processes that are killed at random."""

from dataclasses import dataclass
from typing import Any

from lanner import ChildFailedError, Context, Workflow, WorkflowNamespace

TWIGS = 2
LEAVES = 3


@dataclass(frozen=True)
class Place:
    """Where a job stands: the number of its tree, of its twig in it, and of its leaf on that."""

    tree: int
    twig: int = 0
    leaf: int = 0

    @property
    def value(self) -> int:
        """What a leaf gives."""
        return 100 * self.tree + 10 * self.twig + self.leaf

    @property
    def is_rotten(self) -> bool:
        """Whether a leaf fails."""
        return self.tree % 7 == 0 and self.twig == 1 and self.leaf == 2


@dataclass(frozen=True)
class Forest:
    """The workflows of a namespace."""

    tree: Workflow[Place, int]
    twig: Workflow[Place, int]
    leaf: Workflow[Place, int]


def expected(tree: int) -> int:
    """What a tree gives: the sum of its leaves, and one less for each that fails."""
    leaves = [Place(tree, twig, leaf) for twig in range(TWIGS) for leaf in range(LEAVES)]
    return sum(-1 if place.is_rotten else place.value for place in leaves)


def define(ns: WorkflowNamespace) -> Forest:
    """The ways to start children, mixed: a map that collects, single children, and one that is waited for later."""

    async def leaf(ctx: Context[Place]) -> int:
        value = await ctx.step.do("value", lambda: ctx.input.value)
        if ctx.input.is_rotten:
            raise ValueError("rotten")
        return value

    # a worker may be killed any number of times before a job has got anywhere
    leaves = ns.create_workflow("leaf", run=leaf, max_stalled=1000)

    async def twig(ctx: Context[Place]) -> int:
        places = [Place(ctx.input.tree, ctx.input.twig, number) for number in range(LEAVES)]
        found: list[Any] = await ctx.step.map("leaves", leaves, places, max_concurrency=2, on_failure="collect")
        return sum(-1 if isinstance(each, ChildFailedError) else each for each in found)

    twigs = ns.create_workflow("twig", run=twig, max_stalled=1000)

    async def tree(ctx: Context[Place]) -> int:
        later = await ctx.step.start("first", twigs, Place(ctx.input.tree, 0))
        rest = [
            await ctx.step.run(f"twig {number}", twigs, Place(ctx.input.tree, number)) for number in range(1, TWIGS)
        ]
        return await later.wait() + sum(rest)

    return Forest(ns.create_workflow("tree", run=tree, max_stalled=1000), twigs, leaves)
