"""What did the model read and say, turn by turn, in the words of its own chat template?

| of a trajectory                    | becomes                                                      |
|------------------------------------|--------------------------------------------------------------|
| instructions                       | the system's message; nothing, if the first observation      |
|                                    | says the same; part of it, where a template has no system    |
| an observation                     | a message of the user, or of a tool where a template knows   |
|                                    | tools; an object is written as JSON                          |
| an action with its `raw_response`  | the assistant's message, word by word                        |
| an action without                  | the tool call as JSON; nothing if there is none              |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from upswing.dataset.sample import Sample, SampleTurn

Messages = tuple[tuple[str, str], ...]
"""Role and content of each."""


@dataclass(frozen=True, slots=True)
class Manners:
    """What a chat template can take."""

    system: bool
    """Whether there is a system that speaks first."""
    tool: bool
    """Whether a tool's result is more than a message of the user."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One turn: what the model read, then what it said."""

    heard: Messages
    said: str | None
    """None: it acted, but its words are not known."""


def exchanges(sample: Sample, manners: Manners) -> tuple[Exchange, ...]:
    """The turns of a trajectory as messages."""
    heard = [_heard(turn, manners) for turn in sample.turns]
    heard[0] = _opening(sample.instructions.strip(), heard[0][0], manners)
    return tuple(
        Exchange(messages, words_of(turn))
        for messages, turn in zip(heard, sample.turns, strict=True)
    )


def words_of(turn: SampleTurn) -> str | None:
    """What the model said when it acted.

    >>> words_of(SampleTurn("", {"type": "response", "raw_response": "Done."}, True))
    'Done.'
    >>> words_of(SampleTurn("", {"type": "tool_call", "tool_name": "sell", "tool_args": {"n": 2}}, True))
    '{"tool_name":"sell","tool_args":{"n":2}}'
    """
    action = turn.action if isinstance(turn.action, dict) else {}
    if isinstance(raw := action.get("raw_response"), str):
        return raw
    call = {key: action[key] for key in ("tool_name", "tool_args") if action.get(key)}
    if not call:
        return None
    return _text({"thoughts": turn.thoughts, **call} if turn.thoughts else call)


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
