"""What is measured of jobs. Imported only where it is asked for: it imports OpenTelemetry's API."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar
from weakref import WeakKeyDictionary

from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation, get_meter_provider

from ..errors import LannerError
from .telemetry import NAMESPACE, OUTCOME, SCOPE, STATE, STEP_NAME, WORKFLOW

if TYPE_CHECKING:
    from .namespace import WorkflowNamespace
    from .workflow import Workflow

logger: Final = logging.getLogger(__name__)

T = TypeVar("T")
State = Literal["active", "waiting", "delayed", "parked", "failed"]
COUNTED: Final[tuple[State, ...]] = ("active", "waiting", "delayed", "parked", "failed")
# from a moment to a day: steps take milliseconds, queues may be hours behind
BUCKETS: Final = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1,
    2.5,
    5,
    10,
    30,
    60,
    300,
    1800,
    7200,
    86400,
)
READ_WITHIN: Final = 5.0


class Instruments:
    """Where the workers of a namespace record what they measure."""

    def __init__(self, provider: MeterProvider, namespace: str) -> None:
        self._kept = _recorders_of(provider)
        self._namespace = namespace

    def waited(self, workflow: str, seconds: float) -> None:
        """A job was started so long after it could have been."""
        self._kept.waits.record(seconds, {NAMESPACE: self._namespace, WORKFLOW: workflow})

    def ran(self, workflow: str, outcome: str, seconds: float) -> None:
        """An attempt took so long."""
        self._kept.runs.record(seconds, {NAMESPACE: self._namespace, WORKFLOW: workflow, OUTCOME: outcome})

    def stepped(self, workflow: str, name: str, outcome: str, seconds: float) -> None:
        """A step took so long."""
        tags = {NAMESPACE: self._namespace, WORKFLOW: workflow, STEP_NAME: name, OUTCOME: outcome}
        self._kept.steps.record(seconds, tags)

    def counted(self, what: Literal["completed", "failed", "retried"], workflow: str) -> None:
        """A job has completed, has failed for good, or will be tried again."""
        self._kept.counters[what].add(1, {NAMESPACE: self._namespace, WORKFLOW: workflow})


class _Recorders:
    """The instruments of one provider, which are made once."""

    def __init__(self, provider: MeterProvider) -> None:
        meter = provider.get_meter(SCOPE)

        def histogram(name: str, description: str) -> Any:
            return meter.create_histogram(
                name, unit="s", description=description, explicit_bucket_boundaries_advisory=BUCKETS
            )

        self.waits = histogram("lanner.queue.wait", "From when a job could be started until its first attempt began")
        self.runs = histogram("lanner.run.duration", "How long an attempt took")
        self.steps = histogram("lanner.step.duration", "How long a step took that was not replayed")
        self.counters = {
            "completed": meter.create_counter("lanner.jobs.completed", "{job}", "Jobs that have completed"),
            "failed": meter.create_counter("lanner.jobs.failed", "{job}", "Jobs that have failed for good"),
            "retried": meter.create_counter(
                "lanner.jobs.retried", "{job}", "Attempts that failed and are not the last"
            ),
        }


class Metrics:
    """Tells how many jobs of a namespace are where, and how long the oldest has waited, when metrics are collected.

    Made by ``WorkflowNamespace.metrics``. Between collections it does nothing. It reads Redis in a thread of its own,
    with a connection of its own, so that metrics may be collected from anywhere.

    Example:
        >>> with ns.metrics():
        ...     await ns.work()
    """

    def __init__(self, namespace: WorkflowNamespace, provider: MeterProvider | None) -> None:
        self._namespace = namespace
        self._provider = provider
        self._gauges: _Gauges | None = None
        self._reader: _Reader | None = None

    def start(self) -> None:
        """Report from now on, until ``stop``."""
        if self._gauges is None:
            self._reader = _Reader(self._namespace)
            self._gauges = _gauges_of(self._provider or get_meter_provider())
            self._gauges.sources.add(self)

    def stop(self) -> None:
        """Report no more."""
        if self._gauges is not None and self._reader is not None:
            self._gauges.sources.discard(self)
            self._reader.stop()
        self._gauges = self._reader = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def jobs(self) -> list[Observation]:
        """How many jobs of each workflow are in each state."""
        return self._read(self._count)

    def oldest(self) -> list[Observation]:
        """How long the oldest job of each workflow that waits has waited."""
        return self._read(self._look_for_oldest)

    def _read(self, read: Callable[[], Coroutine[Any, Any, list[Observation]]]) -> list[Observation]:
        reader = self._reader
        if reader is None:
            return []
        try:
            return reader.read(read)
        except (LannerError, TimeoutError) as error:
            logger.warning("the jobs of namespace %r could not be counted: %s", self._namespace.id, error)
            return []

    async def _count(self) -> list[Observation]:
        found: list[Observation] = []
        for workflow in self._namespace.workflows:
            counts = await workflow.counts()
            found += [Observation(getattr(counts, state), {**self._tags(workflow), STATE: state}) for state in COUNTED]
        return found

    async def _look_for_oldest(self) -> list[Observation]:
        return [
            Observation(await workflow.oldest_waiting() or 0, self._tags(workflow))
            for workflow in self._namespace.workflows
        ]

    def _tags(self, workflow: Workflow[Any, Any]) -> dict[str, str]:
        return {NAMESPACE: self._namespace.id, WORKFLOW: workflow.id}


class _Gauges:
    """The gauges of one provider, which are made once: what is started reports through them."""

    def __init__(self, provider: MeterProvider) -> None:
        self.sources: set[Metrics] = set()
        meter = provider.get_meter(SCOPE)
        meter.create_observable_gauge("lanner.queue.jobs", [self._jobs], "{job}", "Jobs by state")
        meter.create_observable_gauge("lanner.queue.oldest", [self._oldest], "s", "How long the oldest job has waited")

    def _jobs(self, _: CallbackOptions) -> Iterable[Observation]:
        return [observation for source in tuple(self.sources) for observation in source.jobs()]

    def _oldest(self, _: CallbackOptions) -> Iterable[Observation]:
        return [observation for source in tuple(self.sources) for observation in source.oldest()]


class _Reader:
    """A thread with an event loop, in which a namespace is read while another thread waits."""

    def __init__(self, namespace: WorkflowNamespace) -> None:
        self._namespace = namespace
        self._pid = os.getpid()
        self._running = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="lanner metrics", daemon=True)
        self._thread.start()
        self._running.wait()

    def read(self, read: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Wait for what a coroutine gives in the thread.

        Raises:
            TimeoutError: It took too long, or there is no such thread in this process.
        """
        if os.getpid() != self._pid:
            raise TimeoutError("this process was forked from the one that reports the namespace's metrics")
        return asyncio.run_coroutine_threadsafe(asyncio.wait_for(read(), READ_WITHIN), self._loop).result()

    def stop(self) -> None:
        """End the thread, and close its connection."""
        if os.getpid() == self._pid:
            self._loop.call_soon_threadsafe(self._over.set)
            self._thread.join()

    async def _serve(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        self._running.set()
        try:
            await self._over.wait()
        finally:
            await self._namespace.queues.leave_loop()


_recorders: WeakKeyDictionary[MeterProvider, _Recorders] = WeakKeyDictionary()
_gauges: WeakKeyDictionary[MeterProvider, _Gauges] = WeakKeyDictionary()
_making: Final = threading.Lock()


def _recorders_of(provider: MeterProvider) -> _Recorders:
    with _making:
        if provider not in _recorders:
            _recorders[provider] = _Recorders(provider)
        return _recorders[provider]


def _gauges_of(provider: MeterProvider) -> _Gauges:
    with _making:
        if provider not in _gauges:
            _gauges[provider] = _Gauges(provider)
        return _gauges[provider]
