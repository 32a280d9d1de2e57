"""How much better was a trajectory than those it is compared with?

| algorithm   | compared with                                                                   |
|-------------|---------------------------------------------------------------------------------|
| `grpo`      | the mean of its group                                                           |
| `rloo`      | the mean of the *others* of its group                                           |
| `reinforce` | the mean of its group; one that stands alone: the mean of the *others* of its   |
|             | domain that stand alone and that the same source scores                         |

REINFORCE takes the group's mean, not the batch's, wherever there is a group: against the batch's
mean, everything that was tried on an easy task counts as good, and a policy that gives one constant
answer is rewarded wherever that answer happens to be right. A single attempt has only others of its
kind to be compared with, so its domain is its group: what is hard to earn in one domain is not bad
because another domain pays more. PPO expects with its value head
(`upswing.train.learn.gae`), DPO compares in pairs (`upswing.train.learn.pairs`).

Then the advantages are divided by a standard deviation (`scale`): that of the group's rewards, of
the whole batch, or none; for one that stands alone, its domain's counts as its group's. A group whose rewards hardly differ is *flat*: there is nothing to compare,
and dividing by next to nothing would blow up noise, so it is left out and counted.

A reward that is not a finite number raises; it never becomes a 0 that nobody sees.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum, isfinite, nan, sqrt
from typing import Literal

from upswing.train.learn.gae import compute_gae, rewards_by_turn

RelativeAlgorithm = Literal["grpo", "rloo", "reinforce"]
RewardScale = Literal["group", "batch", "none"]

_EPSILON = 1e-4
"""Added to a standard deviation before dividing by it."""


@dataclass(frozen=True, slots=True)
class Advantages:
    """One number per trajectory, in the order they were given."""

    values: tuple[float, ...]
    """0 where not kept."""
    kept: tuple[bool, ...]
    """Whether there was something to compare with."""
    flat_groups: int
    """Groups that were left out."""


@dataclass(frozen=True, slots=True)
class TurnAdvantages:
    """One number per turn of each trajectory."""

    values: tuple[tuple[float, ...], ...]
    kept: tuple[bool, ...]
    flat_groups: int


def compute_advantages(
    rewards: Sequence[float],
    groups: Sequence[str],
    *,
    algorithm: RelativeAlgorithm,
    scale: RewardScale,
    min_spread: float,
    domains: Sequence[str] | None = None,
) -> Advantages:
    """The advantages of a batch of whole groups.

    >>> compute_advantages([1, 0, 0.5, 0.5], ["a", "a", "b", "b"],
    ...            algorithm="rloo", scale="none", min_spread=0.02)
    Advantages(values=(1.0, -1.0, 0.0, 0.0), kept=(True, True, False, False), flat_groups=1)
    """
    rows = [(reward,) for reward in rewards]
    found = _compare_turns(rows, groups, algorithm, scale, min_spread, domains)
    return Advantages(tuple(row[0] for row in found.values), found.kept, found.flat_groups)


def turn_credit(
    rewards: Sequence[float],
    turn_rewards: Sequence[Sequence[float] | None],
    turns: Sequence[int],
    groups: Sequence[str],
    *,
    algorithm: RelativeAlgorithm,
    scale: RewardScale,
    min_spread: float,
    gamma: float,
    domains: Sequence[str] | None = None,
) -> TurnAdvantages:
    """Advantages per turn, of its own where turns were rewarded.

    A turn is credited with what came after it: the discounted sum of its own and all later turns'
    rewards, with the outcome on the last. It is compared with the same turn of the other members,
    since earlier turns have more ahead of them; a turn that only one member reached has nobody to
    be compared with and takes its first turn's advantage, which is that of the whole trajectory.
    Spread and scale are those of all turns of the group together.

    In a group with a member whose turns were not rewarded, and for one that stands alone, every
    turn takes the trajectory's advantage. So it is, too, where all turns earned 0, nothing is
    discounted and all took equally many turns.

    >>> turn_credit([1, 1], [(0.5, 0.0), (0.0, 0.5)], [2, 2], ["a", "a"], algorithm="grpo",
    ...             scale="none", min_spread=0.02, gamma=1.0).values
    ((0.0, -0.25), (0.0, 0.25))
    """
    rows: list[tuple[float, ...]] = [(reward,) for reward in rewards]
    for members in members_by_group(groups).values():
        dense = [i for i in members if turn_rewards[i] is not None]
        for i in dense if 1 < len(dense) == len(members) else ():
            earned = rewards_by_turn(rewards[i], turn_rewards[i], turns[i])
            rows[i], _ = compute_gae(earned, (0.0,) * turns[i], gamma=gamma, lam=1.0)
    found = _compare_turns(rows, groups, algorithm, scale, min_spread, domains)
    filled = zip(found.values, turns, strict=True)
    values = tuple(row if len(row) > 1 else row * number for row, number in filled)
    return TurnAdvantages(values, found.kept, found.flat_groups)


def kl_penalised_rewards(
    rewards: Sequence[float], old_sums: Sequence[float], ref_sums: Sequence[float], *, beta: float
) -> list[float]:
    """RLOO's rewards with the KL to the reference taken off, before they are compared.

    The sums are logprobs over a trajectory's trained tokens: the behaviour policy's and the
    reference's. Their difference estimates the divergence at what was really done; it may be
    negative.

    >>> kl_penalised_rewards([1.0, 1.0], [-2.0, -4.0], [-6.0, -4.0], beta=0.05)
    [0.8, 1.0]
    """
    rows = zip(rewards, old_sums, ref_sums, strict=True)
    return [reward - beta * (old - ref) for reward, old, ref in rows]


def members_by_group(groups: Sequence[str]) -> dict[str, list[int]]:
    """The places of each group's members."""
    places: dict[str, list[int]] = {}
    for i, group in enumerate(groups):
        places.setdefault(group, []).append(i)
    return places


def require_finite(rewards: Iterable[float]) -> None:
    """Raise when a reward is not a finite number, with the place of each."""
    wrong = [i for i, reward in enumerate(rewards) if not isfinite(reward)]
    if wrong:
        raise ValueError(f"Rewards that are not finite numbers, at {wrong}.")


def _compare_turns(
    rows: Sequence[tuple[float, ...]],
    groups: Sequence[str],
    algorithm: RelativeAlgorithm,
    scale: RewardScale,
    min_spread: float,
    domains: Sequence[str] | None,
) -> TurnAdvantages:
    """What each trajectory still had ahead of it at each turn, beside what its group had."""
    if len(rows) != len(groups):
        raise ValueError(f"{len(rows)} trajectories were given and {len(groups)} groups.")
    require_finite(fsum(row) for row in rows)
    totals = [row[0] for row in rows]
    found: list[tuple[float, ...]] = [(0.0,) * len(row) for row in rows]
    kept, flat = [False] * len(rows), 0
    together, lonely = _comparison_sets(groups, domains, algorithm)
    for at, members in enumerate((*together, *lonely)):
        alone = at >= len(together)
        compared, spread = _turn_advantages(
            [rows[i] for i in members], leave_out=alone or algorithm == "rloo"
        )
        if not spread >= min_spread:
            flat += len(members) if alone else 1
            continue
        by = spread + _EPSILON if scale == "group" else 1.0
        for i, row in zip(members, compared, strict=True):
            found[i], kept[i] = tuple(each / by for each in row), True
    if scale == "batch":
        by = _EPSILON + _standard_deviation(
            [row[0] for row in found] if algorithm == "rloo" else totals
        )
        found = [
            tuple(each / by for each in row) if keep else row
            for row, keep in zip(found, kept, strict=True)
        ]
    return TurnAdvantages(tuple(found), tuple(kept), flat)


def _comparison_sets(
    groups: Sequence[str], domains: Sequence[str] | None, algorithm: RelativeAlgorithm
) -> tuple[list[list[int]], list[list[int]]]:
    """Who is compared with whom: groups, and for REINFORCE single attempts by domain."""
    found = list(members_by_group(groups).values())
    if algorithm != "reinforce":
        return found, []
    alone = [members[0] for members in found if len(members) == 1]
    kinds = members_by_group([domains[i] if domains else "" for i in alone])
    return (
        [members for members in found if len(members) > 1],
        [[alone[place] for place in places] for places in kinds.values()],
    )


def _turn_advantages(
    rows: Sequence[tuple[float, ...]], *, leave_out: bool
) -> tuple[list[tuple[float, ...]], float]:
    """Each member's turns beside the same turns of the others, and how much they all differ."""
    turns = [[row[k] for row in rows if k < len(row)] for k in range(max(map(len, rows)))]
    means = [_mean_of_numbers(turn) for turn in turns]
    squares = fsum((each - means[k]) ** 2 for k, turn in enumerate(turns) for each in turn)
    freedom = sum(len(turn) - 1 for turn in turns)
    without = [
        len(turn) / (len(turn) - 1) if leave_out and len(turn) > 1 else 1.0 for turn in turns
    ]
    compared = []
    for row in rows:
        own = [(each - means[k]) * without[k] for k, each in enumerate(row)]
        compared.append(tuple(own[0] if len(turns[k]) == 1 else own[k] for k in range(len(own))))
    return compared, sqrt(squares / freedom) if freedom else nan


def _mean_of_numbers(numbers: Sequence[float]) -> float:
    return fsum(numbers) / len(numbers)


def _standard_deviation(numbers: Sequence[float]) -> float:
    """The sample's standard deviation; NaN, which no comparison accepts, of fewer than two."""
    if len(numbers) < 2:
        return nan
    mean = _mean_of_numbers(numbers)
    return sqrt(fsum((each - mean) ** 2 for each in numbers) / (len(numbers) - 1))
