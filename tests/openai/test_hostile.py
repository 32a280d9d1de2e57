"""Requests and answers of any form whatever: is each translated or refused with a sentence, and never anything else?"""

import json
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from upswing.anthropic.answer import message_body
from upswing.anthropic.request import MessageSettings, translate_message_request
from upswing.anthropic.stream import MessageStream
from upswing.errors import Rejected
from upswing.openai.completions import read_completion
from upswing.openai.responses_answer import ResponseIds, response_body
from upswing.openai.responses_request import ResponseSettings, translate_response_request
from upswing.openai.responses_stream import ResponseStream

ODD = [None, True, False, 0, -1, 1.5, "", "x", "a\ud800b", [], {}, [[]], [{}], [None], 10**30]
KINDS = [
    "text",
    "image",
    "document",
    "tool_use",
    "tool_result",
    "thinking",
    "server_tool_use",
    "input_text",
    "output_text",
    "refusal",
    "input_image",
    "input_file",
    "input_audio",
    "message",
    "function_call",
    "function_call_output",
    "reasoning",
    "item_reference",
    "custom",
    "function",
    "web_search",
    "base64",
    "url",
    "file",
    "json_schema",
    "allowed_tools",
    "auto",
    "any",
    "tool",
    "none",
    "enabled",
]
GOOD = {
    "text": "hi",
    "id": "c1",
    "name": "f",
    "input": {"a": "INPUT"},
    "tool_use_id": "c1",
    "content": [],
    "is_error": True,
    "source": {"type": "url", "media_type": "image/png", "data": "QQ==", "url": "http://h/a"},
    "title": "t",
    "role": "user",
    "call_id": "c1",
    "arguments": "{}",
    "output": [],
    "refusal": "no",
    "image_url": "http://h/a",
    "file_data": "QQ==",
    "input_audio": {"data": "QQ=="},
}
FIELDS = [
    "system",
    "tools",
    "tool_choice",
    "stop_sequences",
    "thinking",
    "output_config",
    "output_format",
    "container",
    "metadata",
    "stream",
    "instructions",
    "text",
    "reasoning",
    "include",
    "top_logprobs",
    "max_output_tokens",
    "prompt",
    "n",
    "model",
]
SEEDS = st.integers(0, 2**32)


def block(chance, depth=2):
    """A block or an item: fields as they should be, missing, or odd."""
    made = {"type": chance.choice(KINDS)}
    for name, value in GOOD.items():
        match chance.randrange(8):
            case 0 | 1 | 2:
                made[name] = value
            case 3:
                made[name] = chance.choice(ODD)
            case 4 if depth:
                made[name] = several(chance, depth - 1)
    return made


def several(chance, depth=2):
    """Blocks, or something odd in their place."""
    if chance.random() < 0.15:
        return chance.choice(ODD)
    return [block(chance, depth) for _ in range(chance.randrange(4))]


def others(chance):
    names = chance.sample(FIELDS, chance.randrange(4))
    return {name: chance.choice([several(chance, 1), block(chance, 1)]) for name in names}


def check_translation(translate, tree, broken):
    raw = json.dumps(tree).encode()
    if broken:
        raw = raw.replace(b'"INPUT"', b'"\xff\xfe"')
    try:
        made = translate(raw)
    except Rejected:
        return
    if not broken and b"ud800" not in raw:
        json.loads(made.body)


@settings(max_examples=300)
@given(seed=SEEDS, broken=st.booleans())
def test_a_messages_request_of_any_form_is_translated_or_refused(seed, broken):
    chance = Random(seed)
    turns = [
        {"role": chance.choice(["user", "assistant"]), "content": several(chance)}
        for _ in range(chance.randrange(4))
    ]
    tree = {"max_tokens": 5, "messages": turns, **others(chance)}
    check_translation(translate_message_request, tree, broken)


@settings(max_examples=300)
@given(seed=SEEDS, broken=st.booleans())
def test_a_responses_request_of_any_form_is_translated_or_refused(seed, broken):
    chance = Random(seed)
    tree = {"input": several(chance), **others(chance)}
    check_translation(translate_response_request, tree, broken)


@pytest.mark.parametrize(
    "block",
    [
        b'{"type":"tool_result","tool_use_id":"c","is_error":true,"content":[]}',
        b'{"type":"image","source":{"type":"url"}}',
    ],
)
def test_a_block_with_nothing_in_it_is_one(block):
    raw = b'{"max_tokens":1,"messages":[{"role":"user","content":[%s]}]}' % block
    json.loads(translate_message_request(raw).body)


# --- answers -------------------------------------------------------------------------------------

ANYTHING = st.sampled_from([each for each in ODD if each != "a\ud800b"])
NEEDLESS = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("created", "model", "system_fingerprint", "object", "id"), ANYTHING)
)
"""What nobody needs of a chunk or an answer."""
CHOICE_NEEDLESS = st.fixed_dictionaries(
    {},
    optional={
        "index": st.sampled_from([0, None]),
        "logprobs": ANYTHING,
        "finish_reason": ANYTHING,
        "stop_reason": ANYTHING,
    },
)
ENDS = {b"response.completed", b"response.incomplete", b"message_stop"}


def streams():
    return ResponseStream("t.1", ResponseSettings()), MessageStream("t.1", MessageSettings())


@settings(max_examples=60)
@given(
    chunks=st.lists(st.tuples(NEEDLESS, CHOICE_NEEDLESS, st.booleans()), max_size=5),
    dones=st.integers(1, 3),
)
def test_a_stream_that_a_chat_client_can_read_is_one_for_all_and_ends_once(chunks, dones):
    for stream in streams():
        told = b""
        for needless, of_choice, speaks in chunks:
            choice = {**of_choice, "delta": {"content": "w"}}
            tree = {**needless, "choices": [choice] if speaks else None}
            told += stream.feed(json.dumps(tree).encode())
        for _ in range(dones):
            told += stream.finish()
        told += stream.feed(b'{"choices":[{"delta":{"content":"late"}}]}')
        names = [line[7:] for line in told.splitlines() if line.startswith(b"event: ")]
        assert len(ENDS.intersection(names)) == 1
        assert names[-1] in ENDS
        assert b"late" not in told
        said = [json.loads(line[6:]) for line in told.splitlines() if line.startswith(b"data: ")]
        assert "".join(_piece(event) for event in said) == "w" * sum(each[2] for each in chunks)


def _piece(event):
    if event["type"] == "response.output_text.delta":
        return event["delta"]
    return event["delta"]["text"] if event["type"] == "content_block_delta" else ""


@settings(max_examples=40)
@given(
    needless=NEEDLESS, of_choice=CHOICE_NEEDLESS, arguments=st.sampled_from([None, "", "{}", {}])
)
def test_so_is_a_whole_answer(needless, of_choice, arguments):
    of_choice.pop("logprobs", None)
    call = {"id": "c", "function": {"name": "f", "arguments": arguments}}
    message = {"content": "w", "tool_calls": [call]}
    tree = {**needless, "choices": [{**of_choice, "message": message}]}
    found = read_completion(json.dumps(tree).encode())
    assert found is not None
    for made in (
        message_body(found, "t.1", MessageSettings()),
        response_body(found, ResponseIds("t.1"), ResponseSettings()),
    ):
        assert msgspec.json.decode(made)
    assert (found.text, found.tool_calls[0].arguments) == ("w", "{}")


def test_a_refusal_is_said_in_every_shape():
    whole = read_completion(b'{"choices":[{"message":{"content":null,"refusal":"I will not."}}]}')
    assert b"I will not." in response_body(whole, ResponseIds("t.1"), ResponseSettings())
    assert b"I will not." in message_body(whole, "t.1", MessageSettings())
    for stream in streams():
        assert b"I will" in stream.feed(b'{"choices":[{"delta":{"refusal":"I will"}}]}')


def test_of_several_choices_the_first_by_its_index_is_the_answer():
    choices = [{"index": n, "message": {"content": f"choice {n}"}} for n in (1, 0, 2)]
    assert read_completion(json.dumps({"choices": choices}).encode()).text == "choice 0"
