"""Is enough known, or are the user's own tasks answered more often before anything is said?

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
| the whole interval lies above 0, and nothing else is open          | stop: it is better          |
| anything else, so every interval that holds 0                      | more                        |

An estimate below zero is no reason to stop: −0.006 ± 0.06 may well be a better model.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from upswing.validate.compare import Difference
from upswing.validate.verdict import ANCHOR, IMPROVEMENT, Policy, Score, Verdict


@dataclass(frozen=True, slots=True)
class Step:
    """What follows from a look."""

    stop: bool
    sentence: str


def after_look(reached: Verdict, own: Sequence[Score], policy: Policy, *, last: bool) -> Step:
    """The table; `own` are the scores of the suites that more answers can be had for."""
    if last:
        return Step(True, "This was the last look.")
    if any(score.coverage < policy.coverage for score in own):
        return Step(True, "Parts were away: more answers would be spoiled, too.")
    if _closed(reached, {score.name for score in own}):
        return Step(True, "What is done once has not passed: more answers change nothing.")
    found = reached.improvement
    if found is not None and not _finite(found):
        return Step(True, "A score is not a number.")
    if found is not None and not found.upper >= 0:
        return Step(True, "It is worse.")
    if found is not None and found.lower > 0 and reached.word == "pass":
        return Step(True, "It is better.")
    return Step(False, "The interval holds 0: every task is answered more often.")


def _closed(reached: Verdict, own: Collection[str]) -> bool:
    """Whether something is decided for good that more answers to the own tasks do not reach."""
    open_ = {*own, IMPROVEMENT}
    return any(
        finding.word == "fail" if finding.about == ANCHOR else finding.word != "pass"
        for finding in reached.findings
        if finding.about not in open_
    )


def _finite(found: Difference) -> bool:
    return math.isfinite(found.estimate + found.lower + found.upper)
