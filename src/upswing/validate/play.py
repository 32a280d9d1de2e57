"""Which move follows in a task of a file?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from upswing.contracts.validation import Answer, Ran
from upswing.validate.checkers import safety, tools
from upswing.validate.checkers.answers import check_exact, check_number
from upswing.validate.checkers.code import check_code, program_of
from upswing.validate.checkers.facts import check_facts
from upswing.validate.checkers.pinned import check_pinned
from upswing.validate.moves import AskModel, Done, Event, Move, RunCode
from upswing.validate.task import (
    Code,
    Exact,
    Facts,
    Guarded,
    Number,
    Pair,
    Pinned,
    Refusal,
    Task,
    Tools,
    Toxicity,
)


def following(task: Task, events: Sequence[Event]) -> Move:
    """The move after these events: ask first, then check."""
    answers = [event for event in events if isinstance(event, Answer)]
    match task.check:
        case Refusal() | Toxicity() | Guarded() | Pair() as check:
            return safety.after(task, check, events)
        case Tools() as check:
            return tools.after(task, check, answers)
        case _ if not answers:
            return AskModel(task.messages, task.max_tokens, task.tools)
        case Code() as check:
            return _code(check, answers[0].text, events)
        case Number() as check:
            return check_number(check, answers[0].text)
        case Exact() as check:
            return check_exact(check, answers[0].text)
        case Facts() as check:
            return check_facts(check, answers[0].text)
        case Pinned() as check:
            return check_pinned(check, answers[0])
        case _ as never:
            assert_never(never)


def _code(check: Code, text: str, events: Sequence[Event]) -> RunCode | Done:
    runs = [event for event in events if isinstance(event, Ran)]
    if runs:
        return check_code(check, runs[0])
    program = program_of(check, text)
    return RunCode(program) if program else Done(0.0, "The answer has no code.")
