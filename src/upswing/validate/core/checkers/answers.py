"""Is the final answer the expected one?

| the answer                                         | what counts                                  |
|----------------------------------------------------|----------------------------------------------|
| has a line `ANSWER: …`                             | that line; the last one, if there are several|
| has none, but holds one number (or one line) in all| that                                         |
| anything else                                      | no answer: wrong                             |
"""

from __future__ import annotations

import math

from upswing.validate.core.checkers.text import final_answer, normalized, numbers
from upswing.validate.core.moves import TaskResult
from upswing.validate.core.task import Exact, Number


def check_number(check: Number, text: str) -> TaskResult:
    """Right or wrong; NaN is wrong.

    >>> check_number(Number(value=12.5, tolerance=0.05), "ANSWER: about 12.52 %").score
    1.0
    >>> check_number(Number(value=3), "First 1, then 2.").sentence
    'There is no clear answer; 3 was expected.'
    """
    line = final_answer(text)
    found = numbers(text if line is None else line)
    if not found or (line is None and len(found) > 1):
        return TaskResult(0.0, f"There is no clear answer; {check.value:g} was expected.")
    right = math.isfinite(found[0]) and abs(found[0] - check.value) <= check.tolerance + 1e-9
    if right:
        return TaskResult(1.0, f"{found[0]:g} is right.")
    return TaskResult(0.0, f"{found[0]:g} is wrong; {check.value:g} was expected.")


def check_exact(check: Exact, text: str) -> TaskResult:
    """Right or wrong, whatever the case and the last full stop.

    >>> check_exact(Exact(any_of=("North",)), "ANSWER: north.").score
    1.0
    """
    line = final_answer(text)
    if line is None:
        lines = text.strip().splitlines()
        line = lines[0] if len(lines) == 1 else ""
    answer = normalized(line).strip(" .\"'")
    if answer in {normalized(each) for each in check.any_of}:
        return TaskResult(1.0, f"“{answer}” is right.")
    return TaskResult(0.0, f"“{answer[:60]}” is wrong; “{check.any_of[0]}” was expected.")
