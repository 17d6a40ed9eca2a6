from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from enum import StrEnum

from .outcome import Outcome
from .spec import Spec


class EndReason(StrEnum):
    """Why a worker ends a run that has not ended by itself."""

    LOST = "lost"
    CANCELLED = "cancelled"
    SHUTDOWN = "shutdown"
    TIMEOUT = "timeout"


class Claim:
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
        threads: Tells how many threads of the run are going: a job is never handed back while there are any.
    """

    __slots__ = (
        "_claimed_at",
        "_on_end",
        "_on_event",
        "_redis_ms",
        "data",
        "detail",
        "ended",
        "ending",
        "failures",
        "first",
        "id",
        "settled",
        "spared",
        "spec",
        "steps",
        "threads",
        "token",
        "workflow",
    )

    def __init__(
        self,
        *,
        workflow: str,
        id: str,
        token: str,
        data: str,
        spec: Spec,
        failures: int,
        steps: Mapping[str, str],
        redis_ms: int,
        claimed_at: float,
        first: bool = False,
    ) -> None:
        self.workflow = workflow
        self.id = id
        self.token = token
        self.data = data
        self.spec = spec
        self.failures = failures
        self.steps = steps
        self.first = first
        self.ended: EndReason | None = None
        self.detail = ""
        self.spared: frozenset[EndReason] = frozenset()
        self.threads: Callable[[], int] = _none
        self.ending: Callable[[Claim], None] | None = None
        self.settled: Callable[[Outcome], None] | None = None
        self._redis_ms = redis_ms
        self._claimed_at = claimed_at
        self._on_end: Callable[[EndReason], None] | None = None
        self._on_event: Callable[[str], None] | None = None

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1."""
        return self.failures + 1

    def now_ms(self) -> int:
        """Redis' time now, by the monotonic clock since the claim: milliseconds since the epoch."""
        return self._redis_ms + int((time.monotonic() - self._claimed_at) * 1000)

    def on_end(self, callback: Callable[[EndReason], None]) -> None:
        """Have ``callback`` called, once, when the worker ends the run; at once if it already has."""
        self._on_end = callback
        if self.ended is not None:
            callback(self.ended)

    def end(self, reason: EndReason, detail: str = "") -> None:
        """End the run. The first reason counts."""
        if self.ended is None and reason not in self.spared:
            self.ended = reason
            self.detail = detail
            if self._on_end is not None:
                self._on_end(reason)
            if self.ending is not None:
                self.ending(self)

    def on_event(self, callback: Callable[[str], None]) -> None:
        """Have ``callback`` called with the name of each event that arrives while the job runs."""
        self._on_event = callback

    def let_go(self) -> None:
        """The run is over: forget what belongs to it, so that both are gone without the garbage collector."""
        self.threads = _none
        self.ending = self._on_end = self._on_event = None

    def notify(self, event: str) -> None:
        """An event has arrived for the job."""
        if self._on_event is not None:
            self._on_event(event)


def _none() -> int:
    return 0
