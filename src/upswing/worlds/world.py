"""What is a world? Tasks, and what an agent sees, does and achieves in one of them.

A world is a set of pure functions over a state of its own, so an episode can be played again from
its replies, and thousands can be played side by side:

    task ─reset─▶ state ─observe─▶ text ─▶ the agent ─reply─▶ step ─▶ state … ─outcome─▶ how it went

Whoever has a world of their own writes a class with these names; nothing needs to be inherited.
Chance belongs into making the tasks, from a seed: what follows from a reply is fixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar


@dataclass(frozen=True, slots=True)
class Task:
    """What is asked. A world may add what it needs to know in a subclass."""

    task_id: str
    """Names this task for ever: attempts at the same task are compared with each other."""
    instructions: str
    """What the agent reads before anything happens; may be empty."""


@dataclass(frozen=True, slots=True)
class WorldObservation:
    """What the agent sees now."""

    text: str
    kind: Literal["user_message", "tool_result", "system_message"] = "user_message"


@dataclass(frozen=True, slots=True)
class WorldOutcome:
    """How an episode ended."""

    success: bool
    score: float
    """How much of the task is done, from 0 to 1."""
    sentence: str
    """What the world says about it, for the record; the agent does not see it."""
    fault: bool = False
    """The world's own infrastructure failed, so the agent is not to blame."""
    mood: Literal["pleased", "corrected", "gave_up"] | None = None
    """What the user in the world thought of it, where there is one who says so."""
    pnl: float | None = None
    """What was earned or lost, in a world of money."""
    truth: str | None = None
    """What would have been right, for a judge's eyes only."""


Observation, Outcome = WorldObservation, WorldOutcome
"""As worlds of others may import them."""

T = TypeVar("T", bound=Task)
S = TypeVar("S")


class World(Protocol[T, S]):
    """Where agents act. `S` is the state of an episode, a value that never changes in place."""

    @property
    def name(self) -> str: ...

    @property
    def max_turns(self) -> int:
        """Replies an agent has; an episode that is not over by then has failed."""
        ...

    @property
    def training(self) -> Sequence[T]:
        """Tasks to learn from, the same ones in the same order for the same seed."""
        ...

    @property
    def held_out(self) -> Sequence[T]:
        """Tasks to measure with; none of them is among those to learn from."""
        ...

    def reset(self, task: T) -> S:
        """The state in which the task begins."""
        ...

    def observe(self, state: S) -> WorldObservation:
        """What the agent sees in it."""
        ...

    def step(self, state: S, reply: str) -> S:
        """The state that follows from a reply, whatever the reply is."""
        ...

    def outcome(self, state: S) -> WorldOutcome | None:
        """How it ended; None while it goes on."""
        ...


def third_split(world: World[T, Any]) -> Sequence[T]:
    """Tasks that neither training nor validation sees, which a world may have as `test`; else empty.

    >>> class Small:
    ...     training = held_out = ()
    >>> third_split(Small())
    ()
    """
    tasks: Sequence[T] = getattr(world, "test", ())
    return tasks


UNFINISHED = WorldOutcome(False, 0.0, "The agent had no turns left, and the task was not over.")
