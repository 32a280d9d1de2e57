"""What did the model read and say, turn by turn, in the form of its own chat template?

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

from upswing.dataset.conversation import as_text, observation_messages, recorded_calls
from upswing.dataset.sample import Sample, SampleTurn

Messages = tuple[tuple[str, str], ...]
"""Role and content of each."""
ToolCallPair = tuple[str, Any]
"""A tool's name and its arguments."""
FormatCalls = Callable[[Sequence[ToolCallPair], str], str | None]
"""Tool calls, and what was said before them, in the template's own form; None: it has none."""


@dataclass(frozen=True, slots=True)
class TemplateFeatures:
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
class ChatTurn:
    """One turn: what the model read, then what it said."""

    prompt_messages: Messages
    completion: str | None
    """None: it acted, but its words are not known."""


def chat_turns(
    sample: Sample,
    features: TemplateFeatures,
    format_calls: FormatCalls = lambda _calls, _content: None,
) -> tuple[ChatTurn, ...]:
    """The turns of a trajectory as messages."""
    read = [_prompt_messages(turn, features, format_calls) for turn in sample.turns]
    read[0] = _with_instructions(sample.instructions.strip(), read[0], features)
    return tuple(
        ChatTurn(messages, completion_text(turn, format_calls))
        for messages, turn in zip(read, sample.turns, strict=True)
    )


def completion_text(
    turn: SampleTurn, format_calls: FormatCalls = lambda _calls, _content: None
) -> str | None:
    """What the model said when it acted.

    >>> completion_text(SampleTurn("", {"type": "response", "raw_response": "Done."}, True))
    'Done.'
    >>> completion_text(SampleTurn("", {"type": "tool_call", "tool_name": "sell", "tool_args": {"n": 2}}, True))
    '{"tool_name":"sell","tool_args":{"n":2}}'
    """
    action = turn.action if isinstance(turn.action, dict) else {}
    raw = action.get("raw_response")
    calls: list[ToolCallPair] = [(call.name, call.arguments) for call in recorded_calls(action)]
    if isinstance(raw, str) and all(name in raw for name, _ in calls):
        return raw
    content = raw if isinstance(raw, str) else "\n".join(turn.thoughts)
    if calls and (spelled := format_calls(calls, content)) is not None:
        return spelled
    call = {key: action[key] for key in ("tool_name", "tool_args") if action.get(key)}
    if not call:
        return None
    if isinstance(raw, str):
        return f"{raw}\n{_to_json(call)}"
    return _to_json({"thoughts": turn.thoughts, **call} if turn.thoughts else call)


def _prompt_messages(
    turn: SampleTurn, features: TemplateFeatures, format_calls: FormatCalls
) -> Messages:
    if turn.observation_type == "subordinate_response":
        return (("tool" if features.tool else "user", as_text(turn.observation)),)
    by_tool = turn.observation_type == "tool_result"
    messages = observation_messages(
        turn.observation, turn.observation_type, ("",) if by_tool else ()
    )
    return tuple(_template_message(each, features, format_calls) for each in messages)


def _template_message(
    message: Mapping[str, Any], features: TemplateFeatures, format_calls: FormatCalls
) -> tuple[str, str]:
    role, content = message["role"], as_text(message["content"] or "")
    if role == "assistant":
        return role, _with_formatted_calls(message.get("tool_calls"), content, format_calls)
    kept = (role == "tool" and features.tool) or (role == "system" and features.system)
    return (role if kept else "user"), content


def _with_formatted_calls(calls: Any, content: str, format_calls: FormatCalls) -> str:
    """Calls that were made before, as the template writes them."""
    functions = [each.get("function") for each in calls or () if isinstance(each, Mapping)]
    named = [
        (str(each["name"]), _parse_arguments(each.get("arguments")))
        for each in functions
        if isinstance(each, Mapping) and "name" in each
    ]
    if not named:
        return content
    written = [_to_json({"tool_name": name, "tool_args": arguments}) for name, arguments in named]
    return format_calls(named, content) or "\n".join(filter(None, (content, *written)))


def _parse_arguments(arguments: Any) -> Any:
    """OpenAI has them as JSON in a text."""
    try:
        return msgspec.json.decode(arguments) if isinstance(arguments, str) else arguments or {}
    except (msgspec.DecodeError, RecursionError):
        return arguments


def _with_instructions(
    instructions: str, messages: Messages, features: TemplateFeatures
) -> Messages:
    """The first messages with the instructions, unless the user just says the same."""
    if len(messages) == 1:
        messages = (("user", messages[0][1]),)
    asked = {words.strip() for role, words in messages if role == "user"}
    if not instructions or instructions in asked:
        return messages
    if features.system:
        return (("system", instructions), *messages)
    role, words = messages[0]
    if role != "user":
        return (("user", instructions), *messages)
    return (("user", f"{instructions}\n\n{words}"), *messages[1:])


def _to_json(value: Any) -> str:
    """In the order in which it was recorded: so the model wrote it."""
    return msgspec.json.encode(value).decode()
