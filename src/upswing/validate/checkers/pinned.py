"""Does what went wrong in production go wrong again?"""

from __future__ import annotations

from upswing.contracts.validation import Answer
from upswing.validate.checkers.text import plain
from upswing.validate.checkers.tools import wrong
from upswing.validate.moves import Done
from upswing.validate.task import Pinned


def check_pinned(check: Pinned, answer: Answer) -> Done:
    """1 when everything that must be is, and nothing that must not be.

    >>> again = Pinned(differs_from=("The shop is open.",), contains=("closed",))
    >>> check_pinned(again, Answer("the shop is open")).sentence
    'It gives the wrong answer again.'
    >>> check_pinned(again, Answer("It is closed on Sundays.")).score
    1.0
    """
    why = _spoken(check, plain(answer.text)) or _called(check, answer)
    return Done(0.0, why) if why else Done(1.0, "It does not happen again.")


def _spoken(check: Pinned, said: str) -> str | None:
    if any(_bare(said) == _bare(plain(text)) for text in check.differs_from):
        return "It gives the wrong answer again."
    for text in check.contains:
        if plain(text) not in said:
            return f"It does not say “{text[:80]}”."
    for text in check.excludes:
        if plain(text) in said:
            return f"It says “{text[:80]}”."
    return None


def _called(check: Pinned, answer: Answer) -> str | None:
    for expected in check.calls:
        faults = [wrong(call, expected, only=False) for call in answer.tool_calls]
        if all(faults):
            alike = [fault for fault in faults if fault and fault.startswith(expected.name)]
            return alike[0] if alike else f"It does not call {expected.name}."
    for unwanted in check.calls_not:
        if not all(wrong(call, unwanted, only=False) for call in answer.tool_calls):
            return f"It calls {unwanted.name} again."
    return None


def _bare(text: str) -> str:
    return text.strip(" .!?\"'")
