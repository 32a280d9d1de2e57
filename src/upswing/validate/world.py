"""How is a world's held-out task a task of a suite? What it shows is asked, what is said is a step.

A world is whatever has these names (see `World`): tasks, and pure functions over a state of its
own. The conversation is played again from the replies at each move, so nothing is remembered here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from upswing.contracts.validation import Answer
from upswing.validate.moves import AskModel, Done, Event, Message, Playable
from upswing.validate.suite import Suite


class WorldTask(Protocol):
    @property
    def task_id(self) -> str: ...
    @property
    def instructions(self) -> str: ...


class Seen(Protocol):
    @property
    def text(self) -> str: ...


class Ended(Protocol):
    @property
    def score(self) -> float: ...
    @property
    def sentence(self) -> str: ...


T = TypeVar("T", bound=WorldTask)
S = TypeVar("S")


class World(Protocol[T, S]):
    """As far as measuring needs one."""

    @property
    def name(self) -> str: ...
    @property
    def max_turns(self) -> int: ...
    @property
    def held_out(self) -> Sequence[T]: ...
    def reset(self, task: T) -> S: ...
    def observe(self, state: S) -> Seen: ...
    def step(self, state: S, reply: str) -> S: ...
    def outcome(self, state: S) -> Ended | None: ...


def suite_of_world(
    world: World[Any, Any], *, tasks: int | None = None, max_tokens: int = 64
) -> Suite:
    """The held-out tasks, or the first `tasks` of them, as the suite `world:NAME`."""
    chosen = world.held_out[:tasks]
    return Suite(
        f"world:{world.name}",
        "benchmark",
        tuple(
            Playable(task.task_id, partial(following, world, task, max_tokens)) for task in chosen
        ),
    )


def following(
    world: World[T, S], task: T, max_tokens: int, events: Sequence[Event]
) -> AskModel | Done:
    """The move after these replies."""
    replies = [event.text for event in events if isinstance(event, Answer)]
    opening = [{"role": "system", "content": task.instructions}] if task.instructions else []
    messages: list[Message] = list(opening)
    state = world.reset(task)
    for reply in replies:
        messages.append({"role": "user", "content": world.observe(state).text})
        messages.append({"role": "assistant", "content": reply})
        state = world.step(state, reply.strip())
    ended = world.outcome(state)
    if ended is not None:
        return Done(ended.score, ended.sentence)
    if len(replies) >= world.max_turns:
        return Done(0.0, "There were no turns left, and the task was not over.")
    messages.append({"role": "user", "content": world.observe(state).text})
    return AskModel(tuple(messages), max_tokens)
