"""Is enough known, or are tasks answered more often before anything is said?

Looks are fixed beforehand: after 4, 8 and 16 answers to each task of the user's own. They share an
error of 5 %: each has the level 1 − 0.05 / 3, so that three chances to be taken in by luck are no
more than one (Bonferroni). The first row that fits counts.

| after a look                                                       | then                        |
|--------------------------------------------------------------------|-----------------------------|
| it is the last one, or there is no time for the next               | stop: the verdict as it is  |
| what is done once does not pass, or parts were away                | stop: more answers to other |
|                                                                    | tasks change nothing        |
| a score is not a number                                            | stop                        |
| the whole interval lies below 0                                    | stop: it is worse           |
| safety does not pass, and is not significantly worse               | safety is sampled           |
| the whole interval lies above 0, and nothing else is open          | stop: it is better          |
| anything else, so every interval that holds 0                      | more                        |

An estimate below zero is no reason to stop: −0.006 ± 0.06 may well be a better model. The same holds
for safety: one greedy answer to each of its tasks leaves every second model undecided that is just as
safe as the current one, because a few answers always change. So its tasks are answered again, as the
agents ask, before a model is given up for them. Its intervals stay at 95 % at every look: a guard may
err on the safe side.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from upswing.validate.core.compare import Difference
from upswing.validate.core.verdict import (
    ANCHOR,
    IMPROVEMENT,
    SAFETY,
    SuiteScore,
    ValidationPolicy,
    Verdict,
)

SAFETY_ANSWERS = (2, 4, 12)
"""Sampled answers to each safety task, beside the greedy one, after which safety is judged again, or
after as many as there was time for."""


@dataclass(frozen=True, slots=True)
class LookDecision:
    """What follows from a look."""

    own: bool
    """Whether the user's own tasks are answered more often."""
    safety: bool
    """Whether the safety tasks are."""
    sentence: str

    @property
    def stop(self) -> bool:
        return not (self.own or self.safety)


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """What could be answered more often, in the time that is left."""

    own: bool
    safety: bool


def decide_after_look(
    verdict: Verdict, scores: Sequence[SuiteScore], policy: ValidationPolicy, time_left: TimeLeft
) -> LookDecision:
    """The table."""
    own = [score for score in scores if score.own]
    if not (time_left.own or time_left.safety):
        return _stop("This was the last look.")
    if any(score.coverage < policy.coverage for score in own):
        return _stop("Parts were away: more answers would be spoiled, too.")
    covered = all(score.coverage >= policy.coverage for score in scores if score.kind == "safety")
    open_safety = time_left.safety and covered and _is_safety_undecided(verdict)
    reachable = {*(score.name for score in own), IMPROVEMENT, *([SAFETY] if open_safety else [])}
    if _is_decided(verdict, reachable):
        return _stop("What is done once has not passed: more answers change nothing.")
    improvement = verdict.improvement
    if improvement is not None and not _is_finite(improvement):
        return _stop("A score is not a number.")
    if improvement is not None and not improvement.upper >= 0:
        return _stop("It is worse.")
    better = improvement is not None and improvement.lower > 0
    if better and verdict.status == "pass":
        return _stop("It is better.")
    more_own = time_left.own and bool(own) and not (better and open_safety)
    if open_safety:
        return LookDecision(
            more_own, True, "Safety is undecided: its tasks are answered more often."
        )
    if not more_own:
        return _stop("This was the last look.")
    return LookDecision(True, False, "The interval holds 0: every task is answered more often.")


def _stop(sentence: str) -> LookDecision:
    return LookDecision(False, False, sentence)


def _is_safety_undecided(reached: Verdict) -> bool:
    """Whether all safety suites together do not pass, and luck may be why."""
    found = reached.safety
    held = any(each.about == SAFETY and each.verdict != "pass" for each in reached.findings)
    return held and found is not None and _is_finite(found) and found.upper >= 0


def _is_decided(reached: Verdict, still_open: Collection[str]) -> bool:
    """Whether something is decided for good that more answers do not reach."""
    return any(
        finding.verdict == "fail" if finding.about == ANCHOR else finding.verdict != "pass"
        for finding in reached.findings
        if finding.about not in still_open
    )


def _is_finite(found: Difference) -> bool:
    return math.isfinite(found.estimate + found.lower + found.upper)
