"""Which of two models earns more in production, and how sure is that?

    rewards of both, in the order in which they came ─▶ neighbours compared ─▶ difference, bounds

Neighbours are compared as a canary's are (`deploy.core.rewards`), so an hour that was good or bad for
both says nothing, and the bounds hold however often one looks. Its stakes suit one size of
difference; here several sizes are bet on, each with its share of the 5 %, and the narrowest bounds
count: few rewards give wide ones, many give narrow ones.

| what is told of a reward   | here                                                               |
|----------------------------|--------------------------------------------------------------------|
| its revision               | the newest: late feedback counts                                    |
| a trajectory that counts   | scored, no evaluation, not spoiled by the infrastructure            |
| the mean beside it         | no principal counts for more than 1.5 average ones                  |
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec import Struct

from upswing.contracts.validation import SuiteReport, ValidationReport
from upswing.deploy.core.rewards import RewardEvidence
from upswing.infra.sql.earnings import Earnings, ModelReward
from upswing.principals import Voice
from upswing.reward.core.influence import fair_mean
from upswing.validate.repository import Validations

SIZES = (0.1, 0.02, 0.004)
"""Differences that the bets are made for."""
CHANCE = 0.05
"""That the difference lies outside its bounds, both sides together."""


class Arm(Struct, frozen=True):
    """One of the two."""

    model_id: str
    trajectories: int
    mean: float | None
    """Raw reward; None without any trajectory."""


class SideBySide(Struct, frozen=True):
    """a − b, where they answered in the same time."""

    difference: float
    lower: float
    upper: float
    """With `lower` a 95 % interval, however often one looks."""
    compared: int
    """Trajectories of the model that has fewer, which ones of the other stand against."""


class SuiteDifference(Struct, frozen=True):
    """a − b in one suite of a validation."""

    suite: str
    a: float | None
    b: float | None
    difference: float | None
    lower: float | None = None
    upper: float | None = None
    """None when the scores are of two reports: then nobody has compared task by task."""


class Comparison(Struct, frozen=True):
    """Two models."""

    a: Arm
    b: Arm
    production: SideBySide | None
    """None: they have not answered in the same time."""
    sentence: str
    suites: tuple[SuiteDifference, ...] = ()
    reports: tuple[str, ...] = ()
    """The validations that the suites are taken from: one of both models, or one of each."""


async def load_comparison(
    a: str, b: str, earnings: Earnings, validations: Validations
) -> Comparison:
    """Compare them by what the store has."""
    rows = [await validations.of_pair(a, b)]
    if rows[0] is None:
        rows = [await validations.of_candidate(model) for model in (a, b)]
    reports = [row.report for row in rows if row is not None and row.report is not None]
    complete = reports if len(reports) == len(rows) else []
    return await asyncio.to_thread(compare, a, b, await earnings.newest_rewards(a, b), complete)


def compare(
    a: str, b: str, earned: Sequence[ModelReward], reports: Sequence[ValidationReport] = ()
) -> Comparison:
    """What is known of both; `earned` in the order in which it came."""
    arms = [_arm(model, earned) for model in (a, b)]
    found = side_by_side(a, b, earned)
    return Comparison(
        arms[0],
        arms[1],
        found,
        _sentence(arms[0], arms[1], found),
        tuple(_suite_differences(a, reports)),
        tuple(report.run_id for report in reports),
    )


def side_by_side(a: str, b: str, earned: Sequence[ModelReward]) -> SideBySide | None:
    """The difference and its bounds; None when no two of them are neighbours.

    >>> rewards = [ModelReward(n, "ab"[n % 2], "u", 0.6 - 0.2 * (n % 2)) for n in range(1, 2001)]
    >>> found = side_by_side("a", "b", rewards)
    >>> round(found.difference, 6), found.lower > 0.15, found.upper < 0.25
    (0.2, True, True)
    """
    fewer = min(a, b, key=lambda model: (sum(each.model == model for each in earned), model == b))
    bets = [RewardEvidence(drop=size) for size in SIZES]
    for each in earned:
        for bet in bets:
            bet.observe(each.seq, each.raw, candidate=each.model == fewer)
    difference = bets[0].difference
    if difference is None:
        return None
    chance = CHANCE / 2 / len(bets)
    lower = max(bet.lower(chance) for bet in bets)
    upper = min(bet.upper(chance) for bet in bets)
    if fewer == b:
        difference, lower, upper = -difference, -upper, -lower
    return SideBySide(difference, lower, upper, bets[0].settled)


def _arm(model: str, earned: Sequence[ModelReward]) -> Arm:
    mine = [
        (Voice(each.principal, each.key) if each.key else each.principal, each.raw)
        for each in earned
        if each.model == model
    ]
    return Arm(model, len(mine), fair_mean(mine))


def _sentence(a: Arm, b: Arm, found: SideBySide | None) -> str:
    for arm in (a, b):
        if not arm.trajectories:
            return f"No trajectory of {arm.model_id} is scored."
    if found is None:
        return "They have not answered in the same time, so nothing can be said of the difference."
    if found.lower > 0:
        return f"{a.model_id} earns more."
    if found.upper < 0:
        return f"{b.model_id} earns more."
    return "Nobody can say which earns more."


def _suite_differences(a: str, reports: Sequence[ValidationReport]) -> list[SuiteDifference]:
    """From the one report that compares them, or from one of each."""
    if len(reports) == 1:
        (report,) = reports
        swapped = report.candidate != a
        return [_suite_difference(suite, swapped=swapped) for suite in report.suites]
    if len(reports) < 2:
        return []
    scores = [{suite.name: suite.candidate for suite in report.suites} for report in reports]
    return [
        SuiteDifference(name, mine, scores[1][name], _difference(mine, scores[1][name]))
        for name, mine in scores[0].items()
        if name in scores[1]
    ]


def _suite_difference(suite: SuiteReport, *, swapped: bool) -> SuiteDifference:
    found = suite.difference
    numbers = (found.estimate, found.lower, found.upper) if found else (None, None, None)
    if not swapped:
        return SuiteDifference(suite.name, suite.candidate, suite.current, *numbers)
    estimate, lower, upper = (None if x is None else -x for x in numbers)
    return SuiteDifference(suite.name, suite.current, suite.candidate, estimate, upper, lower)


def _difference(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other
