"""How does the loop appear in somebody's tracing? Spans of its own, as OTLP's JSON, never in the way.

    add(span) ─▶ a queue of 2,048, dropped and counted when it is full ─▶ POST …/v1/traces, 512 at a time

A collector that is away costs nothing but the spans: a batch is tried twice, then dropped and counted. No span holds content.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import msgspec
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from upswing import __version__
from upswing.errors import Rejected, Transient
from upswing.infra.http import exchange

log = logging.getLogger(__name__)
QUEUE, BATCH = 2048, 512
FLUSH_SECONDS, TIMEOUT_SECONDS = 2.0, 10.0
SERVER, INTERNAL = 2, 1
"""Kinds of spans."""
_ERROR = 2
_TRACEPARENT = re.compile(rb"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")
_ZEROS = "0"


@dataclass(frozen=True, slots=True)
class TraceParent:
    """Which span a request belongs to."""

    trace_id: str
    span_id: str
    sampled: bool


def parse_traceparent(header: bytes) -> TraceParent | None:
    """W3C's `traceparent`; None where there is none, or none that is valid.

    >>> parse_traceparent(b"00-" + b"a" * 32 + b"-" + b"b" * 16 + b"-01").sampled
    True
    >>> parse_traceparent(b"00-" + b"0" * 32 + b"-" + b"b" * 16 + b"-01"), parse_traceparent(b"")
    (None, None)
    """
    found = _TRACEPARENT.fullmatch(header.strip())
    if found is None:
        return None
    trace_id, span_id = found[1].decode(), found[2].decode()
    if not trace_id.strip(_ZEROS) or not span_id.strip(_ZEROS):
        return None
    return TraceParent(trace_id, span_id, bool(int(found[3], 16) & 1))


@dataclass(frozen=True, slots=True)
class OwnSpan:
    """A span of ours."""

    name: str
    trace_id: str
    span_id: str
    started_ns: int
    ended_ns: int
    parent_id: str = ""
    kind: int = INTERNAL
    attributes: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    error: str = ""


def encode_spans(spans: Iterable[OwnSpan], service: str) -> bytes:
    """An OTLP export in JSON."""
    scope = {"name": "upswing", "version": __version__}
    resource = {"attributes": [_attribute("service.name", service)]}
    listed = [{"scope": scope, "spans": [_span_tree(span) for span in spans]}]
    return msgspec.json.encode({"resourceSpans": [{"resource": resource, "scopeSpans": listed}]})


def _span_tree(span: OwnSpan) -> dict[str, Any]:
    return {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        **({"parentSpanId": span.parent_id} if span.parent_id else {}),
        "name": span.name,
        "kind": span.kind,
        "startTimeUnixNano": str(span.started_ns),
        "endTimeUnixNano": str(span.ended_ns),
        "attributes": [_attribute(name, value) for name, value in span.attributes.items()],
        "status": {"code": _ERROR, "message": span.error} if span.error else {},
    }


def _attribute(name: str, value: str | float | bool) -> dict[str, Any]:
    match value:
        case bool():
            kind: dict[str, Any] = {"boolValue": value}
        case int():
            kind = {"intValue": str(value)}
        case float():
            kind = {"doubleValue": value}
        case _:
            kind = {"stringValue": value}
    return {"key": name, "value": kind}


def parse_headers(text: str) -> dict[str, str]:
    """OTEL_EXPORTER_OTLP_HEADERS.

    >>> parse_headers("Authorization=Bearer%20x, a=b,")
    {'Authorization': 'Bearer x', 'a': 'b'}
    """
    pairs = (item.partition("=") for item in text.split(","))
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs if name.strip()}


class SpanExporter:
    """Sends spans of ours to a collector, in the background."""

    def __init__(
        self,
        endpoint: str,
        service: str,
        headers: Mapping[str, str] | None = None,
        *,
        flush_seconds: float = FLUSH_SECONDS,
        queue: int = QUEUE,
    ) -> None:
        """`endpoint` as OTEL_EXPORTER_OTLP_ENDPOINT has it, without `/v1/traces`."""
        self._url = endpoint.rstrip("/") + "/v1/traces"
        self._service, self._headers = service, dict(headers or {})
        self._flush_seconds, self._most = flush_seconds, queue
        self._queue: deque[OwnSpan] = deque()
        self.sent = self.dropped = 0
        self._failing = False

    def add(self, span: OwnSpan) -> None:
        """Never waits; a span for which there is no room is dropped and counted."""
        if len(self._queue) >= self._most:
            self.dropped += 1
        else:
            self._queue.append(span)

    async def run(self) -> None:
        """Send what is queued, for ever."""
        while True:
            await asyncio.sleep(self._flush_seconds)
            await self.flush()

    async def flush(self) -> None:
        while self._queue:
            batch = [self._queue.popleft() for _ in range(min(BATCH, len(self._queue)))]
            if await self._send(batch) or await self._send(batch):
                self.sent += len(batch)
            else:
                self.dropped += len(batch)

    async def _send(self, batch: list[OwnSpan]) -> bool:
        try:
            reply = await exchange(
                "POST",
                self._url,
                body=encode_spans(batch, self._service),
                headers=self._headers,
                seconds=TIMEOUT_SECONDS,
            )
            problem = "" if reply.status < 300 else f"it answers {reply.status}"
        except (Transient, Rejected) as error:
            problem = str(error)
        if problem and not self._failing:
            log.warning("spans cannot be sent: %s", problem, extra={"action": "spans_dropped"})
        self._failing = bool(problem)
        return not problem


class SpanCollector(Collector):
    """How many spans of ours were sent, and how many were not."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter

    def collect(self) -> Iterator[CounterMetricFamily]:
        family = CounterMetricFamily(
            "upswing_own_spans",
            "Spans of our own, by what became of them; where `[otel] endpoint` is set.",
            labels=["outcome"],
        )
        family.add_metric(["sent"], self._exporter.sent)
        family.add_metric(["dropped"], self._exporter.dropped)
        yield family


def exporter_for(
    endpoint: str | None, service: str, environment: Mapping[str, str]
) -> SpanExporter | None:
    """What `[otel] endpoint` asks for; None: nothing, unless it is set."""
    if endpoint is None:
        return None
    headers = parse_headers(environment.get("OTEL_EXPORTER_OTLP_HEADERS", ""))
    return SpanExporter(endpoint, service, headers)
