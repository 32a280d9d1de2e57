"""Tasks that can be played are none or too few to tell: is a candidate worth a canary, by what was logged?

Training estimates what the new policy would have earned on held-out tasks, from episodes that the old
one played there: each weighs by how much likelier the new policy makes it. That is no proof, and a canary
is not full traffic: it starts with little, and what it earns is compared with the baseline before it
gets more. So it begins when the estimate rests on enough episodes and is probably above zero.

| the estimate                                                | what follows                      |
|-------------------------------------------------------------|-----------------------------------|
| rests on fewer than 20 episodes, or is missing              | nothing: a person decides         |
| on fewer than 50: gain − 1.28 standard errors above 0       | a canary from 5 %                 |
| on 50 or more: gain − 0.84 standard errors above 0          | a canary from 5 %                 |
| anything else                                               | it waits for a person's word      |

Where tasks of the user's own were played and their interval still holds zero, the same question is asked of them:

| played                                        | the estimate             | what follows                 |
|-----------------------------------------------|--------------------------|------------------------------|
| not below 0                                   | probably above 0         | a canary from 5 %            |
| gain − 1.28 standard errors above 0           | missing, or not below 0  | a canary from 5 %            |
| anything else                                 | anything else            | it waits for a person's word |
"""

from __future__ import annotations

from math import isfinite, sqrt
from statistics import NormalDist

from msgspec import Struct

FEWEST, ENOUGH = 20.0, 50.0
"""Episodes that the estimate must really rest on at all, and for its usual reading."""
_DEVIATIONS, _DEVIATIONS_OF_FEW = 0.84, 1.28
"""One-sided 80 and 90 %: the canary is the test, this only says whether it is worth one."""


class LoggedEstimate(Struct, frozen=True):
    """What training says of held-out tasks that nobody could play."""

    before: float
    after: float
    effective: float
    """Episodes that `after` rests on."""


class CanaryWorth(Struct, frozen=True):
    """How much better it probably is."""

    improvement: float | None
    """None: the estimate says nothing."""
    probable: bool
    sentence: str


def worth_of_estimate(logged: LoggedEstimate | None) -> CanaryWorth | None:
    """The table; None where training estimated nothing.

    >>> worth_of_estimate(LoggedEstimate(0.36, 0.63, 80.0)).sentence
    'By 80 held-out episodes it earns 0.63 instead of 0.36.'
    >>> worth_of_estimate(LoggedEstimate(0.36, 0.38, 80.0)).sentence
    'By 80 held-out episodes it earns 0.38 instead of 0.36, which may be chance.'
    >>> worth_of_estimate(LoggedEstimate(0.36, 0.9, 12.0)).sentence
    'What training estimates rests on 12 held-out episodes: 20 are needed to tell anything.'
    """
    if logged is None or not (isfinite(logged.before) and isfinite(logged.after)):
        return None
    if not logged.effective >= FEWEST:
        rests = logged.effective if isfinite(logged.effective) else 0.0
        return CanaryWorth(
            None,
            False,
            f"What training estimates rests on {rests:.0f} held-out episodes: "
            f"{FEWEST:.0f} are needed to tell anything.",
        )
    gain = logged.after - logged.before
    error = sqrt((_variance(logged.before) + _variance(logged.after)) / logged.effective)
    deviations = _DEVIATIONS if logged.effective >= ENOUGH else _DEVIATIONS_OF_FEW
    probable = gain - deviations * error > 0
    text = f"By {logged.effective:.0f} held-out episodes it earns {logged.after:.2f} instead of {logged.before:.2f}"
    return CanaryWorth(gain, probable, f"{text}." if probable else f"{text}, which may be chance.")


def worth_of_played_tasks(
    estimate: float, lower: float, level: float, tasks: int, logged: CanaryWorth | None
) -> CanaryWorth:
    """What was played, by an interval of this level that holds zero: is that worth a canary?

    >>> worth_of_played_tasks(0.098, -0.080, 0.983, 23, None).sentence
    'Over 23 tasks it is better by 0.098, 1.3 standard errors above 0.'
    >>> worth_of_played_tasks(0.004, -0.020, 0.983, 176, None).probable
    False
    """
    error = (estimate - lower) / NormalDist().inv_cdf((1 + level) / 2) if 0 < level < 1 else 0.0
    if not (isfinite(estimate) and isfinite(error) and error > 0):
        return CanaryWorth(None, False, "What was played says nothing.")
    distance = estimate / error
    contradicted = logged is not None and logged.improvement is not None and logged.improvement < 0
    sentence = f"Over {tasks} tasks it is better by {estimate:.3f}, {distance:.1f} standard errors above 0."
    return CanaryWorth(estimate, distance > _DEVIATIONS_OF_FEW and not contradicted, sentence)


def _variance(share: float) -> float:
    bounded = min(1.0, max(0.0, share))
    return bounded * (1 - bounded)
