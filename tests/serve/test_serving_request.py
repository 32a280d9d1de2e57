"""What a client asks for is checked whole before anything is done for it."""

import json

import pytest

from upswing.errors import Reason
from upswing.serve.core.chat_request import InvalidChatRequest, parse_chat_request

LEAST = {"model": "tiny", "messages": [{"role": "user", "content": "hi"}]}
ADD = {"type": "function", "function": {"name": "add"}}


def asked(**changes):
    return parse_chat_request(json.dumps({**LEAST, **changes}).encode())


WRONG = [
    ("a model that is no text", {"model": 7}, "model"),
    ("no model", {"model": ""}, "model"),
    ("no messages", {"messages": []}, "messages"),
    ("messages that are none", {"messages": "hi"}, "messages"),
    (
        "a role that nobody has",
        {"messages": [{"role": "king", "content": "hi"}]},
        "messages[0].role",
    ),
    (
        "a picture",
        {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
        "messages[0].content[0]",
    ),
    ("a temperature in words", {"temperature": "hot"}, "temperature"),
    ("a temperature below zero", {"temperature": -0.1}, "temperature"),
    ("top_p of nothing", {"top_p": 0}, "top_p"),
    ("no tokens", {"max_tokens": 0}, "max_tokens"),
    ("half a token", {"max_completion_tokens": 1.5}, "max_completion_tokens"),
    ("nine answers", {"n": 9}, "n"),
    ("no answer", {"n": 0}, "n"),
    ("a seed of 65 bits", {"seed": 1 << 64}, "seed"),
    ("a seed in words", {"seed": "one"}, "seed"),
    ("seventeen stop texts", {"stop": ["x"] * 17}, "stop"),
    ("top_logprobs without logprobs", {"top_logprobs": 2}, "top_logprobs"),
    ("too many top_logprobs", {"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
    (
        "stream options without a stream",
        {"stream_options": {"include_usage": True}},
        "stream_options",
    ),
    ("a penalty", {"frequency_penalty": 0.5}, "frequency_penalty"),
    ("a format that is none", {"response_format": {"type": "xml"}}, "response_format"),
    ("a schema without one", {"response_format": {"type": "json_schema"}}, "response_format"),
    ("a call without tools", {"tool_choice": "required"}, "tool_choice"),
    (
        "a call of nobody",
        {"tool_choice": {"type": "function", "function": {"name": "x"}}},
        "tool_choice",
    ),
    ("a choice that is none", {"tool_choice": "perhaps"}, "tool_choice"),
    ("tools that are none", {"tools": ["add"]}, "tools[0]"),
    ("a tool of another type", {"tools": [ADD, {"type": "web_search"}]}, "tools[1]"),
    ("an empty tool", {"tools": [{}]}, "tools[0]"),
    ("a tool without a name", {"tools": [{"type": "function", "function": {}}]}, "tools[0]"),
    ("functions of old", {"functions": [{"name": "add"}]}, "functions"),
    ("a call of old", {"function_call": {"name": "add"}}, "function_call"),
    ("sound", {"modalities": ["text", "audio"]}, "modalities"),
    ("a voice", {"audio": {"voice": "alloy"}}, "audio"),
    ("a search", {"web_search_options": {}}, "web_search_options"),
    ("the best forty", {"top_k": 40}, "top_k"),
    ("a least probability", {"min_p": 0.1}, "min_p"),
    ("a penalty of others", {"repetition_penalty": 1.1}, "repetition_penalty"),
]


@pytest.mark.parametrize(
    ("changes", "param"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG]
)
def test_a_wrong_field_is_named(changes, param):
    with pytest.raises(InvalidChatRequest) as caught:
        asked(**changes)
    assert caught.value.param == param
    assert caught.value.reason is Reason.SCHEMA
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"model": NaN}', b"null"]
)
def test_what_is_no_request_is_no_crash(body):
    with pytest.raises(InvalidChatRequest):
        parse_chat_request(body)


def test_what_is_not_said_has_openais_defaults():
    told = asked()
    assert (told.generation.temperature, told.generation.top_p, told.generation.max_tokens) == (
        1.0,
        1.0,
        None,
    )
    assert told.generation.top_logprobs is None
    assert [told.stream, told.include_usage, told.return_token_ids] == [False, False, False]


def test_what_changes_nothing_is_taken():
    told = asked(
        n=1,
        frequency_penalty=0,
        logit_bias={},
        response_format={"type": "text"},
        user="u",
        top_k=-1,
        min_p=0.0,
        repetition_penalty=1.0,
        modalities=["text"],
        functions=[],
        function_call="auto",
        prediction={"type": "content", "content": "x"},
    )
    assert told.generation.model == "tiny"


def test_the_newer_name_of_the_limit_wins():
    assert asked(max_tokens=5, max_completion_tokens=7).generation.max_tokens == 7


def test_one_stop_text_is_a_list_of_one():
    assert asked(stop="END").generation.stop == ("END",)


def test_logprobs_alone_list_no_others():
    assert asked(logprobs=True).generation.top_logprobs == 0


def test_messages_become_what_chat_templates_take():
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    told = asked(
        messages=[
            {
                "role": "developer",
                "content": [{"type": "text", "text": "Be "}, {"type": "text", "text": "kind."}],
            },
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "2"},
        ],
        tools=[{"type": "function", "function": {"name": "add"}}],
    )
    system, assistant, tool = told.generation.messages
    assert system == {"role": "system", "content": "Be kind."}
    assert assistant["content"] == ""
    assert assistant["tool_calls"][0]["function"]["arguments"] == {"a": 1}
    assert tool == {"role": "tool", "content": "2", "tool_call_id": "c1"}
    assert told.generation.tools


def test_tools_that_may_not_be_used_are_not_shown():
    tools = [{"type": "function", "function": {"name": "add"}}]
    assert asked(tools=tools, tool_choice="none").generation.tools is None


# --- what an answer has to look like -------------------------------------------------------------

POINT = {
    "type": "object",
    "properties": {"at": {"$ref": "#/$defs/Place"}},
    "required": ["at"],
    "$defs": {"Place": {"type": "object", "properties": {"x": {"type": "integer"}}}},
}
MOVE = {"type": "function", "function": {"name": "move", "parameters": POINT}}
STOP = {"type": "function", "function": {"name": "stop"}}
NAMED = {"type": "function", "function": {"name": "stop"}}
WANTED = {"type": "json_schema", "json_schema": {"name": "p", "schema": POINT}}


def schema_of(**changes):
    wanted = asked(**changes)
    return wanted.generation.output_schema, wanted.constrained_by


def test_a_format_and_a_call_become_a_schema():
    assert schema_of() == (None, "")
    assert schema_of(tools=[MOVE], tool_choice="auto") == (None, "")
    assert schema_of(response_format={"type": "json_object"}) == (
        {"type": "object"},
        "response_format",
    )
    assert schema_of(response_format=WANTED) == (POINT, "response_format")
    schema, blamed = schema_of(tools=[MOVE, STOP], tool_choice=NAMED)
    assert blamed == "tool_choice"
    assert schema["properties"]["name"] == {"const": "stop"}
    assert schema["properties"]["arguments"] == {"type": "object"}


@pytest.mark.parametrize("fields", [{"tool_choice": "required"}, {"response_format": WANTED}])
def test_every_alternative_keeps_what_it_defines(fields):
    """A reference leads to the top of a schema, and there is one top."""
    import jsonschema

    schema, _ = schema_of(tools=[MOVE, STOP], **fields)
    checker = jsonschema.Draft202012Validator(schema)
    checker.check_schema(schema)
    for answer, right in [
        ({"name": "move", "arguments": {"at": {"x": 1}}}, True),
        ({"name": "move", "arguments": {"at": {"x": "one"}}}, False),
        ({"name": "stop", "arguments": {}}, True),
        ({"name": "fly", "arguments": {}}, False),
        ({"at": {"x": 1}}, "response_format" in fields),
        ({"at": {"x": "one"}}, False),
    ]:
        assert checker.is_valid(answer) is right, answer


def test_one_of_is_any_of():
    schema = {"oneOf": [{"const": 1}, {"items": {"oneOf": [{"const": 2}]}}]}
    told, _ = schema_of(response_format={"type": "json_schema", "json_schema": {"schema": schema}})
    assert told == {"anyOf": [{"const": 1}, {"items": {"anyOf": [{"const": 2}]}}]}


def test_every_choice_has_a_seed_of_its_own_and_the_first_is_as_if_alone():
    wanted = asked(n=8, seed=(1 << 63) - 1)
    seeds = [wanted.choice(index).seed for index in range(wanted.choices)]
    assert seeds[0] == (1 << 63) - 1
    assert len(set(seeds)) == 8
    assert all(-(1 << 63) <= seed < 1 << 63 for seed in seeds)
    assert [asked(n=3).choice(index).seed for index in range(3)] == [None] * 3
