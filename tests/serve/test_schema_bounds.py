"""Hostile schemas: is each refused before llama.cpp makes a grammar of it, or ended when it does?"""

import asyncio
import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from upswing.errors import Rejected, Transient
from upswing.serve.core.chat_request import InvalidChatRequest, parse_chat_request
from upswing.serve.core.schema_bounds import MAX_COST, check_schema_cost, pattern_cost
from upswing.serve.engines.llama_http import LlamaConnectionLost, LlamaSilent
from upswing.serve.engines.llama_schemas import SchemaTrials

TEXT = {"type": "string"}
REAL = [
    {
        "type": "object",
        "properties": {f"field_{n}": {**TEXT, "maxLength": 100_000} for n in range(40)},
        "required": ["field_1"],
    },
    {"enum": [f"country {n}" for n in range(250)]},
    {**TEXT, "pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"},
    {"type": "array", "items": TEXT, "minItems": 1, "maxItems": 1000},
    {"$ref": "#/$defs/n", "$defs": {"n": {"type": "object", "properties": {"n": {"$ref": "#"}}}}},
]


def nested(levels, kind):
    made = TEXT
    for _ in range(levels):
        made = kind(made)
    return made


def wide(count):
    return {"type": "object", "properties": {f"p{n}": TEXT for n in range(count)}}


HOSTILE = {
    "items without end": {"type": "array", "items": TEXT, "minItems": 10**9},
    "at most many items": {"type": "array", "items": TEXT, "maxItems": 10**7},
    "a number beyond all": {"type": "array", "items": TEXT, "minItems": 10**400},
    "a long text": {**TEXT, "minLength": 10**9},
    "repeated repetitions": {**TEXT, "pattern": "^((a{100}){100}){100}$"},
    "brackets": {**TEXT, "pattern": "(" * 20_000 + "a" + ")" * 20_000},
    "open brackets": {**TEXT, "pattern": "(" * 20_000},
    "properties that may be left out": wide(5000),
    "one long word": {"const": "x" * 500_000},
    "many words": {"enum": [f"value {n}" for n in range(50_000)]},
    "alternatives of alternatives": nested(17, lambda s: {"anyOf": [s, s]}),
    "deep objects": nested(300, lambda s: {"type": "object", "properties": {"a": s}}),
    "deep lists": nested(900, lambda s: {"type": "array", "items": s}),
}


def asked(**fields):
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}], **fields})


def formatted(schema):
    return asked(
        response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    ).encode()


def called(schema):
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
    return asked(tools=[tool], tool_choice="required").encode()


@pytest.mark.parametrize("request_of", [formatted, called])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_schema_that_costs_too_much_is_refused_at_once(name, request_of):
    raw = request_of(HOSTILE[name])
    began = time.process_time()
    with pytest.raises(InvalidChatRequest, match=r"schema|JSON"):
        parse_chat_request(raw)
    assert time.process_time() - began < 5


@pytest.mark.parametrize("request_of", [formatted, called])
@pytest.mark.parametrize("schema", REAL)
def test_schemas_of_real_programs_pass(schema, request_of):
    assert parse_chat_request(request_of(schema)).generation.output_schema is not None


@given(
    count=st.integers(0, 10**12),
    key=st.sampled_from(["minItems", "maxItems"]),
    levels=st.integers(0, 20),
)
def test_however_deep_a_repetition_stands_it_counts(count, key, levels):
    schema = nested(levels, lambda s: {"type": "object", "properties": {"a": s}, "required": ["a"]})
    repeated = json.loads(
        json.dumps(schema).replace(
            json.dumps(TEXT), json.dumps({"type": "array", "items": {}, key: count})
        )
    )
    if count > MAX_COST:
        with pytest.raises(ValueError, match="too large"):
            check_schema_cost([repeated])
    elif count < MAX_COST // 2:
        check_schema_cost([repeated])


@settings(max_examples=100)
@given(st.text(alphabet="ab()[]{}0123456789,*+?|\\^$-", max_size=200))
def test_any_text_as_a_pattern_has_a_cost(pattern):
    assert 0 <= pattern_cost(pattern) <= MAX_COST + 1


# --- trials --------------------------------------------------------------------------------------


class Llama:
    """A labelled double: a trial ends as it is told, when it is let go."""

    def __init__(self, error=None):
        self.error, self.asked, self.go = error, 0, asyncio.Event()

    async def ask(self, body):
        self.asked += 1
        await self.go.wait()
        if self.error is not None:
            raise self.error
        yield {"tokens": [5]}


@pytest.mark.parametrize("error", [LlamaSilent("silent"), LlamaConnectionLost("dead")])
async def test_a_schema_that_llama_cpp_does_not_survive_is_not_tried_again(error):
    trials, llama = SchemaTrials(lambda: 7), Llama(error)
    llama.go.set()
    for _ in range(3):
        with pytest.raises(Rejected, match="cannot hold an answer"):
            await trials.check(TEXT, llama.ask)
    assert llama.asked == 1


async def test_one_that_cannot_be_asked_now_is_tried_again():
    trials, llama = SchemaTrials(lambda: 7), Llama(Transient("being unloaded"))
    llama.go.set()
    with pytest.raises(Transient, match="unloaded"):
        await trials.check(TEXT, llama.ask)
    llama.error = None
    await trials.check(TEXT, llama.ask)
    assert llama.asked == 2


async def test_a_trial_is_one_for_all_who_ask_and_outlives_them():
    trials, llama = SchemaTrials(lambda: 7), Llama()
    first = asyncio.ensure_future(trials.check(TEXT, llama.ask))
    second = asyncio.ensure_future(trials.check(TEXT, llama.ask))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    llama.go.set()
    await second
    await trials.check(TEXT, llama.ask)
    assert llama.asked == 1
