"""How well did it go, and who says so?

`metadata.outcome`, as agents write it:

| outcome                                                           | value             |
|-------------------------------------------------------------------|-------------------|
| `true`, `false`                                                   | 1, 0              |
| a number from 0 to 1                                              | the number        |
| `"completed"` (success, done, solved, passed, …)                  | 1                 |
| `"partial"` (incomplete, in_progress)                             | 0.5               |
| `"failed"` (failure, error, timeout, aborted, …)                  | 0                 |
| `{"status": …}` or `{"success": …}` with such a word or a boolean | as above          |
| `{"share": …}`, the same as `score`, `reward` or `value`          | the number        |
| both                                                              | the share         |
| anything else                                                     | none: not understood |

Beside them an object may have `source`, which names who says so, and `error`, `reason`, `details`
or another of `REMARKS`, which nobody reads as a number.

| said by                                               | counts as                              |
|-------------------------------------------------------|----------------------------------------|
| `world`, `environment`, `tests`, `verifier`, `checker`, `grader`, `ground_truth` | verified    |
| anybody else, or nobody named (the agent itself)      | reported                               |
| `metadata.test_results`, when no verifier has spoken but the tests themselves | verified: the share of tests that passed |

What is not understood counts as not said. A door that can answer refuses it, with `unread`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from upswing.contracts.steps import number
from upswing.contracts.words import AGENT, STATUS, TESTS, VERIFIERS

SHARES = ("share", "score", "reward", "value")
"""The names of how much of the task is done, from 0 to 1."""
REMARKS = frozenset({
    "error", "reason", "reasoning", "explanation", "detail", "details", "message", "note", "notes",
    "comment", "metadata",
})  # fmt: skip
"""What else may stand in an outcome: for people."""
FORMS = (
    "Write true or false, a number from 0 to 1, a word such as `completed`, `partial` or `failed`, or an object "
    "with `status` or `share` (also `score`, `reward`), where `source` may say who checked it."
)
_VALUES = {"completed": 1.0, "partial": 0.5, "failed": 0.0}
_FIELDS = frozenset({"status", "success", "source", *SHARES, *REMARKS})


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

    status: str | None = None
    """`completed`, `partial` or `failed`."""
    share: float | None = None
    notes: tuple[str, ...] = ()
    """What was not understood."""
    source: str = ""
    """Who says so; empty: the agent."""
    doubtful: bool = False
    """A status or a share is there and cannot be read, so the other may not be what was meant."""

    @property
    def value(self) -> float | None:
        """From 0 to 1; None where it was not understood."""
        if self.doubtful:
            return None
        if self.share is None and self.status is not None:
            return _VALUES[self.status]
        return self.share

    @property
    def words(self) -> str:
        """For a sentence.

        >>> read_outcome({"status": "completed", "source": "tests"}).words, read_outcome(None).words
        ('with the outcome 1 by `tests`', 'without an outcome')
        """
        if self.value is None:
            return "without an outcome"
        return f"with the outcome {self.value:g}" + (f" by `{self.source}`" if self.source else "")


def outcome_of(metadata: Mapping[str, Any]) -> Outcome:
    """What a trajectory's metadata says of its success.

    >>> outcome_of({"outcome": {"status": "partial", "share": 0.25, "source": "world"}})
    Outcome(value=0.25, verified=0.25, said_by='world')
    >>> outcome_of({"outcome": "completed", "test_results": {"passed": 1, "failed": 3}})
    Outcome(value=0.25, verified=0.25, said_by='tests')
    >>> outcome_of({"outcome": 0.7}), outcome_of({"outcome": "great"})
    (Outcome(value=0.7, verified=None, said_by='agent'), Outcome(value=None, verified=None, said_by=''))
    """
    stated = read_outcome(metadata.get("outcome"))
    value, said_by = stated.value, stated.source
    passed = tests_passed(metadata.get("test_results"))
    counted = said_by == TESTS and passed is not None
    if value is not None and said_by in VERIFIERS and not counted:
        return Outcome(value, value, said_by)
    if passed is not None:
        return Outcome(passed, passed, TESTS)
    return NOT_STATED if value is None else Outcome(value, None, said_by or AGENT)


def read_outcome(told: Any) -> Stated:
    """Status and share, as far as they can be read.

    >>> read_outcome({"score": 0.7, "source": "tests"})
    Stated(status=None, share=0.7, notes=(), source='tests', doubtful=False)
    >>> read_outcome({"outcom": "completed"}).notes
    ('`outcom` is not known there', 'it does not say how it went')
    """
    if told is None:
        return Stated()
    if not isinstance(told, Mapping):
        counted = isinstance(told, int | float) and not isinstance(told, bool)
        told = {"share" if counted else "status": told}
    word = told.get("status", told.get("success"))
    status = STATUS.get(_word(word))
    share, notes = _share(told)
    if status is None and word is not None:
        notes.append(_not_a_status(word))
    doubtful = bool(notes)
    notes += [f"`{str(name)[:40]}` is not known there" for name in told if name not in _FIELDS]
    if status is None and share is None and not doubtful:
        notes.append("it does not say how it went")
    source = told.get("source")
    if source is not None and not isinstance(source, str):
        notes.append("`source` is a word")
    return Stated(status, share, tuple(notes), _word(source), doubtful)


def unread(told: Any) -> str:
    """Why an outcome is not understood, and what can be written; empty when it is, or is not given.

    >>> unread(0.7), unread(None)
    ('', '')
    >>> unread("0.7")[:91]
    'The outcome is not understood: the status is a number in quotation marks. Write true or fal'
    """
    notes = read_outcome(told).notes
    return f"The outcome is not understood: {'; '.join(notes)}. {FORMS}" if notes else ""


def _share(told: Mapping[str, Any]) -> tuple[float | None, list[str]]:
    """The share by whichever name, and what is wrong with it."""
    known, notes = set(), []
    for name in SHARES:
        if (given := told.get(name)) is None:
            continue
        share = number(given)
        if share is None or not 0 <= share <= 1:
            notes.append(f"the {name} is not a number from 0 to 1")
        else:
            known.add(share)
    if len(known) > 1:
        notes.append("it says two different shares")
    return (known.pop() if len(known) == 1 and not notes else None), notes


def _not_a_status(word: Any) -> str:
    try:
        float(word if isinstance(word, str) else "")
    except ValueError:
        return "the status is not one we know"
    return "the status is a number in quotation marks"


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
