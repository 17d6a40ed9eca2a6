"""The spans of jobs. Imported only where the process has set a tracer provider: it imports OpenTelemetry's API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import Token
from datetime import UTC, datetime
from hashlib import blake2b
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TracerProvider,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from ..queue.claim import Claim
from ..queue.outcome import Failed, Failure, Outcome, Retry, Suspended
from ..queue.schedules import Fired
from .journal import Kind
from .telemetry import (
    ATTEMPT,
    BATCH,
    CLIENT_ID,
    DESTINATION,
    ERROR_TYPE,
    GROUP,
    JOB,
    MESSAGE_ID,
    NAMESPACE,
    OPERATION,
    OPERATION_TYPE,
    OUTCOME,
    REPLAYED,
    RETRY_DELAY,
    SCHEDULE,
    SCOPE,
    SLEEPS_FOR,
    SLEEPS_UNTIL,
    STEP_KIND,
    STEP_NAME,
    STEP_PATH,
    SYSTEM,
    WORKFLOW,
    Sending,
)

T = TypeVar("T")
_W3C: Final = TraceContextTextMapPropagator()


class Tracing:
    """Makes the spans of one namespace."""

    def __init__(self, provider: TracerProvider, namespace: str) -> None:
        self._tracer = provider.get_tracer(SCOPE)
        self._sampler: Any = getattr(provider, "sampler", None)  # of the SDK, which is not imported here
        self._namespace = namespace

    def carried(self) -> str:
        """The current context as a job carries it: a traceparent, and a tracestate on a second line if there is one."""
        return _carried_by(None)

    def sending(self, workflow: str, operation: str) -> SendingSpan:
        """The span of a producer's call."""
        return SendingSpan(self._producer(workflow, operation, None))

    def fire(self, workflow: str, schedule: str) -> FireSpan:
        """The span of a schedule's fire, which begins a trace of its own."""
        return FireSpan(self._producer(workflow, "fire", Context(), {SCHEDULE: schedule}))

    def attempt(self, claim: Claim) -> AttemptSpan:
        """The span of an attempt, in the trace of the job."""
        name = f"process {claim.workflow}"
        attributes = {
            **self._messaging(claim.workflow, "process", "process"),
            MESSAGE_ID: claim.id,
            JOB: claim.id,
            CLIENT_ID: claim.token.rpartition(":")[0],
            ATTEMPT: claim.attempt,
            **({GROUP: claim.spec.group} if claim.spec.group else {}),
        }
        if claim.spec.trace:
            parent, state = claim.spec.trace.partition("\n")[::2]
            context = _W3C.extract({"traceparent": parent, "tracestate": state}, Context())
        else:
            context = self._trace_of(claim.spec.run, name, attributes)
        span = self._tracer.start_span(name, context, SpanKind.CONSUMER, attributes)
        return AttemptSpan(span, context)

    def step(self, claim: Claim, kind: str, name: str, path: str) -> StepSpan:
        """The span of a step, in the current one."""
        sends = kind == Kind.CHILD
        span = self._tracer.start_span(
            f"step {name}",
            None,
            SpanKind.PRODUCER if sends else SpanKind.INTERNAL,
            {
                NAMESPACE: self._namespace,
                STEP_NAME: name,
                STEP_PATH: path,
                STEP_KIND: str(kind),
                ATTEMPT: claim.attempt,
                WORKFLOW: claim.workflow,
                JOB: claim.id,
            },
        )
        return StepSpan(span)

    def _trace_of(self, run: str, name: str, attributes: Mapping[str, str | int]) -> Context:
        """The trace of a job that carries none, its caller being untraced: the same for each attempt in any worker.

        Its sampler is asked as for the first span of a trace, since whoever has a parent is sampled as the parent was.
        """
        digest = blake2b(run.encode(), digest_size=24).digest()
        trace, parent = int.from_bytes(digest[:16]), int.from_bytes(digest[16:])
        sampled = (
            self._sampler is None
            or self._sampler.should_sample(Context(), trace, name, SpanKind.CONSUMER, attributes).decision.is_sampled()
        )
        flags = TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT)
        return set_span_in_context(
            NonRecordingSpan(SpanContext(trace, parent, is_remote=True, trace_flags=flags)), Context()
        )

    def _producer(
        self, workflow: str, operation: str, context: Context | None, more: Mapping[str, str] | None = None
    ) -> Span:
        attributes = {**self._messaging(workflow, operation, "send"), **(more or {})}
        return self._tracer.start_span(f"send {workflow}", context, SpanKind.PRODUCER, attributes)

    def _messaging(self, workflow: str, operation: str, kind: str) -> dict[str, str | int]:
        return {
            SYSTEM: SCOPE,
            DESTINATION: workflow,
            OPERATION: operation,
            OPERATION_TYPE: kind,
            NAMESPACE: self._namespace,
            WORKFLOW: workflow,
        }


class SendingSpan(Sending):
    """The span of a producer's call, current for the block."""

    def __init__(self, span: Span) -> None:
        self._span = span

    @property
    def wanted(self) -> bool:
        """Whether there is a span."""
        return True

    def added(self, job_id: str) -> None:
        """Which job was added."""
        self._span.set_attributes({MESSAGE_ID: job_id, JOB: job_id})

    def added_many(self, count: int) -> None:
        """How many jobs were added."""
        self._span.set_attribute(BATCH, count)

    def __enter__(self) -> Self:
        self._token = attach(set_span_in_context(self._span))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _leave(self._token, error)
        if isinstance(error, Exception):
            _fail(self._span, error)
        self._span.end()


class FireSpan(Fired):
    """The span of a schedule's fire: it is told of only if this worker has fired it."""

    def __init__(self, span: Span) -> None:
        self._span = span
        self.trace = _carried_by(set_span_in_context(span, Context()))

    def fired(self, job_ids: list[str]) -> None:
        """Jobs were added."""
        if len(job_ids) == 1:
            self._span.set_attributes({MESSAGE_ID: job_ids[0], JOB: job_ids[0]})
        self._span.set_attribute(BATCH, len(job_ids))
        self._span.end()


class AttemptSpan:
    """The span of an attempt.

    Attributes:
        otel: The span itself.
    """

    def __init__(self, span: Span, parent: Context) -> None:
        self.otel = span
        self._context = set_span_in_context(span, parent)

    def within(self, call: Callable[[], T]) -> T:
        """Make a call in whose context it is the current span."""
        token = attach(self._context)
        try:
            return call()
        finally:
            detach(token)

    def end(self, outcome: Outcome, how: str, replayed: int) -> None:
        """The attempt has ended."""
        span = self.otel
        span.set_attribute(OUTCOME, how)
        if replayed:
            span.set_attribute(REPLAYED, replayed)
        match outcome:
            case Retry(delay_ms, failure):
                span.set_attribute(RETRY_DELAY, delay_ms / 1000)
                _fail_with(span, failure)
            case Failed(failure):
                _fail_with(span, failure)
            case Suspended(until_ms, events):
                if until_ms is not None:
                    span.set_attribute(SLEEPS_UNTIL, datetime.fromtimestamp(until_ms / 1000, UTC).isoformat())
                if named := [event for event in events if not event.startswith("\t")]:
                    span.set_attribute(SLEEPS_FOR, named)
            case _:
                pass
        span.end()


class StepSpan:
    """The span of a step, current while it runs."""

    def __init__(self, span: Span) -> None:
        self._span = span

    def __enter__(self) -> None:
        self._token = attach(set_span_in_context(self._span))

    def leave(self, error: BaseException | None) -> None:
        """The step has ended. One whose run was ended, for a sleep above all, has not failed."""
        _leave(self._token, error)
        if isinstance(error, Exception):
            _fail(self._span, error)
            self._span.set_attribute(OUTCOME, "failed")
        else:
            self._span.set_attribute(OUTCOME, "completed" if error is None else "interrupted")
        self._span.end()


def _carried_by(context: Context | None) -> str:
    carrier: dict[str, str] = {}
    _W3C.inject(carrier, context)
    return "\n".join(carrier.values())


def _leave(token: Token[Context], error: BaseException | None) -> None:
    # a coroutine that is thrown away is closed in whatever context does that
    if not isinstance(error, GeneratorExit):
        detach(token)


def _fail(span: Span, error: Exception) -> None:
    span.record_exception(error)
    span.set_attribute(ERROR_TYPE, type(error).__qualname__)
    span.set_status(Status(StatusCode.ERROR, str(error)))


def _fail_with(span: Span, failure: Failure) -> None:
    span.add_event(
        "exception",
        {
            "exception.type": failure.type,
            "exception.message": failure.message,
            "exception.stacktrace": failure.traceback,
        },
    )
    span.set_attribute(ERROR_TYPE, failure.type)
    span.set_status(Status(StatusCode.ERROR, failure.message))
