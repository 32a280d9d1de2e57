"""Spans of our own: in the standard's form, below the client's, and never in the way."""

import string

import pytest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.gateway.scripted import Server
from upswing.infra.tracing import (
    OwnSpan,
    SpanExporter,
    encode_spans,
    exporter_for,
    parse_traceparent,
)

SPAN = OwnSpan(
    "chat m",
    "a" * 32,
    "b" * 16,
    10**18,
    10**18 + 5,
    parent_id="c" * 16,
    attributes={"gen_ai.request.model": "m", "n": 3, "share": 0.5, "fell_back": False},
    error="timeout",
)


class Collector(Server):
    """A labelled double of somebody's collector."""

    def __init__(self, status="200 OK"):
        super().__init__()
        self.status = status

    async def answer(self, request, reader, writer):
        await self.send(writer, {}, status=self.status, extra="Connection: close\r\n")
        return False


def names(collector):
    return [
        span["name"]
        for request in collector.requests
        for scope in request["body"]["resourceSpans"][0]["scopeSpans"]
        for span in scope["spans"]
    ]


def test_the_official_package_reads_what_we_write():
    import base64
    import json

    tree = json.loads(encode_spans([SPAN], "upswing"))
    span = tree["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    assert (span["traceId"], span["parentSpanId"]) == ("a" * 32, "c" * 16)
    for name in (
        "traceId",
        "spanId",
        "parentSpanId",
    ):  # hexadecimal in OTLP, base64 in protobuf's JSON
        span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    read = json_format.ParseDict(tree, ExportTraceServiceRequest())
    [found] = read.resource_spans[0].scope_spans[0].spans
    assert (found.name, found.status.code, found.status.message) == ("chat m", 2, "timeout")
    assert found.end_time_unix_nano - found.start_time_unix_nano == 5
    assert {each.key for each in found.attributes} == set(SPAN.attributes)


HEX = st.text("0123456789abcdef", min_size=1, max_size=33)


@given(
    st.binary(max_size=60)
    | st.tuples(HEX, HEX, HEX, HEX).map(lambda made: "-".join(made).encode())
    | st.text(string.printable).map(str.encode)
)
def test_a_traceparent_is_valid_or_none(header):
    found = parse_traceparent(header)
    if found is not None:
        assert len(found.trace_id) == 32
        assert found.trace_id.strip("0")
        assert len(found.span_id) == 16
        assert found.span_id.strip("0")


def test_nothing_is_sent_unless_an_address_is_set():
    assert exporter_for(None, "upswing", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}) is None


def test_a_full_queue_drops_and_counts():
    exporter = SpanExporter("http://127.0.0.1:9", "upswing", queue=3)
    for _ in range(5):
        exporter.add(SPAN)
    assert exporter.dropped == 2


@pytest.mark.live
async def test_spans_go_out_with_the_headers_of_the_environment():
    async with Collector() as collector:
        address = collector.url.removesuffix("/v1")
        headers = {"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20x"}
        exporter = exporter_for(address, "upswing", headers)
        for _ in range(700):
            exporter.add(SPAN)
        await exporter.flush()
    assert (exporter.sent, exporter.dropped) == (700, 0)
    assert len(collector.requests) == 2
    assert collector.requests[0]["path"] == "/v1/traces"
    assert collector.requests[0]["headers"]["authorization"] == "Bearer x"
    assert names(collector) == ["chat m"] * 700


@pytest.mark.live
async def test_a_collector_that_refuses_costs_the_spans_and_nothing_else(caplog):
    async with Collector("500 Broken") as collector:
        exporter = SpanExporter(collector.url.removesuffix("/v1"), "upswing")
        for _ in range(3):
            exporter.add(SPAN)
            await exporter.flush()
    assert (exporter.sent, exporter.dropped) == (0, 3)
    assert len(collector.requests) == 6
    assert len([each for each in caplog.records if each.action == "spans_dropped"]) == 1
