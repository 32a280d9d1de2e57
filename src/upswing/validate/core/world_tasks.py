"""How is a world's held-out task a task of a suite? What it shows is asked, what is said is a step.

A world is whatever has these names (see `World`): tasks, and pure functions over a state of its
own. The conversation is played again from the replies at each move, so nothing is remembered here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from typing import Any

from upswing.contracts.validation import TaskAnswer
from upswing.errors import UpswingError
from upswing.validate.core.moves import (
    AskModel,
    InfraError,
    Message,
    MoveResult,
    PlayableTask,
    TaskResult,
)
from upswing.validate.core.suite import TaskSuite
from upswing.worlds.world import S, T, World


def make_world_suite(
    world: World[Any, Any],
    *,
    name: str | None = None,
    max_tasks: int | None = None,
    max_tokens: int = 64,
    version: str = "",
) -> TaskSuite:
    """The held-out tasks, or the first `max_tasks` of them, as the suite `world:NAME`.

    `version` tells the world's code from an earlier one; without any, no answer is used again.
    """
    chosen = world.held_out[:max_tasks]
    return TaskSuite(
        f"world:{name or world.name}",
        "benchmark",
        tuple(
            PlayableTask(
                task.task_id,
                partial(_next_move_or_infra_error, world, task, max_tokens),
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


def _next_move_or_infra_error(
    world: World[T, S], task: T, max_tokens: int, events: Sequence[MoveResult]
) -> AskModel | TaskResult:
    """What a world raises is the world's fault, not the model's."""
    try:
        return next_world_move(world, task, max_tokens, events)
    except UpswingError:
        raise
    except Exception as error:  # noqa: BLE001 - a world is foreign code: it may raise anything
        description = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise InfraError(f"The world {world.name} broke: {description}.") from None


def next_world_move(
    world: World[T, S], task: T, max_tokens: int, events: Sequence[MoveResult]
) -> AskModel | TaskResult:
    """The move after these replies."""
    replies = [event.text for event in events if isinstance(event, TaskAnswer)]
    opening = [{"role": "system", "content": task.instructions}] if task.instructions else []
    messages: list[Message] = list(opening)
    state = world.reset(task)
    for reply in replies:
        messages.append({"role": "user", "content": world.observe(state).text})
        messages.append({"role": "assistant", "content": reply})
        state = world.step(state, reply.strip())
    outcome = world.outcome(state)
    if outcome is not None:
        return TaskResult(outcome.score, outcome.sentence)
    if len(replies) >= world.max_turns:
        return TaskResult(0.0, "There were no turns left, and the task was not over.")
    messages.append({"role": "user", "content": world.observe(state).text})
    return AskModel(tuple(messages), max_tokens)
