"""What a simulation keeps of a job, as Redis would."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from ..queue.scripts.descending import Policy
from .memory import Host, MemoryRecord

if TYPE_CHECKING:
    from ..queue.outcome import Failure
    from ..queue.spec import Spec
    from ..workflow.run import Run
    from ..workflow.workflow import Workflow

State = Literal["waiting", "delayed", "parked", "active", "completed", "failed", "cancelled"]
End = Literal[
    "running",
    "completed",
    "retrying",
    "failed",
    "cancelled",
    "suspended",
    "continued",
    "put off",
    "handed back",
    "crashed",
]
ENDED = frozenset({"completed", "failed", "cancelled"})


@dataclass(slots=True)
class Attempt:
    """One time that a worker had the job. Only failures count as attempts for ``max_attempts``; see ``number``.

    Attributes:
        number: What ``ctx.attempt`` said.
        began: When, by the simulation's clock.
        ran: The paths of the steps whose function was called, in order.
        replayed: The paths of the steps that gave what they gave before.
        undone: The names of the compensations whose function was called.
        end: What it ended in.
        error: The error that it failed with, as ``Type: message``; empty if it did not fail.
    """

    number: int
    began: datetime
    ran: list[str] = field(default_factory=list[str])
    replayed: list[str] = field(default_factory=list[str])
    undone: list[str] = field(default_factory=list[str])
    end: End = "running"
    error: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """Whose child a job is."""

    parent: Entry
    barrier: str
    path: str
    policy: Policy


@dataclass(slots=True)
class Barrier:
    """What a step waits for: children that have not ended, and those of them that are held back.

    Attributes:
        most: How many may run at once; 0: all.
    """

    most: int = 0
    outstanding: dict[str, Entry] = field(default_factory=dict[str, "Entry"])
    held: dict[str, Entry] = field(default_factory=dict[str, "Entry"])

    @property
    def running(self) -> int:
        """How many have not ended and are not held back."""
        return len(self.outstanding) - len(self.held)

    def next_held(self) -> Entry:
        """The next that may begin, which is held back no more: they do in the order of their inputs."""
        return self.held.pop(min(self.held, key=lambda id: self.held[id].place))


class Entry:
    """A job: where it stands, and what is kept of it."""

    def __init__(
        self,
        host: Host,
        workflow: Workflow[Any, Any],
        function: Callable[[Any], Any],
        *,
        id: str,
        spec: Spec,
        data: str,
        link: Link | None = None,
        state: State = "waiting",
    ) -> None:
        self.workflow = workflow
        self.function = function
        self.id = id
        self.spec = spec
        self.data = data
        self.link = link
        self.state: State = state
        self.record = MemoryRecord(id, host)
        self.created_ms = host.now_ms()
        self.ended_ms: int | None = None
        self.due_ms: int | None = None
        self.awaits: frozenset[str] = frozenset()
        self.seen: set[str] = set()
        self.failures = 0
        self.stalls = 0
        self.cancel: str | None = None
        self.news = False
        self.result = ""
        self.reason = ""
        self.failure: Failure | None = None
        self.attempts: list[Attempt] = []
        self.run: Run | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        self.barriers: dict[str, Barrier] = {}
        self.children: dict[str, Entry] = {}

    def tell_run(self, say: Callable[[Run], None]) -> None:
        """Say something to its run, in the loop of that; from any thread."""
        run, loop = self.run, self.loop
        if run is not None and loop is not None:
            loop.call_soon_threadsafe(say, run)

    @property
    def place(self) -> int:
        """Which of the children of a map it is."""
        number = self.link.path.rpartition("/")[2] if self.link is not None else ""
        return int(number) if number.isdecimal() else 0

    @property
    def ended(self) -> bool:
        """Whether it has completed, failed for good, or was cancelled."""
        return self.state in ENDED
