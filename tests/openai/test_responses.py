"""Responses: do requests and answers mean the same in chat, whatever they hold and however they come?"""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.openai.conversations import (
    JSON,
    answers,
    chunks_of,
    completion_of,
    conversations,
    spoilt,
)
from upswing.errors import Reason, Rejected
from upswing.gateway.core.episodes import continues
from upswing.gateway.core.native_answers import read_shaped_answer
from upswing.openai.completions import read_completion
from upswing.openai.responses_answer import ResponseIds, response_body
from upswing.openai.responses_request import ResponseSettings, translate_response_request
from upswing.openai.responses_stream import ResponseStream
from upswing.openai.translation import MAX_OTHER_BYTES, MAX_TOKENS


def as_request(messages, **fields):
    """The conversation as a client of Responses writes it."""
    system = [m["content"] for m in messages if m["role"] == "system"]
    items = []
    for number, message in enumerate(m for m in messages if m["role"] != "system"):
        content = message.get("content")
        if message["role"] == "tool":
            call_id = message["tool_call_id"]
            items.append({"type": "function_call_output", "call_id": call_id, "output": content})
            continue
        if content is not None:
            kind = "output_text" if message["role"] == "assistant" else "input_text"
            parts = [{"type": kind, "text": content}] if number % 2 else content
            items.append({"role": message["role"], "content": parts})
        items += [
            {"type": "function_call", "call_id": call["id"], **call["function"]}
            for call in message.get("tool_calls", ())
        ]
    return {
        "model": "m",
        "input": items,
        **({"instructions": system[0]} if system else {}),
        **fields,
    }


def translated(body, **options):
    return json.loads(translate_response_request(json.dumps(body).encode(), **options).body)


@given(conversations())
@settings(deadline=None)
def test_a_conversation_is_the_same_in_both_shapes(messages):
    assert translated(as_request(messages))["messages"] == messages


@given(conversations(), st.data())
@settings(deadline=None)
def test_a_conversation_that_goes_on_begins_with_the_same_bytes(messages, data):
    ends = [at for at, m in enumerate(messages, 1) if m["role"] in {"user", "tool"}]
    whole = len(messages)
    cut = data.draw(st.sampled_from([at for at in ends if _asks(messages, at)]))
    earlier, later = (
        json.dumps(translated(as_request(messages[:at]))["messages"]).encode()
        for at in (cut, whole)
    )
    assert cut == whole or continues(later, earlier)


def _asks(messages, at):
    """Does a request end here? All results of an answer come together."""
    return at == len(messages) or messages[at]["role"] == "assistant"


@given(answers(), st.data())
@settings(deadline=None)
def test_a_stream_says_what_the_whole_answer_says(answer, data):
    text, thoughts, calls, finish = answer
    stream = ResponseStream("t.1", ResponseSettings())
    raw = b"".join([*map(stream.feed, chunks_of(data.draw, answer)), stream.finish()])
    whole = response_body(
        read_completion(completion_of(answer).encode()), ResponseIds("t.1"), ResponseSettings()
    )
    for pieces, streamed in (([raw], True), ([whole], False)):
        read = read_shaped_answer(pieces, stream=streamed, shape="responses")
        assert (read.content, read.reasoning) == (text, thoughts)
        told = [(call.call_id, call.name, json.loads(call.arguments)) for call in read.tool_calls]
        assert told == [(f"c{at}", *call) for at, call in enumerate(calls)]
        assert read.finish_reason == finish
        assert (read.prompt_tokens, read.completion_tokens) == (3, 4)
    events = [json.loads(line[6:]) for line in raw.splitlines() if line.startswith(b"data: ")]
    assert events[-1]["response"] == json.loads(whole)
    check_events(events)


def check_events(events):
    """In their order, each item from its beginning to its end."""
    assert [event["sequence_number"] for event in events] == [*range(len(events))]
    begun, ended = [], []
    for event in events:
        if event["type"] == "response.output_item.added":
            begun.append(event["item"]["id"])
        elif event["type"] == "response.output_item.done":
            ended.append(event["item"]["id"])
        elif "item_id" in event:
            assert event["item_id"] in begun
            assert event["item_id"] not in ended
    assert sorted(begun) == sorted(ended)
    assert len(set(begun)) == len(begun)


@given(answers(), st.data())
@settings(deadline=None)
def test_a_stream_may_break_off_anywhere(answer, data):
    chunks = chunks_of(data.draw, answer)
    stream = ResponseStream("t.1", ResponseSettings())
    until = data.draw(st.integers(0, len(chunks)))
    raw = b"".join([*map(stream.feed, chunks[:until]), stream.fail("No more.", "x_error", "cut")])
    events = [json.loads(line[6:]) for line in raw.splitlines() if line.startswith(b"data: ")]
    assert [event["sequence_number"] for event in events] == [*range(len(events))]
    failed, error = events[-2:]
    assert failed["response"]["error"] == {"code": "cut", "message": "No more."}
    assert error["error"]["message"] == "No more."


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("previous_response_id", "resp_1"),
        ("conversation", "conv_1"),
        ("conversation", {"id": "conv_1"}),
        ("prompt", {"id": "pmpt_1"}),
        ("background", True),
    ],
)
def test_what_relies_on_something_stored_is_refused_in_a_sentence(field, value):
    with pytest.raises(Rejected, match=rf"`{field}` needs a stored .*: \w.*\.$"):
        translated({"input": "hi", field: value})
    assert translated({"input": "hi", field: None}) == translated({"input": "hi"})


def test_a_reference_is_an_answer_that_is_remembered_or_refused():
    items = [{"role": "user", "content": "hi"}, {"type": "item_reference", "id": "msg_t.1"}]
    told = translated({"input": items}, find_answer={"msg_t.1": "Hello."}.get)
    assert told["messages"][1] == {"role": "assistant", "content": "Hello."}
    assert len(translated({"input": [items[0], {**items[1], "id": "rs_t.1"}]})["messages"]) == 1
    with pytest.raises(Rejected, match="send the item itself"):
        translated({"input": items})


def test_formats_tools_and_choices_have_their_place():
    schema = {"type": "object"}
    wanted = {"type": "json_schema", "name": "n", "schema": schema, "strict": True}
    function = {"type": "function", "name": "f", "parameters": schema, "strict": False}
    told = translated(
        {
            "input": "hi",
            "text": {"format": wanted, "verbosity": "low"},
            "tools": [function, {**function, "name": "g"}],
            "tool_choice": {"type": "function", "name": "f"},
            "reasoning": {"effort": "low"},
            "max_output_tokens": 7,
            "top_logprobs": 2,
            "metadata": {"session_id": "s"},
            "store": True,
            "guided_choice": ["a"],
        }
    )
    nested = {"name": "n", "schema": schema, "strict": True}
    assert told["response_format"] == {"type": "json_schema", "json_schema": nested}
    assert told["tools"][1]["function"] == {"name": "g", "parameters": schema, "strict": False}
    assert told["tool_choice"] == {"type": "function", "function": {"name": "f"}}
    assert (told["verbosity"], told["reasoning_effort"], told["max_tokens"]) == ("low", "low", 7)
    assert (told["logprobs"], told["top_logprobs"]) == (True, 2)
    assert told["metadata"] == {"session_id": "s"}
    assert told["guided_choice"] == ["a"], "what nobody here knows passes"
    assert "store" not in told
    allowed = {"type": "allowed_tools", "mode": "required", "tools": [function]}
    told = translated({"input": "hi", "tools": [function], "tool_choice": allowed})
    assert (len(told["tools"]), told["tool_choice"]) == (1, "required")


def test_pictures_and_files_are_parts():
    parts = [
        {"type": "input_text", "text": "See"},
        {"type": "input_image", "image_url": "data:image/png;base64,AA", "detail": "low"},
        {"type": "input_file", "file_data": "data:application/pdf;base64,AA", "filename": "a.pdf"},
    ]
    (message,) = translated({"input": [{"role": "user", "content": parts}]})["messages"]
    assert [part["type"] for part in message["content"]] == ["text", "image_url", "file"]
    assert message["content"][1]["image_url"]["detail"] == "low"
    elsewhere = {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]}
    assert "input_file" in translate_response_request(json.dumps(elsewhere).encode()).native_only


VALID = {
    "model": "m",
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "1"},
        {"type": "reasoning", "summary": []},
    ],
    "tools": [{"type": "function", "name": "f", "parameters": {}}],
    "tool_choice": {"type": "function", "name": "f"},
    "text": {"format": {"type": "json_schema", "schema": {}}},
    "reasoning": {"effort": "low"},
    "include": ["message.output_text.logprobs"],
    "stream": True,
}


@given(st.data())
@settings(deadline=None, max_examples=300)
def test_a_spoilt_request_is_understood_or_refused_in_a_sentence(data):
    body = spoilt(data.draw, json.loads(json.dumps(VALID)))
    try:
        told, sentence = translated(body)["messages"], "."
    except Rejected as error:
        told, sentence = [], error.detail
    assert isinstance(told, list)
    assert sentence.endswith(".")


@given(JSON | st.binary(max_size=50))
@settings(deadline=None, max_examples=200)
def test_anything_is_understood_or_refused_in_a_sentence(value):
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    with pytest.raises(Rejected) as found:
        translate_response_request(body)
    assert found.value.detail.endswith(".")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"input":"hi","x":"%s"}' % (b"x" * MAX_OTHER_BYTES), Reason.TOO_LARGE),
        (b'{"input":[%s]}' % b",".join([b"{}"] * MAX_TOKENS), Reason.TOO_LARGE),
        (b'{"input":%s}' % (b"[" * 100_000), Reason.TOO_DEEP),
        (b'{"input":"hi', Reason.MALFORMED),
    ],
)
def test_too_much_is_refused_for_what_it_is(body, reason):
    with pytest.raises(Rejected) as found:
        translate_response_request(body)
    assert found.value.reason is reason


def test_braces_in_a_text_are_no_values():
    code = "{" * (2 * MAX_TOKENS)
    (message,) = translated({"input": [{"role": "user", "content": code}]})["messages"]
    assert message["content"] == code
