"""How much may one voice move a mean? No principal counts for more than 1.5 average ones.

Where several keys speak, all users of one that may not speak for many are one principal: it can invent as
many as it likes. It counts for no more than all others together.

A mean over trajectories belongs to whoever makes the most of them. So each principal's weight is
the number of its trajectories, but at most `CAP` times the equal share: with 10,000 principals, 500
that collude hold 7.5 % of the mean however busy they are, and user feedback, a quarter of a reward,
lets them move it by at most 0.25 × 0.075 < 0.02.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from math import fsum
from typing import NamedTuple

from upswing.principals import Speaker, Voice, cap_of


def fair_mean(values: Iterable[tuple[Speaker, float]]) -> float | None:
    """The mean of (principal, value), no principal counting for more than its share.

    >>> fair_mean([("a", 1.0), ("b", 0.0)])
    0.5
    >>> crowd = [(f"user-{n}", 0.8) for n in range(99)]
    >>> round(fair_mean([*crowd, *[("troll", 0.0)] * 10_000]), 3)
    0.788
    >>> invented = [(Voice(f"user-{n}", "key"), 0.0) for n in range(500)]
    >>> round(fair_mean([*crowd, *invented]), 3)
    0.788
    >>> fair_mean([]) is None
    True
    """
    rows = list(values)
    mine = principal_grouping(rows).of(rows)
    return _weighted_mean(
        {name: (len(rows), _mean_of_principal(name, rows)) for name, rows in mine.items()}
    )


class _Key(NamedTuple):
    """All users of one key."""

    key: str


@dataclass(frozen=True, slots=True)
class PrincipalGrouping:
    """Who counts as one, where these keys speak."""

    several: bool
    """More than one key speaks: then all users of one that may not speak for many are one principal."""

    def of(
        self, values: Iterable[tuple[Speaker, float]]
    ) -> dict[Hashable, list[tuple[Speaker, float]]]:
        """What each principal gave."""
        mine: dict[Hashable, list[tuple[Speaker, float]]] = {}
        for speaker, value in values:
            alone = self.several and isinstance(speaker, Voice)
            name = _Key(_key_of_speaker(speaker)) if alone else speaker
            mine.setdefault(name, []).append((speaker, value))
        return mine


def principal_grouping(values: Iterable[tuple[Speaker, float]]) -> PrincipalGrouping:
    """Who counts as one among those who spoke here."""
    return PrincipalGrouping(len({_key_of_speaker(speaker) for speaker, _ in values}) > 1)


def _key_of_speaker(speaker: Speaker) -> str:
    return speaker.key if isinstance(speaker, Voice) else ""


def _mean_of_principal(name: Hashable, rows: list[tuple[Speaker, float]]) -> float:
    """Of one principal; inside a key none of its users counts for more than a fair share either."""
    if all(speaker == name for speaker, _ in rows):
        return fsum(value for _, value in rows) / len(rows)
    return fair_mean(rows) or 0.0


def _weighted_mean(means: Mapping[Hashable, tuple[int, float]]) -> float | None:
    if not means:
        return None
    weights = cap_weights({name: count for name, (count, _) in means.items()})
    return fsum(weights[name] * mean for name, (_, mean) in means.items()) / fsum(weights.values())


def cap_weights(counts: Mapping[Hashable, float]) -> dict[Hashable, float]:
    """Weights of which none exceeds `CAP` shares of their sum, and no key half of it.

    Capping the largest makes the sum smaller and so the cap too; a few rounds settle it. When
    everybody is at the cap all count alike, which is the equal share.
    """
    weights: dict[Hashable, float] = {name: float(count) for name, count in counts.items()}
    if len(weights) == 1:
        return weights
    for _ in range(200):
        whole = fsum(weights.values())
        caps = {name: whole * cap_of(len(weights), key=isinstance(name, _Key)) for name in weights}
        if all(weight <= caps[name] * (1 + 1e-12) for name, weight in weights.items()):
            return weights
        weights = {name: min(weight, caps[name]) for name, weight in weights.items()}
    return dict.fromkeys(weights, 1.0)
