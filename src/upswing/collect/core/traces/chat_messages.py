"""How does a message of a trace read as a chat message, and is it the same as another?

| an emitter writes                                          | chat                                              |
|------------------------------------------------------------|---------------------------------------------------|
| `{"role", "parts": [{"type": "text", "content"}]}`          | `{"role", "content"}`                             |
| … `tool_call` with `id`, `name`, `arguments` (text or JSON) | `tool_calls`, their arguments as text             |
| … `tool_call_response` with `id`, `response` or `result`    | a message of role `tool` for each                 |
| … `reasoning`, `thinking`                                   | `reasoning`, which is no part of the comparison   |
| `content` as text, as OpenAI's or as the AI SDK's parts     | the same                                          |
| a picture or a file                                         | a part as it is; `dataset.transcript` hashes it    |

An answer and the next request's copy of it differ in ids, in spaces of arguments, in reasoning that was left out. So
two messages are the same when role, words and calls are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import msgspec

Message = dict[str, Any]
_ENCODER = msgspec.json.Encoder(order="deterministic")
_ROLES = {
    "developer": "system",
    "function": "tool",
    "model": "assistant",
    "human": "user",
    "ai": "assistant",
}
_TEXT_KEYS = ("content", "text", "input_text", "output_text")
_TOOL_CALLS = frozenset({"tool_call", "tool-call", "tool_use", "function_call"})
_TOOL_RESULTS = frozenset({"tool_call_response", "tool-result", "tool_result", "tool_response"})
_REASONING = frozenset({"reasoning", "thinking"})


def encode(value: Any) -> bytes:
    """One spelling for one value."""
    return _ENCODER.encode(value)


def as_json(value: Any) -> Any:
    """What a text says, where it is JSON; else the text.

    >>> as_json('{"a": 1}'), as_json("a"), as_json([1])
    ({'a': 1}, 'a', [1])
    """
    if isinstance(value, str):
        with contextlib.suppress(msgspec.DecodeError, RecursionError, ValueError):
            return msgspec.json.decode(value)
    return value


def as_text(value: Any) -> str:
    """Words, or JSON of what is none.

    >>> as_text("a"), as_text({"b": 1}), as_text(None)
    ('a', '{"b":1}', '')
    """
    if value is None:
        return ""
    return value if isinstance(value, str) else encode(value).decode()


def message_key(message: Message) -> bytes:
    """By which a message is known again: its role, its words and its calls.

    >>> one = {"role": "assistant", "tool_calls": [tool_call("1", "add", '{"a": 1}')]}
    >>> message_key(one) == message_key({**one, "tool_calls": [tool_call("2", "add", {"a": 1})], "content": ""})
    True
    """
    content = message.get("content")
    calls = [
        (call["function"]["name"], as_json(call["function"]["arguments"]))
        for call in message.get("tool_calls") or ()
    ]
    words = content.strip() if isinstance(content, str) else content or ""
    return blake2b(encode([message["role"], words, calls]), digest_size=16).digest()


def tool_call(call_id: Any, name: Any, arguments: Any) -> Message:
    text = as_text(arguments) if arguments is not None else "{}"
    function = {"name": as_text(name), "arguments": text}
    return {"id": as_text(call_id), "type": "function", "function": function}


def tool_message(call_id: Any, content: Any) -> Message:
    return {"role": "tool", "tool_call_id": as_text(call_id), "content": as_text(content)}


def chat_messages(value: Any) -> list[Message]:
    """The chat messages of an attribute: a list, or JSON of one; what is no message is left out."""
    listed = as_json(value)
    if isinstance(listed, dict):
        listed = [listed]
    if not isinstance(listed, list):
        return []
    return [chat for each in listed for chat in chat_message(as_json(each))]


def chat_message(tree: Any) -> list[Message]:
    """One message, or several where it holds the results of several calls.

    >>> chat_message({"role": "tool", "parts": [{"type": "tool_call_response", "id": "1", "response": "5"}]})
    [{'role': 'tool', 'tool_call_id': '1', 'content': '5'}]
    """
    if not isinstance(tree, dict) or not isinstance(said := tree.get("role"), str):
        return []
    role: str = _ROLES.get(said, said)
    parts = tree["parts"] if isinstance(tree.get("parts"), list) else tree.get("content")
    read = _Parts()
    if isinstance(parts, list):
        for part in parts:
            read.add(part)
    elif parts is not None:
        read.texts.append(as_text(parts))
    read.calls += list(_openai_calls(tree.get("tool_calls")))
    if isinstance(reasoning := tree.get("reasoning_content") or tree.get("reasoning"), str):
        read.reasoning.append(reasoning)
    if role == "tool" and not read.results:
        return [tool_message(tree.get("tool_call_id") or tree.get("id"), read.content())]
    return [*read.results, *read.message(role)]


def _openai_calls(calls: Any) -> Iterator[Message]:
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            function: Message = call["function"] if isinstance(call.get("function"), dict) else call
            yield tool_call(call.get("id"), function.get("name"), function.get("arguments"))


class _Parts:
    """The parts of one message."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.others: list[Message] = []
        self.calls: list[Message] = []
        self.results: list[Message] = []
        self.reasoning: list[str] = []

    def add(self, part: Any) -> None:
        if not isinstance(part, dict):
            self.texts.append(as_text(part))
            return
        kind = str(part.get("type", "text"))
        call_id = part.get("id") or part.get("toolCallId") or part.get("tool_call_id")
        if kind in _TOOL_CALLS:
            arguments = part.get("arguments", part.get("input", part.get("args")))
            self.calls.append(
                tool_call(call_id, part.get("name") or part.get("toolName"), arguments)
            )
        elif kind in _TOOL_RESULTS:
            self.results.append(tool_message(call_id, _result_of(part)))
        elif kind in _REASONING:
            self.reasoning.append(as_text(part.get("content", part.get("text"))))
        elif isinstance(words := _words(part), str):
            self.texts.append(words)
        else:
            self.others.append(part)

    def content(self) -> Any:
        if not self.others:
            return "".join(self.texts)
        return [*({"type": "text", "text": text} for text in self.texts), *self.others]

    def message(self, role: str) -> list[Message]:
        content = self.content()
        if self.results and not content and not self.calls:
            return []
        made: Message = {"role": role, "content": content}
        if self.calls:
            made["tool_calls"] = self.calls
        if self.reasoning:
            made["reasoning"] = "\n".join(self.reasoning)
        return [made]


def _words(part: Message) -> Any:
    kind = str(part.get("type", "text"))
    if kind not in {"text", *_TEXT_KEYS}:
        return None
    return next((part[key] for key in _TEXT_KEYS if isinstance(part.get(key), str)), None)


def _result_of(part: Message) -> Any:
    """`response`, `result`, or the AI SDK's `output` of a type and a value."""
    for name in ("response", "result", "output", "content"):
        if name in part:
            value = part[name]
            if isinstance(value, dict) and set(value) == {"type", "value"}:
                return value["value"]
            return value
    return None
