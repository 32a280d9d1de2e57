"""How many fresh episodes may a job play, and how long may they get? Bounds, and a growing horizon.

Short episodes come first: what can be won in a few turns is learned before what takes many, and
early rounds waste no turns on states that the policy cannot use yet (as AgentGym-RL does).

| round of 4, in a world of 8 turns | 1 | 2 | 3 | 4 |
|-----------------------------------|---|---|---|---|
| turns of an episode               | 4 | 6 | 8 | 8 |
"""

from __future__ import annotations

from math import ceil
from typing import Annotated

import msgspec
from msgspec import Meta

Count = Annotated[int, Meta(ge=1)]


class RolloutSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a job plays with the policy that it trains."""

    world: str
    """One of ours, one that was registered, or the address of an AgentGym server."""
    seed: int = 0
    """Makes the world's tasks."""
    rounds: Annotated[int, Meta(ge=1, le=1000)] = 8
    """Each samples with the policy as it is then, and learns from what it sampled."""
    tasks: Count = 32
    """Of one round, chosen by the curriculum."""
    attempts: Annotated[int, Meta(ge=2, le=64)] = 8
    """At each task; they are compared with each other."""
    passes: Annotated[int, Meta(ge=1, le=16)] = 2
    """Over the episodes of a round; the clip keeps the later ones near the policy that sampled."""
    minutes: Annotated[float, Meta(gt=0)] = 10.0
    """After which no further round begins."""
    episodes: Count = 4096
    """Of all rounds together, at most."""
    first_turns: Annotated[float, Meta(gt=0, le=1)] = 0.5
    """Share of the world's turns that an episode of the first round has; from two thirds of the
    rounds on it has all of them."""
    max_tokens: Count = 8
    """Of one reply."""


def turns_in_round(settings: RolloutSettings, round_index: int, world_turns: int) -> int:
    """Turns of an episode in this round (from 0), in a world that gives `world_turns`.

    >>> [turns_in_round(RolloutSettings("crafting", rounds=4), number, 8) for number in range(4)]
    [4, 6, 8, 8]
    >>> [turns_in_round(RolloutSettings("triage", rounds=3), number, 1) for number in range(3)]
    [1, 1, 1]
    """
    grown = min(1.0, round_index / max(1.0, (settings.rounds - 1) * 2 / 3))
    return max(
        1,
        min(
            world_turns,
            ceil(world_turns * (settings.first_turns + (1 - settings.first_turns) * grown)),
        ),
    )


def tasks_in_next_round(settings: RolloutSettings, episodes_played: int) -> int:
    """Tasks of the next round, so that no more episodes are played than may be.

    >>> tasks_in_next_round(RolloutSettings("desk", tasks=32, attempts=8, episodes=300), 256)
    5
    """
    return min(settings.tasks, max(0, settings.episodes - episodes_played) // settings.attempts)
