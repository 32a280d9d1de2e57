"""How much better was a turn than expected? Generalised advantage estimation over turns.

A turn is the step here, not a token: the environment answers once per turn, so the discount and the
mixing run from turn to turn, and all tokens of a turn share its advantage.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, sqrt

_FLOOR = 1e-8


def rewards_by_turn(
    reward: float, turn_rewards: Sequence[float] | None, turns: int
) -> tuple[float, ...]:
    """What each turn earned: its own reward where turns were rewarded, the outcome with the last.

    >>> rewards_by_turn(1.0, None, 3)
    (0.0, 0.0, 1.0)
    >>> rewards_by_turn(1.0, (0.1, 0.2), 2)
    (0.1, 1.2)
    """
    if turns < 1:
        raise ValueError("A trajectory has at least one turn.")
    if turn_rewards is not None and len(turn_rewards) != turns:
        raise ValueError(f"{len(turn_rewards)} rewards were given for {turns} turns.")
    *before, last = turn_rewards or (0.0,) * turns
    return (*before, last + reward)


def compute_gae(
    rewards: Sequence[float], values: Sequence[float], *, gamma: float, lam: float
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Advantages and returns per turn; after the last turn nothing is expected.

    The surprise of a turn is `reward + gamma * next value - value`; its advantage is the surprise
    and `gamma * lam` times the next turn's advantage. The return is advantage plus value.

    >>> compute_gae([0.0, 1.0], [0.5, 0.5], gamma=1.0, lam=0.5)
    ((0.25, 0.5), (0.75, 1.0))
    """
    surprises = [
        reward + gamma * after - value
        for reward, value, after in zip(rewards, values, (*values[1:], 0.0), strict=True)
    ]
    advantages, later = [], 0.0
    for surprise in reversed(surprises):
        later = surprise + gamma * lam * later
        advantages.append(later)
    advantages.reverse()
    returns = tuple(a + v for a, v in zip(advantages, values, strict=True))
    return tuple(advantages), returns


def standardised_advantages(advantages: Sequence[Sequence[float]]) -> list[tuple[float, ...]]:
    """All turns of a step with mean 0 and standard deviation 1: PPO's clip expects that scale.

    >>> standardised_advantages([(1.0,), (2.0, 3.0)])
    [(-1.0,), (0.0, 1.0)]
    """
    turns = [each for trajectory in advantages for each in trajectory]
    mean = fsum(turns) / max(len(turns), 1)
    variance = fsum((each - mean) ** 2 for each in turns) / max(len(turns) - 1, 1)
    spread = max(sqrt(variance), _FLOOR)
    return [tuple((each - mean) / spread for each in trajectory) for trajectory in advantages]
