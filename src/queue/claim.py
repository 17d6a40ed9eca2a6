from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final, Protocol

import msgspec

from .outcome import Outcome
from .spec import Spec


class EndReason(StrEnum):
    """Why a worker ends a run that has not ended by itself."""

    LOST = "lost"
    CANCELLED = "cancelled"
    SHUTDOWN = "shutdown"
    TIMEOUT = "timeout"


class Concludes:
    """What a handler gives that will say by ``Claim.conclude`` that it is over."""


CONCLUDES: Final = Concludes()


class ClaimRun(Protocol):
    """What runs a claim's job, and is told of what its worker hears."""

    def end(self, reason: EndReason) -> None:
        """The worker ends the run."""

    def event_arrived(self, name: str) -> None:
        """An event has arrived for the job."""

    def count_threads(self) -> int:
        """How many threads of it are going: the job is not handed back while there are any."""
        ...


class Claim(msgspec.Struct, eq=False, kw_only=True):
    """A job in a worker's hands.

    Attributes:
        workflow: The id of its workflow.
        id: The job's id.
        token: The fencing token of this claim.
        data: The payload, as it was added.
        spec: What never changes in the job: its nonce, priority, group and options.
        failures: Attempts that have failed.
        steps: Checkpoints by step path; empty on a first attempt, which reads none.
        first: Whether it was never started before.
        ended: Why the worker ended the run; None while it did not.
        detail: What came with the reason: that of a cancellation.
        spared: Reasons that do not end it: its end is decided already, and what is left of it is not to be cut short.
        settled: Called once its outcome is committed, with that; not when the claim was lost.
        ending: Called when the worker ends the run.
        over: Called when it is over, with what came of it; None: it is.
        redis_ms: Redis' time at the claim, in milliseconds since the epoch.
        claimed_at: The same instant by the monotonic clock, in seconds.
    """

    workflow: str
    id: str
    token: str
    data: str
    spec: Spec
    failures: int
    redis_ms: int
    claimed_at: float
    steps: Mapping[str, str] = {}
    first: bool = False
    ended: EndReason | None = None
    detail: str = ""
    spared: frozenset[EndReason] = frozenset()
    settled: Callable[[Outcome], None] | None = None
    ending: Callable[[Claim], None] | None = None
    over: Callable[[Claim, Outcome | BaseException], None] | None = None
    _run: ClaimRun | None = None

    def __repr__(self) -> str:
        return f"<Claim of {self.id!r} of {self.workflow!r}>"

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1."""
        return self.failures + 1

    def now_ms(self) -> int:
        """Redis' time now, by the monotonic clock since the claim: milliseconds since the epoch."""
        return self.redis_ms + int((time.monotonic() - self.claimed_at) * 1000)

    def run_by(self, run: ClaimRun) -> None:
        """Have what runs it told, once, when the worker ends the run (at once if it already has), and of events."""
        self._run = run
        if self.ended is not None:
            run.end(self.ended)

    def count_threads(self) -> int:
        """How many threads of the run are going: a job is never handed back while there are any."""
        return 0 if self._run is None else self._run.count_threads()

    def end(self, reason: EndReason, detail: str = "") -> None:
        """End the run. The first reason counts."""
        if self.ended is None and reason not in self.spared:
            self.ended = reason
            self.detail = detail
            if self._run is not None:
                self._run.end(reason)
            if self.ending is not None:
                self.ending(self)

    def conclude(self, result: Outcome | BaseException) -> None:
        """The run is over, with its outcome, or with what has kept it from one."""
        if self.over is not None:
            self.over(self, result)

    def let_go(self) -> None:
        """The run is over: forget what belongs to it, so that both are gone without the garbage collector."""
        self.ending = self.over = self._run = None

    def notify(self, event: str) -> None:
        """An event has arrived for the job."""
        if self._run is not None:
            self._run.event_arrived(event)
