"""Flows of parts and wholes."""

from typing import Any

from lanner import (
    ChildCancelledError,
    ChildFailedError,
    Context,
    Job,
    Tree,
    Workflow,
    WorkflowNamespace,
)
from support.jobs import PATIENCE
from support.waiting import wait_until


class Line:
    """Two workflows: ``part`` does what the test says for its input, ``whole`` gives what its children gave.

    Attributes:
        begun: The inputs of the jobs that have begun, in order.
        broken: The inputs of parts that fail.
        held: The inputs of parts that wait until they are taken out of this.
    """

    def __init__(self, ns: WorkflowNamespace, **options: Any) -> None:
        self.begun: list[str] = []
        self.broken: set[str] = set()
        self.held: set[str] = set()
        self.part: Workflow[str, str] = ns.create_workflow("part", run=self._part, **options)
        self.whole: Workflow[str, list[Any]] = ns.create_workflow("whole", run=self._whole, **options)

    async def _part(self, ctx: Context[str]) -> str:
        self.begun.append(ctx.input)
        await wait_until(lambda: ctx.input not in self.held, PATIENCE)
        if ctx.input in self.broken:
            raise ValueError(ctx.input)
        return ctx.input.upper()

    async def _whole(self, ctx: Context[str]) -> list[Any]:
        self.begun.append(ctx.input)
        return [said(each) for each in ctx.children]

    async def has_begun(self, *inputs: str) -> None:
        await wait_until(lambda: set(inputs) <= set(self.begun), PATIENCE)


def said(result: Any) -> Any:
    if isinstance(result, ChildFailedError):
        return f"{result.workflow} failed: {result.message}"
    if isinstance(result, ChildCancelledError):
        return f"{result.workflow} cancelled: {result.reason}"
    return result


async def parts_of(job: Job[Any]) -> list[Tree]:
    return list((await job.tree()).children)


async def has_state(workflow: Workflow[Any, Any], job_id: str, *states: str) -> None:
    async def is_so() -> bool:
        return await workflow.get_job(job_id).state() in states

    await wait_until(is_so, PATIENCE)
