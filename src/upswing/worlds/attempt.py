"""How does an agent go through one task, wherever the world runs? It begins, replies, and it ends.

    begin ─▶ attempt: what is seen ─▶ the agent ─reply─▶ step ─▶ what is seen … ─▶ outcome ─▶ close

| attempt          | of a task                                                         |
|------------------|-------------------------------------------------------------------|
| `LocalAttempt`   | of a world of this process                                        |
| `RemoteAttempt`  | of a world behind HTTP (see `agentgym_client`)                    |

Tasks have numbers: those to learn from come first, then the held-out ones, then those of the test.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Protocol

from upswing.errors import Misuse, Reason, Rejected
from upswing.worlds.world import (
    UNFINISHED,
    S,
    T,
    Task,
    World,
    WorldObservation,
    WorldOutcome,
    third_split,
)


@dataclass(frozen=True, slots=True)
class AttemptState(Generic[T, S]):
    """How far a task has come."""

    task: T
    state: S
    turns: int
    outcome: WorldOutcome | None


def begin_task(world: World[T, S], task: T) -> AttemptState[T, S]:
    """The beginning of a task."""
    state = world.reset(task)
    return AttemptState(task, state, 0, world.outcome(state))


def begin_numbered_task(world: World[T, S], number: int) -> AttemptState[T, S]:
    """The beginning of the task of this number; `Rejected` when the world has none."""
    left = number
    for split in (world.training, world.held_out, third_split(world)):
        if 0 <= left < len(split):
            return begin_task(world, split[left])
        left -= len(split)
    raise Rejected(
        Reason.SCHEMA, f"There is no task {number}: they go from 0 to {number - left - 1}."
    )


def apply_reply(world: World[T, S], attempt: AttemptState[T, S], reply: str) -> AttemptState[T, S]:
    """What follows from a reply. A task that is not over when the turns are has failed."""
    if attempt.outcome is not None:
        raise Misuse("This task is over: begin another.")
    state, turns = world.step(attempt.state, reply), attempt.turns + 1
    outcome = world.outcome(state)
    if outcome is None and turns >= world.max_turns:
        outcome = UNFINISHED
    return AttemptState(attempt.task, state, turns, outcome)


class TaskAttempt(Protocol):
    """One agent at one task."""

    @property
    def task(self) -> Task: ...
    @property
    def observation(self) -> WorldObservation: ...
    @property
    def outcome(self) -> WorldOutcome | None:
        """How it ended; None while it goes on. `fault` where the world itself failed."""
        ...

    async def step(self, reply: str) -> None:
        """Reply; afterwards there is a new observation, or an outcome."""
        ...

    async def close(self) -> None:
        """The attempt is over, at its end or before; never raises for the other side's sake."""
        ...


class LocalAttempt:
    """At a task of a world of this process."""

    def __init__(self, world: World[Any, Any], started: AttemptState[Any, Any]) -> None:
        self._world, self._current = world, started

    @property
    def task(self) -> Task:
        task: Task = self._current.task
        return task

    @property
    def observation(self) -> WorldObservation:
        return self._world.observe(self._current.state)

    @property
    def outcome(self) -> WorldOutcome | None:
        return self._current.outcome

    async def step(self, reply: str) -> None:
        self._current = apply_reply(self._world, self._current, reply)

    async def close(self) -> None: ...
