from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ..calling import Caller
from ..wire import Argument
from .adding import Standing

Policy = Literal["fail", "continue"]
ENDED_AT_ONCE: Final = 50


@dataclass(frozen=True, slots=True)
class NewChild:
    """A child of a running job as it is sent; its end is written at ``path`` among the parent's checkpoints."""

    path: str
    workflow: str
    id: str
    spec: str
    data: str


async def start_children(
    call: Caller,
    *,
    workflow: str,
    id: str,
    token: str,
    barrier: str,
    policy: Policy,
    most: int,
    children: Sequence[NewChild],
) -> bool:
    """Start children, at most so many of the barrier at once (0: all). False: the claim is lost."""
    arguments: list[Argument] = [barrier, policy, most]
    for child in children:
        arguments += (child.path, child.workflow, child.id, child.spec, child.data)
    return bool(await call("start_children", workflow, id, token, *arguments))


async def end_descendants(call: Caller, *, limit: int = ENDED_AT_ONCE) -> int:
    """Do some of what was put off, as to end jobs whose parents were cancelled or removed. How much."""
    answer: int = await call("end_descendants", limit)
    return answer


@dataclass(frozen=True, slots=True)
class FlowNode:
    """A job of a flow as it is sent; ``parent`` is its parent's index from 1, 0 for the root."""

    workflow: str
    id: str
    spec: str
    data: str
    parent: int
    policy: Policy
    children: int


async def add_flow(call: Caller, *, producer: str, number: int, nodes: Sequence[FlowNode]) -> Standing | None:
    """Add a tree of jobs, the root first. None, or the job that has the root's id."""
    arguments: list[Argument] = [producer, number]
    for node in nodes:
        arguments += (node.workflow, node.id, node.spec, node.data, node.parent, node.policy, node.children)
    answer: bytes = await call("add_flow", *arguments)
    return Standing(*answer.decode().split(" ", 2)) if answer else None


@dataclass(frozen=True, slots=True)
class ChildEntry:
    """A child of a job; its state is empty when its record is gone and nothing says how it ended."""

    path: str
    workflow: str
    id: str
    state: str
    has_children: bool


async def list_children(call: Caller, *, workflow: str, id: str, skip: int, limit: int) -> list[ChildEntry]:
    """A page of a job's children."""
    found: list[tuple[bytes, bytes, bytes, bytes, int]] = await call("list_children", workflow, id, skip, limit)
    return [
        ChildEntry(path.decode(), child.decode(), child_id.decode(), state.decode(), has_children=bool(kids))
        for path, child, child_id, state, kids in found
    ]


async def set_policy(call: Caller, *, workflow: str, id: str, policy: Policy) -> int:
    """Change what a child's failure means to its parent. 1 changed, 0 it is no child of a flow, -1 there is no job."""
    answer: int = await call("set_policy", workflow, id, policy)
    return answer
