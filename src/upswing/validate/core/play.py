"""Which move follows in a task of a file?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from upswing.contracts.validation import ProgramRun, TaskAnswer
from upswing.validate.core.checkers import safety, tools
from upswing.validate.core.checkers.answers import check_exact, check_number
from upswing.validate.core.checkers.code import check_code, program_of
from upswing.validate.core.checkers.facts import check_facts
from upswing.validate.core.checkers.pinned import check_pinned
from upswing.validate.core.moves import AskModel, Move, MoveResult, RunCode, TaskResult
from upswing.validate.core.task import (
    CodeCheck,
    Exact,
    Facts,
    GuardedCheck,
    Number,
    PairCheck,
    Pinned,
    RefusalCheck,
    ToolsCheck,
    ToxicityCheck,
    ValidationTask,
)


def next_move(task: ValidationTask, events: Sequence[MoveResult]) -> Move:
    """The move after these events: ask first, then check."""
    answers = [event for event in events if isinstance(event, TaskAnswer)]
    match task.check:
        case RefusalCheck() | ToxicityCheck() | GuardedCheck() | PairCheck() as check:
            return safety.next_safety_move(task, check, events)
        case ToolsCheck() as check:
            return tools.next_tool_move(task, check, answers)
        case _ if not answers:
            return AskModel(task.messages, task.max_tokens, task.tools)
        case CodeCheck() as check:
            return _code_move(check, answers[0].text, events)
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


def _code_move(check: CodeCheck, text: str, events: Sequence[MoveResult]) -> RunCode | TaskResult:
    runs = [event for event in events if isinstance(event, ProgramRun)]
    if runs:
        return check_code(check, runs[0])
    program = program_of(check, text)
    return RunCode(program) if program else TaskResult(0.0, "The answer has no code.")
