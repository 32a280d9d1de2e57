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
from math import fsum, sqrt

from upswing.principals import Speaker
from upswing.records import RewardDrop
from upswing.reward.core.influence import cap_weights, fair_mean, principal_grouping

Values = Sequence[tuple[Speaker, float]]
Rewards = Mapping[Hashable, Values]
"""By principal."""


def reward_drop(recent: Values, before: Values) -> RewardDrop | None:
    """Recent rewards beside those before; None where one of them is missing.

    >>> old = [("easy", 0.9)] * 40 + [("hard", 0.1)] * 10
    >>> new = [("easy", 0.9)] * 10 + [("hard", 0.1)] * 40
    >>> found = reward_drop(new, old)
    >>> round(found.baseline - found.mean, 3)
    0.0
    """
    if not recent or not before:
        return None
    known = principal_grouping((*recent, *before))
    now, then = known.of(recent), known.of(before)
    both = now.keys() & then.keys()
    shared = sum(len(now[name]) for name in both)
    if 2 * shared >= len(recent):
        return _drop_by_principal({name: (now[name], then[name]) for name in both})
    return _drop_of_means(recent, before, now, then)


def _drop_by_principal(both: Mapping[Hashable, tuple[Values, Values]]) -> RewardDrop:
    worth = {name: 1 / (1 / len(now) + 1 / len(then)) for name, (now, then) in both.items()}
    weights = _normalised_weights(cap_weights(worth))
    scatter = _standard_deviation(
        value for pair in both.values() for rows in pair for _, value in rows
    )
    return RewardDrop(
        fsum(weights[name] * _fair_mean_or_zero(now) for name, (now, _) in both.items()),
        fsum(weights[name] * _fair_mean_or_zero(then) for name, (_, then) in both.items()),
        scatter * sqrt(fsum(weights[name] ** 2 / worth[name] for name in both)),
    )


def _drop_of_means(recent: Values, before: Values, now: Rewards, then: Rewards) -> RewardDrop:
    scatter = _standard_deviation(value for _, value in (*recent, *before))
    least = scatter * sqrt(1 / len(recent) + 1 / len(before))
    means = _fair_mean_or_zero(recent), _fair_mean_or_zero(before)
    crowd = sqrt(
        fsum(_variance_of_mean(rows, mean) for rows, mean in zip((now, then), means, strict=True))
    )
    return RewardDrop(*means, max(least, crowd))


def _variance_of_mean(rows: Rewards, mean: float) -> float:
    """The variance of a fair mean by how its principals differ; 0 of a single one."""
    if len(rows) < 2:
        return 0.0
    weights = _normalised_weights(cap_weights({name: len(given) for name, given in rows.items()}))
    apart = [weights[name] * (_fair_mean_or_zero(given) - mean) for name, given in rows.items()]
    return fsum(each * each for each in apart) * len(rows) / (len(rows) - 1)


def _fair_mean_or_zero(rows: Values) -> float:
    return fair_mean(rows) or 0.0


def _normalised_weights(weights: Mapping[Hashable, float]) -> dict[Hashable, float]:
    whole = fsum(weights.values())
    return {name: weight / whole for name, weight in weights.items()}


def _standard_deviation(values: Iterable[float]) -> float:
    rewards = list(values)
    mean = fsum(rewards) / len(rewards)
    return sqrt(fsum((each - mean) * (each - mean) for each in rewards) / len(rewards))
