"""A model that writes calls: are they read, whole and in a stream, and does the next turn go on from them?"""

import asyncio
import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upswing.dataset.transcript import action_of
from upswing.errors import Transient
from upswing.gateway.core.answers import read_answer, read_choices
from upswing.serve.core.engine import TokenChunk
from upswing.serve.core.tool_call_texts import ToolCallTexts
from upswing.serve.core.tool_calls import (
    ParsedReply,
    ParsedToolCall,
    StreamingToolCallParser,
    parse_tool_calls,
)
from upswing.serve.server import ModelServer

TOOLS = {"add", "sell"}
ADD = '{"name": "add", "arguments": {"a": 1}}'
CALL = ParsedToolCall("add", '{"a": 1}')
FORMS = [
    (f"<tool_call>{ADD}</tool_call>", "", [CALL]),
    (f"<tool_call>\n{ADD}\n</tool_call>", "", [CALL]),
    (f"I add.\n<tool_call>{ADD}</tool_call>\n", "I add.", [CALL]),
    (f"<tool_call>{ADD}</tool_call> and <tool_call>{ADD}</tool_call>!", "and\n!", [CALL, CALL]),
    (f"<tool_call>[{ADD}, {ADD}]</tool_call>", "", [CALL, CALL]),
    (f"<tool_call>{ADD}", "", [CALL]),
    (f"\n {ADD}\n", "", [CALL]),
    ('{"name": "add", "parameters": {"a": 1}}', "", [CALL]),
    ('{"type": "function", "name": "add", "parameters": {}}', "", [ParsedToolCall("add", "{}")]),
    ('<tool_call>{"name": "add", "arguments": "{\\"a\\": 1}"}</tool_call>', "", [CALL]),
    ('<tool_call>{"name": "add"}</tool_call>', "", [ParsedToolCall("add", "{}")]),
    (
        '<tool_call>{"name": "unknown", "arguments": {}}</tool_call>',
        "",
        [ParsedToolCall("unknown", "{}")],
    ),
    (
        '<tool_call>{"name": "add", "arguments": {"a": "</tool_call>"}}</tool_call>',
        "",
        [ParsedToolCall("add", '{"a": "</tool_call>"}')],
    ),
    (
        '<tool_call>{"name": "add", "arguments": {"a": "é"}}</tool_call>',
        "",
        [ParsedToolCall("add", '{"a": "é"}')],
    ),
]
TEXTS = [
    "",
    "So it is.",
    "<tool_call>",
    "<tool_call></tool_call>",
    "<tool_call>[]</tool_call>",
    "<tool_call>add(1)</tool_call>",
    f"<tool_call>{ADD}</tool_call><tool_call>oops</tool_call>",
    f"<tool_call>{ADD} </tool",
    '<tool_call>{"name": "add", "arguments": {"a": 1</tool_call>',
    '<tool_call>{"name": "", "arguments": {}}</tool_call>',
    '<tool_call>{"name": ["add"], "arguments": {}}</tool_call>',
    '<tool_call>{"name": "add", "arguments": [1]}</tool_call>',
    '<tool_call>{"name": "add", "arguments": {"a": NaN}}</tool_call>',
    '<tool_call>{"name": "add", "arguments": {"a": 1e999}}</tool_call>',
    '<tool_call>{"name": "add", "arguments": {"a": "\\ud800"}}</tool_call>',
    '<tool_call>{"name": "add", "arguments": {"a": ' + "[" * 100_000,
    '{"name": "Ann", "arguments": {}}',
    '{"name": "add"}',
    '{"name": ["add"], "arguments": {}}',
    f"{ADD} is what I would call.",
    f"I call {ADD}",
    "{",
]


@pytest.mark.parametrize(("text", "content", "calls"), FORMS)
def test_every_form_of_a_call_is_read(text, content, calls):
    assert parse_tool_calls(text, TOOLS) == ParsedReply(content, tuple(calls))


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_no_call_stays_text(text):
    assert parse_tool_calls(text, TOOLS) == ParsedReply(text)


words = st.lists(
    st.sampled_from([ADD, "<tool_call>", "</tool_call>", "<tool", "_call>", " ", "\n", "{", "so"])
)


@given(words.map("".join), st.lists(st.integers(0, 60)))
def test_however_a_text_is_cut_its_pieces_say_what_it_says(text, cuts):
    listener = StreamingToolCallParser(TOOLS)
    edges = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    shown = "".join(listener.feed(text[a:b]) for a, b in pairwise(edges))
    rest = listener.finish()
    assert ParsedReply(shown + rest.content, rest.calls) == parse_tool_calls(text, TOOLS)


def test_words_are_shown_while_they_come():
    listener = StreamingToolCallParser(TOOLS)
    shown = [listener.feed(piece) for piece in ("It is", " 3 <", " 4.", " <tool_call>", ADD)]
    assert shown == ["It is", " 3", " < 4.", "", ""]


# --- the server ----------------------------------------------------------------------------------


class Scripted:
    """A labelled double of an engine: it says what it is told to say, a character at a time."""

    base = "scripted"

    def __init__(self, text, *, follows_schemas=True):
        self.text, self.prompts, self.follows_schemas = text, [], follows_schemas

    def model_names(self):
        return ("scripted",)

    def stats(self):
        return None

    async def generate(self, prompt):
        self.prompts.append(prompt)
        for at, letter in enumerate(self.text):
            first = {"prompt_token_ids": (1, 2)} if not at else {}
            yield TokenChunk(text=letter, token_ids=(ord(letter),), logprobs=(-0.5,), **first)
        yield TokenChunk(token_ids=(0,), logprobs=(-0.1,), finish_reason="stop")


def serving(engine):
    return ModelServer(engine, clock=lambda: 1.0, new_id=iter("abc").__next__)


async def post(server, status=200, **changes):
    """The answer's body."""
    tools = [{"type": "function", "function": {"name": name}} for name in sorted(TOOLS)]
    least = {"model": "scripted", "messages": [{"role": "user", "content": "hi"}], "tools": tools}
    body, sent = json.dumps({**least, **changes}).encode(), []
    messages = [{"type": "http.request", "body": body}]

    async def receive():
        return messages.pop() if messages else await asyncio.Event().wait()

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": []}
    await server(scope, receive, send)
    assert sent[0]["status"] == status, sent
    return b"".join(message.get("body", b"") for message in sent)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_gets_calls_with_ids_and_the_words_beside_them(stream):
    text = f"I add.\n<tool_call>{ADD}</tool_call>\n<tool_call>{ADD}</tool_call>"
    raw = await post(serving(Scripted(text)), stream=stream, return_token_ids=True, logprobs=True)
    answer = read_answer([raw], stream=stream)
    assert (answer.content, answer.finish_reason) == ("I add.", "tool_calls")
    assert [(c.call_id, c.name, c.arguments) for c in answer.tool_calls] == [
        ("call_a_0", "add", '{"a": 1}'),
        ("call_a_1", "add", '{"a": 1}'),
    ]
    assert "".join(map(chr, answer.token_ids[:-1])) == text == answer.raw_text
    assert len(answer.logprobs) == len(answer.token_ids)
    assert action_of(answer)["raw_response"] == text, "what trains is what the model wrote"


async def test_an_answer_with_nothing_but_a_call_has_no_content():
    server = serving(Scripted(f"<tool_call>{ADD}</tool_call>"))
    (choice,) = json.loads(await post(server))["choices"]
    assert choice["message"]["content"] is None
    assert "text" not in choice


async def test_in_a_stream_the_calls_come_before_the_chunk_that_ends_it():
    raw = await post(serving(Scripted(f"<tool_call>{ADD}</tool_call>")), stream=True)
    *chunks, done = raw.decode().removesuffix("\n\n").split("\n\n")
    assert done == "data: [DONE]"
    told = [json.loads(line.removeprefix("data: "))["choices"][0] for line in chunks]
    assert [choice["finish_reason"] for choice in told] == [None, None, "tool_calls"]
    (call,) = told[1]["delta"]["tool_calls"]
    assert (call["index"], call["type"], call["function"]["name"]) == (0, "function", "add")
    assert told[2]["delta"] == {}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("changes", [{"tool_choice": "none"}, {"tools": None}, {"tools": []}])
async def test_where_no_tool_may_be_called_a_call_is_text(changes, stream):
    engine = Scripted(ADD)
    answer = read_answer([await post(serving(engine), stream=stream, **changes)], stream=stream)
    assert (answer.content, answer.tool_calls, answer.finish_reason) == (ADD, [], "stop")
    assert engine.prompts[0].tools is None, "the template is not told of them either"


async def test_the_openai_client_understands_calls():
    openai = pytest.importorskip("openai")
    text = f"<tool_call>{ADD}</tool_call>"
    told = json.loads(await post(serving(Scripted(text))))
    (choice,) = openai.types.chat.ChatCompletion.model_validate(told).choices
    assert choice.message.tool_calls[0].function.arguments == '{"a": 1}'


# --- the next turn -------------------------------------------------------------------------------


def turn(answer):
    """The messages with which an agent comes back."""
    message = json.loads(answer)["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "2"}
    return [{"role": "user", "content": "hi"}, message, result]


async def test_the_next_turn_goes_on_with_what_the_model_wrote():
    text = 'Now.<tool_call>{"arguments":{"a":1},"name":"add"}</tool_call>'
    engine = Scripted(text)
    server = serving(engine)
    back = turn(await post(server))
    await post(server, messages=back)
    assert engine.prompts[1].messages[1] == {"role": "assistant", "content": text}
    assert engine.prompts[1].messages[2]["role"] == "tool"


@pytest.mark.parametrize("change", ["name", "arguments", "content", "id"])
async def test_a_call_that_the_client_changed_is_told_as_the_client_tells_it(change):
    engine = Scripted(f"<tool_call>{ADD}</tool_call>")
    server = serving(engine)
    back = turn(await post(server))
    call = back[1]["tool_calls"][0]
    if change == "content":
        back[1]["content"] = "I did not say that."
    elif change == "id":
        call["id"] = "call_of_somebody_else"
    else:
        call["function"][change] = {"name": "sell", "arguments": '{"a": 2}'}[change]
    await post(server, messages=back)
    assert engine.prompts[1].messages[1]["tool_calls"][0]["function"]["name"] in TOOLS


def test_the_oldest_words_are_forgotten_first():
    known = ToolCallTexts(max_entries=2, max_characters=10)

    def restored(name):
        call = {"id": name, "function": {"name": "add", "arguments": {"a": 1}}}
        told = known.restore({"role": "assistant", "content": "", "tool_calls": [call]})
        return told["content"]

    for name in "abc":
        known.remember(name, f"wrote {name}"[:5] + name, ParsedReply("", (CALL,)))
    assert [restored(name) for name in "abc"] == ["", "", "wrotec"]


async def test_a_call_that_has_to_be_made_is_read_from_bare_json():
    engine = Scripted(ADD)
    raw = await post(serving(engine), tool_choice="required")
    (choice,) = json.loads(raw)["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["tool_calls"][0]["function"]["name"] == "add"
    assert engine.prompts[0].output_schema["anyOf"][0]["required"] == ["name", "arguments"]


@pytest.mark.parametrize("field", ["tool_choice", "response_format"])
async def test_what_an_engine_cannot_promise_is_refused_by_its_name(field):
    wanted = {"tool_choice": "required", "response_format": {"type": "json_object"}}[field]
    server = serving(Scripted(ADD, follows_schemas=False))
    refused = json.loads(await post(server, 400, **{field: wanted}))["error"]
    assert refused["param"] == field
    assert f"`{field}` cannot be promised" in refused["message"]


@pytest.mark.parametrize("stream", [False, True])
async def test_several_choices_are_read_each_as_one(stream):
    """They come in turn, each with its index, its ids and calls of its own; the prompt is counted once."""
    engine = Scripted(f"Go. <tool_call>{ADD}</tool_call>")
    options = {"stream_options": {"include_usage": True}} if stream else {}
    raw = await post(serving(engine), stream=stream, n=3, return_token_ids=True, **options)
    answers = read_choices([raw], stream=stream)
    assert [answer.content for answer in answers] == ["Go."] * 3
    assert len({answer.tool_calls[0].call_id for answer in answers}) == 3
    assert all(answer.prompt_token_ids == [1, 2] for answer in answers)
    assert all(len(answer.token_ids) == len(engine.text) + 1 for answer in answers)
    assert answers[0].prompt_tokens == 2
    assert answers[0].completion_tokens == 3 * (len(engine.text) + 1)
    assert len(engine.prompts) == 3


class Breaking(Scripted):
    """A labelled double: its second answer breaks off."""

    async def generate(self, prompt):
        broken = bool(self.prompts)
        async for chunk in super().generate(prompt):
            if broken and chunk.finish_reason:
                raise Transient("It is closing.")
            yield chunk


async def test_when_one_choice_fails_the_answer_does_and_nothing_is_left_behind():
    before = asyncio.all_tasks()
    await post(serving(Breaking("word")), 503, n=2, tools=None)
    assert asyncio.all_tasks() == before
