"""Traces over HTTP: a real loop takes what exporters send, in their forms, from whoever has a key."""

import asyncio
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from tests.collect.test_traces import SIMPLE, logs, protobuf, record
from tests.collect.trace_cases import Call, Talk, export, span, spans_of
from tests.conftest import running_loop
from tests.gateway.scripted import Scripted
from tests.support import Client, until

from upswing.config import OtelConfig, Settings

pytestmark = pytest.mark.live
QUICK = Settings(otel=OtelConfig(grace_seconds=0.1, idle_seconds=600))
PROTOBUF = "application/x-protobuf"
GZIP = "Content-Encoding: gzip"
EMITTED = Path(__file__).parent / "emitted"


@pytest.fixture
async def tracing(data):
    async with running_loop(data, settings=QUICK) as made:
        async with Client(made.running.http_url, made.running.key) as client:
            yield made, client


async def stored(client, count=1):
    async def enough():
        _, page = await client("GET", "/v1/trajectories?door=otel")
        found = page["trajectories"]
        return found if len(found) >= count else None

    items = await until(enough, what="no trajectory came of the trace")
    found = []
    for item in items:
        _, tree = await client("GET", f"/v1/trajectories/{item['trajectory_id']}")
        found.append(tree)
    return found


async def agent_key(client, name):
    _, made = await client("POST", "/v1/keys", {"name": name, "scope": "agent"})
    return made["key"]


async def test_a_trace_in_either_form_becomes_a_redacted_trajectory(tracing):
    _, client = tracing
    talk = Talk("", "Mail ann@example.org.", [Call({"role": "assistant", "content": "Sent."})])
    status, answer = await client("POST", "/v1/traces", export(spans_of(talk)))
    assert (status, answer) == (200, {})
    body = gzip.compress(protobuf(export(spans_of(SIMPLE, trace_id="b" * 32))))
    status, answer = await client("POST", "/v1/traces", body, kind=PROTOBUF, headers=[GZIP])
    assert (status, answer) == (200, b"")
    found = await stored(client, 2)
    assert sorted(len(each["turns"]) for each in found) == [1, 2]
    assert "ann@example.org" not in json.dumps(found)
    assert "<email-1>" in json.dumps(found)


async def test_every_payload_that_an_emitter_sent_becomes_its_conversation(tracing):
    """Captured from the real instrumentations by scripts/test-otel."""
    _, client = tracing
    emitters = sorted(path for path in EMITTED.iterdir() if path.is_dir())
    assert len(emitters) >= 6
    for folder in emitters:
        for path in sorted(folder.iterdir()):
            kind = PROTOBUF if path.suffix == ".pb" else "application/json"
            target = "/v1/logs" if "logs" in path.name else "/v1/traces"
            status, _ = await client("POST", target, path.read_bytes(), kind=kind)
            assert status == 200, path
    for trajectory in await stored(client, len(emitters)):
        check_conversation(trajectory)


def check_conversation(trajectory):
    """The agent of tests/collect/emitters asked, added and answered."""
    first, second = trajectory["turns"]
    assert trajectory["task_context"]["instructions"] == "You add numbers with your tool."
    assert first["observation"]["content"] == "What is 2 + 3? Mail the answer to <email-1>."
    assert (first["action"]["tool_name"], first["action"]["tool_args"]) == ("add", {"a": 2, "b": 3})
    assert (first["result"]["success"], first["result"]["output"]) == (True, "5")
    assert second["observation"] == {"type": "tool_result", "content": "5"}
    assert "5" in second["action"]["raw_response"]
    about = trajectory["metadata"]
    assert about["off_policy"] is True
    assert about["total_tokens"] == 50
    assert about["model"].startswith("scripted")


async def test_children_come_before_their_root_and_log_records_beside_them(tracing):
    loop, client = tracing
    bare = span(
        "a" * 32,
        "1" * 16,
        "f" * 16,
        scope="opentelemetry.instrumentation.openai_v2",
        about={"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"},
    )
    status, answer = await client("POST", "/v1/traces", export([bare]))
    assert status == 200
    assert "/v1/logs" in answer["partialSuccess"]["errorMessage"]
    assert "rejectedSpans" not in answer["partialSuccess"]
    told = logs(
        record("1" * 16, "gen_ai.user.message", {"content": "2 + 3?"}),
        record("1" * 16, "gen_ai.choice", {"index": 0, "message": {"content": "5"}}),
    )
    assert await client("POST", "/v1/logs", told) == (200, {})
    await loop.collect.traces.close_due()
    assert len(loop.collect.traces.waiting) == 1
    await client("POST", "/v1/traces", export([span("a" * 32, "f" * 16)]))
    [trajectory] = await stored(client)
    assert trajectory["turns"][0]["action"]["raw_response"] == "5"


async def test_a_span_without_content_says_so_in_the_answer_the_log_and_a_metric(tracing, caplog):
    _, client = tracing
    bare = span(
        "a" * 32,
        "1" * 16,
        scope="opentelemetry.instrumentation.genai.openai",
        about={"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"},
    )
    for trace in ("a" * 32, "b" * 32):
        body = protobuf(export([(bare[0], {**bare[1], "traceId": trace})]))
        _, answer = await client("POST", "/v1/traces", body, kind=PROTOBUF)
        partial = ExportTraceServiceResponse.FromString(answer).partial_success
        assert partial.rejected_spans == 0
        assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT" in partial.error_message

    async def counted():
        _, text = await client("GET", "/metrics")
        return 'upswing_trace_calls_without_content_total{emitter="genai"} 2.0' in text

    await until(counted)
    lines = [each for each in caplog.records if getattr(each, "action", "") == "no_content"]
    assert len(lines) == 1


async def test_a_trace_belongs_to_the_key_that_sent_it(tracing):
    _, client = tracing
    ann, bob = await agent_key(client, "ann"), await agent_key(client, "bob")
    one, two = (
        Talk("", f"question of {name}", [Call({"role": "assistant", "content": f"to {name}"})])
        for name in ("ann", "bob")
    )
    await client("POST", "/v1/traces", export(spans_of(one)[:-1]), key=ann)
    await client("POST", "/v1/traces", export(spans_of(two)), key=bob)
    [only] = await stored(client)
    assert only["turns"][0]["action"]["raw_response"] == "to bob"
    await client("POST", "/v1/traces", export(spans_of(one)[-1:]), key=ann)
    assert len(await stored(client, 2)) == 2
    wrong, _ = await client(
        "POST",
        "/v1/feedback",
        {"trajectory_id": only["trajectory_id"], "type": "thumbs_up"},
        key=ann,
    )
    assert wrong == 403
    right, _ = await client(
        "POST", "/v1/feedback", {"episode_id": "a" * 32, "type": "thumbs_up"}, key=ann
    )
    assert right == 202


@pytest.mark.parametrize("kind", [PROTOBUF, "application/json"])
async def test_refusals_have_the_form_of_the_standard(tracing, kind):
    _, client = tracing
    reader = (await client("POST", "/v1/keys", {"name": "r", "scope": "reader"}))[1]["key"]
    cases = [
        (401, {"key": None}, b"x", ()),
        (403, {"key": reader}, b"x", ()),
        (400, {}, b"\x0a\x7fab", ()),
        (400, {}, b"x", [GZIP]),
        (415, {}, b"x", ["Content-Encoding: br"]),
        (413, {}, gzip.compress(bytes(65 << 20)), [GZIP]),
    ]
    for status, options, body, headers in cases:
        got, answer = await client(
            "POST", "/v1/traces", body, kind=kind, headers=headers, **options
        )
        assert got == status
        if kind == PROTOBUF:
            assert answer[:1] == b"\x08"
        else:
            assert set(answer) == {"code", "message"}
    got, answer = await client("POST", "/v1/traces", b"x", kind="text/plain")
    assert (got, set(answer)) == (415, {"code", "message"})


async def test_a_body_in_chunks_is_read_and_one_without_end_is_cut(tracing):
    _, client = tracing
    reader, writer = await asyncio.open_connection(client.host, client.port)
    head = (
        f"POST /v1/traces HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {client.key}\r\n"
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    body = json.dumps(export(spans_of(SIMPLE))).encode()
    pieces = [body[at : at + 700] for at in range(0, len(body), 700)]
    writer.write(
        head.encode() + b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces) + b"0\r\n\r\n"
    )
    assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
    await reader.readexactly(2)
    assert len(await stored(client)) == 1
    writer.write(head.encode())
    piece = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    for _ in range(66):
        writer.write(piece)
        await writer.drain()
    assert b" 413 " in await reader.readuntil(b"\r\n\r\n")
    writer.close()
    await writer.wait_closed()


async def test_without_room_the_sender_is_asked_to_come_again(data):
    small = Settings(otel=OtelConfig(max_megabytes=2, grace_seconds=0.1))
    async with running_loop(data, settings=small) as loop:
        async with Client(loop.running.http_url, loop.running.key) as client:
            statuses = []
            for number in range(12):
                words = f"{number}" * 200_000
                talk = Talk("", words, [Call({"role": "assistant", "content": "ok"})])
                spans = spans_of(talk, trace_id=f"{number + 1:032x}")
                status, answer = await client("POST", "/v1/traces", export(spans[:-1]))
                statuses.append(status)
            assert set(statuses) == {200, 503}
            assert answer["code"] == 14
            assert loop.collect.traces.waiting.size <= 1 << 20
            for number in range(12):  # their roots come, so there is room again
                if statuses[number] == 200:
                    await client(
                        "POST", "/v1/traces", export([span(f"{number + 1:032x}", "f" * 16)])
                    )
            assert len(await stored(client, statuses.count(200))) == statuses.count(200)


async def test_a_loop_that_ends_stores_what_waits(data):
    async with running_loop(data, settings=QUICK) as loop:
        async with Client(loop.running.http_url, loop.running.key) as client:
            await client("POST", "/v1/traces", export(spans_of(SIMPLE)[:-1]))
    async with running_loop(data, settings=QUICK) as loop:
        async with Client(loop.running.http_url, loop.running.key) as client:
            [trajectory] = await stored(client)
    assert trajectory["metadata"]["otel"]["ended_by"] == "shutdown"


async def test_nothing_that_waits_is_on_a_disk(data):
    secret = "the magic word is xyzzy-waits-in-memory"
    async with running_loop(data, settings=QUICK) as loop:
        async with Client(loop.running.http_url, loop.running.key) as client:
            talk = Talk("", secret, [Call({"role": "assistant", "content": "ok"})])
            await client("POST", "/v1/traces", export(spans_of(talk)[:-1]))
            await loop.collect.traces.close_due()
            assert len(loop.collect.traces.waiting) == 1
            on_disk = [
                p
                for p in Path(data).rglob("*")
                if p.is_file() and secret.encode() in p.read_bytes()
            ]
            assert on_disk == []


async def test_workers_read_exports_as_the_loop_does(data):
    async with running_loop(data, workers=True, settings=QUICK) as loop:
        async with Client(loop.running.http_url, loop.running.key) as client:
            body = gzip.compress(protobuf(export(spans_of(SIMPLE))))
            status, _ = await client("POST", "/v1/traces", body, kind=PROTOBUF, headers=[GZIP])
            assert status == 200
            bomb = gzip.compress(bytes(65 << 20))
            status, _ = await client("POST", "/v1/traces", bomb, kind=PROTOBUF, headers=[GZIP])
            assert status == 413
            assert len(await stored(client)) == 1


# --- the real emitters ---------------------------------------------------------------------------

VENVS = os.environ.get("UPSWING_EMITTERS", "")
CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
PROGRAMS = {
    "genai-openai": ("genai_openai.py", {CAPTURE: "SPAN_ONLY"}),
    "openai-v2": ("openai_v2.py", {CAPTURE: "true"}),
    "openai-v2-latest": (
        "openai_v2.py",
        {CAPTURE: "event_only", "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental"},
    ),
    "traceloop": ("traceloop.py", {}),
    "pydantic-ai": ("pydantic_agent.py", {}),
    "openinference": ("openinference_openai.py", {}),
    "vercel-ai": ("vercel.mjs", {}),
}
"""Name → its program, and the switch that turns content on."""


@pytest.mark.skipif(not VENVS, reason="scripts/test-otel installs the real emitters and runs this")
@pytest.mark.parametrize("bare", [False, True], ids=["in a task", "single calls"])
@pytest.mark.parametrize("name", PROGRAMS)
async def test_the_real_emitter_is_understood(data, name, bare):
    program, switches = PROGRAMS[name]
    if bare and name in {"pydantic-ai", "vercel-ai"}:
        pytest.skip("it has a span around its task by itself")
    async with (
        Scripted(arguments={"a": 2, "b": 3}) as server,
        running_loop(data, settings=QUICK) as loop,
    ):
        async with Client(loop.running.http_url, loop.running.key) as client:
            key = await agent_key(client, name)
            environment = {
                **os.environ,
                "OPENAI_BASE_URL": server.url,
                "OPENAI_API_KEY": "unused",
                "OTEL_EXPORTER_OTLP_ENDPOINT": loop.running.http_url,
                "OTEL_EXPORTER_OTLP_HEADERS": f"Authorization=Bearer%20{key}",
                "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
                "OTEL_SERVICE_NAME": "adding-service",
                **switches,
                **({"UPSWING_BARE": "1"} if bare else {}),
            }
            said = await asyncio.to_thread(run_program, name, program, environment)
            [trajectory] = await stored(client)
    print(
        f"{name}: {said.strip()!r} → {len(trajectory['turns'])} turns, {trajectory['metadata']['otel']}"
    )
    check_conversation(trajectory)


def run_program(name, program, environment):
    folder = Path(VENVS) / name.removesuffix("-latest")
    source = Path(__file__).parent / "emitters" / program
    if program.endswith(".mjs"):
        target = folder / program
        target.write_bytes(source.read_bytes())
        command = ["node", str(target)]
    else:
        command = [str(folder / "bin" / "python"), str(source)]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    print(done.stderr, file=sys.stderr)
    return done.stdout
