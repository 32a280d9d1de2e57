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

Where tasks of the user's own were played and their interval still holds zero, both have to agree: what was
played must not be below zero either.
"""

from __future__ import annotations

from math import isfinite, sqrt

from msgspec import Struct

FEWEST, ENOUGH = 20.0, 50.0
"""Episodes that the estimate must really rest on at all, and for its usual reading."""
_DEVIATIONS, _DEVIATIONS_OF_FEW = 0.84, 1.28
"""One-sided 80 and 90 %: the canary is the test, this only says whether it is worth one."""


class Logged(Struct, frozen=True):
    """What training says of held-out tasks that nobody could play."""

    before: float
    after: float
    effective: float
    """Episodes that `after` rests on."""


class Worth(Struct, frozen=True):
    """How much better it probably is."""

    improvement: float | None
    """None: the estimate says nothing."""
    probable: bool
    sentence: str


def worth_of(logged: Logged | None) -> Worth | None:
    """The table; None where training estimated nothing.

    >>> worth_of(Logged(0.36, 0.63, 80.0)).sentence
    'By 80 held-out episodes it earns 0.63 instead of 0.36.'
    >>> worth_of(Logged(0.36, 0.38, 80.0)).sentence
    'By 80 held-out episodes it earns 0.38 instead of 0.36, which may be chance.'
    >>> worth_of(Logged(0.36, 0.9, 12.0)).sentence
    'What training estimates rests on 12 held-out episodes: 20 are needed to tell anything.'
    """
    if logged is None or not (isfinite(logged.before) and isfinite(logged.after)):
        return None
    if not logged.effective >= FEWEST:
        rests = logged.effective if isfinite(logged.effective) else 0.0
        return Worth(
            None, False,
            f"What training estimates rests on {rests:.0f} held-out episodes: "
            f"{FEWEST:.0f} are needed to tell anything.",
        )  # fmt: skip
    gain = logged.after - logged.before
    error = sqrt((_variance(logged.before) + _variance(logged.after)) / logged.effective)
    deviations = _DEVIATIONS if logged.effective >= ENOUGH else _DEVIATIONS_OF_FEW
    probable = gain - deviations * error > 0
    told = f"By {logged.effective:.0f} held-out episodes it earns {logged.after:.2f} instead of {logged.before:.2f}"
    return Worth(gain, probable, f"{told}." if probable else f"{told}, which may be chance.")


def _variance(share: float) -> float:
    bounded = min(1.0, max(0.0, share))
    return bounded * (1 - bounded)
