"""Which messages did the model read? What a trajectory saw and did, as the conversation that it was.

| in a trajectory                                   | in the conversation                                    |
|---------------------------------------------------|--------------------------------------------------------|
| the instructions                                  | the system's message; nothing where they only repeat   |
|                                                   | what the user asks in the first turn                   |
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


class RecordedCall(NamedTuple):
    """A call of a tool."""

    name: str
    arguments: Any
    call_id: str = ""


def observation_messages(
    content: Any, observation_type: str = "user_message", pending_call_ids: Sequence[str] = ()
) -> list[Message]:
    """What an observation says; `pending_call_ids` are the ids of the calls whose results may be in it.

    >>> observation_messages("It rains."), observation_messages("12", "tool_result", ["call_1"])[0]["role"]
    ([{'role': 'user', 'content': 'It rains.'}], 'tool')
    >>> [each["role"] for each in observation_messages({"messages": [{"role": "user"}, {"role": "assistant"}]})]
    ['user', 'assistant']
    """
    several = content.get("messages") if isinstance(content, Mapping) else None
    if isinstance(several, list) and several and all(map(_is_message, several)):
        return [_normalise_message(each, pending_call_ids) for each in several]
    if observation_type == "tool_result" and pending_call_ids:
        return [{"role": "tool", "tool_call_id": pending_call_ids[0], "content": as_text(content)}]
    role = "system" if observation_type == "system_message" else "user"
    return [{"role": role, "content": _normalise_content(content)}]


def with_instructions(instructions: str, messages: list[Message]) -> list[Message]:
    """The first messages with the instructions before them, unless the user just says the same.

    >>> with_instructions("Add.", [{"role": "user", "content": "Add."}])
    [{'role': 'user', 'content': 'Add.'}]
    """
    asked = {as_text(each["content"]).strip() for each in messages if each["role"] == "user"}
    if not instructions.strip() or instructions.strip() in asked:
        return messages
    return [{"role": "system", "content": instructions}, *messages]


def recorded_calls(action: Mapping[str, Any]) -> list[RecordedCall]:
    """The calls of an action; several are recorded as one that holds them.

    >>> recorded_calls({"tool_name": "add", "tool_args": {"a": 1}}), recorded_calls({"type": "response"})
    ([RecordedCall(name='add', arguments={'a': 1}, call_id='')], [])
    >>> [each.name for each in recorded_calls({"tool_name": "a+b", "tool_args": {"calls": [{"name": "a"}, {"name": "b"}]}})]
    ['a', 'b']
    """
    name, arguments = action.get("tool_name"), action.get("tool_args")
    if not isinstance(name, str) or not name:
        return []
    several = arguments.get("calls") if isinstance(arguments, Mapping) else None
    if isinstance(several, list) and several and all(map(_is_call, several)):
        return [
            RecordedCall(c["name"], c.get("args") or {}, str(c.get("id") or "")) for c in several
        ]
    return [RecordedCall(name, arguments if arguments is not None else {})]


def action_message(
    action: Mapping[str, Any], output: Any, turn_id: int
) -> tuple[Message, tuple[str, ...]]:
    """What the agent did, and the ids of the calls that wait for a result."""
    raw = action.get("raw_response")
    calls = recorded_calls(action) if action.get("type") == "tool_call" else []
    if not calls:
        return {"role": "assistant", "content": raw or as_text(output or "")}, ()
    ids = tuple(
        call.call_id or (f"call_{turn_id}_{number}" if number else f"call_{turn_id}")
        for number, call in enumerate(calls)
    )
    tool_calls = [
        {
            "id": each,
            "type": "function",
            "function": {"name": call.name, "arguments": as_text(call.arguments)},
        }
        for each, call in zip(ids, calls, strict=True)
    ]
    return {"role": "assistant", "content": None, "tool_calls": tool_calls}, ids


def conversation_before(
    instructions: str, turns: Sequence[Mapping[str, Any]], turn_index: int | None = None
) -> list[Message]:
    """What was seen and done before the action of a turn, the last one by default."""
    upto = len(turns) - 1 if turn_index is None else turn_index
    messages: list[Message] = []
    waiting: tuple[str, ...] = ()
    for number, turn in enumerate(turns[: upto + 1]):
        seen = observation_messages(
            turn["observation"].get("content"), turn["observation"]["type"], waiting
        )
        messages += seen if number else with_instructions(instructions, seen)
        if number < upto:
            told, waiting = action_message(
                turn["action"], turn["result"].get("output"), turn["turn_id"]
            )
            messages.append(told)
    return messages


def same_conversation(
    first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]]
) -> bool:
    """Would a model read the same in both? Ids of calls may differ, and how their JSON is spaced."""
    return _comparable_form(first) == _comparable_form(second)


def _comparable_form(messages: Sequence[Mapping[str, Any]]) -> list[Any]:
    ids: dict[Any, int] = {}
    forms: list[Any] = []
    for message in messages:
        calls = [
            (ids.setdefault(call.get("id"), len(ids)), _parsed_function(call))
            for call in message.get("tool_calls") or ()
        ]
        answers = ids.get(message.get("tool_call_id"), -1)
        role = _ROLES.get(message.get("role", ""), message.get("role"))
        content = as_text(message.get("content") or "")
        forms.append((role, content, calls, answers, message.get("name")))
    return forms


def _parsed_function(call: Mapping[str, Any]) -> Any:
    function = call.get("function") or {}
    arguments = function.get("arguments")
    with contextlib.suppress(msgspec.DecodeError, RecursionError):
        arguments = msgspec.json.decode(arguments) if isinstance(arguments, str) else arguments
    return function.get("name"), arguments


def is_replayable(messages: Sequence[Message]) -> bool:
    """Can they be shown again? Not where a picture was kept as its hash."""
    return not any(_contains_hash(each.get("content")) for each in messages)


def as_text(value: Any) -> str:
    """Words, or JSON of what is none; of parts, the words where there is nothing else.

    >>> as_text("a"), as_text({"b": 1, "a": 2}), as_text([{"type": "text", "text": "c"}])
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


def _normalise_message(recorded: Mapping[str, Any], pending_call_ids: Sequence[str]) -> Message:
    role = _ROLES.get(recorded["role"], recorded["role"])
    message: Message = {"role": role, "content": _normalise_content(recorded.get("content", ""))}
    for key in ("name", "tool_calls", "tool_call_id"):
        if recorded.get(key):
            message[key] = recorded[key]
    if role == "tool" and len(pending_call_ids) == 1:
        message["tool_call_id"] = pending_call_ids[0]  # a single call is recorded without its id
    if role == "assistant" and message.get("tool_calls") and not message["content"]:
        message["content"] = None
    return message


def _normalise_content(content: Any) -> Any:
    parts = content.get("parts") if isinstance(content, Mapping) else None
    if isinstance(parts, list) and all(isinstance(part, Mapping) for part in parts):
        return parts
    return content if isinstance(content, str) else as_text(content)


def _contains_hash(value: Any) -> bool:
    if isinstance(value, Mapping):
        return {"kind", "bytes", "sha256"} <= set(value) or any(map(_contains_hash, value.values()))
    return isinstance(value, list) and any(map(_contains_hash, value))
