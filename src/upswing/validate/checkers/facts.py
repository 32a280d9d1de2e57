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

from upswing.validate.checkers.text import places, plain
from upswing.validate.moves import Done
from upswing.validate.task import Facts

_DENIED = re.compile(r"\b(?:not|never|no|isn't|wasn't|aren't|weren't|didn't)(?: \w+)? ?$")
_CORRECTED = re.compile(
    r"\b(?:not|never|no longer|rather than|instead of|unlike|wrongly|incorrectly|mistakenly|outdated"
    r"|earlier|previously|originally|initially|formerly|up from|down from|revised from|false)"
    r"(?:[\s:,-]+[\w'$€%.-]+){0,4}[\s:,-]*$"
)
_WINDOW = 60
"""Characters before a wording that may take it back."""


def check_facts(check: Facts, text: str) -> Done:
    """The share of the facts.

    >>> fact = Facts(required=(("1913",), ("Delft", "the Dutch town")), contradicted=(("1912",),))
    >>> check_facts(fact, "It opened in Delft in 1913, not in 1912.").score
    1.0
    >>> check_facts(fact, "It opened in Delft in 1912.").sentence
    'It says “1912”, which the sources speak against.'
    """
    said = plain(text)
    for wordings in check.contradicted:
        for wording in wordings:
            if _stands(said, plain(wording), _CORRECTED):
                return Done(0.0, f"It says “{wording}”, which the sources speak against.")
    words = len(said.split())
    if words > check.max_words:
        return Done(0.0, f"It has {words} words; {check.max_words} are enough.")
    return share(check.required, text)


def share(required: Sequence[Sequence[str]], text: str) -> Done:
    """How many of the facts are there."""
    said = plain(text)
    missing = [
        wordings[0]
        for wordings in required
        if not any(_stands(said, plain(each), _DENIED) for each in wordings)
    ]
    found = len(required) - len(missing)
    if missing:
        return Done(found / len(required), f"It does not say “{missing[0]}”.")
    return Done(1.0, "Every fact is there.")


def _stands(said: str, wording: str, taken_back: re.Pattern[str]) -> bool:
    return any(
        not taken_back.search(said[max(0, at - _WINDOW) : at]) for at in places(said, wording)
    )
