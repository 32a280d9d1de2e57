"""How is one task played to its end? Each move is carried out, with patience where parts fail."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import TypeVar, assert_never

from upswing.contracts.validation import Answer, Ran, ToolCall
from upswing.errors import Transient, UpswingError
from upswing.validate.checkers.judging import opinion
from upswing.validate.constant import LONGEST
from upswing.validate.moves import (
    Ask,
    AskJudge,
    AskModel,
    Done,
    Event,
    InfraError,
    Judge,
    Message,
    Opinion,
    Playable,
    RunCode,
    RunsCode,
)
from upswing.validate.suite import Performs

R = TypeVar("R")
Sleep = Callable[[float], Awaitable[None]]
_DIFFERENT = 2000
"""Answers that are counted apart."""
_MOVES = 64
"""More than any task has; a world that never ends is stopped there."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How hard the backends are worked, and how patiently."""

    at_once: int = 4
    """Pairs under way; the two models of a pair answer one after the other."""
    tries: int = 3
    backoff: timedelta = timedelta(seconds=1)
    """Before the second try; doubled before each further one."""
    patience: timedelta = timedelta(seconds=120)
    """For one answer."""
    deadline: timedelta = timedelta(minutes=30)
    """For the whole run, from when it is begun or taken up again."""
    soft: timedelta | None = None
    """When it should be over: what would end later is not begun, and not missed. None: the deadline."""


def seed_of(task_id: str, seed: int, move: int) -> int:
    """The seed of one answer: of its own, so that one lucky number does not decide all tasks.

    Both models get the same, and so does the next validation.

    >>> seed_of("a", 1, 0) != seed_of("b", 1, 0) != seed_of("b", 1, 1)
    True
    """
    digest = sha256(f"{task_id}\0{seed}\0{move}".encode()).digest()
    return int.from_bytes(digest[:4]) >> 1


class Player:
    """Plays tasks for one run, and remembers what its report should mention."""

    def __init__(
        self, ask: Ask, sandbox: RunsCode | None, judge: Judge | None, sleep: Sleep, pace: Pace
    ) -> None:
        self._ask, self._sandbox, self._judge = ask, sandbox, judge
        self._sleep, self._pace = sleep, pace
        self.fences: set[tuple[str, ...]] = set()
        """What held code in, run by run."""
        self.silent = 0
        """Questions that the judge gave no usable answer to."""

    async def play(
        self, task: Playable, model: str, seed: int, said: Counter[str] | None = None
    ) -> Done | InfraError:
        """How it ended, or what of ours kept failing; `said` counts what the model said last."""
        events: list[Event] = []
        try:
            for _ in range(_MOVES):
                move = task.following(events)
                if isinstance(move, Done):
                    _count(events, said)
                    return move
                chance = seed_of(task.task_id, seed, len(events))
                events.append(await self._carry_out(move, model, chance))
        except InfraError as error:
            return error
        except UpswingError as error:
            return InfraError(str(error))
        return Done(0.0, f"The task was not over after {_MOVES} moves.")

    async def asked(
        self,
        model: str,
        messages: Sequence[Message],
        *,
        seed: int,
        max_tokens: int,
        tools: Sequence[Message] = (),
    ) -> Answer:
        """The model's answer, with patience."""
        answer = await self._patiently(
            lambda: self._ask(model, messages, seed=seed, max_tokens=max_tokens, tools=tools)
        )
        return _sound(answer)

    async def perform(
        self, suite: Performs, task_ids: Sequence[str], model: str, seed: int
    ) -> dict[str, Done | InfraError]:
        """How the tasks of a foreign suite ended."""
        try:
            return dict(await suite(task_ids, model, seed, self.asked))
        except UpswingError as error:
            return dict.fromkeys(task_ids, InfraError(str(error)))

    async def _carry_out(self, move: AskModel | RunCode | AskJudge, model: str, seed: int) -> Event:
        match move:
            case AskModel(messages, max_tokens, tools):
                return await self.asked(
                    model, messages, seed=seed, max_tokens=max_tokens, tools=tools
                )
            case RunCode():
                return await self._ran(move)
            case AskJudge():
                return await self._opinion(move)
            case _:
                assert_never(move)

    async def _ran(self, move: RunCode) -> Ran:
        sandbox = self._sandbox
        if sandbox is None:
            raise InfraError("There is no sandbox to run code in.")
        ran = await self._patiently(lambda: sandbox(move.program))
        self.fences.add(ran.fences)
        return ran

    async def _opinion(self, move: AskJudge) -> Opinion:
        judge = self._judge
        if judge is None:
            return Opinion(None)
        try:
            said = opinion(await self._patiently(lambda: judge(move.messages)))
        except UpswingError:
            said = Opinion(None)
        self.silent += said.unsafe is None
        return said

    async def _patiently(self, act: Callable[[], Awaitable[R]]) -> R:
        """What comes of it; tried again while the trouble may pass."""
        limit, why = self._pace.patience.total_seconds(), ""
        for tried in range(self._pace.tries):
            if tried:
                await self._sleep(self._pace.backoff.total_seconds() * 2 ** (tried - 1))
            try:
                async with asyncio.timeout(limit):
                    return await act()
            except TimeoutError:
                why = f"There was no answer in {limit:g} s."
            except Transient as error:
                why = str(error)
        raise InfraError(why)


def _count(events: Sequence[Event], said: Counter[str] | None) -> None:
    answers = [event.text.strip() for event in events if isinstance(event, Answer)]
    if said is None or not answers or not 0 < len(answers[-1]) <= LONGEST:
        return
    if answers[-1] in said or len(said) < _DIFFERENT:
        said[answers[-1]] += 1


def _sound(answer: Answer) -> Answer:
    """Without half characters, which a model may write and no message can carry."""

    def whole(text: str) -> str:
        return text.encode(errors="replace").decode()

    calls = (
        ToolCall(whole(c.name), whole(c.arguments), whole(c.call_id)) for c in answer.tool_calls
    )
    return Answer(whole(answer.text), tuple(calls))
