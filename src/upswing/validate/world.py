"""How is a world's held-out task a task of a suite? What it shows is asked, what is said is a step.

A world is whatever has these names (see `World`): tasks, and pure functions over a state of its
own. The conversation is played again from the replies at each move, so nothing is remembered here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from typing import Any, Protocol, TypeVar

from upswing.contracts.validation import Answer
from upswing.errors import UpswingError
from upswing.validate.moves import AskModel, Done, Event, InfraError, Message, Playable
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
    world: World[Any, Any],
    *,
    name: str | None = None,
    tasks: int | None = None,
    max_tokens: int = 64,
    version: str = "",
) -> Suite:
    """The held-out tasks, or the first `tasks` of them, as the suite `world:NAME`.

    `version` tells the world's code from an earlier one; without any, no answer is used again.
    """
    chosen = world.held_out[:tasks]
    return Suite(
        f"world:{name or world.name}",
        "benchmark",
        tuple(
            Playable(
                task.task_id,
                partial(_guarded, world, task, max_tokens),
                _fingerprint(world, task, max_tokens, version) if version else "",
            )
            for task in chosen
        ),
        own=True,
    )


def _fingerprint(world: World[T, S], task: T, max_tokens: int, version: str) -> str:
    try:
        shown = world.observe(world.reset(task)).text
    except Exception as error:  # noqa: BLE001 - a world is foreign code: it may raise anything
        shown = repr(error)
    about = (version, task.task_id, task.instructions, shown, str(max_tokens))
    return sha256("\0".join(about).encode(errors="replace")).hexdigest()


def _guarded(
    world: World[T, S], task: T, max_tokens: int, events: Sequence[Event]
) -> AskModel | Done:
    """What a world raises is the world's fault, not the model's."""
    try:
        return following(world, task, max_tokens, events)
    except UpswingError:
        raise
    except Exception as error:  # noqa: BLE001 - a world is foreign code: it may raise anything
        said = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise InfraError(f"The world {world.name} broke: {said}.") from None


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
