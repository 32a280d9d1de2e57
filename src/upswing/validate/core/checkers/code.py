"""Which part of the answer is the code, and did it do what was expected?

The expected values never enter the sandbox: what a case gives comes out as JSON and is compared
here, so code can neither read them nor declare itself right. All cases or nothing: code that is
right half of the time is wrong.
"""

from __future__ import annotations

import math
import re
from typing import Any

from upswing.contracts.validation import Program, ProgramCase, ProgramRun
from upswing.validate.core.checkers.text import LIMIT
from upswing.validate.core.moves import TaskResult
from upswing.validate.core.task import CodeCheck

_FENCE = re.compile(
    r"^[ \t]*```[ \t]*(\w*)[^\n]*\n(.*?)(?:^[ \t]*```|\Z)", re.DOTALL | re.MULTILINE
)
_OPENING = re.compile(r"^(?:def|class|import|from|async def|@\w)", re.MULTILINE)


def program_of(check: CodeCheck, text: str) -> Program | None:
    """The code of an answer with the cases to try; None when it has no code."""
    source = extract_code(text)
    if source is None:
        return None
    return Program(source, tuple(ProgramCase(give=case.give, run=case.run) for case in check.cases))


def extract_code(text: str) -> str | None:
    r"""The longest Python block; without blocks, all from the first line that looks like code.

    >>> extract_code("Here it is:\n```python\ndef f():\n    return 1\n```\nDone.")
    'def f():\n    return 1\n'
    >>> extract_code("I would not know.") is None
    True
    """
    text = text[:LIMIT]
    blocks = [
        code for tag, code in _FENCE.findall(text) if tag.lower() in {"", "python", "py", "python3"}
    ]
    if blocks:
        return str(max(blocks, key=len))
    opening = _OPENING.search(text)
    return text[opening.start() :] if opening else None


def check_code(check: CodeCheck, ran: ProgramRun) -> TaskResult:
    """Whether every case gave what it should."""
    if ran.broken is not None:
        return TaskResult(0.0, f"The code does not load: {ran.broken}")
    pairs = list(zip(check.cases, ran.gave, strict=False))
    wrong = [
        (case, gave)
        for case, gave in pairs
        if gave.error or not json_equal(gave.value, case.expect)
    ]
    if len(pairs) < len(check.cases):
        why = {"timeout": "took too long", "killed": "was killed at a limit"}.get(
            ran.ended, "ended"
        )
        return TaskResult(0.0, f"The code {why} after {len(pairs)} of {len(check.cases)} cases.")
    if not wrong:
        return TaskResult(1.0, f"All {len(pairs)} cases are right.")
    case, gave = wrong[0]
    found = gave.error or f"{gave.value!r}"
    return TaskResult(0.0, f"{case.give} gives {found[:80]}; {case.expect!r} was expected.")


def json_equal(value: Any, expect: Any) -> bool:
    """Whether two JSON values are the same; numbers may differ in the ninth place.

    >>> json_equal([1, 0.1 + 0.2], [1.0, 0.3]), json_equal(True, 1), json_equal({"a": None}, {"a": None})
    (True, False, True)
    """
    if isinstance(value, bool) or isinstance(expect, bool):
        return value is expect
    if isinstance(value, int | float) and isinstance(expect, int | float):
        return value == expect or math.isclose(value, expect, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(value, list) and isinstance(expect, list):
        return len(value) == len(expect) and all(map(json_equal, value, expect))
    if isinstance(value, dict) and isinstance(expect, dict):
        return value.keys() == expect.keys() and all(
            json_equal(value[key], expect[key]) for key in value
        )
    return type(value) is type(expect) and bool(value == expect)
