"""What did a verdict follow from, and what follows from it today?

The journal keeps what `verdict` was given. Numbers that are not numbers are null there, as in the
report, and NaN again here: a score of NaN fails today as it did then.
"""

from __future__ import annotations

import math

import msgspec
from msgspec import Struct

from upswing.contracts.typed import from_json
from upswing.contracts.validation import Interval, Kind, Side, ValidationReport
from upswing.validate.compare import Difference
from upswing.validate.verdict import Policy, Score, Verdict, verdict


class Measured(Struct, frozen=True):
    """One suite, as far as the verdict asks."""

    name: str
    kind: Kind
    candidate: float | None
    current: float | None
    difference: Interval | None
    done: int
    planned: int
    spoiled: dict[Side, int]


class Inputs(Struct, frozen=True):
    """All that a verdict follows from."""

    run_id: str
    candidate: str
    current: str
    suites: tuple[Measured, ...]
    safety: Interval | None
    improvement: Interval | None
    policy: Policy
    anchor: Interval | None = None
    abilities: Interval | None = None


def inputs_of(report: ValidationReport, policy: Policy) -> bytes:
    """What the journal keeps."""
    suites = tuple(
        Measured(
            each.name, each.kind, each.candidate, each.current, each.difference, each.done,
            each.planned, each.spoiled,
        )
        for each in report.suites
    )  # fmt: skip
    return msgspec.json.encode(
        Inputs(
            report.run_id, report.candidate, report.current, suites, report.safety,
            report.improvement, policy, report.anchor, report.abilities,
        )
    )  # fmt: skip


def replay(inputs: bytes) -> tuple[bytes, str]:
    """What today's rules make of journalled inputs: the outcome and its sentence."""
    told = from_json(inputs, Inputs)
    reached = verdict(
        [_score(each) for each in told.suites],
        _difference(told.safety),
        _difference(told.improvement),
        told.policy,
        _difference(told.anchor),
        _difference(told.abilities),
    )
    return _outcome(reached), _sentence(told, reached)


def _outcome(reached: Verdict) -> bytes:
    return msgspec.json.encode({"word": reached.word, "findings": reached.findings})


def _sentence(told: Inputs, reached: Verdict) -> str:
    return f"{told.candidate} against {told.current}: {reached.word}. {' '.join(reached.reasons)}"


def _score(each: Measured) -> Score:
    return Score(
        name=each.name,
        kind=each.kind,
        difference=_difference(each.difference),
        done=each.done,
        planned=each.planned,
        candidate=each.candidate,
        current=each.current,
        spoiled=each.spoiled,
    )


def _difference(found: Interval | None) -> Difference | None:
    """NaN again where there was no number."""
    if found is None:
        return None
    estimate, lower, upper = (
        math.nan if x is None else x for x in (found.estimate, found.lower, found.upper)
    )
    return Difference(estimate, lower, upper, found.tasks)
