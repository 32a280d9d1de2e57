"""Tasks that can be played are none or too few to tell: is a candidate worth a canary, by what was logged?

Training estimates what the new policy would have earned on held-out tasks, from episodes that the old
one played there: each weighs by how much likelier the new policy makes it. That is no proof, and a canary
is not full traffic: it starts with little, and what it earns is compared with the baseline before it
gets more. So it begins when the estimate rests on enough episodes and is probably above zero.

| the estimate                                        | what follows                              |
|-----------------------------------------------------|-------------------------------------------|
| rests on fewer than 50 episodes, or is missing      | nothing: a person decides                 |
| after − before − 0.84 standard errors above 0       | a canary from 5 %                         |
| anything else                                       | it waits for a person's word              |

Where tasks of the user's own were played and their interval still holds zero, both have to agree: what was
played must not be below zero either.
"""

from __future__ import annotations

from math import isfinite, sqrt

from msgspec import Struct

ENOUGH = 50.0
"""Episodes that the estimate must really rest on."""
_DEVIATIONS = 0.84
"""One-sided 80 %: the canary is the test, this only says whether it is worth one."""


class Logged(Struct, frozen=True):
    """What training says of held-out tasks that nobody could play."""

    before: float
    after: float
    effective: float
    """Episodes that `after` rests on."""


class Worth(Struct, frozen=True):
    """How much better it probably is."""

    improvement: float
    probable: bool
    sentence: str


def worth_of(logged: Logged | None) -> Worth | None:
    """The table; None where the estimate says nothing.

    >>> worth_of(Logged(0.36, 0.63, 80.0)).sentence
    'By 80 held-out episodes it earns 0.63 instead of 0.36.'
    >>> worth_of(Logged(0.36, 0.38, 80.0)).probable, worth_of(Logged(0.36, 0.9, 20.0))
    (False, None)
    """
    if logged is None or not logged.effective >= ENOUGH:
        return None
    if not (isfinite(logged.before) and isfinite(logged.after)):
        return None
    gain = logged.after - logged.before
    error = sqrt((_variance(logged.before) + _variance(logged.after)) / logged.effective)
    return Worth(
        gain,
        gain - _DEVIATIONS * error > 0,
        f"By {logged.effective:.0f} held-out episodes it earns {logged.after:.2f} instead of {logged.before:.2f}.",
    )


def _variance(share: float) -> float:
    bounded = min(1.0, max(0.0, share))
    return bounded * (1 - bounded)
