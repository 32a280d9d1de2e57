"""Traces: what instrumentations write, in whichever order it comes, becomes the conversation that it was."""

import gzip
import json
import zlib

import pytest
from google.protobuf import json_format
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from tests.collect.trace_cases import BEGIN, DIALECTS, Call, Talk, export, span, spans_of, talks

from upswing.collect.core.admit import AdmissionLimits, admit
from upswing.collect.core.traces.emitters import EMITTERS, missing_content
from upswing.collect.core.traces.export import evaluate_export
from upswing.collect.core.traces.otlp import JSON, PROTOBUF, encode_status, encode_success
from upswing.collect.core.traces.traced import ExportRequest, ReadExport, RefusedExport
from upswing.collect.core.traces.trajectory import trace_trajectory
from upswing.collect.core.traces.waiting import SHUTDOWN, WaitingLimits, WaitingTraces
from upswing.errors import Rejected, Transient
from upswing.principals import Sender
from upswing.redact import Redactor

ANN, BOB = Sender("ann"), Sender("bob")
LIMIT = 1 << 20
REDACTOR = Redactor()
SIMPLE = Talk(
    "You add.",
    "What is 2 + 3?",
    [
        Call(
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "add", "arguments": '{"a": 2, "b": 3}'},
                    }
                ],
            },
            [{"role": "tool", "tool_call_id": "call_1", "content": "5"}],
        ),
        Call({"role": "assistant", "content": "It is 5."}),
    ],
)


def protobuf(tree):
    """The same export as the official package encodes it."""
    tree = json.loads(json.dumps(tree))
    for resource in tree["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for each in scope["spans"]:
                for name in ("traceId", "spanId", "parentSpanId"):
                    if name in each:
                        each[name] = _base64(each[name])
    return json_format.ParseDict(tree, ExportTraceServiceRequest()).SerializeToString()


def _base64(text):
    import base64

    return base64.b64encode(bytes.fromhex(text)).decode()


def read(body, kind=JSON, coding="", limit=LIMIT, *, logs=False):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return evaluate_export(ExportRequest(body, kind, coding, limit, logs))


def taken(*exports, sender=ANN, waiting=None, at=0.0):
    waiting = WaitingTraces(WaitingLimits()) if waiting is None else waiting
    for each in exports:
        verdict = each if isinstance(each, ReadExport) else read(each)
        assert isinstance(verdict, ReadExport), verdict
        waiting.add(sender, verdict, at)
    return waiting


def closed(waiting, now=10.0, *, everything=""):
    """The trajectories of what is over, as they are stored."""
    found = []
    for trace, why in waiting.pop_due(now, everything=everything):
        found += waiting.finish(trace, why, now).finished
    found += waiting.pop_held(now, everything=bool(everything))
    trees = []
    for each in found:
        tree = trace_trajectory(each.conversation, each.sender.key_id, each.ended_by)
        trees.append(
            json.loads(admit(json.dumps(tree).encode(), REDACTOR, AdmissionLimits()).admitted.body)
        )
        waiting.release(each.sender, each.size)
    return trees


def said(trajectory):
    """What each turn did, and what was new to it."""
    return [(turn["action"], turn["observation"]["content"]) for turn in trajectory["turns"]]


# --- from a span to a turn ------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_conversation_with_a_tool_is_two_turns_in_every_dialect(dialect):
    [trajectory] = closed(taken(export(spans_of(SIMPLE, dialect))))
    first, second = trajectory["turns"]
    assert trajectory["task_context"]["instructions"] == "You add."
    assert first["observation"] == {"type": "user_message", "content": "What is 2 + 3?"}
    assert (first["action"]["tool_name"], first["action"]["tool_args"]) == ("add", {"a": 2, "b": 3})
    assert (first["result"]["success"], first["result"]["output"]) == (True, "5")
    assert second["observation"] == {"type": "tool_result", "content": "5"}
    assert second["action"] == {"type": "response", "raw_response": "It is 5."}
    about = trajectory["metadata"]
    assert (about["model"], about["total_tokens"], about["off_policy"]) == ("m", 20, True)
    assert about["otel"]["trace_id"] == about["episode_id"] == "a" * 32
    assert "tokens" not in about
    assert trajectory["agent_id"] == "shop"


@given(talk=talks(), dialect=st.sampled_from(sorted(DIALECTS)), data=st.data())
@settings(max_examples=60)
def test_each_call_is_one_turn_whatever_the_order_and_the_exports(talk, dialect, data):
    spans = spans_of(talk, dialect)
    shuffled = data.draw(st.permutations(spans))
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(spans) - 1)), max_size=3)))
    pieces = [shuffled[a:b] for a, b in zip([0, *cuts], [*cuts, None], strict=True)]
    exports = [export(piece) for piece in pieces if piece]
    again = data.draw(st.lists(st.sampled_from(exports), max_size=2))
    [trajectory] = closed(taken(*exports, *again))
    [reference] = closed(taken(export(spans_of(talk, "conventions"))))
    assert len(trajectory["turns"]) == len(talk.calls)
    assert said(trajectory) == said(reference)
    answers = [turn["action"].get("raw_response", "") for turn in trajectory["turns"]]
    assert answers == [call.answer["content"] for call in talk.calls]


@given(talk=talks(), seed=st.integers(0, 2**32))
@settings(max_examples=30)
def test_protobuf_and_json_say_the_same(talk, seed):
    tree = export(spans_of(talk, sorted(DIALECTS)[seed % len(DIALECTS)]))
    assert read(protobuf(tree), PROTOBUF) == read(tree)
    assert read(gzip.compress(protobuf(tree)), PROTOBUF, "gzip") == read(tree)


def test_every_kind_of_attribute_is_read_as_the_official_package_writes_it():
    about = {"s": "ü", "i": -5, "d": 0.5, "b": True, "l": ["a", 1], "m": {"k": {"n": 2}}}
    about |= {"upswing.outcome": '{"status": "completed"}', "gen_ai.operation.name": "chat"}
    tree = export([span("a" * 32, "b" * 16, about=about)])
    from upswing.collect.core.traces.otlp import read_export

    [one], [other] = (
        read_export(body, kind, logs=False).taken
        for body, kind in ((protobuf(tree), PROTOBUF), (json.dumps(tree).encode(), JSON))
    )
    assert one == other
    assert one.attributes == about


def test_what_stands_above_a_call_says_whose_it_is():
    spans = spans_of(SIMPLE)[:-1]
    root = span(
        "a" * 32,
        "f" * 16,
        about={
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "adder",
            "gen_ai.conversation.id": "chat-7",
            "user.id": "u-7",
            "upswing.task_id": "sum-1",
            "upswing.outcome": '{"status": "completed", "share": 1.0}',
        },
    )
    [trajectory] = closed(taken(export([*spans, root])))
    assert trajectory["agent_id"] == "adder"
    assert trajectory["session_id"] == "chat-7"
    assert trajectory["task_context"]["task_id"] == "sum-1"
    assert trajectory["metadata"]["user_id"] == "u-7"
    assert trajectory["metadata"]["outcome"] == {"status": "completed", "share": 1.0}


def test_a_tool_that_nobody_told_the_model_of_is_known_by_its_own_span():
    first, _, root = spans_of(SIMPLE)
    tool = span(
        "a" * 32,
        "9" * 16,
        "f" * 16,
        about={
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "add",
            "gen_ai.tool.call.id": "call_1",
            "gen_ai.tool.call.result": "5",
        },
        at=2,
        status={"code": 2, "message": "too slow"},
    )
    [trajectory] = closed(taken(export([first, tool, root])))
    result = trajectory["turns"][0]["result"]
    assert (result["output"], result["success"], result["error"]) == ("5", False, "too slow")
    assert result["execution_time_ms"] == 500.0


def test_agents_of_one_trace_have_trajectories_of_their_own():
    above = span("a" * 32, "f" * 16, about=_agent("boss"))
    below = span("a" * 32, "e" * 16, "f" * 16, about=_agent("clerk"), at=2)
    calls = spans_of(SIMPLE)[:-1]
    other = Talk("You file.", "File it.", [Call({"role": "assistant", "content": "Filed."})])
    filed = spans_of(other, root="e" * 16, first=50)[:-1]
    found = {
        each["agent_id"]: each for each in closed(taken(export([*calls, *filed, below, above])))
    }
    assert {name: len(each["turns"]) for name, each in found.items()} == {"boss": 2, "clerk": 1}
    assert found["clerk"]["subordinate_profile"] == "clerk"
    assert "subordinate_profile" not in found["boss"]


def _agent(name):
    return {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}


def test_a_call_that_two_instrumentations_saw_is_one_turn():
    spans = spans_of(SIMPLE)
    below = [
        (
            scope,
            {
                **each,
                "spanId": f"{n:016x}",
                "parentSpanId": each["spanId"],
            },
        )
        for n, (scope, each) in enumerate(spans_of(SIMPLE, "openinference")[:-1], 70)
    ]
    [trajectory] = closed(taken(export([*below, *spans])))
    assert len(trajectory["turns"]) == 2
    bare = [(scope, {**each, "attributes": each["attributes"][:1]}) for scope, each in spans[:-1]]
    [trajectory] = closed(taken(export([*below, *bare, spans[-1]])))
    assert trajectory["metadata"]["otel"]["emitter"] == "openinference"


def test_an_agent_that_forgets_what_is_old_goes_on_with_its_conversation():
    talk = Talk(
        "",
        "one",
        [Call({"role": "assistant", "content": f"a{n}"}, follow_up=f"u{n}") for n in range(4)],
    )
    spans = spans_of(talk)
    scope, last = spans[3]
    asked = next(each for each in last["attributes"] if each["key"] == "gen_ai.input.messages")
    messages = json.loads(asked["value"]["stringValue"])
    asked["value"]["stringValue"] = json.dumps(messages[-3:])
    [trajectory] = closed(taken(export([*spans[:3], (scope, last), spans[4]])))
    assert [turn["observation"]["content"] for turn in trajectory["turns"]] == [
        "one",
        "u0",
        "u1",
        "u2",
    ]


def test_calls_that_do_not_go_on_with_each_other_are_conversations_of_their_own():
    one, two = (
        Talk("", f"question {n}", [Call({"role": "assistant", "content": f"answer {n}"})])
        for n in range(2)
    )
    spans = [*spans_of(one), *spans_of(two, first=9)[:-1]]
    found = closed(taken(export(spans)))
    assert sorted(each["turns"][0]["observation"]["content"] for each in found) == [
        "question 0",
        "question 1",
    ]
    assert len({each["trajectory_id"] for each in found}) == 2


def test_a_call_without_an_answer_is_its_infrastructures_fault():
    scope, call = spans_of(SIMPLE)[0]
    call["attributes"] = [
        each for each in call["attributes"] if each["key"] != "gen_ai.output.messages"
    ]
    call["status"] = {"code": 2, "message": "timeout"}
    [trajectory] = closed(taken(export([(scope, call), spans_of(SIMPLE)[-1]])))
    assert trajectory["metadata"]["infra_error"] is True
    assert "timeout" in trajectory["turns"][0]["result"]["error"]


# --- log records ----------------------------------------------------------------------------------


def record(span_id, event, body, trace_id="a" * 32):
    from tests.collect.trace_cases import value

    return {
        "traceId": trace_id,
        "spanId": span_id,
        "eventName": event,
        "timeUnixNano": str(BEGIN),
        "body": value(body),
    }


def logs(*records):
    scope = {"scope": {"name": "opentelemetry.instrumentation.openai_v2"}, "logRecords": [*records]}
    return {"resourceLogs": [{"scopeLogs": [scope]}]}


@pytest.mark.parametrize("logs_first", [True, False])
def test_messages_in_log_records_are_those_of_their_span(logs_first):
    bare = span(
        "a" * 32,
        "1" * 16,
        scope="opentelemetry.instrumentation.openai_v2",
        about={"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"},
    )
    told = logs(
        record("1" * 16, "gen_ai.system.message", {"content": "You add."}),
        record("1" * 16, "gen_ai.user.message", {"content": "2 + 3?"}),
        record("1" * 16, "gen_ai.choice", {"index": 0, "message": {"content": "5"}}),
    )
    exports = [read(export([bare])), read(told, logs=True)]
    [trajectory] = closed(taken(*(exports[::-1] if logs_first else exports)))
    assert said(trajectory) == [({"type": "response", "raw_response": "5"}, "2 + 3?")]
    assert trajectory["task_context"]["instructions"] == "You add."


# --- waiting --------------------------------------------------------------------------------------


def test_a_trace_waits_for_its_root_and_then_for_stragglers():
    first, second, root = spans_of(SIMPLE)
    waiting = taken(export([first]))
    assert closed(waiting, 100.0) == []
    taken(export([root]), waiting=waiting, at=100.0)
    assert closed(waiting, 104.9) == []
    taken(export([second]), waiting=waiting, at=104.9)
    assert closed(waiting, 109.0) == []
    [trajectory] = closed(waiting, 110.0)
    assert len(trajectory["turns"]) == 2
    assert trajectory["metadata"]["otel"]["ended_by"] == "root"
    assert (len(waiting), waiting.size) == (0, 0)


def test_a_root_that_never_comes_ends_the_trace_as_it_is():
    waiting = taken(export(spans_of(SIMPLE)[:-1]))
    assert closed(waiting, 299.0) == []
    [trajectory] = closed(waiting, 300.0)
    assert len(trajectory["turns"]) == 2
    assert trajectory["metadata"]["otel"]["ended_by"] == "quiet"


def test_a_parent_in_another_process_is_not_waited_for():
    scope, call = spans_of(SIMPLE)[0]
    waiting = taken(export([(scope, {**call, "flags": 0x300})]))
    assert len(waiting) == 1
    closed(waiting, 10.0)
    assert len(waiting) == 1  # its model waits for a tool, so it is held
    assert len(closed(waiting, 400.0)) == 1


def test_a_trace_that_goes_on_for_ever_is_cut():
    waiting = WaitingTraces(WaitingLimits(longest_seconds=50))
    for number in range(6):
        taken(
            export([span("a" * 32, f"{number + 1:016x}", "f" * 16)]),
            waiting=waiting,
            at=10.0 * number,
        )
    assert [why for _, why in waiting.pop_due(50.0)] == ["age"]


def test_what_comes_after_the_end_is_known_or_a_conversation_of_its_own():
    spans = spans_of(SIMPLE)
    waiting = taken(export(spans))
    assert len(closed(waiting)) == 1
    added = waiting.add(ANN, read(export(spans)), 20.0)
    assert (added.spans, added.known) == (0, 3)
    late = Talk("", "late?", [Call({"role": "assistant", "content": "late."})])
    taken(export(spans_of(late, first=77)[:-1]), waiting=waiting, at=20.0)
    [trajectory] = closed(waiting, 25.0)
    assert trajectory["turns"][0]["action"]["raw_response"] == "late."


def test_single_calls_that_go_on_with_each_other_are_one_trajectory():
    first, second, _ = spans_of(SIMPLE)
    alone = [
        (
            scope,
            {key: part for key, part in each.items() if key != "parentSpanId"} | {"traceId": trace},
        )
        for (scope, each), trace in ((first, "b" * 32), (second, "c" * 32))
    ]
    waiting = taken(export(alone[:1]))
    assert closed(waiting, 6.0) == []
    taken(export(alone[1:]), waiting=waiting, at=60.0)
    [trajectory] = closed(waiting, 66.0)
    assert len(trajectory["turns"]) == 2
    assert trajectory["turns"][0]["result"]["output"] == "5"
    assert (len(waiting), waiting.size) == (0, 0)
    other = taken(export(alone[:1]), waiting=WaitingTraces(WaitingLimits()))
    taken(export(alone[1:]), waiting=other, sender=BOB)
    found = closed(other, 6.0) + closed(other, 400.0)
    assert [len(each["turns"]) for each in found] == [1, 1], "another key's call is none of ours"


def test_the_same_trace_id_with_another_key_is_another_trace():
    one, two = (
        Talk("", f"secret of {n}", [Call({"role": "assistant", "content": f"yes {n}"})])
        for n in ("ann", "bob")
    )
    waiting = taken(export(spans_of(one)))
    taken(export(spans_of(two)), waiting=waiting, sender=BOB)
    found = closed(waiting)
    assert len(found) == 2
    assert len({each["trajectory_id"] for each in found}) == 2
    for each in found:
        assert len(each["turns"]) == 1


def test_at_the_end_everything_that_waits_is_told():
    waiting = taken(export(spans_of(SIMPLE)[:1]))
    [trajectory] = closed(waiting, 0.0, everything=SHUTDOWN)
    assert trajectory["metadata"]["otel"]["ended_by"] == "shutdown"


def test_a_full_house_keeps_nothing_of_an_export_and_leaves_others_their_room():
    waiting = WaitingTraces(WaitingLimits(max_bytes=60_000))
    refused = 0
    for number in range(40):
        spans = spans_of(SIMPLE, trace_id=f"{number + 1:032x}")[:-1]
        before = (len(waiting), waiting.size)
        try:
            taken(export(spans), waiting=waiting)
        except Transient:
            refused += 1
            assert (len(waiting), waiting.size) == before
    assert refused
    assert waiting.size <= 30_000
    taken(export(spans_of(SIMPLE, trace_id="e" * 32)), waiting=waiting, sender=BOB)
    closed(waiting, 1000.0)
    assert (len(waiting), waiting.size) == (0, 0)


def test_what_is_known_needs_no_room():
    waiting = WaitingTraces(WaitingLimits(max_bytes=14_000))
    taken(export(spans_of(SIMPLE)), waiting=waiting)
    added = waiting.add(ANN, read(export(spans_of(SIMPLE))), 0.0)
    assert (added.spans, added.known) == (0, 3)
    with pytest.raises(Transient):
        taken(export(spans_of(SIMPLE, trace_id="b" * 32)), waiting=waiting)


def test_an_export_that_can_never_wait_is_refused_for_good():
    waiting = WaitingTraces(WaitingLimits(max_bytes=2000))
    with pytest.raises(Rejected, match="fewer spans"):
        taken(export(spans_of(SIMPLE)), waiting=waiting)
    assert waiting.size == 0


def test_a_trace_of_too_many_spans_keeps_the_first():
    waiting = WaitingTraces(WaitingLimits(max_spans=2))
    added = waiting.add(ANN, read(export(spans_of(SIMPLE))), 0.0)
    assert (added.spans, added.rejected) == (2, 1)
    assert "2 spans" in added.problem


# --- bad input ------------------------------------------------------------------------------------


def test_spans_in_a_circle_are_read_as_if_they_had_no_parents():
    first, second, _ = spans_of(SIMPLE)
    ring = [
        span("a" * 32, "c" * 16, "d" * 16),
        span("a" * 32, "d" * 16, "c" * 16),
    ]
    tied = [(scope, {**each, "parentSpanId": "c" * 16}) for scope, each in (first, second)]
    [trajectory] = closed(taken(export([*tied, *ring])), 300.0)
    assert len(trajectory["turns"]) == 2
    itself = read(export([span("a" * 32, "c" * 16, "c" * 16)]))
    assert (itself.rejected, len(itself.spans)) == (1, 0)


@given(talk=talks(), data=st.data())
@settings(max_examples=60)
def test_protobuf_that_was_cut_off_or_changed_is_refused_or_read_and_never_breaks(talk, data):
    whole = protobuf(export(spans_of(talk)))
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    place = data.draw(st.integers(0, len(whole) - 1))
    changed = whole[:place] + bytes([data.draw(st.integers(0, 255))]) + whole[place + 1 :]
    for body in (cut, changed, data.draw(st.binary(max_size=200))):
        verdict = read(body, PROTOBUF)
        if isinstance(verdict, RefusedExport):
            assert verdict.status == 400
        else:
            waiting = WaitingTraces(WaitingLimits())
            waiting.add(ANN, verdict, 0.0)
            for trace, why in waiting.pop_due(0.0, everything=SHUTDOWN):
                for each in waiting.finish(trace, why, 0.0).finished:
                    json.dumps(trace_trajectory(each.conversation, "ann", why))


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(
    attributes=st.dictionaries(
        st.sampled_from(
            [
                "gen_ai.input.messages",
                "gen_ai.output.messages",
                "gen_ai.system_instructions",
                "gen_ai.tool.definitions",
                "ai.prompt.messages",
                "ai.response.toolCalls",
                "ai.prompt.tools",
                "llm.input_messages.0.message.role",
                "llm.input_messages.0.message.content",
                "llm.invocation_parameters",
                "gen_ai.prompt.0.content",
                "gen_ai.usage.input_tokens",
                "gen_ai.request.temperature",
                "gen_ai.response.finish_reasons",
                "upswing.outcome",
            ]
        ),
        JSON_VALUES.map(json.dumps) | st.text(max_size=20) | st.integers(-9, 9),
    ),
    scope=st.sampled_from(["ai", "pydantic-ai", "openinference.x", "x"]),
)
@settings(max_examples=150)
def test_whatever_an_attribute_holds_nothing_breaks(attributes, scope):
    about = {"gen_ai.operation.name": "chat", "openinference.span.kind": "LLM", **attributes}
    waiting = taken(
        export([span("a" * 32, "1" * 16, scope=scope, name="ai.x.doGenerate", about=about)])
    )
    for trace, why in waiting.pop_due(0.0, everything=SHUTDOWN):
        for each in waiting.finish(trace, why, 0.0).finished:
            json.dumps(trace_trajectory(each.conversation, "ann", why))


@pytest.mark.parametrize(
    ("body", "kind", "coding", "status", "word"),
    [
        (b"{", JSON, "", 400, "JSON"),
        (b"[]", JSON, "", 400, "object"),
        (b"\xff\xfe{}", JSON, "", 400, "JSON"),
        (b"[" * 5000, JSON, "", 400, "JSON"),
        (b"\x0a\x7fab", PROTOBUF, "", 400, "cut off"),
        (b"\x0b", PROTOBUF, "", 400, "wire type"),
        (b"\x08" + b"\xff" * 11, PROTOBUF, "", 400, "no end"),
        (b"no gzip", PROTOBUF, "gzip", 400, "not gzip"),
        (gzip.compress(b"x" * 1000)[:-20], PROTOBUF, "gzip", 400, "cut off"),
        (gzip.compress(bytes(LIMIT + 1)), PROTOBUF, "gzip", 413, "OTEL_BSP"),
        (gzip.compress(bytes(LIMIT)) * 2, PROTOBUF, "gzip", 413, "OTEL_BSP"),
        (b"\x00" * (LIMIT + 1), PROTOBUF, "", 413, "fewer spans"),
        (zlib.compress(b"{}"), JSON, "deflate", 415, "gzip"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_sentence(body, kind, coding, status, word):
    verdict = read(body, kind, coding)
    assert isinstance(verdict, RefusedExport)
    assert verdict.status == status
    assert word in verdict.message


def test_a_bomb_is_stopped_at_the_limit():
    """A megabyte of gzip that would be a gigabyte, and one in many members."""
    member = gzip.compress(bytes(1 << 20))
    assert read(member * 1000, PROTOBUF, "gzip").status == 413


@pytest.mark.parametrize(
    ("broken", "word"),
    [
        ({"traceId": "00" * 16}, "16 bytes"),
        ({"traceId": "abc"}, "16 bytes"),
        ({"spanId": ""}, "8"),
        ({"startTimeUnixNano": "0"}, "began"),
        ({"endTimeUnixNano": "1"}, "began"),
        ({"startTimeUnixNano": str(1 << 63)}, "began"),
        (
            {"attributes": [{"key": str(n), "value": {"intValue": "1"}} for n in range(16_385)]},
            "attributes",
        ),
    ],
)
def test_one_bad_span_is_rejected_and_the_others_are_taken(broken, word):
    first, second, root = spans_of(SIMPLE)
    verdict = read(export([(first[0], {**first[1], **broken}), second, root]))
    assert (verdict.rejected, len(verdict.spans)) == (1, 2)
    assert word in verdict.problem


def test_text_that_is_not_utf8_rejects_its_span_alone():
    tree = export(spans_of(SIMPLE))
    body = protobuf(tree).replace(b"What is 2", b"What \xff\xfe 2")
    verdict = read(body, PROTOBUF)
    assert isinstance(verdict, ReadExport)
    assert (verdict.rejected, len(verdict.spans)) == (2, 1)
    assert "UTF-8" in verdict.problem


def test_values_that_are_nested_too_deeply_reject_their_span():
    deep = {"k": 1}
    for _ in range(60):
        deep = {"k": deep}
    verdict = read(export([span("a" * 32, "1" * 16, about=deep)]))
    assert (verdict.rejected, verdict.spans) == (1, [])


# --- answers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("emitter", EMITTERS)
def test_a_call_without_messages_says_which_switch_is_missing(emitter):
    assert emitter in missing_content(emitter, 2)


def test_answers_are_those_of_the_standard():
    answer = ExportTraceServiceResponse.FromString(encode_success(3, "why", PROTOBUF, logs=False))
    assert (answer.partial_success.rejected_spans, answer.partial_success.error_message) == (
        3,
        "why",
    )
    assert encode_success(0, "", PROTOBUF, logs=False) == b""
    assert json.loads(encode_success(0, "", JSON, logs=False)) == {}
    assert json.loads(encode_success(2, "why", JSON, logs=True)) == {
        "partialSuccess": {"rejectedLogRecords": "2", "errorMessage": "why"}
    }
    assert json.loads(encode_status(413, "big", JSON)) == {"code": 3, "message": "big"}
    assert encode_status(503, "later", PROTOBUF) == b"\x08\x0e\x12\x05later"
