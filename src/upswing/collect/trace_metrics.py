"""What do traces look like from outside? Their series of `/metrics`."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge

from upswing.collect.core.traces.emitters import EMITTERS
from upswing.infra.metric_labels import start_at_zero

TAKEN, KNOWN, REJECTED = "taken", "known", "rejected"
_OUTCOMES = (TAKEN, KNOWN, REJECTED)
CLOSING_REASONS = ("root", "quiet", "age", "shutdown")


class TraceMetrics:
    """Counters of spans and of what became of their traces."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._spans = Counter(
            "upswing_trace_spans_total",
            "Spans of traced agents, by what became of them.",
            ["outcome"],
            registry=registry,
        )
        self._refused = Counter(
            "upswing_trace_exports_refused_total",
            "OTLP exports of which nothing was taken, by HTTP status.",
            ["status"],
            registry=registry,
        )
        self._closed = Counter(
            "upswing_traces_closed_total",
            "Traces that ended, by why.",
            ["reason"],
            registry=registry,
        )
        self._empty = Counter(
            "upswing_trace_calls_without_content_total",
            "Calls of models whose span has no messages, by instrumentation.",
            ["emitter"],
            registry=registry,
        )
        self._waiting = Gauge(
            "upswing_traces_waiting", "Traces that are not whole.", registry=registry
        )
        self._bytes = Gauge(
            "upswing_traces_waiting_bytes", "What they take in memory, about.", registry=registry
        )
        start_at_zero(self._spans, _OUTCOMES)
        start_at_zero(self._refused, ("400", "413", "415", "503"))
        start_at_zero(self._closed, CLOSING_REASONS)
        start_at_zero(self._empty, EMITTERS)

    def watch(self, count: Callable[[], int], size: Callable[[], int]) -> None:
        self._waiting.set_function(count)
        self._bytes.set_function(size)

    def spans(self, outcome: str, count: int) -> None:
        self._spans.labels(outcome).inc(count)

    def refused(self, status: int) -> None:
        self._refused.labels(str(status)).inc()

    def closed(self, reason: str) -> None:
        self._closed.labels(reason).inc()

    def without_content(self, emitter: str, count: int) -> None:
        self._empty.labels(emitter).inc(count)
