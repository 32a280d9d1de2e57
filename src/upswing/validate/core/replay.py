"""What did a verdict follow from, and what follows from it today?

The journal keeps what `decide_verdict` was given. Numbers that are not numbers are null there, as in the
report, and NaN again here: a score of NaN fails today as it did then.
"""

from __future__ import annotations

import math

import msgspec
from msgspec import Struct

from upswing.contracts.typed import from_json
from upswing.contracts.validation import DifferenceInterval, Side, SuiteKind, ValidationReport
from upswing.validate.core.compare import Difference
from upswing.validate.core.verdict import SuiteScore, ValidationPolicy, Verdict, decide_verdict


class SuiteInputs(Struct, frozen=True):
    """One suite, as far as the verdict asks."""

    name: str
    kind: SuiteKind
    candidate: float | None
    current: float | None
    difference: DifferenceInterval | None
    done: int
    planned: int
    spoiled: dict[Side, int]


class VerdictInputs(Struct, frozen=True):
    """All that a verdict follows from."""

    run_id: str
    candidate: str
    current: str
    suites: tuple[SuiteInputs, ...]
    safety: DifferenceInterval | None
    improvement: DifferenceInterval | None
    policy: ValidationPolicy
    anchor: DifferenceInterval | None = None
    abilities: DifferenceInterval | None = None


def encode_inputs(report: ValidationReport, policy: ValidationPolicy) -> bytes:
    """What the journal keeps."""
    suites = tuple(
        SuiteInputs(
            each.name,
            each.kind,
            each.candidate,
            each.current,
            each.difference,
            each.done,
            each.planned,
            each.spoiled,
        )
        for each in report.suites
    )
    return msgspec.json.encode(
        VerdictInputs(
            report.run_id,
            report.candidate,
            report.current,
            suites,
            report.safety,
            report.improvement,
            policy,
            report.anchor,
            report.abilities,
        )
    )


def replay_verdict(inputs: bytes) -> tuple[bytes, str]:
    """What today's rules make of journalled inputs: the outcome and its sentence."""
    decoded = from_json(inputs, VerdictInputs)
    reached = verdict_of(decoded, decoded.policy)
    return _encode_outcome(reached), _sentence(decoded, reached)


def verdict_of(inputs: VerdictInputs, policy: ValidationPolicy) -> Verdict:
    """What follows from journalled inputs under this policy."""
    return decide_verdict(
        [_score(each) for each in inputs.suites],
        _difference(inputs.safety),
        _difference(inputs.improvement),
        policy,
        _difference(inputs.anchor),
        _difference(inputs.abilities),
    )


def _encode_outcome(verdict: Verdict) -> bytes:
    """In the names that the journal has always had."""
    findings = [
        {"about": each.about, "word": each.verdict, "sentence": each.sentence}
        for each in verdict.findings
    ]
    return msgspec.json.encode({"word": verdict.status, "findings": findings})


def _sentence(inputs: VerdictInputs, reached: Verdict) -> str:
    return f"{inputs.candidate} against {inputs.current}: {reached.status}. {' '.join(reached.reasons)}"


def _score(each: SuiteInputs) -> SuiteScore:
    return SuiteScore(
        name=each.name,
        kind=each.kind,
        difference=_difference(each.difference),
        done=each.done,
        planned=each.planned,
        candidate=each.candidate,
        current=each.current,
        spoiled=each.spoiled,
    )


def _difference(found: DifferenceInterval | None) -> Difference | None:
    """NaN again where there was no number."""
    if found is None:
        return None
    estimate, lower, upper = (
        math.nan if x is None else x for x in (found.estimate, found.lower, found.upper)
    )
    return Difference(estimate, lower, upper, found.tasks)
