"""Does the answer say what the sources say, and nothing that they speak against?

A fact is there when one of its wordings is there and no `not` stands right before it. A contradicted
fact that is named only to be corrected (“not 1912”, “rather than 1912”) does no harm. These are
rules and not understanding: tasks are written so that the facts are names, numbers and short phrases.

| contradicted | too long | facts found | score |
|--------------|----------|-------------|-------|
| one or more  | any      | any         | 0     |
| none         | yes      | any         | 0     |
| none         | no       | n of m      | n / m |
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from upswing.validate.core.checkers.text import normalized, phrase_positions
from upswing.validate.core.moves import TaskResult
from upswing.validate.core.task import Facts

_DENIED = re.compile(r"\b(?:not|never|no|isn't|wasn't|aren't|weren't|didn't)(?: \w+)? ?$")
_CORRECTED = re.compile(
    r"\b(?:not|never|no longer|rather than|instead of|unlike|wrongly|incorrectly|mistakenly|outdated"
    r"|earlier|previously|originally|initially|formerly|up from|down from|revised from|false)"
    r"(?:[\s:,-]+[\w'$€%.-]+){0,4}[\s:,-]*$"
)
_WINDOW = 60
"""Characters before a wording that may take it back."""


def check_facts(check: Facts, text: str) -> TaskResult:
    """The share of the facts.

    >>> fact = Facts(required=(("1913",), ("Delft", "the Dutch town")), contradicted=(("1912",),))
    >>> check_facts(fact, "It opened in Delft in 1913, not in 1912.").score
    1.0
    >>> check_facts(fact, "It opened in Delft in 1912.").sentence
    'It says “1912”, which the sources speak against.'
    """
    answer = normalized(text)
    for wordings in check.contradicted:
        for wording in wordings:
            if _is_stated(answer, normalized(wording), _CORRECTED):
                return TaskResult(0.0, f"It says “{wording}”, which the sources speak against.")
    words = len(answer.split())
    if words > check.max_words:
        return TaskResult(0.0, f"It has {words} words; {check.max_words} are enough.")
    return fact_share(check.required, text)


def fact_share(required: Sequence[Sequence[str]], text: str) -> TaskResult:
    """How many of the facts are there."""
    answer = normalized(text)
    missing = [
        wordings[0]
        for wordings in required
        if not any(_is_stated(answer, normalized(each), _DENIED) for each in wordings)
    ]
    found = len(required) - len(missing)
    if missing:
        return TaskResult(found / len(required), f"It does not say “{missing[0]}”.")
    return TaskResult(1.0, "Every fact is there.")


def _is_stated(answer: str, wording: str, negation: re.Pattern[str]) -> bool:
    return any(
        not negation.search(answer[max(0, at - _WINDOW) : at])
        for at in phrase_positions(answer, wording)
    )
