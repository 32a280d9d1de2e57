"""How many calls of a model become stored trajectories in a second of a processor, when they come as OTLP spans?

Traces of an agent with a tool: a root and three calls, each of which repeats the conversation before it, in protobuf and gzip as
exporters send them, 32 traces a request. What counts is the processor time of the loop, its workers and its bus, from the first
request until the last trajectory is stored: on one core that has nothing else to do, it is the time that passes.
"""

import base64
import gzip
import json
import random
import sys
import time
import urllib.error
import urllib.request

import psutil
from bench.harness import PeerError, Row, Service, upswing_up
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

TRACES, PER_REQUEST, CALLS = 1200, 32, 3
WORDS = 60
"""Of a message: the last call of a conversation has some 3 KB of it."""
TARGET = 300.0
GRACE_SECONDS = 1.0
SETTLE_SECONDS = 900.0
_BEGIN = 1_770_000_000 * 10**9
_VOCABULARY = [
    "order", "parcel", "invoice", "refund", "address", "late", "arrived", "missing", "check", "thanks", "again",
]  # fmt: skip


def rows() -> list[Row]:
    return [
        Row(
            name=f"traces: calls stored in a second of a processor, {CALLS} a trace",
            value=measure(TRACES),
            target=TARGET,
            unit="/s",
        )
    ]


def measure(traces: int) -> float:
    bodies = [
        gzip.compress(export(range(start, min(start + PER_REQUEST, traces))))
        for start in range(0, traces, PER_REQUEST)
    ]
    with upswing_up(config=f"[otel]\ngrace_seconds = {GRACE_SECONDS}\n") as service:
        before, began = processor_seconds(service), time.monotonic()
        for body in bodies:
            post(service, body)
        taken = processor_seconds(service) - before
        wait_stored(service, traces)
        spent, passed = processor_seconds(service) - before, time.monotonic() - began
    calls = traces * CALLS
    print(
        f"  {calls} calls in {len(bodies)} requests: {spent:.1f} s of a processor ({taken:.1f} s to take them), "
        f"{passed:.1f} s passed",
        file=sys.stderr,
    )
    return calls / spent


def processor_seconds(service: Service) -> float:
    """Of the loop and its children."""
    loop = psutil.Process(service.process.pid)
    times = [each.cpu_times() for each in (loop, *loop.children(recursive=True))]
    return sum(each.user + each.system for each in times)


def post(service: Service, body: bytes) -> None:
    headers = {
        "Authorization": f"Bearer {service.key}",
        "Content-Type": "application/x-protobuf",
        "Content-Encoding": "gzip",
    }
    while True:
        request = urllib.request.Request(f"{service.http_url}/v1/traces", body, headers)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                if answer.read():
                    raise PeerError("Some spans were not taken.")
                return
        except urllib.error.HTTPError as error:
            if error.code != 503:
                raise
            time.sleep(0.2)  # no room: as an exporter does


def wait_stored(service: Service, count: int) -> None:
    deadline = time.monotonic() + SETTLE_SECONDS
    headers = {"Authorization": f"Bearer {service.key}"}
    while True:
        request = urllib.request.Request(f"{service.http_url}/v1/status", headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            stored = int(json.loads(answer.read())["trajectories"])
        if stored >= count:
            return
        if time.monotonic() > deadline:
            raise PeerError(f"Of {count} traces {stored} are stored.")
        time.sleep(0.2)


def export(numbers: range) -> bytes:
    spans = [span for number in numbers for span in trace(number)]
    scope = {"name": "opentelemetry.instrumentation.genai.openai", "version": "1"}
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "bench"}}]}
    tree = {"resource": resource, "scopeSpans": [{"scope": scope, "spans": spans}]}
    message = json_format.ParseDict({"resourceSpans": [tree]}, ExportTraceServiceRequest())
    return message.SerializeToString()


def trace(number: int) -> list[dict]:
    chance = random.Random(number)
    trace_id, root = f"{number + 1:032x}", f"{1:016x}"
    messages = [_message("system", chance), _message("user", chance)]
    spans = []
    for call in range(CALLS):
        last = call == CALLS - 1
        arguments = {"query": _words(chance), "number": call}
        part = {"type": "tool_call", "id": f"c{call}", "name": "look_up", "arguments": arguments}
        answer = _message("assistant", chance) if last else {"role": "assistant", "parts": [part]}
        about = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "bench",
            "gen_ai.input.messages": json.dumps(messages),
            "gen_ai.output.messages": json.dumps([answer]),
        }
        spans.append(_span(trace_id, f"{call + 2:016x}", root, call + 1, about))
        result = {"type": "tool_call_response", "id": f"c{call}", "response": _words(chance)}
        messages = [*messages, answer, {"role": "tool", "parts": [result]}]
    return [*spans, _span(trace_id, root, "", 0, {})]


def _span(trace_id, span_id, parent, at, about) -> dict:
    began = _BEGIN + at * 10**9
    return {
        "traceId": _base64(trace_id),
        "spanId": _base64(span_id),
        "parentSpanId": _base64(parent),
        "name": "chat bench",
        "startTimeUnixNano": str(began),
        "endTimeUnixNano": str(began + 10**8),
        "attributes": [
            {"key": key, "value": {"stringValue": value}} for key, value in about.items()
        ],
    }


def _base64(text) -> str:
    return base64.b64encode(bytes.fromhex(text)).decode()


def _message(role, chance) -> dict:
    return {"role": role, "parts": [{"type": "text", "content": _words(chance)}]}


def _words(chance) -> str:
    return " ".join(chance.choice(_VOCABULARY) for _ in range(WORDS))
