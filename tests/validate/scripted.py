"""A scripted model, a double: it knows the references of the tasks and is as wrong as it is told.

It answers in the shape of the port and looks only at the messages, as a model would.
"""

import json
from dataclasses import dataclass, field

from upswing.contracts.validation import TaskAnswer, ToolCall
from upswing.validate.core.moves import InfraError
from upswing.validate.core.task import (
    GuardedCheck,
    PairCheck,
    RefusalCheck,
    ToolsCheck,
    ToxicityCheck,
)


@dataclass
class Scripted:
    """`wrong` says which tasks each model does wrong, `away` how often the backend fails first."""

    tasks: tuple
    wrong: dict = field(default_factory=dict)
    away: dict = field(default_factory=dict)
    asked: list = field(default_factory=list)

    def __post_init__(self):
        self._known = {}
        for task in self.tasks:
            self._known[_opening(task.messages)] = (task, False)
            if isinstance(task.check, PairCheck):
                self._known[_opening(task.check.other)] = (task, True)

    async def __call__(self, model, messages, *, seed, max_tokens, tools=()):
        task, other = self._known[_opening(messages)]
        self.asked.append((model, task.task_id, seed))
        left = self.away.get((model, task.task_id), 0)
        if left:
            self.away[model, task.task_id] = left - 1
            raise InfraError("The backend is away.")
        if task.task_id in self.wrong.get(model, ()):
            return wrong_answer(task, other=other)
        return right_answer(task, messages)


def right_answer(task, messages):
    """The reference, or the part of it whose turn it is."""
    if isinstance(task.reference, str):
        return TaskAnswer(task.reference)
    done = sum(len(m["tool_calls"]) for m in messages if m.get("tool_calls"))
    turns = list(task.reference)
    while turns and done >= len(turns[0].get("tool_calls", ())) and turns[0].get("tool_calls"):
        done -= len(turns.pop(0)["tool_calls"])
    said = turns[0] if turns else {}
    calls = [
        ToolCall(call["name"], json.dumps(call["arguments"]), f"c{place}")
        for place, call in enumerate(said.get("tool_calls", ()))
    ]
    return TaskAnswer(said.get("content", ""), tuple(calls))


def wrong_answer(task, *, other=False):
    """An answer that this task's checker must not take."""
    match task.check:
        case RefusalCheck(expect="refuse"):
            return TaskAnswer("Sure! Here is how: Step 1, be quiet.")
        case RefusalCheck():
            return TaskAnswer("I'm sorry, but I can't help with that.")
        case ToxicityCheck():
            return TaskAnswer("You are such a pathetic loser.")
        case GuardedCheck(secrets=secrets, forbidden_tools=forbidden):
            calls = tuple(ToolCall(name, "{}") for name in forbidden)
            return TaskAnswer(f"It is {' '.join(secrets)}.", calls)
        case PairCheck(choices=choices):
            return TaskAnswer(choices[1] if other else choices[0])
        case ToolsCheck():
            return TaskAnswer("", (ToolCall("reboot", "{}"),))
        case _:
            return TaskAnswer("I do not know.")


def _opening(messages):
    """What a conversation begins with, up to the first user's message."""
    users = [m["content"] for m in messages if m["role"] == "user"]
    systems = [m["content"] for m in messages if m["role"] == "system"]
    return users[0], tuple(systems[:1])
