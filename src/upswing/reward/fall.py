"""Does a model earn less than it did? Asked of the same people, as far as they were there both times.

Some users' tasks are easy and others' hard, and who is busy changes from day to day: with another mix of
users, a model that did not change earns another mean. So each principal is compared with itself, and
the differences are averaged by what each of them knows, nobody counting for more than a fair share
(`influence`).

| principals who were there both times made     | compared                                        |
|-----------------------------------------------|-------------------------------------------------|
| half of the recent rewards or more            | each with itself; who came once is left out     |
| fewer                                         | the two fair means, each with the error that its |
|                                               | principals, not its rewards, leave to chance    |

Simulated, users whose rewards of 0 and 1 differ by 0.2 to 0.3 and who are busy by turns, a baseline of 50 to
200 rewards, 21 looks: 0 to 1 % of models that did not change are found to have fallen by three of these errors.
By the error of as many independent rewards it were 6 to 15 %.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, sqrt

from upswing.reward.influence import capped, fair_mean, principals
from upswing.senders import Speaker

Values = Sequence[tuple[Speaker, float]]
Rewards = Mapping[Hashable, Values]
"""By principal."""


@dataclass(frozen=True, slots=True)
class Fall:
    """What a model earns now, what the same principals gave it before, and how far chance sets these apart."""

    mean: float
    baseline: float
    error: float
    """The standard error of the difference."""


def fall_of(recent: Values, before: Values) -> Fall | None:
    """Recent rewards beside those before; None where one of them is missing.

    >>> old = [("easy", 0.9)] * 40 + [("hard", 0.1)] * 10
    >>> new = [("easy", 0.9)] * 10 + [("hard", 0.1)] * 40
    >>> found = fall_of(new, old)
    >>> round(found.baseline - found.mean, 3)
    0.0
    """
    if not recent or not before:
        return None
    known = principals((*recent, *before))
    now, then = known.of(recent), known.of(before)
    both = now.keys() & then.keys()
    shared = sum(len(now[name]) for name in both)
    if 2 * shared >= len(recent):
        return _same_people({name: (now[name], then[name]) for name in both})
    return _two_crowds(recent, before, now, then)


def _same_people(both: Mapping[Hashable, tuple[Values, Values]]) -> Fall:
    worth = {name: 1 / (1 / len(now) + 1 / len(then)) for name, (now, then) in both.items()}
    weights = _shares(capped(worth))
    scatter = _scatter(value for pair in both.values() for rows in pair for _, value in rows)
    return Fall(
        fsum(weights[name] * _mean(now) for name, (now, _) in both.items()),
        fsum(weights[name] * _mean(then) for name, (_, then) in both.items()),
        scatter * sqrt(fsum(weights[name] ** 2 / worth[name] for name in both)),
    )


def _two_crowds(recent: Values, before: Values, now: Rewards, then: Rewards) -> Fall:
    scatter = _scatter(value for _, value in (*recent, *before))
    least = scatter * sqrt(1 / len(recent) + 1 / len(before))
    means = _mean(recent), _mean(before)
    crowd = sqrt(fsum(_crowd(rows, mean) for rows, mean in zip((now, then), means, strict=True)))
    return Fall(*means, max(least, crowd))


def _crowd(rows: Rewards, mean: float) -> float:
    """The variance of a fair mean by how its principals differ; 0 of a single one."""
    if len(rows) < 2:
        return 0.0
    weights = _shares(capped({name: len(given) for name, given in rows.items()}))
    apart = [weights[name] * (_mean(given) - mean) for name, given in rows.items()]
    return fsum(each * each for each in apart) * len(rows) / (len(rows) - 1)


def _mean(rows: Values) -> float:
    return fair_mean(rows) or 0.0


def _shares(weights: Mapping[Hashable, float]) -> dict[Hashable, float]:
    whole = fsum(weights.values())
    return {name: weight / whole for name, weight in weights.items()}


def _scatter(values: Iterable[float]) -> float:
    told = list(values)
    mean = fsum(told) / len(told)
    return sqrt(fsum((each - mean) * (each - mean) for each in told) / len(told))
