"""What came of a validation? From cells to scores, to a verdict, to a report.

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
    Cell,
    Fallen,
    Interval,
    Kind,
    SuiteReport,
    ValidationReport,
)
from upswing.validate.compare import Difference, beside, difference, level_of, paired
from upswing.validate.verdict import Finding, Policy, Score, Verdict, results_of, verdict
from upswing.wording import counted

SHOWN = 20
"""Fallen tasks in a report."""
ENOUGH = 20
"""Tasks that candidate and base must both have done before they are compared."""
Pairs = Mapping[str, tuple[float, float]]
"""Task → the two models' scores."""


@dataclass(frozen=True, slots=True)
class Run:
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
class Planned:
    """One suite as far as reporting needs it."""

    name: str
    kind: Kind
    tasks: int
    own: bool = False
    samples: int = 1
    """Answers of each model to each task."""


@dataclass(frozen=True, slots=True)
class Circumstances:
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
class Weighed:
    """What cells come to."""

    cells: Mapping[str, Sequence[Cell]]
    pairs: Mapping[str, Pairs]
    scores: tuple[Score, ...]
    verdict: Verdict
    anchor: Difference | None


def weigh(run: Run, suites: Sequence[Planned], cells: Iterable[Cell], policy: Policy) -> Weighed:
    """Scores and verdict; the same cells give the same."""
    by_suite: dict[str, list[Cell]] = {suite.name: [] for suite in suites}
    for cell in cells:
        if cell.suite in by_suite:
            by_suite[cell.suite].append(cell)
    pairs = {name: paired(found) for name, found in by_suite.items()}
    scores = [_score(suite, by_suite[suite.name], pairs[suite.name], run) for suite in suites]
    anchor = beside_base(run, suites, by_suite)
    return Weighed(
        by_suite, pairs, tuple(scores), judge(run, suites, pairs, scores, policy, anchor), anchor
    )


def beside_base(
    run: Run, suites: Sequence[Planned], cells: Mapping[str, Sequence[Cell]]
) -> Difference | None:
    """Candidate − base over the user's own tasks; None where too few were done by both."""
    found = [beside(cells[suite.name], "base") for suite in suites if suite.own]
    enough = sum(map(len, found)) >= ENOUGH
    return difference(found, run.seed, level=level_of(len(run.samples))) if enough else None


def report(
    run: Run, suites: Sequence[Planned], cells: Iterable[Cell], policy: Policy, how: Circumstances
) -> ValidationReport:
    """The whole report; the same cells give the same report."""
    weighed = weigh(run, suites, cells, policy)
    by_suite, pairs, scores = weighed.cells, weighed.pairs, weighed.scores
    reached = weighed.verdict
    blank = [
        each.name
        for each in suites
        if policy.counts(each.name, each.kind) and beyond(pairs[each.name])
    ]
    words = {finding.about: finding for finding in reached.findings}
    return ValidationReport(
        run_id=run.run_id,
        candidate=run.candidate,
        current=run.current,
        word=reached.word,
        reasons=reached.reasons,
        improvement=interval(reached.improvement),
        safety=interval(reached.safety),
        suites=tuple(
            _suite(score, policy.counts(score.name, score.kind) and score.name not in blank,
                   words[score.name], how.constants.get(score.name))
            for score in scores
        ),
        fallen=tuple(_fallen(by_suite, pairs))[:SHOWN],
        results=results_of(scores, reached),
        started=how.started,
        ended=how.ended,
        seed=run.seed,
        seeds=run.seeds,
        judge=how.judge,
        notes=(*how.notes, *_blank(blank), *_spoiled(by_suite)),
        level=level_of(len(run.samples)),
        looks=how.looks,
        base=run.base,
        anchor=interval(weighed.anchor),
        abilities=interval(reached.abilities),
        temperature=how.temperature,
        top_p=how.top_p,
    )  # fmt: skip


def judge(
    run: Run,
    suites: Sequence[Planned],
    pairs: Mapping[str, Pairs],
    scores: Sequence[Score],
    policy: Policy,
    anchor: Difference | None = None,
) -> Verdict:
    """The verdict with its two summaries."""
    counted = [
        pairs[each.name]
        for each in suites
        if policy.counts(each.name, each.kind) and not beyond(pairs[each.name])
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
    improvement = difference(counted, run.seed, level=level_of(len(run.samples)))
    safety, abilities = difference([harm], run.seed), difference([pool], run.seed)
    return verdict(scores, safety, improvement, policy, anchor, abilities)


def beyond(pairs: Pairs) -> bool:
    """Whether a suite is beyond both models: nothing of it was done by either.

    >>> beyond({"a": (0.0, 0.0), "b": (0.0, 0.0)}), beyond({"a": (0.0, 0.5)}), beyond({})
    (True, False, False)
    """
    return bool(pairs) and all(one == 0 and other == 0 for one, other in pairs.values())


def interval(found: Difference | None) -> Interval | None:
    """As it goes into a report: NaN is null."""
    if found is None:
        return None
    return Interval(
        _number(found.estimate), _number(found.lower), _number(found.upper), found.tasks
    )


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _score(suite: Planned, cells: Sequence[Cell], pairs: Pairs, run: Run) -> Score:
    two = [cell for cell in cells if cell.side in SIDES]
    seen = Counter((cell.task_id, cell.seed) for cell in two if cell.score is not None)
    count = len(pairs)
    return Score(
        name=suite.name,
        kind=suite.kind,
        difference=difference([pairs], run.seed),
        done=sum(both == 2 for both in seen.values()),
        planned=suite.tasks * suite.samples,
        candidate=math.fsum(one for one, _ in pairs.values()) / count if count else None,
        current=math.fsum(other for _, other in pairs.values()) / count if count else None,
        spoiled={
            side: sum(cell.score is None for cell in two if cell.side == side) for side in SIDES
        },
        own=suite.own,
        samples=suite.samples,
    )


def _suite(score: Score, counted: bool, finding: Finding, constant: float | None) -> SuiteReport:
    return SuiteReport(
        name=score.name,
        kind=score.kind,
        counted=counted,
        word=finding.word,
        sentence=finding.sentence,
        candidate=_number(score.candidate),
        current=_number(score.current),
        difference=interval(score.difference),
        done=score.done,
        planned=score.planned,
        spoiled=dict(score.spoiled),
        own=score.own,
        samples=score.samples,
        constant=_number(constant),
    )


def _fallen(by_suite: Mapping[str, Sequence[Cell]], pairs: Mapping[str, Pairs]) -> list[Fallen]:
    """The tasks that the candidate does worse, the worst first."""
    worse = [
        (one - other, suite, task)
        for suite, found in pairs.items()
        for task, (one, other) in found.items()
        if not one >= other
    ]
    worst = sorted(worse, key=lambda each: (not math.isnan(each[0]), each))[:SHOWN]
    return [
        Fallen(suite, task, 0.0 if math.isnan(delta) else delta, _said(by_suite[suite], task))
        for delta, suite, task in worst
    ]


def _said(cells: Sequence[Cell], task_id: str) -> str:
    """What was wrong with the candidate's worst answer to a task."""
    own = [cell for cell in cells if cell.task_id == task_id and cell.side == "candidate"]
    scored = [cell for cell in own if cell.score is not None]
    return min(scored, key=lambda cell: (cell.score or 0.0, cell.seed)).sentence if scored else ""


def _blank(names: Sequence[str]) -> list[str]:
    if not names:
        return []
    return [f"Both models score zero in {', '.join(names)}: that says nothing of an improvement."]


def _spoiled(by_suite: Mapping[str, Sequence[Cell]]) -> list[str]:
    """The commonest reason why cells were spoiled."""
    reasons = Counter(
        cell.sentence for cells in by_suite.values() for cell in cells if cell.score is None
    )
    if not reasons:
        return []
    commonest, _ = reasons.most_common(1)[0]
    total = sum(reasons.values())
    return [f"The infrastructure spoiled {counted(total, 'answer')}, mostly so: {commonest}"]
