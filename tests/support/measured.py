"""Metrics in memory."""

from collections.abc import Iterator, Mapping
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader, Metric, NumberDataPoint

Point = HistogramDataPoint | NumberDataPoint


class Measured:
    """A meter provider whose metrics are collected when they are asked for.

    Attributes:
        provider: The provider.
    """

    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        self.provider = MeterProvider([self._reader])

    def close(self) -> None:
        """Measure no more."""
        self.provider.shutdown()

    def metrics(self) -> dict[str, Metric]:
        """Everything that is measured, collected now."""
        data = self._reader.get_metrics_data()
        scopes = [scope for resource in data.resource_metrics for scope in resource.scope_metrics] if data else []
        return {metric.name: metric for scope in scopes for metric in scope.metrics}

    def points(self, name: str, **tags: Any) -> list[Point]:
        """The points of a metric that have these attributes (``lanner.`` left out, dots written as ``__``)."""
        return list(_points(self.metrics().get(name), {f"lanner.{tag.replace('__', '.')}": tags[tag] for tag in tags}))

    def number(self, name: str, **tags: Any) -> float:
        """The value of the only such point; 0 if there is none."""
        points = self.points(name, **tags)
        assert len(points) <= 1
        return sum(point.value for point in points if isinstance(point, NumberDataPoint))

    def count(self, name: str, **tags: Any) -> int:
        """How often something was recorded in a histogram."""
        return sum(point.count for point in self.points(name, **tags) if isinstance(point, HistogramDataPoint))

    def total(self, name: str, **tags: Any) -> float:
        """The sum of what was recorded in a histogram."""
        return sum(point.sum for point in self.points(name, **tags) if isinstance(point, HistogramDataPoint))


def _points(metric: Metric | None, wanted: Mapping[str, Any]) -> Iterator[Point]:
    for point in () if metric is None else metric.data.data_points:
        if isinstance(point, (HistogramDataPoint, NumberDataPoint)):
            tags = point.attributes or {}
            if all(tags.get(tag) == wanted[tag] for tag in wanted):
                yield point
