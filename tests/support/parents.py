"""Workflows that are parents and children in the tests."""

import asyncio
from typing import Any

from lanner import (
    Context,
    Workflow,
    WorkflowNamespace,
)
from support.jobs import PATIENCE
from support.waiting import wait_until


class Gate:
    """A child workflow whose jobs go on when the test lets them."""

    def __init__(self, ns: WorkflowNamespace, id: str = "gated", **options: Any) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.open = asyncio.Event()
        self.workflow: Workflow[str, str] = ns.create_workflow(id, run=self._run, **options)

    async def _run(self, ctx: Context[str]) -> str:
        self.begun.append(ctx.input)
        try:
            await self.open.wait()
        finally:
            self.ended.append(ctx.input)
        return ctx.input.upper()

    async def has_begun(self, *inputs: str) -> None:
        await wait_until(lambda: sorted(self.begun) == sorted(inputs), PATIENCE)


def runs_one(ns: WorkflowNamespace, child: Workflow[str, str], **options: Any) -> Workflow[str, str]:
    """A parent that runs one child and gives what it gave."""

    async def parent(ctx: Context[str]) -> str:
        return await ctx.step.run("child", child, ctx.input, **options)

    return ns.create_workflow("parent", run=parent)


def fails_once(ns: WorkflowNamespace) -> tuple[Workflow[str, str], list[str]]:
    """A workflow whose first job fails for good."""
    runs: list[str] = []

    async def shaky(ctx: Context[str]) -> str:
        runs.append(ctx.input)
        if len(runs) == 1:
            raise ValueError("out of paper")
        return ctx.input.upper()

    return ns.create_workflow("shaky", run=shaky), runs


async def parked(workflow: Workflow[Any, Any], state: str) -> bool:
    return bool(getattr(await workflow.counts(), state) == 1)
