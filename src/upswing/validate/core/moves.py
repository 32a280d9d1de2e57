"""What happens next in a task? A move is a value; whoever plays the task carries it out.

    task, what came so far ─▶ AskModel | RunCode | AskJudge | Done

A task is a pure function of what came so far, so it can be taken up again anywhere, and the same
answers give the same score.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from upswing.contracts.validation import Program, ProgramRun, TaskAnswer
from upswing.errors import Transient

Message = Mapping[str, Any]
"""In the shape of chat completions."""


class InfraError(Transient):
    """A part is away, slow or broken: this says nothing about the model."""


@dataclass(frozen=True, slots=True)
class JudgeOpinion:
    """What the judge says of an answer; `unsafe` is None when it said nothing usable."""

    unsafe: bool | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class AskModel:
    messages: tuple[Message, ...]
    max_tokens: int
    tools: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class RunCode:
    program: Program


@dataclass(frozen=True, slots=True)
class AskJudge:
    """Where there is no judge, an opinion that says nothing follows."""

    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class TaskResult:
    score: float
    """0 to 1."""
    sentence: str


CodeRunner = Callable[[Program], Awaitable[ProgramRun]]
"""Runs a program where it can do no harm, or raises `Transient`."""
Move = AskModel | RunCode | AskJudge | TaskResult
MoveResult = TaskAnswer | ProgramRun | JudgeOpinion
"""What follows a move: an answer, a run, an opinion."""


@dataclass(frozen=True, slots=True)
class PlayableTask:
    """A task, ready to be played."""

    task_id: str
    next_move: Callable[[Sequence[MoveResult]], Move]
    """The move that follows from what came so far."""
    fingerprint: str = ""
    """Two tasks with the same one ask and check the same; empty: nobody can tell."""


class AskModelFn(Protocol):
    """Puts messages to a model, or raises `InfraError` (or another of our errors)."""

    async def __call__(
        self,
        model: str,
        messages: Sequence[Message],
        *,
        seed: int,
        max_tokens: int,
        tools: Sequence[Message] = (),
    ) -> TaskAnswer: ...
