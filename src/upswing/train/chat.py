"""What did the model read and say, turn by turn, in the words of its own chat template?

| of a trajectory                    | becomes                                                      |
|------------------------------------|--------------------------------------------------------------|
| instructions                       | the system's message; nothing, if the first observation      |
|                                    | says the same; part of it, where a template has no system    |
| an observation                     | a message of the user, or of a tool where a template knows   |
|                                    | tools; several messages as they were; an object as JSON      |
| an action with its `raw_response`  | the assistant's message, word by word; a tool call that is   |
|                                    | not in it comes behind it                                    |
| an action without                  | the tool call; nothing if there is none                      |
| a tool call                        | as the template writes it where it knows calls, else as JSON |
| the tools that were offered        | given to the template where it takes tools                   |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from upswing.dataset.conversation import calls_of, heard, text
from upswing.dataset.sample import Sample, SampleTurn

Messages = tuple[tuple[str, str], ...]
"""Role and content of each."""
Call = tuple[str, Any]
"""A tool's name and its arguments."""
Spell = Callable[[Sequence[Call], str], str | None]
"""Tool calls, and what was said before them, in the template's own form; None: it has none."""


@dataclass(frozen=True, slots=True)
class Manners:
    """What a chat template can take."""

    system: bool
    """Whether there is a system that speaks first."""
    tool: bool
    """Whether a tool's result is more than a message of the user."""
    tools: bool = False
    """Whether it tells the model which tools there are."""
    calls: bool = False
    """Whether it has a form of its own for tool calls."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One turn: what the model read, then what it said."""

    heard: Messages
    said: str | None
    """None: it acted, but its words are not known."""


def exchanges(
    sample: Sample, manners: Manners, spell: Spell = lambda _calls, _content: None
) -> tuple[Exchange, ...]:
    """The turns of a trajectory as messages."""
    read = [_heard(turn, manners, spell) for turn in sample.turns]
    read[0] = _opening(sample.instructions.strip(), read[0], manners)
    return tuple(
        Exchange(messages, words_of(turn, spell))
        for messages, turn in zip(read, sample.turns, strict=True)
    )


def words_of(turn: SampleTurn, spell: Spell = lambda _calls, _content: None) -> str | None:
    """What the model said when it acted.

    >>> words_of(SampleTurn("", {"type": "response", "raw_response": "Done."}, True))
    'Done.'
    >>> words_of(SampleTurn("", {"type": "tool_call", "tool_name": "sell", "tool_args": {"n": 2}}, True))
    '{"tool_name":"sell","tool_args":{"n":2}}'
    """
    action = turn.action if isinstance(turn.action, dict) else {}
    raw = action.get("raw_response")
    calls: list[Call] = [(call.name, call.arguments) for call in calls_of(action)]
    if isinstance(raw, str) and all(name in raw for name, _ in calls):
        return raw
    content = raw if isinstance(raw, str) else "\n".join(turn.thoughts)
    if calls and (spelled := spell(calls, content)) is not None:
        return spelled
    call = {key: action[key] for key in ("tool_name", "tool_args") if action.get(key)}
    if not call:
        return None
    if isinstance(raw, str):
        return f"{raw}\n{_json(call)}"
    return _json({"thoughts": turn.thoughts, **call} if turn.thoughts else call)


def _heard(turn: SampleTurn, manners: Manners, spell: Spell) -> Messages:
    if turn.observation_type == "subordinate_response":
        return (("tool" if manners.tool else "user", text(turn.observation)),)
    by_tool = turn.observation_type == "tool_result"
    told = heard(turn.observation, turn.observation_type, ("",) if by_tool else ())
    return tuple(_message(each, manners, spell) for each in told)


def _message(told: Mapping[str, Any], manners: Manners, spell: Spell) -> tuple[str, str]:
    role, content = told["role"], text(told["content"] or "")
    if role == "assistant":
        return role, _called(told.get("tool_calls"), content, spell)
    kept = (role == "tool" and manners.tool) or (role == "system" and manners.system)
    return (role if kept else "user"), content


def _called(calls: Any, content: str, spell: Spell) -> str:
    """Calls that were made before, as the template writes them."""
    functions = [each.get("function") for each in calls or () if isinstance(each, Mapping)]
    told = [
        (str(each["name"]), _arguments(each.get("arguments")))
        for each in functions
        if isinstance(each, Mapping) and "name" in each
    ]
    if not told:
        return content
    written = [_json({"tool_name": name, "tool_args": arguments}) for name, arguments in told]
    return spell(told, content) or "\n".join(filter(None, (content, *written)))


def _arguments(told: Any) -> Any:
    """OpenAI has them as JSON in a text."""
    try:
        return msgspec.json.decode(told) if isinstance(told, str) else told or {}
    except (msgspec.DecodeError, RecursionError):
        return told


def _opening(instructions: str, messages: Messages, manners: Manners) -> Messages:
    """The first messages with the instructions, unless the user just says the same."""
    if len(messages) == 1:
        messages = (("user", messages[0][1]),)
    asked = next((words for role, words in messages if role == "user"), "")
    if not instructions or instructions == asked.strip():
        return messages
    if manners.system:
        return (("system", instructions), *messages)
    role, words = messages[0]
    if role != "user":
        return (("user", instructions), *messages)
    return (("user", f"{instructions}\n\n{words}"), *messages[1:])


def _json(value: Any) -> str:
    """In the order in which it was recorded: so the model wrote it."""
    return msgspec.json.encode(value).decode()
