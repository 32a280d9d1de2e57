"""How is a world behind HTTP played in lockstep with many attempts? As a world whose states are attempts.

An attempt moves on and cannot go back, so a state is used once, as the sampler does: it is stepped,
and the one before is forgotten. What fails over there ends the episode as the world's own fault.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from upswing.errors import Misuse, UpswingError
from upswing.worlds.agentgym_client import AgentGymClient
from upswing.worlds.attempt import TaskAttempt
from upswing.worlds.world import Task, WorldObservation, WorldOutcome

_AWAY = WorldOutcome(False, 0.0, "The world is away.", fault=True)
DEFAULT_TASKS = 100
"""Tasks that a foreign server surely has; it does not say how many."""


@dataclass(frozen=True, slots=True)
class RemoteState:
    """An attempt, and how often it was stepped."""

    attempt: TaskAttempt
    turns: int = 0


class RemoteWorld:
    """The world at this address; a context manager."""

    def __init__(self, url: str, *, max_turns: int = 30, tasks: int = DEFAULT_TASKS) -> None:
        self._remote = AgentGymClient(url, max_turns=max_turns)
        self._loop = asyncio.new_event_loop()
        self.name, self.max_turns, count, held = self._remote.name, max_turns, tasks, 0
        try:
            about = self._run_coroutine(self._remote.world_info())
            self.max_turns, count, held = about.max_turns, about.training, about.held_out
        except Misuse:  # a foreign server does not tell
            pass
        except UpswingError:
            self._loop.close()
            raise
        numbered = [Task(f"{self.name}-{number}", "") for number in range(count + held)]
        self.training: Sequence[Task] = numbered[:count]
        self.held_out: Sequence[Task] = numbered[count:]
        self._numbers = {task.task_id: number for number, task in enumerate(numbered)}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._run_coroutine(self._remote.close())
        self._loop.close()

    def reset(self, task: Task) -> RemoteState | None:
        try:
            return RemoteState(self._run_coroutine(self._remote.begin(self._numbers[task.task_id])))
        except UpswingError:
            return None

    def observe(self, state: RemoteState | None) -> WorldObservation:
        """A task's instructions come with what is seen first: they are known only now."""
        if state is None:
            return WorldObservation(_AWAY.sentence, "system_message")
        seen, about = state.attempt.observation, state.attempt.task.instructions
        if state.turns or not about:
            return seen
        return replace(seen, text=f"{about}\n{seen.text}")

    def step(self, state: RemoteState | None, reply: str) -> RemoteState | None:
        if state is None or self.outcome(state) is not None:
            return state
        self._run_coroutine(state.attempt.step(reply))
        moved = RemoteState(state.attempt, state.turns + 1)
        if self.outcome(moved) is not None:
            self._run_coroutine(state.attempt.close())
        return moved

    def outcome(self, state: RemoteState | None) -> WorldOutcome | None:
        return _AWAY if state is None else state.attempt.outcome

    def _run_coroutine(self, work: Any) -> Any:
        return self._loop.run_until_complete(work)
