"""Were the right tools called, with the right arguments, one step after the other?

| the model                                             | what follows                              |
|-------------------------------------------------------|-------------------------------------------|
| calls some of the step's tools                        | gets their results, and is asked again    |
| calls the last of them                                | the next step, or its final answer        |
| calls something else, or with other arguments         | the end: the share of the steps before    |
| answers without calling what is left                  | the end, likewise                         |
| calls a tool where none is needed                     | 0                                         |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from upswing.contracts.typed import from_json
from upswing.contracts.validation import TaskAnswer, ToolCall
from upswing.contracts.wire import Json
from upswing.validate.core.checkers.facts import fact_share
from upswing.validate.core.checkers.text import normalized
from upswing.validate.core.moves import AskModel, Message, TaskResult
from upswing.validate.core.task import Call, ToolsCheck, ValidationTask

MATCHERS = frozenset({"any_of", "contains"})


def next_tool_move(
    task: ValidationTask, check: ToolsCheck, answers: Sequence[TaskAnswer]
) -> AskModel | TaskResult:
    """What follows from the answers so far."""
    messages: list[Message] = list(task.messages)
    steps = [list(step) for step in check.steps]
    total = len(steps) + bool(check.say)
    for answer in answers:
        done = len(check.steps) - len(steps)
        if not steps:
            return _final_result(check, answer, done, total)
        if not answer.tool_calls:
            return TaskResult(done / total, f"It does not call {steps[0][0].name}.")
        taken = _match_calls(steps[0], answer.tool_calls)
        if isinstance(taken, str):
            return TaskResult(done / total, taken)
        messages += tool_call_messages(answer, [call.result for call in taken])
        if not steps[0]:
            steps.pop(0)
    if answers and not steps and not check.say:
        return TaskResult(1.0, "Every call is right.")
    return AskModel(tuple(messages), task.max_tokens, task.tools)


def _final_result(check: ToolsCheck, answer: TaskAnswer, done: int, total: int) -> TaskResult:
    if answer.tool_calls:
        return TaskResult(
            done / max(total, 1), f"It calls {answer.tool_calls[0].name} without need."
        )
    if not check.say:
        return TaskResult(1.0, "It calls nothing, as it should.")
    facts = fact_share(check.say, answer.text)
    return TaskResult((done + facts.score) / total, facts.sentence)


def _match_calls(expected: list[Call], calls: Sequence[ToolCall]) -> list[Call] | str:
    """The expected calls that were made, which are expected no longer; or what was wrong."""
    taken = []
    for call in calls:
        fitting = [each for each in expected if not call_fault(call, each)]
        if not fitting:
            alike = [each for each in expected if each.name == call.name]
            why = (
                call_fault(call, alike[0])
                if alike
                else f"It calls {call.name[:60]}, which does not help."
            )
            return why or f"It calls {call.name[:60]} twice."
        expected.remove(fitting[0])
        taken.append(fitting[0])
    return taken


def call_fault(call: ToolCall, expected: Call, *, exact: bool = True) -> str | None:
    """What is wrong with a call; None when it is the expected one.

    `exact`: whether arguments that are not expected are wrong.
    """
    if call.name != expected.name:
        return f"It calls {call.name[:60]} and not {expected.name}."
    try:
        given = from_json(call.arguments or "{}", dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return f"The arguments of {call.name} are no JSON object."
    for name, want in expected.arguments.items():
        if name not in given:
            return f"{call.name} lacks {name}."
        if not argument_matches(given[name], want):
            return f"{call.name} has {name} = {str(given[name])[:60]!r}, and that is wrong."
    return _unexpected_argument(call.name, given, expected) if exact else None


def _unexpected_argument(name: str, given: Json, expected: Call) -> str | None:
    """An argument that nobody asked for."""
    for extra in given.keys() - expected.arguments.keys():
        want = expected.optional.get(extra)
        if want is not True and not (
            extra in expected.optional and argument_matches(given[extra], want)
        ):
            return f"{name} has {str(extra)[:60]}, which was not asked for."
    return None


def argument_matches(value: Any, want: Any) -> bool:
    """Whether an argument is the expected one; the case of text does not matter.

    >>> argument_matches("Berlin ", "berlin"), argument_matches(5, 5.0), argument_matches("5", 5), argument_matches("by noon", {"contains": "noon"})
    (True, True, False, True)
    """
    if isinstance(want, dict) and len(want) == 1 and want.keys() <= MATCHERS:
        if "any_of" in want:
            return any(argument_matches(value, each) for each in want["any_of"])
        return isinstance(value, str) and normalized(str(want["contains"])) in normalized(value)
    if isinstance(value, bool) or isinstance(want, bool):
        return value is want
    if isinstance(value, str) and isinstance(want, str):
        return normalized(value) == normalized(want)
    if isinstance(value, list) and isinstance(want, list):
        return len(value) == len(want) and all(map(argument_matches, value, want))
    if isinstance(value, dict) and isinstance(want, dict):
        return value.keys() == want.keys() and all(
            argument_matches(value[key], want[key]) for key in want
        )
    return bool(value == want)


def tool_call_messages(answer: TaskAnswer, results: Sequence[Any]) -> list[Message]:
    """An answer with tool calls and what the tools gave, as messages."""
    ids = [call.call_id or f"call_{place}" for place, call in enumerate(answer.tool_calls)]
    calls = [
        {
            "id": call_id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for call_id, call in zip(ids, answer.tool_calls, strict=True)
    ]
    given = [
        {"role": "tool", "tool_call_id": call_id, "content": _as_text(result)}
        for call_id, result in zip(ids, results, strict=True)
    ]
    return [{"role": "assistant", "content": answer.text or None, "tool_calls": calls}, *given]


def _as_text(result: Any) -> str:
    return result if isinstance(result, str) else msgspec.json.encode(result).decode()
