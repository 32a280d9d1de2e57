"""Has a model said anything yet, in the events of a stream that have come?

| shape       | these say something                                             | these do not                             |
|-------------|-----------------------------------------------------------------|------------------------------------------|
| chat        | a delta with words, thoughts, a refusal or a call               | a role, an empty delta, usage            |
| responses   | a delta with text; a call that begins                           | `response.created`, which repeats the request |
| messages    | a delta with text; a call that begins                           | `message_start`, an empty block          |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from upswing.gateway.core.answers import reasoning_of, said, tool_call_trees
from upswing.gateway.core.native_answers import RESPONSE_DELTAS
from upswing.gateway.core.sse import event_payloads

Tree = dict[str, Any]
_MESSAGE_WORDS = ("text", "thinking", "partial_json")


def says_something(pieces: Iterable[bytes], shape: str) -> bool:
    r"""Whether these pieces of a stream, each of whole events, hold anything that the model has said.

    >>> says_something([b'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'], "chat")
    False
    >>> created = b'data: {"type":"response.created","response":{"tools":[{"name":"f"}]}}\n\n'
    >>> delta = b'data: {"type":"response.output_text.delta","delta":"Hi"}\n\n'
    >>> says_something([created], "responses"), says_something([created, delta], "responses")
    (False, True)
    """
    speaks = _SPEAKS[shape]
    return any(speaks(tree) for piece in pieces for tree in map(_read, event_payloads(piece)))


def _read(payload: bytes) -> Tree:
    try:
        tree = msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return tree if isinstance(tree, dict) else {}


def _chat_speaks(tree: Tree) -> bool:
    choices = tree.get("choices")
    deltas = [_object(each, "delta") for each in choices] if isinstance(choices, list) else []
    return any(said(delta) or reasoning_of(delta) or tool_call_trees(delta) for delta in deltas)


def _response_speaks(tree: Tree) -> bool:
    kind = str(tree.get("type"))
    if kind == "response.output_item.added":
        return _object(tree, "item").get("type") == "function_call"
    return kind in RESPONSE_DELTAS and bool(tree.get("delta"))


def _message_speaks(tree: Tree) -> bool:
    if tree.get("type") == "content_block_start":
        return _object(tree, "content_block").get("type") == "tool_use"
    return any(_object(tree, "delta").get(name) for name in _MESSAGE_WORDS)


def _object(tree: Any, name: str) -> Tree:
    value = tree.get(name) if isinstance(tree, dict) else None
    return value if isinstance(value, dict) else {}


_SPEAKS: dict[str, Callable[[Tree], bool]] = {
    "chat": _chat_speaks,
    "responses": _response_speaks,
    "messages": _message_speaks,
}
