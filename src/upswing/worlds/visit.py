"""How does an agent go through one task, wherever the world runs? It begins, replies, and it ends.

    place ─begin─▶ visit: what is seen ─▶ the agent ─reply─▶ step ─▶ what is seen … ─▶ outcome ─▶ close

| the place | its visits                                                        |
|-----------|-------------------------------------------------------------------|
| `Local`   | play a world of this process                                      |
| `Remote`  | play a world behind HTTP (see `agentgym_service`)                 |

Tasks have numbers: those to learn from come first, then the held-out ones, then those of the test.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Protocol

from upswing.errors import Misuse, Reason, Rejected
from upswing.worlds.world import UNFINISHED, Observation, Outcome, S, T, Task, World, third_split


@dataclass(frozen=True, slots=True)
class Play(Generic[T, S]):
    """How far a task has come."""

    task: T
    state: S
    turns: int
    outcome: Outcome | None


def begin(world: World[T, S], number: int) -> Play[T, S]:
    """The beginning of a task; `Rejected` when the world has none of this number."""
    left = number
    for split in (world.training, world.held_out, third_split(world)):
        if 0 <= left < len(split):
            state = world.reset(split[left])
            return Play(split[left], state, 0, world.outcome(state))
        left -= len(split)
    raise Rejected(
        Reason.SCHEMA, f"There is no task {number}: they go from 0 to {number - left - 1}."
    )


def proceed(world: World[T, S], play: Play[T, S], reply: str) -> Play[T, S]:
    """What follows from a reply. A task that is not over when the turns are has failed."""
    if play.outcome is not None:
        raise Misuse("This task is over: begin another.")
    state, turns = world.step(play.state, reply), play.turns + 1
    outcome = world.outcome(state)
    if outcome is None and turns >= world.max_turns:
        outcome = UNFINISHED
    return Play(play.task, state, turns, outcome)


class Visit(Protocol):
    """One agent at one task."""

    @property
    def task(self) -> Task: ...
    @property
    def observation(self) -> Observation: ...
    @property
    def outcome(self) -> Outcome | None:
        """How it ended; None while it goes on. `fault` where the world itself failed."""
        ...

    async def step(self, reply: str) -> None:
        """Say something; afterwards look at what is seen, or at how it ended."""
        ...

    async def close(self) -> None:
        """The visit is over, at its end or before; never raises for the other side's sake."""
        ...


class Place(Protocol):
    """Where visits are made."""

    async def begin(self, number: int) -> Visit:
        """Begin the task of this number."""
        ...

    async def close(self) -> None: ...


class Local:
    """A world of this process as a place."""

    def __init__(self, world: World[Any, Any]) -> None:
        self._world = world

    async def begin(self, number: int) -> LocalVisit:
        return LocalVisit(self._world, begin(self._world, number))

    async def close(self) -> None: ...


class LocalVisit:
    """A task of a world of this process."""

    def __init__(self, world: World[Any, Any], play: Play[Any, Any]) -> None:
        self._world, self._play = world, play

    @property
    def task(self) -> Task:
        task: Task = self._play.task
        return task

    @property
    def observation(self) -> Observation:
        return self._world.observe(self._play.state)

    @property
    def outcome(self) -> Outcome | None:
        return self._play.outcome

    async def step(self, reply: str) -> None:
        self._play = proceed(self._world, self._play, reply)

    async def close(self) -> None: ...
