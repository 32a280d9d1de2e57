"""How much may one voice move a mean? No principal counts for more than 1.5 average ones.

A mean over trajectories belongs to whoever makes the most of them. So each principal's weight is
the number of its trajectories, but at most `CAP` times the equal share: with 10,000 principals, 500
that collude hold 7.5 % of the mean however busy they are, and user feedback, a quarter of a reward,
lets them move it by at most 0.25 × 0.075 < 0.02.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum

CAP = 1.5
"""Times the equal share. Less would ignore that honest users differ; more would let 5 % move a mean
by over 0.02."""


def fair_mean(values: Iterable[tuple[str, float]]) -> float | None:
    """The mean of (principal, value), no principal counting for more than its share.

    >>> fair_mean([("a", 1.0), ("b", 0.0)])
    0.5
    >>> crowd = [(f"user-{n}", 0.8) for n in range(99)]
    >>> round(fair_mean([*crowd, *[("troll", 0.0)] * 10_000]), 3)
    0.788
    >>> fair_mean([]) is None
    True
    """
    by: dict[str, list[float]] = {}
    for principal, value in values:
        by.setdefault(principal, []).append(value)
    if not by:
        return None
    weights = _capped({name: len(mine) for name, mine in by.items()})
    whole = fsum(weights.values())
    return fsum(weights[name] * fsum(mine) / len(mine) for name, mine in by.items()) / whole


def _capped(counts: dict[str, int]) -> dict[str, float]:
    """Weights of which none exceeds `CAP` shares of their sum.

    Capping the largest makes the sum smaller and so the cap too; a few rounds settle it. When
    everybody is at the cap all count alike, which is the equal share.
    """
    weights: dict[str, float] = {name: float(count) for name, count in counts.items()}
    for _ in range(200):
        cap = CAP * fsum(weights.values()) / len(weights)
        if max(weights.values()) <= cap * (1 + 1e-12):
            return weights
        weights = {name: min(weight, cap) for name, weight in weights.items()}
    return dict.fromkeys(weights, 1.0)
