"""Messages: do requests and answers mean the same in chat, whatever they hold and however they come?"""

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
from upswing.anthropic.answer import message_body
from upswing.anthropic.errors import ThreadUnsupported
from upswing.anthropic.request import MessageSettings, translate_message_request
from upswing.anthropic.stream import MessageStream
from upswing.errors import Reason, Rejected
from upswing.gateway.core.episodes import continues
from upswing.gateway.core.native_answers import read_shaped_answer
from upswing.openai.completions import read_completion
from upswing.openai.translation import MAX_TOKENS

SHOWN = MessageSettings(thinking=True)


def as_request(messages, **fields):
    """The conversation as a client of Messages writes it: results of tools are a turn of the user."""
    system = [m["content"] for m in messages if m["role"] == "system"]
    turns = []
    for message in (m for m in messages if m["role"] != "system"):
        content = message.get("content")
        if message["role"] == "tool":
            block = {"type": "tool_result", "tool_use_id": message["tool_call_id"]}
            if turns[-1]["role"] != "user":
                turns.append({"role": "user", "content": []})
            turns[-1]["content"].append(block | {"content": content})
            continue
        blocks = [{"type": "text", "text": content}] if content is not None else []
        for call in message.get("tool_calls", ()):
            function = call["function"]
            use = {"type": "tool_use", "id": call["id"], "name": function["name"]}
            blocks.append(use | {"input": json.loads(function["arguments"])})
        turns.append({"role": message["role"], "content": blocks})
    whole = {"model": "m", "max_tokens": 9, "messages": turns, **fields}
    return whole | ({"system": [{"type": "text", "text": system[0]}]} if system else {})


def translated(body):
    return json.loads(translate_message_request(json.dumps(body).encode()).body)


def same(messages):
    """Arguments of calls as values: how their JSON is spaced does not matter."""
    messages = json.loads(json.dumps(messages))
    for message in messages:
        for call in message.get("tool_calls", ()):
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return messages


@given(conversations())
@settings(deadline=None)
def test_a_conversation_is_the_same_in_both_shapes(messages):
    assert same(translated(as_request(messages))["messages"]) == same(messages)


@given(conversations(), st.data())
@settings(deadline=None)
def test_a_conversation_that_goes_on_begins_with_the_same_bytes(messages, data):
    whole = len(messages)
    ends = [at for at in range(1, whole) if messages[at]["role"] == "assistant"]
    cut = data.draw(st.sampled_from([*ends, whole]))
    earlier, later = (
        json.dumps(translated(as_request(messages[:at]))["messages"]).encode()
        for at in (cut, whole)
    )
    assert cut == whole or continues(later, earlier)


@given(answers(), st.data())
@settings(deadline=None)
def test_a_stream_says_what_the_whole_answer_says(answer, data):
    text, thoughts, calls, finish = answer
    stream = MessageStream("t.1", SHOWN)
    raw = b"".join([*map(stream.feed, chunks_of(data.draw, answer)), stream.finish()])
    whole = message_body(read_completion(completion_of(answer).encode()), "t.1", SHOWN)
    for pieces, streamed in (([raw], True), ([whole], False)):
        read = read_shaped_answer(pieces, stream=streamed, shape="messages")
        assert (read.content, read.reasoning) == (text, thoughts)
        told = [(call.call_id, call.name, json.loads(call.arguments)) for call in read.tool_calls]
        assert told == [(f"c{at}", *call) for at, call in enumerate(calls)]
        assert read.finish_reason == finish
        assert (read.prompt_tokens, read.completion_tokens) == (3, 4)
    check_events([json.loads(line[6:]) for line in raw.splitlines() if line.startswith(b"data: ")])


def check_events(events):
    """In their order, each block from its beginning to its end."""
    kinds = [event["type"] for event in events]
    assert (kinds[0], kinds[-2:]) == ("message_start", ["message_delta", "message_stop"])
    begun = [event["index"] for event in events if event["type"] == "content_block_start"]
    assert begun == [*range(len(begun))]
    ended = []
    for event in events:
        if event["type"] == "content_block_stop":
            ended.append(event["index"])
        elif event["type"] == "content_block_delta":
            assert event["index"] in begun
            assert event["index"] not in ended
    assert sorted(ended) == begun


@given(answers(), st.data())
@settings(deadline=None)
def test_a_stream_may_break_off_anywhere(answer, data):
    chunks = chunks_of(data.draw, answer)
    stream = MessageStream("t.1", SHOWN)
    until = data.draw(st.integers(0, len(chunks)))
    raw = b"".join([*map(stream.feed, chunks[:until]), stream.fail("No.", "upstream_error", "cut")])
    event, told = raw.decode().strip().splitlines()[-2:]
    assert event == "event: error"
    error = {"type": "api_error", "message": "No."}
    assert json.loads(told[6:]) == {"type": "error", "error": error}


def test_thoughts_are_shown_to_who_asks_for_them():
    body = completion_of(("a", "hm", [], "stop")).encode()
    told = json.loads(message_body(read_completion(body), "t.1", MessageSettings()))
    assert [block["type"] for block in told["content"]] == ["text"]


def test_a_stored_conversation_is_refused_by_the_code_that_clients_know():
    for thread in ({"type": "create"}, {"type": "continue", "previous_message_id": "msg_1"}):
        with pytest.raises(ThreadUnsupported, match="send the whole conversation"):
            translated(as_request([{"role": "user", "content": "hi"}], thread=thread))


def test_a_tool_that_failed_says_so_in_words():
    result = {"type": "tool_result", "tool_use_id": "c", "is_error": True}
    for content, told in (("no net", "Error: no net"), ("Error: x", "Error: x"), (None, "Error:")):
        block = result | ({"content": content} if content else {})
        asked = {"max_tokens": 9, "messages": [{"role": "user", "content": [block]}]}
        assert translated(asked)["messages"][0]["content"] == told


def test_formats_tools_and_choices_have_their_place():
    schema = {"type": "object"}
    tool = {"name": "f", "description": "d", "input_schema": schema, "cache_control": {}}
    fields = {
        "tools": [tool],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
        "stop_sequences": ["END"],
        "output_config": {"format": {"type": "json_schema", "schema": schema}},
        "metadata": {"user_id": "u"},
        "top_k": 3,
        "service_tier": "auto",
    }
    told = translated(as_request([{"role": "user", "content": "hi"}], **fields))
    assert told["tools"][0]["function"] == {"name": "f", "description": "d", "parameters": schema}
    assert (told["tool_choice"], told["parallel_tool_calls"]) == ("required", False)
    assert (told["stop"], told["top_k"], told["metadata"]) == (["END"], 3, {"user_id": "u"})
    assert told["response_format"]["json_schema"]["schema"] == schema
    assert "service_tier" not in told
    for choice, chat in (("auto", "auto"), ("none", "none")):
        asked = as_request([{"role": "user", "content": "hi"}], tool_choice={"type": choice})
        assert translated(asked)["tool_choice"] == chat


def test_pictures_and_documents_are_parts_in_their_order():
    source = {"type": "base64", "media_type": "image/png", "data": "AA"}
    blocks = [
        {"type": "text", "text": "See"},
        {"type": "image", "source": source},
        {"type": "image", "source": {"type": "url", "url": "https://h/a.png"}},
        {"type": "document", "source": {"type": "text", "data": "words"}},
        {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "1"}]},
        {"type": "text", "text": "?"},
    ]
    asked = {"max_tokens": 9, "messages": [{"role": "user", "content": blocks}]}
    first, result, last = translated(asked)["messages"]
    assert [part["type"] for part in first["content"]] == ["text", "image_url", "image_url", "text"]
    assert first["content"][1]["image_url"]["url"] == "data:image/png;base64,AA"
    assert (result["role"], result["content"], last["content"]) == ("tool", "1", "?")
    stored = [{"type": "image", "source": {"type": "file", "file_id": "f"}}]
    asked = {"max_tokens": 9, "messages": [{"role": "user", "content": stored}]}
    assert "image" in translate_message_request(json.dumps(asked).encode()).native_only


VALID = {
    "model": "m",
    "max_tokens": 9,
    "system": [{"type": "text", "text": "Be kind."}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "1"}]},
    ],
    "tools": [{"name": "f", "input_schema": {}}],
    "tool_choice": {"type": "tool", "name": "f"},
    "stop_sequences": ["END"],
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "output_config": {"format": {"type": "json_schema", "schema": {}}},
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
        translate_message_request(body)
    assert found.value.detail.endswith(".")


def test_too_many_blocks_are_refused_for_what_they_are():
    blocks = b",".join([b'{"type":"text","text":""}'] * (MAX_TOKENS // 6))
    body = b'{"max_tokens":1,"messages":[{"role":"user","content":[%s]}]}' % blocks
    with pytest.raises(Rejected) as found:
        translate_message_request(body)
    assert found.value.reason is Reason.TOO_LARGE
