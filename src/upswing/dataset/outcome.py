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
or another of `REMARK_FIELDS`, which nobody reads as a number.

| said by                                               | counts as                              |
|-------------------------------------------------------|----------------------------------------|
| `world`, `environment`, `tests`, `verifier`, `checker`, `grader`, `ground_truth` | verified    |
| anybody else, or nobody named (the agent itself)      | reported                               |
| `metadata.test_results`, when no verifier has spoken but the tests themselves | verified: the share of tests that passed |

What is not understood counts as not said. An endpoint that can answer rejects it, with `outcome_error`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from upswing.contracts.steps import finite_number_or_none
from upswing.contracts.words import AGENT, STATUS, TESTS, VERIFIERS

SHARE_FIELDS = ("share", "score", "reward", "value")
"""The names of how much of the task is done, from 0 to 1."""
REMARK_FIELDS = frozenset(
    {
        "error",
        "reason",
        "reasoning",
        "explanation",
        "detail",
        "details",
        "message",
        "note",
        "notes",
        "comment",
        "metadata",
    }
)
"""What else may stand in an outcome: for people."""
OUTCOME_FORMS = (
    "Write true or false, a number from 0 to 1, a word such as `completed`, `partial` or `failed`, or an object "
    "with `status` or `share` (also `score`, `reward`), where `source` may say who checked it."
)
_VALUES = {"completed": 1.0, "partial": 0.5, "failed": 0.0}
_FIELDS = frozenset({"status", "success", "source", *SHARE_FIELDS, *REMARK_FIELDS})


@dataclass(frozen=True, slots=True)
class TrajectoryOutcome:
    """How well it went, from 0 to 1; None where nobody says."""

    value: float | None = None
    """Whoever said it."""
    verified: float | None = None
    """The same, if it was checked."""
    source: str = ""


UNKNOWN_OUTCOME = TrajectoryOutcome()


@dataclass(frozen=True, slots=True)
class ParsedOutcome:
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
    def description(self) -> str:
        """For a sentence.

        >>> parse_outcome({"status": "completed", "source": "tests"}).description, parse_outcome(None).description
        ('with the outcome 1 by `tests`', 'without an outcome')
        """
        if self.value is None:
            return "without an outcome"
        return f"with the outcome {self.value:g}" + (f" by `{self.source}`" if self.source else "")


def trajectory_outcome(metadata: Mapping[str, Any]) -> TrajectoryOutcome:
    """What a trajectory's metadata says of its success.

    >>> trajectory_outcome({"outcome": {"status": "partial", "share": 0.25, "source": "world"}})
    TrajectoryOutcome(value=0.25, verified=0.25, source='world')
    >>> trajectory_outcome({"outcome": "completed", "test_results": {"passed": 1, "failed": 3}})
    TrajectoryOutcome(value=0.25, verified=0.25, source='tests')
    >>> trajectory_outcome({"outcome": 0.7}), trajectory_outcome({"outcome": "great"})
    (TrajectoryOutcome(value=0.7, verified=None, source='agent'), TrajectoryOutcome(value=None, verified=None, source=''))
    """
    stated = parse_outcome(metadata.get("outcome"))
    value, said_by = stated.value, stated.source
    passed = test_pass_rate(metadata.get("test_results"))
    counted = said_by == TESTS and passed is not None
    if value is not None and said_by in VERIFIERS and not counted:
        return TrajectoryOutcome(value, value, said_by)
    if passed is not None:
        return TrajectoryOutcome(passed, passed, TESTS)
    return UNKNOWN_OUTCOME if value is None else TrajectoryOutcome(value, None, said_by or AGENT)


def parse_outcome(reported: Any) -> ParsedOutcome:
    """Status and share, as far as they can be read.

    >>> parse_outcome({"score": 0.7, "source": "tests"})
    ParsedOutcome(status=None, share=0.7, notes=(), source='tests', doubtful=False)
    >>> parse_outcome({"outcom": "completed"}).notes
    ('`outcom` is not known there', 'it does not say how it went')
    """
    if reported is None:
        return ParsedOutcome()
    if not isinstance(reported, Mapping):
        counted = isinstance(reported, int | float) and not isinstance(reported, bool)
        reported = {"share" if counted else "status": reported}
    stated = reported.get("status", reported.get("success"))
    status = STATUS.get(_normalise(stated))
    share, notes = _parse_share(reported)
    if status is None and stated is not None:
        notes.append(_status_error(stated))
    doubtful = bool(notes)
    notes += [f"`{str(name)[:40]}` is not known there" for name in reported if name not in _FIELDS]
    if status is None and share is None and not doubtful:
        notes.append("it does not say how it went")
    source = reported.get("source")
    if source is not None and not isinstance(source, str):
        notes.append("`source` is a word")
    return ParsedOutcome(status, share, tuple(notes), _normalise(source), doubtful)


def outcome_error(reported: Any) -> str:
    """Why an outcome is not understood, and what can be written; empty when it is, or is not given.

    >>> outcome_error(0.7), outcome_error(None)
    ('', '')
    >>> outcome_error("0.7")[:91]
    'The outcome is not understood: the status is a number in quotation marks. Write true or fal'
    """
    notes = parse_outcome(reported).notes
    return f"The outcome is not understood: {'; '.join(notes)}. {OUTCOME_FORMS}" if notes else ""


def _parse_share(reported: Mapping[str, Any]) -> tuple[float | None, list[str]]:
    """The share by whichever name, and what is wrong with it."""
    known, notes = set(), []
    for name in SHARE_FIELDS:
        if (given := reported.get(name)) is None:
            continue
        share = finite_number_or_none(given)
        if share is None or not 0 <= share <= 1:
            notes.append(f"the {name} is not a number from 0 to 1")
        else:
            known.add(share)
    if len(known) > 1:
        notes.append("it says two different shares")
    return (known.pop() if len(known) == 1 and not notes else None), notes


def _status_error(value: Any) -> str:
    try:
        float(value if isinstance(value, str) else "")
    except ValueError:
        return "the status is not one we know"
    return "the status is a number in quotation marks"


def test_pass_rate(results: Any) -> float | None:
    """The share of tests that passed, or None; of a rate and counts that disagree, the worse.

    >>> test_pass_rate({"passed": 3, "failed": 1}), test_pass_rate({"passed": 3, "total": 4}), test_pass_rate({"pass_rate": 0.5})
    (0.75, 0.75, 0.5)
    >>> test_pass_rate({"passed": 3, "total": 3, "failed": 1}), test_pass_rate({"pass_rate": 1, "passed": 0, "failed": 2})
    (0.75, 0.0)
    """
    if not isinstance(results, dict):
        return None
    rate, counted = finite_number_or_none(results.get("pass_rate")), _pass_rate_from_counts(results)
    if rate is None:
        return counted
    if not 0 <= rate <= 1:
        return None
    return rate if counted is None else min(rate, counted)


def _pass_rate_from_counts(results: Mapping[str, Any]) -> float | None:
    """The same by the counts; whatever failed is part of the whole, also where the total forgets it."""
    passed, total = (
        finite_number_or_none(results.get("passed")),
        finite_number_or_none(results.get("total")),
    )
    rest = [finite_number_or_none(results.get(key, 0)) for key in ("failed", "errors")]
    if passed is None or None in rest or min(passed, *(r or 0 for r in rest)) < 0:
        return None
    if total is not None and passed > total:
        return None
    whole = max(total or 0, passed + sum(r or 0 for r in rest))
    return passed / whole if whole > 0 else None


def parse_status(value: Any) -> str | None:
    """What a word for an outcome means; None when it is none that we know.

    >>> parse_status("Timed out"), parse_status(True), parse_status("soon")
    ('failed', 'completed', None)
    """
    return STATUS.get(_normalise(value))


def _normalise(value: Any) -> str:
    if isinstance(value, str | bool):
        return str(value)[:40].strip().lower().replace("-", "_").replace(" ", "_")
    return ""
