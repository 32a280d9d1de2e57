"""The same world with fewer turns: what counts when an episode is cut short?

A world that can say how much of a task is done in the middle of it has a `progress(state)`; an episode
that is cut short is worth that much. In any other world it is worth nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from upswing.worlds.world import S, T, World, WorldObservation, WorldOutcome


def _no_progress(_: Any) -> float:
    return 0.0


@dataclass(frozen=True)
class Horizon(Generic[T, S]):
    """A world in which an episode has at most `max_turns` replies.

    >>> from upswing.worlds.crafting import Crafting
    >>> world = Crafting()
    >>> short = Horizon(world, 1)
    >>> order = next(order for order in world.training if order.thing == "steel")
    >>> round(short.outcome(short.step(short.reset(order), "buy")).score, 2)
    0.17
    """

    world: World[T, S]
    max_turns: int

    @property
    def name(self) -> str:
        return self.world.name

    @property
    def training(self) -> Sequence[T]:
        return self.world.training

    @property
    def held_out(self) -> Sequence[T]:
        return self.world.held_out

    def reset(self, task: T) -> tuple[S, int]:
        return self.world.reset(task), 0

    def observe(self, state: tuple[S, int]) -> WorldObservation:
        return self.world.observe(state[0])

    def step(self, state: tuple[S, int], reply: str) -> tuple[S, int]:
        return self.world.step(state[0], reply), state[1] + 1

    def outcome(self, state: tuple[S, int]) -> WorldOutcome | None:
        ended = self.world.outcome(state[0])
        if ended is not None or state[1] < self.max_turns:
            return ended
        progress: Callable[[S], float] = getattr(self.world, "progress", _no_progress)
        return WorldOutcome(False, progress(state[0]), "The episode was cut short.")
