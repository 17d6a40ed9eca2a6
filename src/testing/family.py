"""Who is whose child in a simulation, and what an end means to the job above: as the scripts in Redis have it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from ..queue.outcome import Failure
from ..queue.spec import Spec
from ..workflow.children import CHILD_OF_FLOW, FLOW_PATH
from ..workflow.compensation import REGISTERED_PATH, UNDER_WAY_PATH
from ..workflow.journal import CHILD_DONE, CHILD_STARTED, Kind
from .entry import Barrier, Entry, Link

if TYPE_CHECKING:
    from ..queue.scripts.descending import FlowNode, NewChild, Policy
    from ..workflow.workflow import Workflow
    from .memory import MemoryRecord
    from .world import World

# the barrier of a flow's job
FLOW: Final = ""
MARKS: Final = {"completed": ":", "failed": "!", "cancelled": "~"}
BROKEN: Final = {"failed": ("ChildFailedError", "has failed"), "cancelled": ("ChildCancelledError", "was cancelled")}
UNDOES_AFTER: Final = frozenset({"\t//undo"})
PARENT_ENDED: Final = "its parent has ended"

FunctionOf = Callable[["Workflow[Any, Any]", str], "Callable[[Any], Any] | None"]
Place = Literal["now", "held", "flow"]


class Family:
    """The transitions of a world that concern parents and children."""

    def __init__(self, world: World, function_of: FunctionOf) -> None:
        self._world = world
        self._function_of = function_of

    def add_flow(self, nodes: Sequence[FlowNode], workflows: Mapping[str, Workflow[Any, Any]]) -> Entry:
        """Add a tree of jobs, the root first; the root."""
        entries: list[Entry] = []
        for node in nodes:
            workflow = workflows[node.workflow]
            entry = Entry(
                self._world,
                workflow,
                workflow.function,
                id=self._world.new_id(workflow.id),
                spec=msgspec.json.decode(node.spec, type=Spec),
                data=node.data,
                state="parked" if node.children else "waiting",
            )
            if node.parent:
                parent = entries[node.parent - 1]
                entry.link = Link(parent, FLOW, f"{FLOW_PATH}{len(parent.children)}", node.policy)
                parent.barriers.setdefault(FLOW, Barrier()).outstanding[entry.id] = entry
                parent.children[entry.link.path] = entry
            entries.append(entry)
            self._world.add(entry)
        return entries[0]

    def start(
        self, record: MemoryRecord, barrier: str, children: Sequence[NewChild], policy: Policy, most: int
    ) -> None:
        """Start children of a running job; such as had ended without success, and are started again, run again."""
        parent = self._world.entries[record.id]
        waiting = parent.barriers.setdefault(barrier, Barrier(most))
        for child in children:
            if child.path in record.steps:
                continue
            full = most > 0 and waiting.running >= most
            known = self._world.entries.get(child.id)
            if known is not None and known.state == "completed":
                _write_end(parent, barrier, child.path, known, known.result)
                continue
            if known is None:
                link = Link(parent, barrier, child.path, policy)
                known = self._new_child(child, link, "parked" if full else "waiting")
                if full:
                    waiting.held[known.id] = known
                self._world.add(known)
            elif known.state in {"failed", "cancelled"}:
                self.rerun(known, "held" if full else "now")
            waiting.outstanding[known.id] = known
            parent.children[child.path] = known

    def _new_child(self, child: NewChild, link: Link, state: Literal["parked", "waiting"]) -> Entry:
        above = link.parent.workflow
        workflow = next(each for each in above.namespace.workflows if each.id == child.workflow)
        function = self._function_of(above, link.barrier) or workflow.function
        spec = msgspec.json.decode(child.spec, type=Spec)
        return Entry(self._world, workflow, function, id=child.id, spec=spec, data=child.data, link=link, state=state)

    def settle(self, entry: Entry, text: str) -> None:
        """A job has ended: its parent hears, and goes on if it waits for no other, or fails with it, up the tree."""
        link = entry.link
        barrier = None if link is None else _counted(entry, link)
        if link is None or barrier is None:
            return
        parent = link.parent
        if parent.awaits == UNDOES_AFTER:
            if not any(barrier.outstanding for barrier in parent.barriers.values()):
                self._world.make_runnable(parent)
            return
        _write_end(parent, link.barrier, link.path, entry, text)
        barrier.held.pop(entry.id, None)
        while barrier.running < barrier.most and barrier.held:
            self._world.make_runnable(barrier.next_held())
        if parent.state == "failed":
            return
        broken = entry.state != "completed" and link.policy == "fail"
        if not broken and barrier.outstanding:
            return
        if link.barrier != FLOW:
            parent.news = parent.news or parent.state == "active"
            self._world.tell(parent, "\t" + link.barrier)
        elif broken:
            type, verb = BROKEN[entry.state]
            parent.failure = Failure(type, f"child {entry.id} of workflow {entry.workflow.id} {verb}")
            self._world.end(parent, "failed")
            self.settle(parent, parent.failure.dumps())
        elif parent.state == "parked":
            self._world.make_runnable(parent)

    def rerun(self, entry: Entry, place: Place | None = None) -> bool:
        """Have a job that failed for good run again, or (with a ``place``) one that was cancelled. Whether it does.

        From its checkpoints, or from the beginning where what it has done was undone. What of its flow did not succeed
        runs again with it; those that its run has started are started again by that.
        """
        if entry.state != "failed" and not (place and entry.state == "cancelled"):
            return False
        link, steps = entry.link, entry.record.steps
        if link is not None and place is None and self._await_again(entry, link):
            barrier = link.parent.barriers[link.barrier]
            place = "held" if 0 < barrier.most < barrier.running else "now"
        if entry.state == "cancelled" or UNDER_WAY_PATH in steps:
            self.begin_anew(entry)
        steps.pop(REGISTERED_PATH, None)
        entry.failures = entry.stalls = 0
        entry.cancel = entry.ended_ms = entry.failure = None
        entry.reason, entry.news = "", False
        self._rearm(entry)
        if place == "held" and link is not None:
            entry.state = "parked"
            link.parent.barriers[link.barrier].held[entry.id] = entry
        elif FLOW in entry.barriers and entry.barriers[FLOW].outstanding:
            entry.state = "parked"
        else:
            self._world.make_runnable(entry)
        return True

    def _rearm(self, entry: Entry) -> None:
        """What a job's children gave stays; it looks again at the others, and waits for those of its flow."""
        steps = entry.record.steps
        for path, child in tuple(entry.children.items()):
            ended = steps.get(path, "")
            if path.startswith(FLOW_PATH):
                if not ended.startswith(CHILD_DONE):
                    self._rerun_of_flow(entry, path, child)
            elif ended and not ended.startswith((CHILD_DONE, CHILD_STARTED)):
                del steps[path]
                of_map = path.rpartition("/")[0]
                if steps.get(of_map, "").startswith(CHILD_STARTED):
                    del steps[of_map]

    def _rerun_of_flow(self, parent: Entry, path: str, child: Entry) -> None:
        if child.state == "completed":
            _write_end(parent, FLOW, path, child, child.result)
        else:
            parent.barriers[FLOW].outstanding[child.id] = child
            parent.record.steps.pop(path, None)
            self.rerun(child, "flow")

    def _await_again(self, entry: Entry, link: Link) -> bool:
        """A parent waits again for a child where it cannot have gone on without it. Whether it does."""
        parent = link.parent
        if parent.children.get(link.path) is not entry or parent.state in {"completed", "cancelled"}:
            return False
        barrier = parent.barriers[link.barrier]
        waits = link.policy == "continue" and barrier.outstanding and UNDER_WAY_PATH not in parent.record.steps
        if parent.state != "failed" and not waits:
            return False
        barrier.outstanding[entry.id] = entry
        parent.record.steps.pop(link.path, None)
        return True

    def begin_anew(self, entry: Entry) -> None:
        """A job forgets what it has done, but for what the children of its flow gave; others go on without it."""
        record = entry.record
        self.cancel_held(entry)
        entry.spec = msgspec.structs.replace(entry.spec, round=entry.spec.round + 1)
        record.life = f"#{entry.spec.round}"
        entry.barriers = {name: barrier for name, barrier in entry.barriers.items() if name == FLOW}
        entry.children = {path: child for path, child in entry.children.items() if path.startswith(FLOW_PATH)}
        kept = {*entry.children, *(_child_path(path) for path in entry.children)}
        for path in record.steps.keys() - kept:
            del record.steps[path]

    def cancel_held(self, entry: Entry) -> None:
        """The children that a job holds back have nobody any more who would let them begin."""
        for barrier in entry.barriers.values():
            held, barrier.held = tuple(barrier.held.values()), {}
            for child in held:
                self._world.cancel(child, PARENT_ENDED)

    def cancel_before_undo(self, entry: Entry) -> bool:
        """What a job has started is cancelled, and it undoes when all of that has ended. Whether it waits for any."""
        below = [child for barrier in entry.barriers.values() for child in barrier.outstanding.values()]
        if below:
            entry.state, entry.due_ms, entry.awaits = "parked", None, UNDOES_AFTER
        for child in below:
            self._world.cancel(child, PARENT_ENDED)
        return bool(below)

    def cancel_below(self, entry: Entry) -> None:
        """What a job has started, and has not ended, is cancelled with it."""
        for barrier in entry.barriers.values():
            outstanding, barrier.outstanding, barrier.held = tuple(barrier.outstanding.values()), {}, {}
            for child in outstanding:
                self._world.cancel(child, PARENT_ENDED)


def _counted(entry: Entry, link: Link) -> Barrier | None:
    """The barrier that a child which has ended counts for, once; None where nobody waits for it any more."""
    parent, barrier = link.parent, link.parent.barriers.get(link.barrier)
    if parent.state in {"completed", "cancelled"} or barrier is None:
        return None
    return barrier if barrier.outstanding.pop(entry.id, None) is not None else None


def _write_end(parent: Entry, barrier: str, path: str, child: Entry, text: str) -> None:
    steps = parent.record.steps
    steps[path] = Kind.CHILD.value + MARKS[child.state] + text
    if barrier == FLOW and child.state != "completed":
        steps[_child_path(path)] = f"{CHILD_OF_FLOW}{child.workflow.id}:{child.id}"


def _child_path(path: str) -> str:
    """Where a flow's job is told which child it was that did not succeed."""
    return f"{path}/child"
