"""What a client asks for is checked whole before anything is done for it."""

import json

import pytest

from upswing.errors import Reason
from upswing.serve.asked import BadRequest, read_asked

LEAST = {"model": "tiny", "messages": [{"role": "user", "content": "hi"}]}


def asked(**changes):
    return read_asked(json.dumps({**LEAST, **changes}).encode())


WRONG = [
    ("a model that is no text", {"model": 7}, "model"),
    ("no model", {"model": ""}, "model"),
    ("no messages", {"messages": []}, "messages"),
    ("messages that are none", {"messages": "hi"}, "messages"),
    ("a role that nobody has", {"messages": [{"role": "king", "content": "hi"}]}, "messages[0].role"),
    ("a picture", {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content[0]"),
    ("a temperature in words", {"temperature": "hot"}, "temperature"),
    ("a temperature below zero", {"temperature": -0.1}, "temperature"),
    ("top_p of nothing", {"top_p": 0}, "top_p"),
    ("no tokens", {"max_tokens": 0}, "max_tokens"),
    ("half a token", {"max_completion_tokens": 1.5}, "max_completion_tokens"),
    ("two answers", {"n": 2}, "n"),
    ("a seed of 65 bits", {"seed": 1 << 64}, "seed"),
    ("a seed in words", {"seed": "one"}, "seed"),
    ("seventeen stop texts", {"stop": ["x"] * 17}, "stop"),
    ("top_logprobs without logprobs", {"top_logprobs": 2}, "top_logprobs"),
    ("too many top_logprobs", {"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
    ("stream options without a stream", {"stream_options": {"include_usage": True}}, "stream_options"),
    ("a penalty", {"frequency_penalty": 0.5}, "frequency_penalty"),
    ("a promise of JSON", {"response_format": {"type": "json_object"}}, "response_format"),
    ("tools that are none", {"tools": ["add"]}, "tools[0]"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "param"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])  # fmt: skip
def test_a_wrong_field_is_named(changes, param):
    with pytest.raises(BadRequest) as caught:
        asked(**changes)
    assert caught.value.param == param
    assert caught.value.reason is Reason.SCHEMA
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"model": NaN}', b"null"]
)
def test_what_is_no_request_is_no_crash(body):
    with pytest.raises(BadRequest):
        read_asked(body)


def test_what_is_not_said_has_openais_defaults():
    told = asked()
    assert (told.prompt.temperature, told.prompt.top_p, told.prompt.max_tokens) == (1.0, 1.0, None)
    assert told.prompt.top_logprobs is None
    assert [told.stream, told.usage, told.token_ids] == [False, False, False]


def test_what_changes_nothing_is_taken():
    told = asked(
        n=1, frequency_penalty=0, logit_bias={}, response_format={"type": "text"}, user="u"
    )
    assert told.prompt.model == "tiny"


def test_the_newer_name_of_the_limit_wins():
    assert asked(max_tokens=5, max_completion_tokens=7).prompt.max_tokens == 7


def test_one_stop_text_is_a_list_of_one():
    assert asked(stop="END").prompt.stop == ("END",)


def test_logprobs_alone_list_no_others():
    assert asked(logprobs=True).prompt.top_logprobs == 0


def test_messages_become_what_chat_templates_take():
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    told = asked(
        messages=[
            {"role": "developer", "content": [{"type": "text", "text": "Be "}, {"type": "text", "text": "kind."}]},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "2"},
        ],
        tools=[{"type": "function", "function": {"name": "add"}}],
    )  # fmt: skip
    system, assistant, tool = told.prompt.messages
    assert system == {"role": "system", "content": "Be kind."}
    assert assistant["content"] == ""
    assert assistant["tool_calls"][0]["function"]["arguments"] == {"a": 1}
    assert tool == {"role": "tool", "content": "2", "tool_call_id": "c1"}
    assert told.prompt.tools


def test_tools_that_may_not_be_used_are_not_shown():
    tools = [{"type": "function", "function": {"name": "add"}}]
    assert asked(tools=tools, tool_choice="none").prompt.tools is None
