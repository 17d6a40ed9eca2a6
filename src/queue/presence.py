from __future__ import annotations

import os
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec

from .duty import Duty
from .scripts.listing import beat_worker

if TYPE_CHECKING:
    from .calling import Caller

BEAT: Final = 10.0
LOST_AFTER_MS: Final = 35_000
MOST_JOBS_SHOWN: Final = 100


class About(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a worker says of itself.

    Attributes:
        host: The name of its machine.
        pid: Its process.
        slots: How many jobs it runs at once.
        workflows: What it works on.
        jobs: Some of what it runs, as ``workflow:id``.
        stopping: Whether it claims no more.
    """

    host: str = ""
    pid: int = 0
    slots: int = 0
    workflows: list[str] = []
    jobs: list[str] = []
    stopping: bool = False


class WorkerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A worker that lives, or has gone.

    Attributes:
        id: Its id.
        about: What it last said of itself.
        seen: When it last did.
        departed: None while it lives; ``stopped`` or ``lost``.
    """

    id: str
    about: About
    seen: datetime
    departed: str | None = None

    @classmethod
    def of(cls, worker: str, seen_ms: int, about: str, departed: str | None = None) -> WorkerInfo:
        """From what Redis holds."""
        seen = datetime.fromtimestamp(seen_ms / 1000, UTC)
        return cls(id=worker, about=msgspec.json.decode(about, type=About), seen=seen, departed=departed)


class Presence(Duty):
    """Say that the worker lives, and what it does."""

    def __init__(
        self, call: Caller, worker: str, slots: int, workflows: list[str], jobs: Callable[[], list[str]]
    ) -> None:
        super().__init__()
        self._call = call
        self._worker = worker
        self._slots = slots
        self._workflows = workflows
        self._jobs = jobs
        self.stopping = False

    async def once(self) -> float:
        """Say it once."""
        about = About(
            host=socket.gethostname(),
            pid=os.getpid(),
            slots=self._slots,
            workflows=self._workflows,
            jobs=self._jobs()[:MOST_JOBS_SHOWN],
            stopping=self.stopping,
        )
        text = msgspec.json.encode(about).decode()
        await beat_worker(self._call, worker=self._worker, about=text, ttl=LOST_AFTER_MS)
        return BEAT
