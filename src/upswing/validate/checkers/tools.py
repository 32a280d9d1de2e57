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
from upswing.contracts.validation import Answer, ToolCall
from upswing.contracts.wire import Json
from upswing.validate.checkers.facts import share
from upswing.validate.checkers.text import plain
from upswing.validate.moves import AskModel, Done, Message
from upswing.validate.task import Call, Task, Tools

MATCHERS = frozenset({"any_of", "contains"})


def after(task: Task, check: Tools, answers: Sequence[Answer]) -> AskModel | Done:
    """What follows from the answers so far."""
    messages: list[Message] = list(task.messages)
    steps = [list(step) for step in check.steps]
    total = len(steps) + bool(check.say)
    for answer in answers:
        done = len(check.steps) - len(steps)
        if not steps:
            return _finish(check, answer, done, total)
        if not answer.tool_calls:
            return Done(done / total, f"It does not call {steps[0][0].name}.")
        taken = _take(steps[0], answer.tool_calls)
        if isinstance(taken, str):
            return Done(done / total, taken)
        messages += spoken(answer, [call.result for call in taken])
        if not steps[0]:
            steps.pop(0)
    if answers and not steps and not check.say:
        return Done(1.0, "Every call is right.")
    return AskModel(tuple(messages), task.max_tokens, task.tools)


def _finish(check: Tools, answer: Answer, done: int, total: int) -> Done:
    if answer.tool_calls:
        return Done(done / max(total, 1), f"It calls {answer.tool_calls[0].name} without need.")
    if not check.say:
        return Done(1.0, "It calls nothing, as it should.")
    said = share(check.say, answer.text)
    return Done((done + said.score) / total, said.sentence)


def _take(expected: list[Call], calls: Sequence[ToolCall]) -> list[Call] | str:
    """The expected calls that were made, which are expected no longer; or what was wrong."""
    taken = []
    for call in calls:
        fitting = [each for each in expected if not wrong(call, each)]
        if not fitting:
            alike = [each for each in expected if each.name == call.name]
            why = (
                wrong(call, alike[0])
                if alike
                else f"It calls {call.name[:60]}, which does not help."
            )
            return why or f"It calls {call.name[:60]} twice."
        expected.remove(fitting[0])
        taken.append(fitting[0])
    return taken


def wrong(call: ToolCall, expected: Call, *, only: bool = True) -> str | None:
    """What is wrong with a call; None when it is the expected one.

    `only`: whether arguments that are not expected are wrong.
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
        if not fits(given[name], want):
            return f"{call.name} has {name} = {str(given[name])[:60]!r}, and that is wrong."
    return _extra(call.name, given, expected) if only else None


def _extra(name: str, given: Json, expected: Call) -> str | None:
    """An argument that nobody asked for."""
    for extra in given.keys() - expected.arguments.keys():
        want = expected.optional.get(extra)
        if want is not True and not (extra in expected.optional and fits(given[extra], want)):
            return f"{name} has {str(extra)[:60]}, which was not asked for."
    return None


def fits(value: Any, want: Any) -> bool:
    """Whether an argument is the expected one; the case of text does not matter.

    >>> fits("Berlin ", "berlin"), fits(5, 5.0), fits("5", 5), fits("by noon", {"contains": "noon"})
    (True, True, False, True)
    """
    if isinstance(want, dict) and len(want) == 1 and want.keys() <= MATCHERS:
        if "any_of" in want:
            return any(fits(value, each) for each in want["any_of"])
        return isinstance(value, str) and plain(str(want["contains"])) in plain(value)
    if isinstance(value, bool) or isinstance(want, bool):
        return value is want
    if isinstance(value, str) and isinstance(want, str):
        return plain(value) == plain(want)
    if isinstance(value, list) and isinstance(want, list):
        return len(value) == len(want) and all(map(fits, value, want))
    if isinstance(value, dict) and isinstance(want, dict):
        return value.keys() == want.keys() and all(fits(value[key], want[key]) for key in want)
    return bool(value == want)


def spoken(answer: Answer, results: Sequence[Any]) -> list[Message]:
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
        {"role": "tool", "tool_call_id": call_id, "content": _told(result)}
        for call_id, result in zip(ids, results, strict=True)
    ]
    return [{"role": "assistant", "content": answer.text or None, "tool_calls": calls}, *given]


def _told(result: Any) -> str:
    return result if isinstance(result, str) else msgspec.json.encode(result).decode()
