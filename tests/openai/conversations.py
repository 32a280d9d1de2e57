"""Conversations and answers by chance, and how each shape writes them down."""

import json

from hypothesis import strategies as st

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SAID = WORDS.filter(bool)
NAMES = st.text("abcxyz_", min_size=1, max_size=8)
ARGUMENTS = st.dictionaries(NAMES, st.none() | st.integers(-99, 99) | WORDS, max_size=3)
CALLS = st.lists(st.tuples(NAMES, ARGUMENTS), max_size=3)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)


@st.composite
def conversations(draw):
    """A chat conversation that ends with its user or with the results of tools."""
    messages = [{"role": "system", "content": draw(SAID)}] if draw(st.booleans()) else []
    messages.append({"role": "user", "content": draw(SAID)})
    for turn in range(draw(st.integers(0, 4))):
        calls = draw(CALLS)
        content = draw(SAID if not calls else st.none() | SAID)
        answer = {"role": "assistant", "content": content}
        if calls:
            answer["tool_calls"] = [
                {
                    "id": f"c{turn}_{number}",
                    "type": "function",
                    "function": {"name": name, "arguments": json.dumps(arguments)},
                }
                for number, (name, arguments) in enumerate(calls)
            ]
        messages.append(answer)
        messages += [
            {"role": "tool", "tool_call_id": f"c{turn}_{number}", "content": draw(WORDS)}
            for number in range(len(calls))
        ]
        if not calls:
            messages.append({"role": "user", "content": draw(SAID)})
    return messages


@st.composite
def answers(draw):
    """(text, thoughts, calls, finish)"""
    calls = draw(CALLS)
    text = draw(WORDS)
    finish = "tool_calls" if calls else draw(st.sampled_from(["stop", "length"]))
    return text, draw(WORDS), calls, finish


def completion_of(answer):
    """A whole chat completion."""
    text, thoughts, calls, finish = answer
    message = {"role": "assistant", "content": text or None, "reasoning_content": thoughts or None}
    if calls:
        message["tool_calls"] = [_call(number, *call) for number, call in enumerate(calls)]
    usage = {"prompt_tokens": 3, "completion_tokens": 4}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return json.dumps({"id": "x", "created": 1, "model": "m", "choices": [choice], "usage": usage})


def _call(number, name, arguments):
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": f"c{number}", "type": "function", "function": function}


def _pieces(draw, text):
    while text:
        size = draw(st.integers(1, len(text)))
        yield text[:size]
        text = text[size:]


def chunks_of(draw, answer):
    """The same in a stream: words in pieces, and parts of several calls in turn."""
    text, thoughts, calls, finish = answer
    deltas = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": piece} for piece in _pieces(draw, thoughts)]
    deltas += [{"content": piece} for piece in _pieces(draw, text)]
    parts = []
    for number, (name, arguments) in enumerate(calls):
        whole = _call(number, name, arguments)
        function = {"name": name, "arguments": ""}
        deltas.append({"tool_calls": [{"index": number, **whole, "function": function}]})
        written = whole["function"]["arguments"]
        parts += [(number, piece) for piece in _pieces(draw, written)]
    order = sorted(parts, key=lambda part: part[0]) if draw(st.booleans()) else _in_turn(parts)
    for number, piece in order:
        deltas.append({"tool_calls": [{"index": number, "function": {"arguments": piece}}]})
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    chunks.append({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}})
    return [json.dumps({"id": "x", "created": 1, "model": "m", **each}).encode() for each in chunks]


def _in_turn(parts):
    waiting = {}
    for number, piece in parts:
        waiting.setdefault(number, []).append(piece)
    order = []
    while any(waiting.values()):
        for number, pieces in waiting.items():
            if pieces:
                order.append((number, pieces.pop(0)))
    return order


def spoilt(draw, body):
    """The same request with one value replaced by another, or left out."""
    places = [*_places(body)]
    *way, last = draw(st.sampled_from(places))
    inside = body
    for step in way:
        inside = inside[step]
    if draw(st.booleans()) and isinstance(inside, dict):
        del inside[last]
    else:
        inside[last] = draw(JSON)
    return body


def _places(value, way=()):
    keys = value if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield (*way, key)
        if isinstance(value[key], dict | list):
            yield from _places(value[key], (*way, key))
