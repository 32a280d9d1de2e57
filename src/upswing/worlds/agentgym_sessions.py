"""Who plays what on our AgentGym server, and who has left? Sessions: many, bounded, and forgotten.

| asked for                                | answer                                               |
|------------------------------------------|------------------------------------------------------|
| a session, and there is room             | its id, and the first task begun                     |
| a session, and none is free              | `Full`; sessions that nobody uses are dropped first  |
| a session that is not there              | `Misuse`: it was closed or dropped, or never was     |
| a task that is not there                 | `Rejected`                                           |
| a step when the task is over             | `Conflict`: a reset begins another                   |
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from upswing.errors import Conflict, Misuse, Transient
from upswing.worlds.agentgym import About, Answer, Info
from upswing.worlds.visit import Play, begin, proceed
from upswing.worlds.world import Task, World, third_split


class Full(Transient):
    """There are as many sessions as there may be."""


@dataclass(frozen=True, slots=True)
class Limits:
    sessions: int = 1024
    """At once; a session is a few hundred bytes."""
    idle: timedelta = timedelta(minutes=30)
    """After which a session that nobody used is dropped: AgentGym's clients wait five minutes for
    an answer, and a model may think between two steps."""


@dataclass(frozen=True, slots=True)
class _Session:
    play: Play[Any, Any]
    used: float


class Sessions:
    """The sessions of one world. `now` is in seconds, on a clock that never goes back."""

    def __init__(self, world: World[Any, Any], limits: Limits | None = None) -> None:
        self._world, self._limits = world, limits or Limits()
        self._sessions: dict[int, _Session] = {}
        """The one that nobody has used for longest comes first."""
        self._next = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def about(self) -> About:
        world = self._world
        splits = (world.training, world.held_out, third_split(world))
        return About(world.name, world.max_turns, *(len(tasks) for tasks in splits))

    def create(self, number: int, now: float) -> Answer:
        """A new session, at the beginning of this task."""
        play = begin(self._world, number)
        self._forget(now)
        if len(self._sessions) >= self._limits.sessions:
            raise Full(f"All {self._limits.sessions} sessions are in use: close one, or wait.")
        session, self._next = self._next, self._next + 1
        return self._keep(session, play, now)

    def reset(self, session: int, number: int, now: float) -> Answer:
        """The session at the beginning of this task, whatever it was at."""
        self._find(session, now)
        return self._keep(session, begin(self._world, number), now)

    def step(self, session: int, action: str, now: float) -> Answer:
        """What follows from the action."""
        play = self._find(session, now).play
        if play.outcome is not None:
            raise Conflict("This task is over: POST /reset begins another.")
        return self._keep(session, proceed(self._world, play, action), now)

    def look(self, session: int, now: float) -> Answer:
        """How the session stands."""
        return self._keep(session, self._find(session, now).play, now)

    def close(self, session: int, now: float) -> None:
        self._find(session, now)
        del self._sessions[session]

    def _find(self, session: int, now: float) -> _Session:
        self._forget(now)
        if session not in self._sessions:
            minutes = self._limits.idle / timedelta(minutes=1)
            raise Misuse(
                f"There is no session {session}: it was closed, or not used for {minutes:g} minutes; POST /create makes one."
            )
        return self._sessions[session]

    def _keep(self, session: int, play: Play[Any, Any], now: float) -> Answer:
        self._sessions.pop(session, None)  # to the end: it is in use
        self._sessions[session] = _Session(play, now)
        return self._answer(session, play)

    def _forget(self, now: float) -> None:
        idle = self._limits.idle.total_seconds()
        while self._sessions:
            oldest = next(iter(self._sessions))
            if now - self._sessions[oldest].used <= idle:
                break
            del self._sessions[oldest]

    def _answer(self, session: int, play: Play[Any, Any]) -> Answer:
        """After a reset the instructions come first: an AgentGym client shows nothing else."""
        world, task, ended = self._world, play.task, play.outcome
        seen = world.observe(play.state)
        first = task.instructions and not play.turns
        text = f"{task.instructions}\n{seen.text}" if first else seen.text
        reward = ended.score if ended else 0.0
        # Not the task itself: a world's own kind of task knows the answer.
        about = Info(Task(task.task_id, task.instructions), seen, ended)
        return Answer(session, text, reward, reward, ended is not None, about)
