"""How do spans and metrics reach a collector?

Over OTLP/HTTP, by the exporters of the extra `otlp`. A collector that is away never delays a call: spans wait
in a bounded queue and the oldest go first. Endpoint paths follow OTLP: `<endpoint>/v1/traces`, `/v1/metrics`.
"""

import asyncio
import threading
import time
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from opentelemetry.sdk.metrics import export as sdk
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from prometheus_client.metrics_core import Metric

from holdfast.model.errors import ConfigError
from holdfast.telemetry.spans import SCOPE

EXPORT_S = 5.0
"""Longest one export may take; a collector that is slower is away."""

CUMULATIVE = sdk.AggregationTemporality.CUMULATIVE


class SpanExport:
    """A batch processor that can be closed without waiting for a collector that is away."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self.processor: SpanProcessor = BatchSpanProcessor(exporter)

    async def close(self, patience_s: float) -> None:
        """Send what waits, for at most this long."""
        flush = threading.Thread(target=self.processor.shutdown, name="holdfast-last-spans", daemon=True)
        flush.start()
        await asyncio.to_thread(flush.join, patience_s)
        if flush.is_alive():
            self._exporter.shutdown()


def span_exporter(endpoint: str) -> SpanExporter:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError:
        raise _missing("telemetry.traces") from None
    return OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces", timeout=EXPORT_S)


class MetricExport:
    """Pushes what `/metrics` shows."""

    def __init__(self, endpoint: str) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        except ImportError:
            raise _missing("telemetry.metrics") from None
        self._exporter = OTLPMetricExporter(f"{endpoint.rstrip('/')}/v1/metrics", timeout=EXPORT_S)
        self._started = time.time_ns()

    async def push(self, families: Iterable[Metric]) -> bool:
        data = translated(families, self._started, time.time_ns())
        result = await asyncio.to_thread(self._exporter.export, data)
        return result is sdk.MetricExportResult.SUCCESS

    def close(self) -> None:
        self._exporter.shutdown()


def _missing(key: str) -> ConfigError:
    return ConfigError(f"{key}: 'otlp' needs an extra; install it with: pip install 'holdfast[otlp]'")


def translated(families: Iterable[Metric], started: int, now: int) -> sdk.MetricsData:
    """Prometheus families as OTLP: counters are cumulative sums, histograms keep their bounds."""
    metrics = [_metric(family, started, now) for family in families if family.samples]
    scope = sdk.ScopeMetrics(SCOPE, metrics, "")
    resource = Resource({"service.name": "holdfast"})
    return sdk.MetricsData([sdk.ResourceMetrics(resource, [scope], "")])


def _metric(family: Metric, started: int, now: int) -> sdk.Metric:
    unit = "ms" if family.name.endswith("_ms") else "1"
    if family.type == "histogram":
        return sdk.Metric(family.name, family.documentation, unit, _histogram(family, started, now))
    points = [sdk.NumberDataPoint(s.labels, started, now, s.value) for s in family.samples]
    if family.type == "counter":
        total = sdk.Sum(points, CUMULATIVE, is_monotonic=True)
        return sdk.Metric(f"{family.name}_total", family.documentation, unit, total)
    return sdk.Metric(family.name, family.documentation, unit, sdk.Gauge(points))


def _histogram(family: Metric, started: int, now: int) -> sdk.Histogram:
    series: dict[tuple[tuple[str, str], ...], tuple[list[tuple[float, float]], dict[str, float]]] = {}
    for sample in family.samples:
        labels = tuple((k, v) for k, v in sample.labels.items() if k != "le")
        bounds, sums = series.setdefault(labels, ([], {}))
        if sample.name.endswith("_bucket"):
            bounds.append((float(sample.labels["le"]), sample.value))
        else:
            sums[sample.name.rpartition("_")[2]] = sample.value
    return sdk.Histogram(
        [_point(dict(labels), *parts, started, now) for labels, parts in series.items()], CUMULATIVE
    )


def _point(
    labels: dict[str, str],
    buckets: list[tuple[float, float]],
    sums: dict[str, float],
    started: int,
    now: int,
) -> sdk.HistogramDataPoint:
    buckets.sort()
    counts = [int(value) for _, value in buckets]
    apart = [counts[0], *(later - earlier for earlier, later in pairwise(counts))]
    finite = [bound for bound, _ in buckets[:-1]]
    unknown: Any = None  # the least and the most are not kept; left out of what is sent
    return sdk.HistogramDataPoint(
        labels, started, now, int(sums.get("count", 0)), sums.get("sum", 0.0), apart, finite, unknown, unknown
    )
