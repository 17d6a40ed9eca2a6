"""The jobs of a simulation, and what becomes of them: the counterpart, in memory, of the scripts in Redis."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal

from ..queue.claim import EndReason
from ..queue.outcome import (
    Cancelled,
    Completed,
    Continued,
    Failed,
    Failure,
    Limited,
    Outcome,
    Released,
    Retry,
    Suspended,
)
from ..workflow.compensation import REGISTERED_PATH, UNDER_WAY_PATH
from .crash import END, Crashes
from .entry import End, Entry
from .family import Family, FunctionOf

if TYPE_CHECKING:
    from ..queue.scripts.descending import NewChild, Policy
    from .memory import MemoryRecord

# how long it takes to see that a worker is lost: the default lease
LEASE_MS: Final = 30_000
ENDS: Final[Mapping[type[Outcome], End]] = {
    Completed: "completed",
    Failed: "failed",
    Cancelled: "cancelled",
    Retry: "retrying",
    Limited: "put off",
    Continued: "continued",
    Suspended: "suspended",
    Released: "handed back",
}


class World:
    """The jobs and the clock.

    Attributes:
        entries: The jobs by id, in the order in which they were added.
        crashes: The crashes that are to come, and where there could have been one.
        family: Its transitions that concern parents and children.
        on_runnable: Called when a job may run; from any thread.
    """

    def __init__(self, start: datetime, function_of: FunctionOf) -> None:
        self.entries: dict[str, Entry] = {}
        self.crashes = Crashes()
        self.on_runnable: Callable[[], object] = nothing
        self._runnable: deque[Entry] = deque()
        self.family = Family(self, function_of)
        self._now_ms = round(start.timestamp() * 1000)
        self._planned: list[tuple[int, int, Callable[[], object]]] = []
        self._number = itertools.count()

    def now_ms(self) -> int:
        """The simulation's time, in milliseconds since the epoch."""
        return self._now_ms

    def at(self, ms: int) -> datetime:
        """An instant from milliseconds since the epoch."""
        return datetime.fromtimestamp(ms / 1000, UTC)

    def plan(self, ms: int, action: Callable[[], object]) -> None:
        """Have something done at an instant."""
        heapq.heappush(self._planned, (ms, next(self._number), action))

    def next_due_ms(self) -> int | None:
        """The next instant at which something happens by itself; None when nothing will."""
        instants = [entry.due_ms for entry in self.entries.values() if entry.due_ms is not None]
        return min([*instants, *(ms for ms, _, _ in self._planned[:1])], default=None)

    def move_to(self, ms: int) -> None:
        """Have it be later, and everything happen that is due by then."""
        self._now_ms = max(self._now_ms, ms)
        for entry in tuple(self.entries.values()):
            if entry.due_ms is not None and entry.due_ms <= self._now_ms:
                self.make_runnable(entry)
        while self._planned and self._planned[0][0] <= self._now_ms:
            heapq.heappop(self._planned)[2]()

    def add(self, entry: Entry) -> None:
        """Add a job."""
        self.entries[entry.id] = entry
        if entry.state == "waiting":
            self.make_runnable(entry)

    def new_id(self, workflow: str) -> str:
        """An id for a job that was given none."""
        names = (f"{workflow}-{number}" for number in itertools.count(1))
        return next(name for name in names if name not in self.entries)

    def next_runnable(self) -> Entry | None:
        """The next job to run; None when none may."""
        while self._runnable:
            entry = self._runnable.popleft()
            if entry.state == "waiting":
                return entry
        return None

    def hand_back(self, entry: Entry) -> None:
        """A job's run was interrupted, and is to be run again."""
        entry.attempts[-1].end = "handed back"
        self.make_runnable(entry)

    def send_event(self, entry: Entry, name: str, text: str, sender: str | None) -> bool:
        """Send an event to a job. False: it has ended. One of a sender that was heard before counts once."""
        if entry.ended:
            return False
        if sender is not None and sender in entry.seen:
            return True
        if sender is not None:
            entry.seen.add(sender)
        entry.record.send(name, text)
        self.tell(entry, name)
        return True

    def cancel(self, entry: Entry, reason: str) -> bool:
        """Cancel a job wherever it is. Whether it is, or will end, cancelled."""
        if entry.ended:
            return entry.state == "cancelled"
        under_way = entry.record.steps.get(UNDER_WAY_PATH)
        if under_way is not None:
            return under_way.startswith("cancelled")
        if entry.state == "active":
            if entry.cancel is None:
                entry.cancel = reason
                entry.tell_run(lambda run: run.end(EndReason.CANCELLED, run.notes.read(reason)))
        else:
            self._cancel(entry, reason)
        return True

    def retry(self, entry: Entry) -> bool:
        """Have a job that failed for good run again. Whether it was failed."""
        return self.family.rerun(entry)

    def start_children(
        self, record: MemoryRecord, barrier: str, children: Sequence[NewChild], policy: Policy, most: int
    ) -> None:
        """Start children of a running job."""
        self.family.start(record, barrier, children, policy, most)

    def writing(self, record: MemoryRecord, path: str) -> bool | None:
        """A checkpoint is about to be written: whether the worker is lost before it, after it, or (None) not at all."""
        point = self.crashes.passing(record.id, path)
        if point is None:
            self.entries[record.id].stalls = 0
            return None
        if point.kept:
            self.entries[record.id].stalls = 0
        return point.kept

    def commit(self, entry: Entry, outcome: Outcome) -> None:
        """Apply what an attempt ended in, or lose the worker that was to."""
        if self.crashes.passing(entry.id, END) is not None:
            self.lose(entry)
            return
        entry.stalls = 0
        if entry.cancel is not None:
            outcome = Cancelled(entry.cancel, getattr(outcome, "undo", 0))
        attempt = entry.attempts[-1]
        attempt.end = ENDS[type(outcome)]
        if isinstance(outcome, (Failed, Retry)):
            failure = outcome.failure.with_texts(entry.workflow.notes.read)
            attempt.error = f"{failure.type}: {failure.message}"
        self._apply(entry, outcome)

    def _apply(self, entry: Entry, outcome: Outcome) -> None:
        match outcome:
            case Completed(result):
                self.end(entry, "completed")
                entry.result = result
                self.family.cancel_held(entry)
                self.family.settle(entry, result)
            case Failed(failure, undo):
                self._fail(entry, failure, undo)
            case Cancelled(reason, undo):
                self._cancel(entry, reason, undo)
            case Retry(delay_ms, failure):
                entry.failures += 1
                entry.failure = failure
                self._delay(entry, self._now_ms + delay_ms)
            case Limited(delay_ms, _):
                self._delay(entry, self._now_ms + delay_ms)
            case Continued(data):
                self._continue(entry, data)
            case Suspended(until_ms, events):
                self._suspend(entry, until_ms, events)
            case Released():
                self.make_runnable(entry)

    def lose(self, entry: Entry) -> None:
        """The worker of a job is lost, and the job recovered."""
        entry.attempts[-1].end = "crashed"
        if entry.cancel is not None:
            self._cancel(entry, entry.cancel)
            return
        entry.stalls += 1
        if entry.stalls <= entry.spec.max_stalled:
            self._delay(entry, self._now_ms + LEASE_MS)
            return
        text = f"its worker was lost {entry.stalls} times in a row without any progress between"
        self._fail(entry, Failure("StalledError", text))

    def make_runnable(self, entry: Entry) -> None:
        """A job may run."""
        entry.state = "waiting"
        entry.due_ms = None
        entry.awaits = frozenset()
        self._runnable.append(entry)
        self.on_runnable()

    def _delay(self, entry: Entry, until_ms: int) -> None:
        if until_ms <= self._now_ms:
            self.make_runnable(entry)
        else:
            entry.state, entry.due_ms = "delayed", until_ms

    def _suspend(self, entry: Entry, until_ms: int | None, events: tuple[str, ...]) -> None:
        """What arrived before this is not missed, nor an instant that has passed."""
        news, entry.news = entry.news, False
        waiting = any(name in events for name, _ in entry.record.events)
        if news or waiting or (until_ms is not None and until_ms <= self._now_ms):
            self.make_runnable(entry)
            return
        entry.awaits = frozenset(events)
        entry.state = "parked" if until_ms is None else "delayed"
        entry.due_ms = until_ms

    def _continue(self, entry: Entry, data: str) -> None:
        """The run goes on as a new one, without checkpoints; its children go on without it."""
        self.family.begin_anew(entry)
        entry.record.progress = ""
        entry.data, entry.failures, entry.failure, entry.news = data, 0, None, False
        self.make_runnable(entry)

    def _begin_undo(self, entry: Entry, how: str, text: str, known: int = 0) -> bool:
        """A job with compensations runs once more to undo before it ends. Whether it does."""
        steps = entry.record.steps
        if UNDER_WAY_PATH in steps:
            return False
        if known:
            steps[REGISTERED_PATH] = str(known)
        elif REGISTERED_PATH not in steps:
            return False
        steps[UNDER_WAY_PATH] = f"{how}:{entry.failures}:{text}"
        entry.cancel, entry.stalls = None, 0
        if how == "failed" or not self.family.cancel_before_undo(entry):
            self.make_runnable(entry)
        return True

    def end(self, entry: Entry, state: Literal["completed", "failed", "cancelled"]) -> None:
        """A job has ended."""
        entry.state = state
        entry.ended_ms = self._now_ms
        entry.due_ms, entry.awaits = None, frozenset()

    def _fail(self, entry: Entry, failure: Failure, undo: int = 0) -> None:
        """The job has failed for good, or does when everything is undone."""
        if not self._begin_undo(entry, "failed", failure.dumps(), undo):
            self.end(entry, "failed")
            entry.failure = failure
            self.family.settle(entry, failure.dumps())

    def _cancel(self, entry: Entry, reason: str, undo: int = 0) -> None:
        """The job is cancelled, or is when everything is undone; its children that have not ended are with it."""
        if self._begin_undo(entry, "cancelled", reason, undo):
            return
        self.end(entry, "cancelled")
        entry.reason = reason
        self.family.cancel_below(entry)
        self.family.settle(entry, reason)

    def tell(self, entry: Entry, name: str) -> None:
        """Something that a job may wait for has come."""
        if entry.state == "active":
            entry.tell_run(lambda run: run.event_arrived(name))
        elif name in entry.awaits:
            self.make_runnable(entry)


def nothing() -> None:
    """Do nothing: nobody runs the jobs."""
