"""What did the agent mean? Loose arguments become the shapes of trajectory.v1, and never raise.

| argument    | text                     | object                                               |
|-------------|--------------------------|------------------------------------------------------|
| observation | a `user_message`         | the contract's own shape, or a `system_message`      |
| action      | a `response`             | the contract's own shape, or a `tool_call` when it   |
|             |                          | names a tool (`tool`, `name`, `type`, …)             |
| result      | a success with that text | the contract's own shape, or a success with that     |
|             |                          | output; an exception is a failure, so is False       |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from upswing.contracts.steps import (
    Tree,
    finite_number_or_none,
    object_or_wrapped,
    result_of_action,
    text_or_json,
    text_or_object,
)

DEEPEST = 32
"""Levels that a careful copy follows: deeper trees, and trees that hold themselves, end in text."""

_OBSERVATIONS = ("user_message", "tool_result", "subordinate_response", "system_message")
_ACTIONS = ("tool_call", "subordinate_call", "response", "memory_update")
_TOOL = ("tool_name", "toolName", "tool", "name", "action_type", "actionType", "type")
_ARGUMENTS = ("tool_args", "toolArgs", "args", "arguments", "parameters", "params", "input")


def plain(value: Any) -> Any:
    """A copy of `value` in JSON's own types. Later changes to `value` do not reach it."""
    try:
        return msgspec.to_builtins(value, str_keys=True, enc_hook=_known_or_text)
    except Exception:  # noqa: BLE001 - an agent may hand over anything; it is copied with care
        return _copy_plain_value(value)


def encoded(value: Any) -> bytes:
    """`value` as JSON, whatever it is."""
    try:
        return msgspec.json.encode(value, enc_hook=_known_or_text)
    except Exception:  # noqa: BLE001 - as above: lone surrogates, loops, odd keys
        return msgspec.json.encode(_copy_plain_value(value))


def _known_or_text(value: Any) -> Any:
    """Objects of pydantic and small ones of numpy by their own methods, all others by their text."""
    if callable(dump := getattr(value, "model_dump", None)):
        return dump()
    if callable(listed := getattr(value, "tolist", None)) and value.nbytes <= 65_536:
        return listed()
    return _text_of_value(value)


def _text_of_value(value: Any) -> str:
    try:
        printed = str(value)
    except Exception:  # noqa: BLE001 - an object that cannot even be printed
        printed = f"<unprintable {type(value).__name__}>"
    return printed.encode(errors="replace").decode()


def _copy_plain_value(value: Any, depth: int = 0) -> Any:
    match value:
        case None | bool() | int() | float() | msgspec.Raw():
            return value
        case _ if depth >= DEEPEST:
            return f"<{type(value).__name__}, nested too deeply>"
        case Mapping():
            return {
                _text_of_value(key): _copy_plain_value(item, depth + 1)
                for key, item in value.items()
            }
        case list() | tuple() | set() | frozenset():
            return [_copy_plain_value(item, depth + 1) for item in value]
        case _:
            return _text_of_value(value)


def observation(value: Any, task: str = "") -> Tree:
    """Nothing seen means the task itself, where there is one.

    >>> observation("Hello")
    {'type': 'user_message', 'content': 'Hello'}
    >>> observation({"balance": 3})
    {'type': 'system_message', 'content': {'balance': 3}}
    """
    seen = plain(value)
    if seen is None:
        return {"type": "user_message", "content": task}
    if isinstance(seen, str):
        return {"type": "user_message", "content": seen}
    if (
        isinstance(seen, dict)
        and seen.keys() <= {"type", "content", "context"}
        and seen.get("type") in _OBSERVATIONS
    ):
        return {**seen, "content": text_or_object(seen.get("content"))}
    return {"type": "system_message", "content": object_or_wrapped(seen)}


def action(value: Any) -> Tree:
    """A reply, or the call of a tool where one is named.

    >>> action("Done.")
    {'type': 'response', 'raw_response': 'Done.'}
    >>> action({"tool": "search", "args": {"q": "x"}})
    {'type': 'tool_call', 'tool_name': 'search', 'tool_args': {'q': 'x'}}
    """
    done = plain(value)
    if done is None:
        return {"type": "response"}
    if not isinstance(done, dict):
        return {"type": "response", "raw_response": text_or_json(done)}
    reply = (
        {"raw_response": text_or_json(done.pop("raw_response"))} if "raw_response" in done else {}
    )
    kind = done.get("type")
    if kind in _ACTIONS and done.keys() <= {"type", "tool_name", "tool_args"}:
        named = {"tool_name": text_or_json(done["tool_name"])} if "tool_name" in done else {}
        given = {"tool_args": object_or_wrapped(done["tool_args"])} if "tool_args" in done else {}
        return {"type": kind, **named, **given, **reply}
    tool = next((key for key in _TOOL if done.get(key) and done[key] not in _ACTIONS), None)
    if tool is None:
        return {"type": "response", "raw_response": text_or_json(done), **reply}
    name = text_or_json(done.pop(tool))
    arguments = next((key for key in _ARGUMENTS if key in done), None)
    given = object_or_wrapped(done.pop(arguments)) if arguments else {}
    kind = done.pop("type") if kind in _ACTIONS else "tool_call"
    return {"type": kind, "tool_name": name, "tool_args": {**done, **given}, **reply}


def result(value: Any) -> Tree:
    """A success, unless it says otherwise or is an exception.

    >>> result("4 passed"), result(ValueError("no"))
    ({'success': True, 'output': '4 passed'}, {'success': False, 'error': 'ValueError: no'})
    """
    if isinstance(value, BaseException):
        return {"success": False, "error": f"{type(value).__name__}: {_text_of_value(value)}"}
    came = plain(value)
    if isinstance(came, bool):
        return {"success": came}
    if isinstance(came, dict) and came.keys() <= {
        "success",
        "output",
        "error",
        "execution_time_ms",
    }:
        return result_of_action({**came, "result": came.get("output")})
    if isinstance(came, dict) and isinstance(came.get("success"), bool):
        return result_of_action(
            {"success": came["success"], "error": came.get("error"), "result": came}
        )
    return {"success": True} if came is None else {"success": True, "output": text_or_object(came)}


def thoughts(value: Any) -> list[str]:
    """One thought or many, as a list of texts."""
    had = plain(value)
    return [text_or_json(thought) for thought in (had if isinstance(had, list) else [had])]


def as_text(value: Any) -> str:
    """Any value as text."""
    return text_or_json(plain(value))


def as_number(value: Any) -> float | None:
    return finite_number_or_none(plain(value))
