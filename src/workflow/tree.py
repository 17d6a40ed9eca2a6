"""The tree of a job: what it has started, and where each of that stands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .children import FLOW_PATH

if TYPE_CHECKING:
    from ..queue.job import Job

GONE: Final = "gone"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tree:
    """A job and what it started.

    Attributes:
        workflow: The id of its workflow.
        id: Its id.
        state: Where it is; ``gone`` when its record is not kept any more and nothing says how it ended.
        path: The step that started it; empty for the root, and for the jobs of a flow.
        children: Its children.

    Example:
        >>> tree = await job.tree()
        >>> print(tree, tree.completed, "of", tree.size)
    """

    workflow: str
    id: str
    state: str
    path: str
    children: tuple[Tree, ...]

    @property
    def size(self) -> int:
        """How many jobs are below it, at any depth."""
        return sum(1 for _ in self._below()) - 1

    @property
    def completed(self) -> int:
        """How many of the jobs below it have completed; what failed or was cancelled is no progress."""
        return self.count("completed")

    def count(self, state: str) -> int:
        """How many of the jobs below it are in a state."""
        return sum(1 for tree, _ in self._below() if tree is not self and tree.state == state)

    def __repr__(self) -> str:
        return f"<Tree of job {self.id!r} of {self.workflow!r}: {self.state}, {len(self.children)} children>"

    def __str__(self) -> str:
        return "\n".join(
            f"{'  ' * depth}{tree.workflow} {tree.id}{f' ({tree.path})' if tree.path else ''}: {tree.state}"
            for tree, depth in self._below()
        )

    def _below(self) -> Iterator[tuple[Tree, int]]:
        """It and everything below it, each before its children, with its depth."""
        left = [(self, 0)]
        while left:
            tree, depth = left.pop()
            yield tree, depth
            left += [(child, depth + 1) for child in reversed(tree.children)]


@dataclass(slots=True)
class _Node:
    job: Job
    state: str
    path: str
    below: list[_Node]


async def read_tree(job: Job) -> Tree:
    """Read a job's tree, a few calls for each job that has children."""
    root = _Node(job, await job.state(), "", [])
    nodes, unread = [root], [root]
    while unread:
        node = unread.pop()
        async for child in node.job.children():
            handle = job.queue.namespace.queue(child.workflow).job(child.id)
            below = _Node(handle, child.state or GONE, child.path, [])
            node.below.append(below)
            nodes.append(below)
            if child.has_children:
                unread.append(below)
        node.below.sort(key=lambda below: _in_order(below.path))
    trees: dict[int, Tree] = {}
    for node in reversed(nodes):  # children come after their parents there
        path = "" if node.path.startswith(FLOW_PATH) else node.path
        children = tuple(trees.pop(id(below)) for below in node.below)
        trees[id(node)] = Tree(node.job.queue.id, node.job.id, node.state, path, children)
    return trees[id(root)]


def _in_order(path: str) -> list[tuple[str, int]]:
    """A key by which the tenth child of a map comes after its ninth."""
    return [(text, int(digits or 0)) for text, digits in re.findall(r"([^0-9]*)([0-9]*)", path)]
