"""Does what went wrong in production go wrong again?"""

from __future__ import annotations

from upswing.contracts.validation import TaskAnswer
from upswing.validate.core.checkers.text import normalized
from upswing.validate.core.checkers.tools import call_fault
from upswing.validate.core.moves import TaskResult
from upswing.validate.core.task import Pinned


def check_pinned(check: Pinned, answer: TaskAnswer) -> TaskResult:
    """1 when everything that must be is, and nothing that must not be.

    >>> again = Pinned(differs_from=("The shop is open.",), contains=("closed",))
    >>> check_pinned(again, TaskAnswer("the shop is open")).sentence
    'It gives the wrong answer again.'
    >>> check_pinned(again, TaskAnswer("It is closed on Sundays.")).score
    1.0
    """
    why = _text_fault(check, normalized(answer.text)) or _call_fault(check, answer)
    return TaskResult(0.0, why) if why else TaskResult(1.0, "It does not happen again.")


def _text_fault(check: Pinned, answer: str) -> str | None:
    if any(
        _without_punctuation(answer) == _without_punctuation(normalized(text))
        for text in check.differs_from
    ):
        return "It gives the wrong answer again."
    for text in check.contains:
        if normalized(text) not in answer:
            return f"It does not say “{text[:80]}”."
    for text in check.excludes:
        if normalized(text) in answer:
            return f"It says “{text[:80]}”."
    return None


def _call_fault(check: Pinned, answer: TaskAnswer) -> str | None:
    for expected in check.calls:
        faults = [call_fault(call, expected, exact=False) for call in answer.tool_calls]
        if all(faults):
            alike = [fault for fault in faults if fault and fault.startswith(expected.name)]
            return alike[0] if alike else f"It does not call {expected.name}."
    for unwanted in check.calls_not:
        if not all(call_fault(call, unwanted, exact=False) for call in answer.tool_calls):
            return f"It calls {unwanted.name} again."
    return None


def _without_punctuation(text: str) -> str:
    return text.strip(" .!?\"'")
