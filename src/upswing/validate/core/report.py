"""What came of a validation? From sample scores to scores, to a verdict, to a report.

A suite in which both models score zero at every task measures neither: it can show no improvement,
only thin it out. It is reported, and does not count. (A small model may know one world and nothing
else.) A suite in which one of them does anything counts in full.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from upswing.contracts.validation import (
    SIDES,
    DifferenceInterval,
    RegressedTask,
    SampleScore,
    SuiteKind,
    SuiteReport,
    ValidationReport,
)
from upswing.errors import count_phrase
from upswing.validate.core.compare import (
    Difference,
    bootstrap_difference,
    confidence_level,
    paired_scores,
    scores_beside,
)
from upswing.validate.core.verdict import (
    SuiteScore,
    ValidationPolicy,
    Verdict,
    VerdictFinding,
    decide_verdict,
    validation_results,
)

MAX_REGRESSIONS_SHOWN = 20
"""Fallen tasks in a report."""
MIN_BASE_TASKS = 20
"""Tasks that candidate and base must both have done before they are compared."""
Pairs = Mapping[str, tuple[float, float]]
"""Task → the two models' scores."""


@dataclass(frozen=True, slots=True)
class ValidationRun:
    """Which models are compared, and with which chances."""

    run_id: str
    candidate: str
    current: str
    seeds: tuple[int, ...] = (0,)
    """Every task is done once with each, except the user's own."""
    samples: tuple[int, ...] = (1,)
    """Answers to each of the user's own tasks at each look."""
    base: str | None = None
    """The fixed anchor, where it is neither of the two."""
    seed: int = 0
    """Of the intervals."""


@dataclass(frozen=True, slots=True)
class PlannedSuite:
    """One suite as far as reporting needs it."""

    name: str
    kind: SuiteKind
    tasks: int
    own: bool = False
    samples: int = 1
    """Answers of each model to each task."""


@dataclass(frozen=True, slots=True)
class RunMetadata:
    """When and how it was done."""

    started: datetime
    ended: datetime
    judge: str | None = None
    notes: tuple[str, ...] = ()
    looks: tuple[int, ...] = ()
    temperature: float | None = None
    top_p: float | None = None
    constants: Mapping[str, float] = field(default_factory=dict)
    """Suite → what the best constant answer would score."""


@dataclass(frozen=True, slots=True)
class ScoredRun:
    """What sample scores come to."""

    sample_scores: Mapping[str, Sequence[SampleScore]]
    pairs: Mapping[str, Pairs]
    scores: tuple[SuiteScore, ...]
    verdict: Verdict
    anchor: Difference | None


def score_run(
    run: ValidationRun,
    suites: Sequence[PlannedSuite],
    sample_scores: Iterable[SampleScore],
    policy: ValidationPolicy,
) -> ScoredRun:
    """Scores and verdict; the same sample scores give the same."""
    by_suite: dict[str, list[SampleScore]] = {suite.name: [] for suite in suites}
    for sample_score in sample_scores:
        if sample_score.suite in by_suite:
            by_suite[sample_score.suite].append(sample_score)
    pairs = {name: paired_scores(found) for name, found in by_suite.items()}
    scores = [_suite_score(suite, by_suite[suite.name], pairs[suite.name], run) for suite in suites]
    anchor = difference_to_base(run, suites, by_suite)
    return ScoredRun(
        by_suite,
        pairs,
        tuple(scores),
        judge_run(run, suites, pairs, scores, policy, anchor),
        anchor,
    )


def difference_to_base(
    run: ValidationRun,
    suites: Sequence[PlannedSuite],
    sample_scores: Mapping[str, Sequence[SampleScore]],
) -> Difference | None:
    """Candidate − base over the user's own tasks; None where too few were done by both."""
    found = [scores_beside(sample_scores[suite.name], "base") for suite in suites if suite.own]
    enough = sum(map(len, found)) >= MIN_BASE_TASKS
    return (
        bootstrap_difference(found, run.seed, level=confidence_level(len(run.samples)))
        if enough
        else None
    )


def build_report(
    run: ValidationRun,
    suites: Sequence[PlannedSuite],
    sample_scores: Iterable[SampleScore],
    policy: ValidationPolicy,
    metadata: RunMetadata,
) -> ValidationReport:
    """The whole report; the same sample scores give the same report."""
    scored = score_run(run, suites, sample_scores, policy)
    by_suite, pairs, scores = scored.sample_scores, scored.pairs, scored.scores
    reached = scored.verdict
    unmeasured = [
        each.name
        for each in suites
        if policy.counts(each.name, each.kind) and both_score_zero(pairs[each.name])
    ]
    findings = {finding.about: finding for finding in reached.findings}
    return ValidationReport(
        run_id=run.run_id,
        candidate=run.candidate,
        current=run.current,
        verdict=reached.status,
        reasons=reached.reasons,
        improvement=report_interval(reached.improvement),
        safety=report_interval(reached.safety),
        suites=tuple(
            _suite_report(
                score,
                policy.counts(score.name, score.kind) and score.name not in unmeasured,
                findings[score.name],
                metadata.constants.get(score.name),
            )
            for score in scores
        ),
        fallen=tuple(_regressed_tasks(by_suite, pairs))[:MAX_REGRESSIONS_SHOWN],
        results=validation_results(scores, reached),
        started=metadata.started,
        ended=metadata.ended,
        seed=run.seed,
        seeds=run.seeds,
        judge=metadata.judge,
        notes=(*metadata.notes, *_unmeasured_note(unmeasured), *_infrastructure_note(by_suite)),
        level=confidence_level(len(run.samples)),
        looks=metadata.looks,
        base=run.base,
        anchor=report_interval(scored.anchor),
        abilities=report_interval(reached.abilities),
        temperature=metadata.temperature,
        top_p=metadata.top_p,
    )


def judge_run(
    run: ValidationRun,
    suites: Sequence[PlannedSuite],
    pairs: Mapping[str, Pairs],
    scores: Sequence[SuiteScore],
    policy: ValidationPolicy,
    anchor: Difference | None = None,
) -> Verdict:
    """The verdict with its two summaries."""
    counted = [
        pairs[each.name]
        for each in suites
        if policy.counts(each.name, each.kind) and not both_score_zero(pairs[each.name])
    ]
    harm = {
        f"{suite.name}/{task}": both
        for suite in suites
        if suite.kind == "safety"
        for task, both in pairs[suite.name].items()
    }
    pool = {
        f"{suite.name}/{task}": both
        for suite in suites
        if policy.pools(suite.name, suite.kind)
        for task, both in pairs[suite.name].items()
    }
    improvement = bootstrap_difference(counted, run.seed, level=confidence_level(len(run.samples)))
    safety, abilities = (
        bootstrap_difference([harm], run.seed),
        bootstrap_difference([pool], run.seed),
    )
    return decide_verdict(scores, safety, improvement, policy, anchor, abilities)


def both_score_zero(scores: Pairs) -> bool:
    """Whether a suite is beyond both models: nothing of it was done by either.

    >>> both_score_zero({"a": (0.0, 0.0), "b": (0.0, 0.0)}), both_score_zero({"a": (0.0, 0.5)}), both_score_zero({})
    (True, False, False)
    """
    return bool(scores) and all(one == 0 and other == 0 for one, other in scores.values())


def report_interval(found: Difference | None) -> DifferenceInterval | None:
    """As it goes into a report: NaN is null."""
    if found is None:
        return None
    return DifferenceInterval(
        _finite_or_none(found.estimate),
        _finite_or_none(found.lower),
        _finite_or_none(found.upper),
        found.tasks,
    )


def _finite_or_none(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _suite_score(
    suite: PlannedSuite, sample_scores: Sequence[SampleScore], pairs: Pairs, run: ValidationRun
) -> SuiteScore:
    compared = [sample_score for sample_score in sample_scores if sample_score.side in SIDES]
    scored = Counter(
        (sample_score.task_id, sample_score.seed)
        for sample_score in compared
        if sample_score.score is not None
    )
    count = len(pairs)
    return SuiteScore(
        name=suite.name,
        kind=suite.kind,
        difference=bootstrap_difference([pairs], run.seed),
        done=sum(both == 2 for both in scored.values()),
        planned=suite.tasks * suite.samples,
        candidate=math.fsum(one for one, _ in pairs.values()) / count if count else None,
        current=math.fsum(other for _, other in pairs.values()) / count if count else None,
        spoiled={
            side: sum(
                sample_score.score is None for sample_score in compared if sample_score.side == side
            )
            for side in SIDES
        },
        own=suite.own,
        samples=suite.samples,
    )


def _suite_report(
    score: SuiteScore, counted: bool, finding: VerdictFinding, constant: float | None
) -> SuiteReport:
    return SuiteReport(
        name=score.name,
        kind=score.kind,
        counted=counted,
        verdict=finding.verdict,
        sentence=finding.sentence,
        candidate=_finite_or_none(score.candidate),
        current=_finite_or_none(score.current),
        difference=report_interval(score.difference),
        done=score.done,
        planned=score.planned,
        spoiled=dict(score.spoiled),
        own=score.own,
        samples=score.samples,
        constant=_finite_or_none(constant),
    )


def _regressed_tasks(
    by_suite: Mapping[str, Sequence[SampleScore]], pairs: Mapping[str, Pairs]
) -> list[RegressedTask]:
    """The tasks that the candidate does worse, the worst first."""
    worse = [
        (one - other, suite, task)
        for suite, found in pairs.items()
        for task, (one, other) in found.items()
        if not one >= other
    ]
    worst = sorted(worse, key=lambda each: (not math.isnan(each[0]), each))[:MAX_REGRESSIONS_SHOWN]
    return [
        RegressedTask(
            suite, task, 0.0 if math.isnan(delta) else delta, _worst_sentence(by_suite[suite], task)
        )
        for delta, suite, task in worst
    ]


def _worst_sentence(sample_scores: Sequence[SampleScore], task_id: str) -> str:
    """What was wrong with the candidate's worst answer to a task."""
    own = [
        sample_score
        for sample_score in sample_scores
        if sample_score.task_id == task_id and sample_score.side == "candidate"
    ]
    scored = [sample_score for sample_score in own if sample_score.score is not None]
    return (
        min(
            scored, key=lambda sample_score: (sample_score.score or 0.0, sample_score.seed)
        ).sentence
        if scored
        else ""
    )


def _unmeasured_note(names: Sequence[str]) -> list[str]:
    if not names:
        return []
    return [f"Both models score zero in {', '.join(names)}: that says nothing of an improvement."]


def _infrastructure_note(by_suite: Mapping[str, Sequence[SampleScore]]) -> list[str]:
    """The commonest reason why sample scores were spoiled."""
    reasons = Counter(
        sample_score.sentence
        for sample_scores in by_suite.values()
        for sample_score in sample_scores
        if sample_score.score is None
    )
    if not reasons:
        return []
    commonest, _ = reasons.most_common(1)[0]
    total = sum(reasons.values())
    return [f"The infrastructure spoiled {count_phrase(total, 'answer')}, mostly so: {commonest}"]
