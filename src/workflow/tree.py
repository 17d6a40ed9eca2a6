from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..queue.job import Job


@dataclass(frozen=True, slots=True)
class Tree:
    """A job and what it started.

    Attributes:
        workflow: The id of its workflow.
        id: Its id.
        state: Where it is; ``gone`` when its record is not kept any more.
        path: The step that started it; empty for the root, and for the jobs of a flow.
        children: Its children.
    """

    workflow: str
    id: str
    state: str
    path: str
    children: tuple[Tree, ...]

    def __str__(self) -> str:
        return "\n".join(_lines(self, ""))


def _lines(tree: Tree, indent: str) -> list[str]:
    name = f" ({tree.path})" if tree.path else ""
    below = [line for child in tree.children for line in _lines(child, indent + "  ")]
    return [f"{indent}{tree.workflow} {tree.id}{name}: {tree.state}", *below]


async def read_tree(job: Job) -> Tree:
    """Read a job's tree."""
    return await _read(job, await job.state(), "")


async def _read(job: Job, state: str, path: str) -> Tree:
    children: list[Tree] = []
    namespace = job.queue.namespace
    async for child in job.children():
        below = namespace.queue(child.workflow).job(child.id)
        children.append(await _read(below, child.state or "gone", "" if child.path.startswith("//") else child.path))
    return Tree(job.queue.id, job.id, state, path, tuple(children))
