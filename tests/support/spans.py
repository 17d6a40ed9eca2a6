"""Spans in memory, and how they hang together."""

from collections.abc import Callable, Mapping
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import DEFAULT_ON, Sampler
from opentelemetry.trace import StatusCode


class Spans:
    """A tracer provider that keeps the spans which have ended.

    Attributes:
        provider: The provider.
    """

    def __init__(self, sampler: Sampler = DEFAULT_ON) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(sampler=sampler)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    @property
    def ended(self) -> list[ReadableSpan]:
        """All of them, in the order in which they began."""
        return sorted(self._exporter.get_finished_spans(), key=lambda span: span.start_time or 0)

    def named(self, name: str) -> list[ReadableSpan]:
        """Those of a name."""
        return [span for span in self.ended if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        """The only one of a name."""
        (span,) = self.named(name)
        return span

    def has(self, name: str, count: int = 1) -> Callable[[], bool]:
        """Whether so many of a name have ended; for ``wait_until``."""
        return lambda: len(self.named(name)) >= count

    def tree(self) -> list[str]:
        """Their names, each below its parent."""
        return self._below(None, "")

    def _below(self, parent: ReadableSpan | None, indent: str) -> list[str]:
        lines: list[str] = []
        ids = {id_of(span) for span in self.ended}
        for span in self.ended:
            above = None if span.parent is None or span.parent.span_id not in ids else span.parent.span_id
            if above == (None if parent is None else id_of(parent)):
                lines += [indent + span.name, *self._below(span, indent + "  ")]
        return lines


def id_of(span: ReadableSpan) -> int:
    """A span's id."""
    assert span.context is not None
    return int(span.context.span_id)


def parent_of(span: ReadableSpan) -> int | None:
    """The id of the span above it."""
    return None if span.parent is None else int(span.parent.span_id)


def trace_of(span: ReadableSpan) -> int:
    """The id of a span's trace."""
    assert span.context is not None
    return int(span.context.trace_id)


def attributes_of(span: ReadableSpan) -> Mapping[str, Any]:
    """A span's attributes."""
    return span.attributes or {}


def has_failed(span: ReadableSpan) -> bool:
    """Whether it says that what it stands for has failed."""
    return span.status.status_code is StatusCode.ERROR
