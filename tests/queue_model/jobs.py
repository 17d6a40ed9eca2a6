"""A job as the model has it, and the settings that its namespace and its workflow have."""

import math
from dataclasses import dataclass, field
from typing import Final

from lanner.queue.spec import MAX_PRIORITY, Spec

NEVER: Final = 1 << 60
ENDED: Final = ("completed", "failed", "cancelled")


@dataclass
class Job:
    """One life of a job. Instants are the model's.

    Attributes:
        sequence: When it became runnable, which is its place within its priority; it keeps this through waits.
        instant: Delayed: until when. Parked: since when.
        unless_started: When it fails if it was not started by then.
        tried: Whether it has been in an attempt before, so that there may be checkpoints.
        started: Whether an attempt is under way; it goes on without starting anything.
        holds: Whether it keeps its group while it does not run.
        gone: Ended: when its record expires.
        failed: Its place among the jobs that failed.
    """

    workflow: str
    id: str
    spec: Spec
    data: str
    state: str = "waiting"
    sequence: int | None = None
    instant: int = 0
    unless_started: int | None = None
    failures: int = 0
    tried: bool = False
    started: bool = False
    stalls: int = 0
    token: str = ""
    deadline: int = 0
    cancel: str | None = None
    holds: bool = False
    awaits: tuple[str, ...] = ()
    events: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    seen: set[str] = field(default_factory=set[str])
    steps: dict[str, str] = field(default_factory=dict[str, str])
    log: list[str] = field(default_factory=list[str])
    text: str = ""
    finished: int = 0
    gone: int = NEVER
    failed: int = 0

    @property
    def place(self) -> tuple[int, int]:
        """Where it stands in the order of what is runnable."""
        assert self.sequence is not None
        return MAX_PRIORITY - self.spec.priority, self.sequence

    @property
    def queues_in_group(self) -> bool:
        """Whether it stands among its group's jobs, and not by itself."""
        return self.spec.group != "" and not self.holds

    @property
    def member(self) -> str:
        """What stands for it in the order of what is runnable."""
        return f"g:{self.spec.group}" if self.queues_in_group else f"j:{self.id}"


@dataclass
class Limiter:
    """A budget of starts."""

    limit: int
    window: int
    by_group: bool


@dataclass
class Limits:
    """The caps, limiters and pause of the namespace or a workflow, as somebody set them.

    Attributes:
        stored: Caps by ``declared:what`` or ``override:what``.
        limiters: The namespace's, by name.
        chosen: A workflow's own list of names; None: all.
    """

    stored: dict[str, int | str] = field(default_factory=dict[str, int | str])
    limiters: dict[str, Limiter] = field(default_factory=dict[str, Limiter])
    chosen: tuple[str, ...] | None = None
    paused: bool = False

    def cap(self, what: str) -> float:
        """A cap; one that cannot be read lets nothing through."""
        value = self.stored.get(f"override:{what}", self.stored.get(f"declared:{what}"))
        if value is None:
            return 1 if what == "group" else math.inf
        if value == "none":
            return math.inf
        return value if isinstance(value, int) else 0


@dataclass
class Schedule:
    """A schedule; ``due`` is ``NEVER`` while it is paused or has no instant left."""

    timing: str
    data: str
    spec: Spec
    overlap: str
    due: int
    paused: bool = False
    last_job: str | None = None
    fires: int = 0
    skipped: int = 0
