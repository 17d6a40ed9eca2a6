"""Workflows that start others, for worker processes that are killed at every point of them."""

import json
import os
import signal
from pathlib import Path
from typing import Any

from lanner import Context, Workflow, WorkflowNamespace
from lanner.queue import Claim
from lanner.queue.recording import Recorder

EFFECTS = "effects.txt"
MANY = 6


def note(what: str) -> None:
    """Write what was done where the test finds it: in the directory of the crew."""
    with Path(EFFECTS).open("a") as file:
        file.write(what + "\n")


def notes_in(directory: Path) -> list[str]:
    """What was done, in order."""
    effects = directory / EFFECTS
    return effects.read_text().splitlines() if effects.exists() else []


def die_once(point: str) -> None:
    """End this process as a crash would, the first time that one of the crew comes to a point."""
    try:
        Path(f"died at {point}".replace("/", "_")).touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def deaths_in(directory: Path) -> set[str]:
    """The points at which one of the crew has died."""
    return {path.name.removeprefix("died at ") for path in directory.glob("died at *")}


def double(number: int) -> int:
    """A step's effect."""
    note(f"doubled {number}")
    return 2 * number


def define(ns: WorkflowNamespace) -> tuple[Workflow[int, int], Workflow[int, int]]:
    """A parent that starts its child in each of the ways there are, and the child. Both die wherever they can."""

    async def child(ctx: Context[int]) -> int:
        if ctx.input == 1:
            die_once("child begins")
        doubled = await ctx.step.do("double", double, ctx.input)
        if ctx.input == 1:
            die_once("child ends")
        return doubled

    # one may be in a process that another one ends, any number of times before it has got anywhere
    child_workflow = ns.create_workflow("child", run=child, max_stalled=1000)

    async def parent(ctx: Context[int]) -> int:
        die_once("parent begins")
        first = await ctx.step.run("first", child_workflow, 1)
        die_once("it has the first output")
        later = await ctx.step.start("later", child_workflow, 2)
        die_once("another is started")
        many = await ctx.step.map("many", child_workflow, list(range(10, 10 + MANY)), max_concurrency=2)
        die_once("it has all outputs")
        return first + await later.wait() + sum(many)

    return ns.create_workflow("parent", run=parent, max_stalled=1000), child_workflow


def define_to_die(ns: WorkflowNamespace) -> None:
    """As ``define``; a worker dies before and after it has children started as well, and notes what is stored."""
    start, record = Recorder.start_children, Recorder.record

    async def start_children(self: Recorder, claim: Claim, barrier: str, **options: Any) -> bool:
        die_once(f"{barrier} is about to be started")
        started = await start(self, claim, barrier, **options)
        die_once(f"{barrier} was started")
        return started

    async def recorded(self: Recorder, claim: Claim, path: str, text: str) -> bool:
        stored = await record(self, claim, path, text)
        if stored and path == "double":
            note(f"stored {json.loads(claim.data)['json']}")
        return stored

    Recorder.start_children = start_children  # type: ignore[method-assign] # of a process that does nothing else
    Recorder.record = recorded  # type: ignore[method-assign] # as above
    define(ns)
