"""Which messages did the model read? What a trajectory saw and did, as the conversation that it was.

| in a trajectory                                   | in the conversation                                    |
|---------------------------------------------------|--------------------------------------------------------|
| the instructions                                  | the system's message; nothing where they only repeat   |
|                                                   | what the user asks first                               |
| an observation with `messages`                    | these, in their order                                  |
| any other observation: a tool's result            | a tool's message, where a call waits for it            |
| … a system's message                              | a system's message                                     |
| … a user's message, a subordinate's response      | a user's message                                       |
| a tool call, or several at once                   | the assistant's calls; their ids are the recorded ones |
| a response                                        | the assistant's message                                |

Whoever asks a model again, or reads its words again, has to show it what it saw: a solved example that is
written down as JSON is no example.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

Message = dict[str, Any]
_ENCODER = msgspec.json.Encoder(order="deterministic")
_ROLES = {"developer": "system", "function": "tool"}


class Call(NamedTuple):
    """A call of a tool."""

    name: str
    arguments: Any
    call_id: str = ""


def heard(content: Any, kind: str = "user_message", waiting: Sequence[str] = ()) -> list[Message]:
    """What an observation says; `waiting` are the ids of the calls whose results may be in it.

    >>> heard("It rains."), heard("12", "tool_result", ["call_1"])[0]["role"]
    ([{'role': 'user', 'content': 'It rains.'}], 'tool')
    >>> [each["role"] for each in heard({"messages": [{"role": "user"}, {"role": "assistant"}]})]
    ['user', 'assistant']
    """
    several = content.get("messages") if isinstance(content, Mapping) else None
    if isinstance(several, list) and several and all(map(_is_message, several)):
        return [_message(each, waiting) for each in several]
    if kind == "tool_result" and waiting:
        return [{"role": "tool", "tool_call_id": waiting[0], "content": text(content)}]
    role = "system" if kind == "system_message" else "user"
    return [{"role": role, "content": _content(content)}]


def opened(instructions: str, messages: list[Message]) -> list[Message]:
    """The first messages with the instructions before them, unless the user just says the same.

    >>> opened("Add.", [{"role": "user", "content": "Add."}])
    [{'role': 'user', 'content': 'Add.'}]
    """
    asked = next((text(each["content"]) for each in messages if each["role"] == "user"), "")
    if not instructions.strip() or instructions.strip() == asked.strip():
        return messages
    return [{"role": "system", "content": instructions}, *messages]


def calls_of(action: Mapping[str, Any]) -> list[Call]:
    """The calls of an action; several are recorded as one that holds them.

    >>> calls_of({"tool_name": "add", "tool_args": {"a": 1}}), calls_of({"type": "response"})
    ([Call(name='add', arguments={'a': 1}, call_id='')], [])
    >>> [each.name for each in calls_of({"tool_name": "a+b", "tool_args": {"calls": [{"name": "a"}, {"name": "b"}]}})]
    ['a', 'b']
    """
    name, told = action.get("tool_name"), action.get("tool_args")
    if not isinstance(name, str) or not name:
        return []
    several = told.get("calls") if isinstance(told, Mapping) else None
    if isinstance(several, list) and several and all(map(_is_call, several)):
        return [Call(c["name"], c.get("args") or {}, str(c.get("id") or "")) for c in several]
    return [Call(name, told if told is not None else {})]


def said(action: Mapping[str, Any], output: Any, turn_id: int) -> tuple[Message, tuple[str, ...]]:
    """What the agent did, and the ids of the calls that wait for a result."""
    raw = action.get("raw_response")
    calls = calls_of(action) if action.get("type") == "tool_call" else []
    if not calls:
        return {"role": "assistant", "content": raw or text(output or "")}, ()
    ids = tuple(
        call.call_id or (f"call_{turn_id}_{number}" if number else f"call_{turn_id}")
        for number, call in enumerate(calls)
    )
    told = [
        {"id": each, "type": "function", "function": {"name": call.name, "arguments": text(call.arguments)}}
        for each, call in zip(ids, calls, strict=True)
    ]  # fmt: skip
    return {"role": "assistant", "content": None, "tool_calls": told}, ids


def asked(
    instructions: str, turns: Sequence[Mapping[str, Any]], at: int | None = None
) -> list[Message]:
    """What was seen and done before the action of a turn, the last one by default."""
    upto = len(turns) - 1 if at is None else at
    messages: list[Message] = []
    waiting: tuple[str, ...] = ()
    for number, turn in enumerate(turns[: upto + 1]):
        seen = heard(turn["observation"].get("content"), turn["observation"]["type"], waiting)
        messages += seen if number else opened(instructions, seen)
        if number < upto:
            told, waiting = said(turn["action"], turn["result"].get("output"), turn["turn_id"])
            messages.append(told)
    return messages


def alike(one: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]]) -> bool:
    """Would a model read the same in both? Ids of calls may differ, and how their JSON is spaced."""
    return _read(one) == _read(other)


def _read(messages: Sequence[Mapping[str, Any]]) -> list[Any]:
    ids: dict[Any, int] = {}
    told: list[Any] = []
    for message in messages:
        calls = [
            (ids.setdefault(call.get("id"), len(ids)), _function(call))
            for call in message.get("tool_calls") or ()
        ]
        answers = ids.get(message.get("tool_call_id"), -1)
        role = _ROLES.get(message.get("role", ""), message.get("role"))
        content = text(message.get("content") or "")
        told.append((role, content, calls, answers, message.get("name")))
    return told


def _function(call: Mapping[str, Any]) -> Any:
    function = call.get("function") or {}
    arguments = function.get("arguments")
    with contextlib.suppress(msgspec.DecodeError, RecursionError):
        arguments = msgspec.json.decode(arguments) if isinstance(arguments, str) else arguments
    return function.get("name"), arguments


def is_whole(messages: Sequence[Message]) -> bool:
    """Can they be shown again? Not where a picture was kept as its hash."""
    return not any(_hashed(each.get("content")) for each in messages)


def text(value: Any) -> str:
    """Words, or JSON of what is none; of parts, the words where there is nothing else.

    >>> text("a"), text({"b": 1, "a": 2}), text([{"type": "text", "text": "c"}])
    ('a', '{"a":2,"b":1}', 'c')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(
        isinstance(part, Mapping) and part.get("type") == "text" for part in value
    ):
        return "".join(str(part.get("text") or "") for part in value)
    return _ENCODER.encode(value).decode()


def _is_message(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("role"), str)


def _is_call(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("name"), str)


def _message(told: Mapping[str, Any], waiting: Sequence[str]) -> Message:
    role = _ROLES.get(told["role"], told["role"])
    message: Message = {"role": role, "content": _content(told.get("content", ""))}
    for key in ("name", "tool_calls", "tool_call_id"):
        if told.get(key):
            message[key] = told[key]
    if role == "tool" and len(waiting) == 1:
        message["tool_call_id"] = waiting[0]  # a single call is recorded without its id
    if role == "assistant" and message.get("tool_calls") and not message["content"]:
        message["content"] = None
    return message


def _content(content: Any) -> Any:
    parts = content.get("parts") if isinstance(content, Mapping) else None
    if isinstance(parts, list) and all(isinstance(part, Mapping) for part in parts):
        return parts
    return content if isinstance(content, str) else text(content)


def _hashed(value: Any) -> bool:
    if isinstance(value, Mapping):
        return {"kind", "bytes", "sha256"} <= set(value) or any(map(_hashed, value.values()))
    return isinstance(value, list) and any(map(_hashed, value))
