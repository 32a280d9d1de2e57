"""A request to the gateway in the user's own tracing: one span, below the client's, without a word of it."""

import json

import pytest

from tests.gateway.conftest import model, plan, started, user
from tests.gateway.scripted import Scripted
from upswing.infra.tracing import SpanExporter, encode_spans

pytestmark = pytest.mark.live
PARENT = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"


def queued(exporter):
    tree = json.loads(encode_spans(exporter._queue, "upswing-gateway"))
    return tree["resourceSpans"][0]["scopeSpans"][0]["spans"]


async def ask(server, *headers, text="hi"):
    exporter = SpanExporter("http://127.0.0.1:9", "upswing-gateway")
    async with started(plan(model("m", server.url)), exporter=exporter) as gateway:
        status, _ = await gateway.chat(user(text), headers=headers)
    return status, queued(exporter)


async def test_a_request_is_a_span_below_the_clients():
    async with Scripted() as server:
        status, [span] = await ask(server, f"traceparent: {PARENT}", text="my secret question")
    assert status == 200
    assert (span["traceId"], span["parentSpanId"]) == ("a" * 32, "b" * 16)
    assert (span["name"], span["kind"], span["status"]) == ("chat m", 2, {})
    about = {each["key"]: each["value"] for each in span["attributes"]}
    assert about["gen_ai.operation.name"] == {"stringValue": "chat"}
    assert about["gen_ai.response.model"] == {"stringValue": "m"}
    assert int(span["endTimeUnixNano"]) > int(span["startTimeUnixNano"])
    assert "my secret question" not in json.dumps(span)


async def test_without_a_parent_it_is_a_trace_of_its_own():
    async with Scripted() as server:
        _, [span] = await ask(server, "traceparent: 00-zz-1-01")
    assert "parentSpanId" not in span
    assert len(span["traceId"]) == 32


async def test_what_the_client_did_not_sample_is_not_traced():
    async with Scripted() as server:
        _, spans = await ask(server, f"traceparent: {PARENT[:-1]}0")
    assert spans == []
