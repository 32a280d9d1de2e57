"""What did the model read and say, turn by turn, in the words of its own chat template?

| of a trajectory                    | becomes                                                      |
|------------------------------------|--------------------------------------------------------------|
| instructions                       | the system's message; nothing, if the first observation      |
|                                    | says the same; part of it, where a template has no system    |
| an observation                     | a message of the user, or of a tool where a template knows   |
|                                    | tools; an object is written as JSON                          |
| an action with its `raw_response`  | the assistant's message, word by word; a tool call that is   |
|                                    | not in it comes behind it                                    |
| an action without                  | the tool call; nothing if there is none                      |
| a tool call                        | as the template writes it where it knows calls, else as JSON |
| the tools that were offered        | given to the template where it takes tools                   |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

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
    heard = [_heard(turn, manners) for turn in sample.turns]
    heard[0] = _opening(sample.instructions.strip(), heard[0][0], manners)
    return tuple(
        Exchange(messages, words_of(turn, spell))
        for messages, turn in zip(heard, sample.turns, strict=True)
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
    calls = _calls(action)
    if isinstance(raw, str) and all(name in raw for name, _ in calls):
        return raw
    content = raw if isinstance(raw, str) else "\n".join(turn.thoughts)
    if calls and (spelled := spell(calls, content)) is not None:
        return spelled
    call = {key: action[key] for key in ("tool_name", "tool_args") if action.get(key)}
    if not call:
        return None
    if isinstance(raw, str):
        return f"{raw}\n{_text(call)}"
    return _text({"thoughts": turn.thoughts, **call} if turn.thoughts else call)


def _calls(action: dict[str, Any]) -> list[Call]:
    """The calls of an action; several are recorded as one that holds them.

    >>> _calls({"tool_name": "add", "tool_args": {"a": 1}}), _calls({"type": "response"})
    ([('add', {'a': 1})], [])
    >>> _calls({"tool_name": "a+b", "tool_args": {"calls": [{"name": "a", "args": {}}, {"name": "b"}]}})
    [('a', {}), ('b', {})]
    """
    name, told = action.get("tool_name"), action.get("tool_args")
    if not isinstance(name, str) or not name:
        return []
    several = told.get("calls") if isinstance(told, dict) else None
    if isinstance(several, list) and all(isinstance(c, dict) and "name" in c for c in several):
        return [(str(c["name"]), c.get("args") or {}) for c in several]
    return [(name, told if told is not None else {})]


def _heard(turn: SampleTurn, manners: Manners) -> Messages:
    by_tool = turn.observation_type in {"tool_result", "subordinate_response"}
    return (("tool" if by_tool and manners.tool else "user", _text(turn.observation)),)


def _opening(instructions: str, first: tuple[str, str], manners: Manners) -> Messages:
    role, text = first
    if not instructions or instructions == text.strip():
        return (("user", text),)
    if manners.system:
        return (("system", instructions), (role, text))
    return (("user", f"{instructions}\n\n{text}"),)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
