"""How well did it go, and who says so?

`metadata.outcome` is a word, or `{"status", "share", "source"}`; `source` names who said it.

| said by                                               | counts as                              |
|-------------------------------------------------------|----------------------------------------|
| `world`, `environment`, `tests`, `verifier`, `checker`, `grader`, `ground_truth` | verified    |
| anybody else, or nobody named (the agent itself)      | reported                               |
| `metadata.test_results`, when no verifier has spoken but the tests themselves | verified: the share of tests that passed |

| status, share                                        | value                                   |
|------------------------------------------------------|-----------------------------------------|
| any status, with a share from 0 to 1                 | the share                               |
| completed (success, done, …)                         | 1                                       |
| partial (incomplete, in_progress)                    | 0.5                                     |
| failed (error, timeout, aborted, …)                  | 0                                       |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from upswing.contracts.steps import number
from upswing.contracts.words import AGENT, STATUS, TESTS, VERIFIERS

_VALUES = {"completed": 1.0, "partial": 0.5, "failed": 0.0}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How well it went, from 0 to 1; None where nobody says."""

    value: float | None = None
    """Whoever said it."""
    verified: float | None = None
    """The same, if it was checked."""
    said_by: str = ""


NOT_STATED = Outcome()


@dataclass(frozen=True, slots=True)
class Stated:
    """`metadata.outcome`, read."""

    status: str | None
    """`completed`, `partial` or `failed`."""
    share: float | None
    notes: tuple[str, ...] = ()
    """What was not understood."""


def outcome_of(metadata: Mapping[str, Any]) -> Outcome:
    """What a trajectory's metadata says of its success.

    >>> outcome_of({"outcome": {"status": "partial", "share": 0.25, "source": "world"}})
    Outcome(value=0.25, verified=0.25, said_by='world')
    >>> outcome_of({"outcome": "completed", "test_results": {"passed": 1, "failed": 3}})
    Outcome(value=0.25, verified=0.25, said_by='tests')
    >>> outcome_of({"outcome": "done"}), outcome_of({})
    (Outcome(value=1.0, verified=None, said_by='agent'), Outcome(value=None, verified=None, said_by=''))
    """
    told = metadata.get("outcome")
    stated = read_outcome(told)
    value = stated.share
    if value is None and stated.status is not None:
        value = _VALUES[stated.status]
    said_by = _word(told.get("source")) if isinstance(told, Mapping) else ""
    passed = tests_passed(metadata.get("test_results"))
    counted = said_by == TESTS and passed is not None
    if value is not None and said_by in VERIFIERS and not counted:
        return Outcome(value, value, said_by)
    if passed is not None:
        return Outcome(passed, passed, TESTS)
    return NOT_STATED if value is None else Outcome(value, None, said_by or AGENT)


def read_outcome(told: Any) -> Stated:
    """Status and share, as far as they can be read."""
    if told is None:
        return Stated(None, None)
    if not isinstance(told, Mapping):
        told = {"status": told}
    word, share = told.get("status", told.get("success")), told.get("share")
    notes = []
    status = STATUS.get(_word(word))
    if status is None and word is not None:
        notes.append("the reported status is not one we know")
    known = number(share)
    if share is not None and (known is None or not 0 <= known <= 1):
        notes.append("the reported share is not between 0 and 1, so it is left out")
        known = None
    return Stated(status, known, tuple(notes))


def tests_passed(told: Any) -> float | None:
    """The share of tests that passed, or None; of a rate and counts that disagree, the worse.

    >>> tests_passed({"passed": 3, "failed": 1}), tests_passed({"passed": 3, "total": 4}), tests_passed({"pass_rate": 0.5})
    (0.75, 0.75, 0.5)
    >>> tests_passed({"passed": 3, "total": 3, "failed": 1}), tests_passed({"pass_rate": 1, "passed": 0, "failed": 2})
    (0.75, 0.0)
    """
    if not isinstance(told, dict):
        return None
    rate, counted = number(told.get("pass_rate")), _counted(told)
    if rate is None:
        return counted
    if not 0 <= rate <= 1:
        return None
    return rate if counted is None else min(rate, counted)


def _counted(told: Mapping[str, Any]) -> float | None:
    """The same by the counts; whatever failed is part of the whole, also where the total forgets it."""
    passed, total = number(told.get("passed")), number(told.get("total"))
    rest = [number(told.get(key, 0)) for key in ("failed", "errors")]
    if passed is None or None in rest or min(passed, *(r or 0 for r in rest)) < 0:
        return None
    if total is not None and passed > total:
        return None
    whole = max(total or 0, passed + sum(r or 0 for r in rest))
    return passed / whole if whole > 0 else None


def status_word(value: Any) -> str | None:
    """What a word for an outcome means; None when it is none that we know.

    >>> status_word("Timed out"), status_word(True), status_word("soon")
    ('failed', 'completed', None)
    """
    return STATUS.get(_word(value))


def _word(value: Any) -> str:
    if isinstance(value, str | bool):
        return str(value)[:40].strip().lower().replace("-", "_").replace(" ", "_")
    return ""
