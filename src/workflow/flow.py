"""Flows: a tree of jobs that is declared up front and enqueued in one call. Leaves run first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeGuard

from typing_extensions import TypeVar

from ..errors import InvalidArgumentError
from ..queue.scripts.descending import FlowNode
from ..queue.validation import check_choice, shown
from .options import MEANINGLESS

if TYPE_CHECKING:
    from .workflow import Workflow

InputT = TypeVar("InputT", default=Any)
OutputT = TypeVar("OutputT", default=Any)
MOST_NODES: Final = 1000


@dataclass(frozen=True, slots=True)
class Flow(Generic[InputT, OutputT]):
    """A job of a flow, and those that it waits for.

    Attributes:
        workflow: What it runs.
        input: Its input.
        children: The jobs whose results it runs with, as ``ctx.children``. None: it runs at once.
        on_failure: What its failure or cancellation means to its parent: ``"fail_parent"`` at once, however its other
            children do, or ``"continue"`` with the failure in the place of a result.
        options: Of its job; see ``JobOptions``, and ``group``.

    Example:
        >>> job = await ns.run_flow(Flow(publish, page, children=[Flow(render, page), Flow(check, page)]))
    """

    workflow: Workflow[InputT, OutputT]
    input: InputT
    children: Sequence[Flow] | None = None
    on_failure: Literal["fail_parent", "continue"] = "fail_parent"
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


async def flatten(root: Flow, namespace: object) -> tuple[list[FlowNode], str]:
    """A flow as it is sent, the root first, and the nonce of the root.

    Raises:
        InvalidArgumentError: A node cannot be used; nothing was sent.
        SerializationError: An input does not fit its workflow's schema.
    """
    nodes: list[FlowNode] = []
    run = ""
    waiting: list[tuple[Flow, int]] = [(root, 0)]
    while waiting:
        node, parent = waiting.pop()
        if len(nodes) == MOST_NODES:
            raise InvalidArgumentError(f"a flow has at most {MOST_NODES} jobs: use ctx.step.map for more")
        _check(node, namespace)
        new = await node.workflow.new_node(node.input, node.options)
        run = run or new.run
        children = node.children or ()
        policy: Literal["fail", "continue"] = "fail" if node.on_failure == "fail_parent" else "continue"
        nodes.append(FlowNode(new.workflow, new.id, new.spec, new.data, parent, policy, len(children)))
        place = len(nodes)
        waiting += [(child, place) for child in reversed(children)]
    return nodes, run


def _check(node: object, namespace: object) -> None:
    if not _is_flow(node):
        raise InvalidArgumentError(f"a flow is made of Flow(workflow, input, ...), not {node!r}")
    _check_shape(node.workflow, node.children, node.options)
    where = f"flow node of workflow {node.workflow.id!r}"
    if not node.workflow.belongs_to(namespace):
        raise InvalidArgumentError(f"{where}: the workflow is of another namespace")
    if node.children is not None and not node.children:
        raise InvalidArgumentError(f"{where}: an empty list of children; leave children out for a job without any")
    for name in MEANINGLESS:
        if name in node.options:
            raise InvalidArgumentError(f"{where}: {name}= has no meaning for a job of a flow; leave it out")
    check_choice(node.on_failure, f"{where}: on_failure", ("fail_parent", "continue"))


def _is_flow(node: object) -> TypeGuard[Flow]:
    return isinstance(node, Flow)


def _check_shape(workflow: object, children: object, options: object) -> None:
    from .workflow import Workflow  # noqa: PLC0415 - which imports what imports this module

    if not isinstance(workflow, Workflow):
        raise InvalidArgumentError(f"a flow node's workflow must be a workflow, not {shown(workflow)}")
    if children is not None and (not isinstance(children, Sequence) or isinstance(children, (str, bytes))):
        raise InvalidArgumentError(f"a flow node's children must be a list of Flow, not {shown(children)}")
    if not isinstance(options, Mapping):
        raise InvalidArgumentError(f"a flow node's options must be a dict, not {shown(options)}")
