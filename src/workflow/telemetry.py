"""What a namespace tells OpenTelemetry: nothing, and at no cost, until its process has set a provider.

The API is not imported here. A process that has set a provider has imported it; one that has not needs none of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias, TypeVar

from ..queue.claim import Claim
from ..queue.outcome import Completed, Failed, Outcome, Retry
from ..queue.schedules import Fired, unwatched
from .journal import Kind

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from .metrics import Instruments
    from .tracing import AttemptSpan, Tracing

T = TypeVar("T")
AttributeValue: TypeAlias = str | bool | int | float | Sequence[str] | Sequence[bool] | Sequence[int] | Sequence[float]
SCOPE: Final = "lanner"
SYSTEM: Final = "messaging.system"
DESTINATION: Final = "messaging.destination.name"
OPERATION: Final = "messaging.operation.name"
OPERATION_TYPE: Final = "messaging.operation.type"
MESSAGE_ID: Final = "messaging.message.id"
BATCH: Final = "messaging.batch.message_count"
CLIENT_ID: Final = "messaging.client.id"
ERROR_TYPE: Final = "error.type"
NAMESPACE: Final = "lanner.namespace"
WORKFLOW: Final = "lanner.workflow"
JOB: Final = "lanner.job.id"
GROUP: Final = "lanner.group"
ATTEMPT: Final = "lanner.attempt"
OUTCOME: Final = "lanner.outcome"
REPLAYED: Final = "lanner.steps.replayed"
RETRY_DELAY: Final = "lanner.retry.delay"
SLEEPS_UNTIL: Final = "lanner.sleep.until"
SLEEPS_FOR: Final = "lanner.sleep.events"
SCHEDULE: Final = "lanner.schedule.id"
STEP_NAME: Final = "lanner.step.name"
STEP_PATH: Final = "lanner.step.path"
STEP_KIND: Final = "lanner.step.kind"
STATE: Final = "lanner.state"
LOST: Final = "lost"
RUNNING: Final = (Kind.DO, "compensation")
UNOBSERVED: Final[AbstractContextManager[None]] = nullcontext()


class Telemetry:
    """The tracing and the instruments of one namespace, each from when its provider is there."""

    def __init__(
        self, namespace: str, tracer_provider: TracerProvider | None, meter_provider: MeterProvider | None
    ) -> None:
        self._namespace = namespace
        self._tracer_provider = tracer_provider
        self._meter_provider = meter_provider
        self._tracing: Tracing | None = None
        self._instruments: Instruments | None = None

    def tracing(self) -> Tracing | None:
        """Where spans are made; None: nobody wants any."""
        if self._tracing is None:
            provider = self._tracer_provider or _provider("opentelemetry.trace", "get_tracer_provider")
            if provider is not None:
                from .tracing import Tracing  # noqa: PLC0415 - it imports the API

                self._tracing = Tracing(provider, self._namespace)
        return self._tracing

    def instruments(self) -> Instruments | None:
        """Where measurements go; None: nobody wants any."""
        if self._instruments is None:
            provider = self._meter_provider or _provider("opentelemetry.metrics", "get_meter_provider")
            if provider is not None:
                from .metrics import Instruments  # noqa: PLC0415 - it imports the API

                self._instruments = Instruments(provider, self._namespace)
        return self._instruments

    def sending(self, workflow: str, operation: str) -> Sending:
        """The span of a producer's call, for the block."""
        tracing = self.tracing()
        return UNSENT if tracing is None else tracing.sending(workflow, operation)

    def carried(self) -> str:
        """The trace context that a job which is added here carries; empty: none. For within ``sending`` or a run."""
        return "" if self._tracing is None else self._tracing.carried()

    def fire(self, workflow: str, schedule: str) -> Fired:
        """A fire of a schedule, which begins a trace."""
        tracing = self.tracing()
        return unwatched(workflow, schedule) if tracing is None else tracing.fire(workflow, schedule)

    def observer(self, workflow: str) -> Observer | None:
        """What watches the attempts of a workflow's jobs; None: nobody wants to know."""
        tracing, instruments = self.tracing(), self.instruments()
        return None if tracing is None and instruments is None else Observer(workflow, tracing, instruments)


def _provider(api: str, getter: str) -> Any:
    """The provider that the process has set, if it has imported the API at all."""
    module = sys.modules.get(api)
    if module is None:
        return None
    provider = getattr(module, getter)()
    # those of the API itself do nothing
    return None if type(provider).__module__.startswith(api) else provider


class Sending(AbstractContextManager["Sending"]):
    """The span of a producer's call. This one is none."""

    @property
    def wanted(self) -> bool:
        """Whether there is a span."""
        return False

    def added(self, job_id: str) -> None:
        """Which job was added."""

    def added_many(self, count: int) -> None:
        """How many jobs were added."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        return None


UNSENT: Final = Sending()


class Observer:
    """Watches the attempts at one workflow's jobs."""

    def __init__(self, workflow: str, tracing: Tracing | None, instruments: Instruments | None) -> None:
        self.workflow = workflow
        self.tracing = tracing
        self.instruments = instruments

    def attempt(self, claim: Claim) -> ObservedAttempt:
        """Watch an attempt that begins now."""
        instruments = self.instruments
        if instruments is not None and claim.first and not claim.spec.round:
            instruments.waited(self.workflow, max(claim.now_ms() - claim.spec.due_ms, 0) / 1000)
        return ObservedAttempt(self, claim)


class ObservedAttempt:
    """One attempt that is watched.

    Attributes:
        span: Its span; None: nobody wants one.
    """

    __slots__ = ("_began", "_claim", "_observer", "_replayed", "span")

    def __init__(self, observer: Observer, claim: Claim) -> None:
        self._observer = observer
        self._claim = claim
        self._began = perf_counter()
        self._replayed = 0
        self.span: AttemptSpan | None = None if observer.tracing is None else observer.tracing.attempt(claim)

    def begin(self, start: Callable[[], T]) -> T:
        """Start the attempt: what it does belongs to its span."""
        return start() if self.span is None else self.span.within(start)

    def step(self, kind: str, name: str, path: str) -> ObservedStep:
        """A step that runs or waits, for the block."""
        return ObservedStep(self._observer, self._claim, kind, name, path)

    def replayed(self) -> None:
        """A step has given what it gave in an earlier attempt."""
        self._replayed += 1

    def ended(self, outcome: Outcome, *, lost: bool) -> None:
        """The attempt has ended."""
        how = LOST if lost else type(outcome).__name__.lower()
        if self.span is not None:
            self.span.end(outcome, how, self._replayed)
        if self._observer.instruments is not None:
            self._observer.instruments.ran(self._observer.workflow, how, perf_counter() - self._began)

    def settled(self, outcome: Outcome, *, goes_on: bool) -> None:
        """Its outcome was committed; ``goes_on``: the job is not over, though it failed for good: it is undone."""
        instruments = self._observer.instruments
        if instruments is None:
            return
        if isinstance(outcome, Retry):
            instruments.counted("retried", self._observer.workflow)
        elif isinstance(outcome, Failed) and not goes_on:
            instruments.counted("failed", self._observer.workflow)
        elif isinstance(outcome, Completed):
            instruments.counted("completed", self._observer.workflow)


class ObservedStep(AbstractContextManager["ObservedStep"]):
    """One step that is watched."""

    __slots__ = ("_began", "_name", "_observer", "_runs", "_span")

    def __init__(self, observer: Observer, claim: Claim, kind: str, name: str, path: str) -> None:
        self._observer = observer
        self._runs = kind in RUNNING
        self._name = name
        self._span = None if observer.tracing is None else observer.tracing.step(claim, kind, name, path)

    def __enter__(self) -> Self:
        self._began = perf_counter()
        if self._span is not None:
            self._span.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._span is not None:
            self._span.leave(error)
        instruments = self._observer.instruments
        if instruments is not None and self._runs:
            how = "completed" if error is None else "failed" if isinstance(error, Exception) else "interrupted"
            instruments.stepped(self._observer.workflow, self._name, how, perf_counter() - self._began)


class RunSpan:
    """The span of the attempt that runs: ``ctx.span``. Where nobody wants spans, its methods do nothing.

    Example:
        >>> ctx.span.set_attribute("order.total", 99.5)
    """

    __slots__ = ("_attempt",)

    def __init__(self, attempt: ObservedAttempt | None) -> None:
        self._attempt = attempt

    @property
    def otel(self) -> Any:
        """The ``opentelemetry.trace.Span``; None where nobody wants one."""
        span = None if self._attempt is None else self._attempt.span
        return None if span is None else span.otel

    @property
    def recording(self) -> bool:
        """Whether what is set here is kept."""
        otel = self.otel
        return otel is not None and bool(otel.is_recording())

    def set_attribute(self, name: str, value: AttributeValue) -> None:
        """Set an attribute."""
        self.set_attributes({name: value})

    def set_attributes(self, attributes: Mapping[str, AttributeValue]) -> None:
        """Set attributes."""
        otel = self.otel
        if otel is not None:
            otel.set_attributes(attributes)

    def add_event(self, name: str, attributes: Mapping[str, AttributeValue] | None = None) -> None:
        """Add an event, now."""
        otel = self.otel
        if otel is not None:
            otel.add_event(name, attributes)
