"""Who plays what on our AgentGym server, and who has left? Sessions: many, bounded, and forgotten.

| asked for                                | answer                                               |
|------------------------------------------|------------------------------------------------------|
| a session, and there is room             | its id, and the first task begun                     |
| a session, and none is free              | `SessionsFull`; sessions that nobody uses are dropped first  |
| a session that is not there              | `Misuse`: it was closed or dropped, or never was     |
| a task that is not there                 | `Rejected`                                           |
| a step when the task is over             | `Conflict`: a reset begins another                   |
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from upswing.errors import Conflict, Misuse, Transient
from upswing.worlds.agentgym import SessionInfo, SessionReply, WorldInfo
from upswing.worlds.attempt import AttemptState, apply_reply, begin_numbered_task
from upswing.worlds.world import Task, World, third_split


class SessionsFull(Transient):
    """There are as many sessions as there may be."""


@dataclass(frozen=True, slots=True)
class SessionLimits:
    sessions: int = 1024
    """At once; a session is a few hundred bytes."""
    idle: timedelta = timedelta(minutes=30)
    """After which a session that nobody used is dropped: AgentGym's clients wait five minutes for
    an answer, and a model may think between two steps."""


@dataclass(frozen=True, slots=True)
class _Session:
    attempt: AttemptState[Any, Any]
    used: float


class WorldSessions:
    """The sessions of one world. `now` is in seconds, on a clock that never goes back."""

    def __init__(self, world: World[Any, Any], limits: SessionLimits | None = None) -> None:
        self._world, self._limits = world, limits or SessionLimits()
        self._sessions: dict[int, _Session] = {}
        """The one that nobody has used for longest comes first."""
        self._next = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def world_info(self) -> WorldInfo:
        world = self._world
        splits = (world.training, world.held_out, third_split(world))
        return WorldInfo(world.name, world.max_turns, *(len(tasks) for tasks in splits))

    def create(self, number: int, now: float) -> SessionReply:
        """A new session, at the beginning of this task."""
        attempt = begin_numbered_task(self._world, number)
        self._drop_idle(now)
        if len(self._sessions) >= self._limits.sessions:
            raise SessionsFull(
                f"All {self._limits.sessions} sessions are in use: close one, or wait."
            )
        session, self._next = self._next, self._next + 1
        return self._store_attempt(session, attempt, now)

    def reset(self, session: int, number: int, now: float) -> SessionReply:
        """The session at the beginning of this task, whatever it was at."""
        self._find_session(session, now)
        return self._store_attempt(session, begin_numbered_task(self._world, number), now)

    def step(self, session: int, action: str, now: float) -> SessionReply:
        """What follows from the action."""
        attempt = self._find_session(session, now).attempt
        if attempt.outcome is not None:
            raise Conflict("This task is over: POST /reset begins another.")
        return self._store_attempt(session, apply_reply(self._world, attempt, action), now)

    def current(self, session: int, now: float) -> SessionReply:
        """The state of the session."""
        return self._store_attempt(session, self._find_session(session, now).attempt, now)

    def close(self, session: int, now: float) -> None:
        self._find_session(session, now)
        del self._sessions[session]

    def _find_session(self, session: int, now: float) -> _Session:
        self._drop_idle(now)
        if session not in self._sessions:
            minutes = self._limits.idle / timedelta(minutes=1)
            raise Misuse(
                f"There is no session {session}: it was closed, or not used for {minutes:g} minutes; POST /create makes one."
            )
        return self._sessions[session]

    def _store_attempt(
        self, session: int, attempt: AttemptState[Any, Any], now: float
    ) -> SessionReply:
        self._sessions.pop(session, None)  # to the end: it is in use
        self._sessions[session] = _Session(attempt, now)
        return self._session_reply(session, attempt)

    def _drop_idle(self, now: float) -> None:
        idle = self._limits.idle.total_seconds()
        while self._sessions:
            oldest = next(iter(self._sessions))
            if now - self._sessions[oldest].used <= idle:
                break
            del self._sessions[oldest]

    def _session_reply(self, session: int, attempt: AttemptState[Any, Any]) -> SessionReply:
        """After a reset the instructions come first: an AgentGym client shows nothing else."""
        world, task, ended = self._world, attempt.task, attempt.outcome
        seen = world.observe(attempt.state)
        first = task.instructions and not attempt.turns
        text = f"{task.instructions}\n{seen.text}" if first else seen.text
        reward = ended.score if ended else 0.0
        # Not the task itself: a world's own kind of task knows the answer.
        about = SessionInfo(Task(task.task_id, task.instructions), seen, ended)
        return SessionReply(session, text, reward, reward, ended is not None, about)
