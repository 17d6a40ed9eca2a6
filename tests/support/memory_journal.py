import asyncio
import time
from collections import deque
from collections.abc import Mapping, Sequence

from lanner.queue.scripts.descending import NewChild, Policy
from lanner.workflow.journal import EVENT_TAKEN, ClaimLost


class MemoryRecord:
    """A job's checkpoints and events, and the clock, as Redis keeps them through all attempts.

    Attributes:
        steps: Checkpoints by step path.
        events: Events that were not taken, with their names, in order.
        token: Which claim holds the job.
        progress: What was last said of how far the job is.
        log: The lines of its log.
        writes: Each write that was made, in order: path and text.
        calls: How many calls were made.
        children: The children that were started, by step path, each with its barrier, policy and how many at once. A
            test writes their ends.
    """

    def __init__(self) -> None:
        self.steps: dict[str, str] = {}
        self.events: deque[tuple[str, str]] = deque()
        self.token = 0
        self.writes: list[tuple[str, str]] = []
        self.calls = 0
        self.children: dict[str, tuple[NewChild, str, Policy, int]] = {}
        self.progress = ""
        self.log: list[str] = []
        self._moved_ms = 0

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

    def now_ms(self) -> int:
        """The clock: real time, and what it was moved by."""
        return time.time_ns() // 1_000_000 + self._moved_ms

    def move_clock(self, seconds: float) -> None:
        """Have the clock go on by some seconds at once."""
        self._moved_ms += round(seconds * 1000)

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
        return self._recorded

    async def record(self, path: str, text: str) -> bool:
        await self._call()
        if self._token != self._record.token:
            return False
        self._record.write(path, text)
        return True

    async def take_event(self, name: str, path: str, otherwise: str = "") -> str | None:
        await self._call()
        if self._token != self._record.token:
            raise ClaimLost
        taken = self._record.steps.get(path, "")
        if taken.startswith(EVENT_TAKEN):
            return taken.removeprefix(EVENT_TAKEN)
        for event in self._record.events:
            if event[0] == name:
                self._record.events.remove(event)
                self._record.write(path, EVENT_TAKEN + event[1])
                return event[1]
        if otherwise:
            self._record.write(path, otherwise)
        return None

    def child_id(self, path: str) -> str:
        return f"job-1/{path}#life"

    async def start_children(self, barrier: str, children: Sequence[NewChild], *, policy: Policy, most: int) -> bool:
        await self._call()
        if self._token != self._record.token:
            return False
        for child in children:
            if child.path not in self._record.steps:
                self._record.children.setdefault(child.path, (child, barrier, policy, most))
        return True

    async def reload(self) -> Mapping[str, str]:
        await self._call()
        return dict(self._record.steps)

    async def progress(self, text: str) -> bool:
        await self._call()
        if self._token != self._record.token:
            return False
        self._record.progress = text
        return True

    async def log(self, line: str) -> bool:
        await self._call()
        if self._token != self._record.token:
            return False
        self._record.log.append(line)
        return True

    def now_ms(self) -> int:
        return self._record.now_ms()

    async def _call(self) -> None:
        self._record.calls += 1
        await asyncio.sleep(0)
