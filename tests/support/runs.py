import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, overload

from lanner.queue.outcome import Completed, Failed, Outcome, Retry
from lanner.queue.scripts.descending import NewChild, Policy
from lanner.queue.spec import Spec
from lanner.testing.memory import MemoryJournal, MemoryRecord
from lanner.workflow import serializer
from lanner.workflow.program import IN_PLACE_MS, Program
from lanner.workflow.run import Run
from lanner.workflow.threads import Threads

T = TypeVar("T")


def completed(value: Any) -> Completed:
    """The outcome of a run that returned a value."""
    return Completed(serializer.dumps(value))


class RealTime:
    """Where a job is kept whose clock is the real one, or ahead of it.

    Attributes:
        ahead_ms: How far the clock is ahead.
    """

    def __init__(self) -> None:
        self.ahead_ms = 0

    def now_ms(self) -> int:
        """Real time, and what the clock was moved by."""
        return time.time_ns() // 1_000_000 + self.ahead_ms

    def writing(self, record: MemoryRecord, path: str) -> None:
        """Every write happens."""

    def start_children(
        self, record: MemoryRecord, barrier: str, children: Sequence[NewChild], policy: Policy, most: int
    ) -> None:
        """Refuse: there is no place for children here."""
        raise AssertionError("run it in a Simulation", record, barrier, children, policy, most)


class Record(MemoryRecord):
    """What is kept of a job, in real time."""

    def __init__(self) -> None:
        self._time = RealTime()
        super().__init__("job-1", self._time)

    def now_ms(self) -> int:
        """What its clock says."""
        return self._time.now_ms()

    def move_clock(self, seconds: float) -> None:
        """Have the clock go on by some seconds at once."""
        self._time.ahead_ms += round(seconds * 1000)


class Told:
    """What a run tells when it is over.

    Attributes:
        outcome: That, once it has.
    """

    def __init__(self) -> None:
        self.outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

    def finish(self, outcome: Outcome) -> None:
        """Keep it."""
        self.outcome.set_result(outcome)


class MemoryJob:
    """A job that is run without a server, an attempt at a time.

    Attributes:
        record: What is kept of it between attempts.
        failures: Attempts that have failed.
        journal: The latest claim.
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        value: Any = None,
        *,
        threads: Threads,
        max_attempts: int = 3,
        group: str = "",
        non_retryable: tuple[type[BaseException], ...] = (),
        end_timeout: float = 5.0,
        in_place_ms: int = IN_PLACE_MS,
    ) -> None:
        self.record = Record()
        self.failures = 0
        self._run: Run | None = None
        self.journal: MemoryJournal
        self._function = function
        self._value = value
        self._threads = threads
        self._spec = Spec(run="life", max_attempts=max_attempts, group=group, timeout=1500)
        self._non_retryable = non_retryable
        self._end_timeout = end_timeout
        self._in_place_ms = in_place_ms

    @property
    def run(self) -> Run:
        """The latest run."""
        assert self._run is not None
        return self._run

    def claim(self, function: Callable[[Any], Any] | None = None) -> Run:
        """Claim it, and make a run of it, with another version of the code if one is given."""
        self.journal = self.record.claim()
        program = Program(
            function=function or self._function,
            workflow="shop",
            serializer=serializer,
            threads=self._threads,
            non_retryable=self._non_retryable,
            end_timeout=self._end_timeout,
            in_place_ms=self._in_place_ms,
            rng=random.Random(1),
        )
        loop = asyncio.get_running_loop()
        self._run = Run(program, self._value, "job-1", self._spec, self.failures, self.journal, loop)
        return self._run

    def begin(self, function: Callable[[Any], Any] | None = None) -> "asyncio.Task[Outcome]":
        """Claim it and let it run."""
        return asyncio.create_task(self.claim(function).execute())

    def start(self) -> "Told":
        """Claim it and let it run with nobody who awaits it, as a worker does."""
        run = self.claim()
        run.finisher = told = Told()
        run.start()
        return told

    async def attempt(self, function: Callable[[Any], Any] | None = None) -> Outcome:
        """Claim it, run it, and count a failed attempt."""
        outcome = await self.claim(function).execute()
        self.failures += isinstance(outcome, Retry)
        return outcome

    def send(self, name: str, value: Any) -> None:
        """Send it an event; the latest run, if there is one, hears of it."""
        self.record.send(name, serializer.dumps(value))
        if self._run is not None:
            self._run.event_arrived(name)


@contextmanager
def plain_threads(limit: int = 4) -> Generator[Threads]:
    threads = Threads(limit)
    yield threads
    threads.close()


class Counted:
    """A step function that counts its runs, by name."""

    def __init__(self) -> None:
        self.runs: Counter[str] = Counter()

    @overload
    async def of(self, name: str) -> None: ...
    @overload
    async def of(self, name: str, result: T) -> T: ...
    async def of(self, name: str, result: Any = None) -> Any:
        self.runs[name] += 1
        return result


def failure_of(outcome: Outcome) -> str:
    """Why an attempt has failed."""
    assert isinstance(outcome, Retry | Failed)
    return f"{outcome.failure.type}: {outcome.failure.message}"
