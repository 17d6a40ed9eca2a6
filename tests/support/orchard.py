"""Trees of jobs that do something, and go on until they are cancelled, for worker processes that are killed."""

import asyncio

from lanner import Context, Workflow, WorkflowNamespace
from support.family import note
from support.forest import LEAVES, TWIGS, Place


def name_of(kind: str, place: Place) -> str:
    """What the notes call a job: those below it begin with the same, but for the kind."""
    numbers = {"tree": (place.tree,), "twig": (place.tree, place.twig), "leaf": (place.tree, place.twig, place.leaf)}
    return " ".join(map(str, (kind, *numbers[kind])))


def define(ns: WorkflowNamespace) -> Workflow[Place, None]:
    """Each job notes what it does and what it undoes; half of the leaves sleep, and half of them run."""

    async def leaf(ctx: Context[Place]) -> None:
        ctx.on_failure("undo", note, f"undid {name_of('leaf', ctx.input)}")
        await ctx.step.do("do", note, f"did {name_of('leaf', ctx.input)}")
        if ctx.input.leaf % 2:
            await asyncio.sleep(3600)
        await ctx.step.wait_for_event("never")

    leaves = ns.create_workflow("leaf", run=leaf, max_stalled=1000)

    async def twig(ctx: Context[Place]) -> None:
        ctx.on_failure("undo", note, f"undid {name_of('twig', ctx.input)}")
        await ctx.step.do("do", note, f"did {name_of('twig', ctx.input)}")
        places = [Place(ctx.input.tree, ctx.input.twig, number) for number in range(LEAVES)]
        await ctx.step.map("leaves", leaves, places, max_concurrency=2)

    twigs = ns.create_workflow("twig", run=twig, max_stalled=1000)

    async def tree(ctx: Context[Place]) -> None:
        ctx.on_failure("undo", note, f"undid {name_of('tree', ctx.input)}")
        await ctx.step.do("do", note, f"did {name_of('tree', ctx.input)}")
        await ctx.step.start("first", twigs, Place(ctx.input.tree, 0))
        for number in range(1, TWIGS):
            await ctx.step.run(f"twig {number}", twigs, Place(ctx.input.tree, number))

    return ns.create_workflow("tree", run=tree, max_stalled=1000)
