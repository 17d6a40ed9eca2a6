"""A job's checkpoints and events in memory, instead of in Redis."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from ..queue.scripts.descending import NewChild, Policy
from ..workflow.claim_journal import child_id
from ..workflow.journal import EVENT_TAKEN, ClaimLost


class Host(Protocol):
    """Where a record is kept: it has the clock, and hears of what is written."""

    def now_ms(self) -> int:
        """The time, in milliseconds since the epoch."""
        ...

    def writing(self, record: "MemoryRecord", path: str) -> bool | None:
        """A write is about to happen. None: it does; else the worker is lost, before it (False) or after (True)."""
        ...

    def start_children(
        self, record: "MemoryRecord", barrier: str, children: Sequence[NewChild], policy: Policy, most: int
    ) -> None:
        """A run has children started."""
        ...


class MemoryRecord:
    """What is kept of a job through all its attempts.

    Attributes:
        id: The job's id.
        steps: Checkpoints by step path.
        events: Events that were not taken, with their names, in order.
        token: Which claim holds the job.
        progress: What was last said of how far the job is; empty when nothing was.
        log: The lines of its log.
        writes: Each checkpoint that was written, in order: path and text.
        calls: How many calls its claims have made.
        life: What tells the ids of its children from those of an earlier run of it.
    """

    def __init__(self, id: str, host: Host) -> None:
        self.id = id
        self.steps: dict[str, str] = {}
        self.events: deque[tuple[str, str]] = deque()
        self.token = 0
        self.progress = ""
        self.log: list[str] = []
        self.writes: list[tuple[str, str]] = []
        self.calls = 0
        self.life = ""
        self.host = host

    def claim(self) -> "MemoryJournal":
        """Claim the job; an earlier claim is lost by it."""
        self.token += 1
        return MemoryJournal(self)

    def take_over(self) -> None:
        """Somebody else claims the job."""
        self.token += 1

    def send(self, name: str, text: str) -> None:
        """Send an event."""
        self.events.append((name, text))

    def take(self, name: str) -> str | None:
        """The oldest event of a name, which is there no more; None when there is none."""
        for event in tuple(self.events):
            if event[0] == name:
                self.events.remove(event)
                return event[1]
        return None

    def write(self, path: str, text: str) -> None:
        """Keep a checkpoint."""
        self.steps[path] = text
        self.writes.append((path, text))


class MemoryJournal:
    """One claim of a job that is kept in memory. Each call takes a turn of the loop."""

    def __init__(self, record: MemoryRecord) -> None:
        self._record = record
        self._token = record.token
        self._recorded = dict(record.steps)

    @property
    def recorded(self) -> Mapping[str, str]:
        """Checkpoints of earlier attempts by step path."""
        return self._recorded

    async def record(self, path: str, text: str) -> bool:
        """Store a checkpoint. False: the claim is lost."""
        return await self._held() and self._write(path, lambda: self._record.write(path, text))

    async def take_event(self, name: str, path: str, otherwise: str = "") -> str | None:
        """Take the oldest event of a name as the checkpoint at a path, or write ``otherwise`` there.

        Raises:
            ClaimLost: The claim is lost.
        """
        if not await self._held():
            raise ClaimLost
        record = self._record
        taken = record.steps.get(path, "")
        if taken.startswith(EVENT_TAKEN):
            return taken.removeprefix(EVENT_TAKEN)
        if any(event == name for event, _ in record.events):
            found: list[str] = []

            def take() -> None:
                text = record.take(name)
                if text is not None:
                    found.append(text)
                    record.write(path, EVENT_TAKEN + text)

            if not self._write(path, take):
                raise ClaimLost
            return found[0]
        if otherwise and not self._write(path, lambda: record.write(path, otherwise)):
            raise ClaimLost
        return None

    def child_id(self, path: str) -> str:
        """The id of the child that belongs at a path."""
        return child_id(self._record.id, path, self._record.life)

    async def start_children(self, barrier: str, children: Sequence[NewChild], *, policy: Policy, most: int) -> bool:
        """Start children that a barrier waits for. False: the claim is lost."""
        record = self._record
        return await self._held() and self._write(
            barrier, lambda: record.host.start_children(record, barrier, children, policy, most)
        )

    async def reload(self) -> Mapping[str, str]:
        """The checkpoints as they stand now."""
        await self._held()
        return dict(self._record.steps)

    async def progress(self, text: str) -> bool:
        """Say how far the job has come. False: the claim is lost."""
        if not await self._held():
            return False
        self._record.progress = text
        return True

    async def log(self, line: str) -> bool:
        """Write a line to the job's log. False: the claim is lost."""
        if not await self._held():
            return False
        self._record.log.append(line)
        return True

    def now_ms(self) -> int:
        """The time, in milliseconds since the epoch."""
        return self._record.host.now_ms()

    async def _held(self) -> bool:
        self._record.calls += 1
        await asyncio.sleep(0)
        return self._token == self._record.token

    def _write(self, path: str, write: Callable[[], None]) -> bool:
        """Whether it was written, and the worker is still there to hear of it."""
        lost = self._record.host.writing(self._record, path)
        if lost is not False:
            write()
        if lost is not None:
            self._record.take_over()
        return lost is None
