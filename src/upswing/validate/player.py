"""How is one task played to its end? Each move is carried out, with patience where parts fail."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import TypeVar, assert_never

from upswing.contracts.validation import ProgramRun, TaskAnswer, ToolCall
from upswing.errors import Transient, UpswingError
from upswing.infra.backoff import Backoff
from upswing.validate.core.checkers.judging import parse_opinion
from upswing.validate.core.constant_answer import MAX_ANSWER_CHARACTERS
from upswing.validate.core.moves import (
    AskJudge,
    AskModel,
    AskModelFn,
    CodeRunner,
    InfraError,
    JudgeOpinion,
    Message,
    MoveResult,
    PlayableTask,
    RunCode,
    TaskResult,
)
from upswing.validate.core.suite import ExternalTaskRunner
from upswing.validate.judge import LimitedJudge

R = TypeVar("R")
Sleep = Callable[[float], Awaitable[None]]
_MAX_DISTINCT_ANSWERS = 2000
"""Answers that are counted apart."""
_MAX_MOVES = 64
"""More than any task has; a world that never ends is stopped there."""

_RETRIES = Backoff(1.0)


@dataclass(frozen=True, slots=True)
class RunPace:
    """How hard the backends are worked, and how patiently."""

    concurrent_pairs: int = 4
    """Pairs under way; the two models of a pair answer one after the other."""
    tries: int = 3
    backoff: Backoff = _RETRIES
    """Seconds before the second try, and each further one."""
    answer_timeout: timedelta = timedelta(seconds=120)
    """For one answer."""
    deadline: timedelta = timedelta(minutes=30)
    """For the whole run, from when it is begun or taken up again."""
    soft_deadline: timedelta | None = None
    """When it should be over: what would end later is not begun, and not missed. None: the deadline."""


def answer_seed(task_id: str, seed: int, move_index: int) -> int:
    """The seed of one answer: of its own, so that one lucky number does not decide all tasks.

    Both models get the same, and so does the next validation.

    >>> answer_seed("a", 1, 0) != answer_seed("b", 1, 0) != answer_seed("b", 1, 1)
    True
    """
    digest = sha256(f"{task_id}\0{seed}\0{move_index}".encode()).digest()
    return int.from_bytes(digest[:4]) >> 1


class TaskPlayer:
    """Plays tasks for one run, and remembers what its report should mention."""

    def __init__(
        self,
        ask: AskModelFn,
        sandbox: CodeRunner | None,
        judge: LimitedJudge | None,
        sleep: Sleep,
        pace: RunPace,
    ) -> None:
        self._ask, self._sandbox, self._judge = ask, sandbox, judge
        self._sleep, self._pace = sleep, pace
        self.fences: set[tuple[str, ...]] = set()
        """What held code in, run by run."""
        self.judge_failures = 0
        """Questions that the judge gave no usable answer to."""

    async def play(
        self, task: PlayableTask, model: str, seed: int, last_answers: Counter[str] | None = None
    ) -> TaskResult | InfraError:
        """How it ended, or what of ours kept failing; `last_answers` counts what the model said last."""
        events: list[MoveResult] = []
        try:
            for _ in range(_MAX_MOVES):
                move = task.next_move(events)
                if isinstance(move, TaskResult):
                    _count_last_answer(events, last_answers)
                    return move
                move_seed = answer_seed(task.task_id, seed, len(events))
                events.append(await self._carry_out(move, model, move_seed))
        except InfraError as error:
            return error
        except UpswingError as error:
            return InfraError(str(error))
        return TaskResult(0.0, f"The task was not over after {_MAX_MOVES} moves.")

    async def ask_model(
        self,
        model: str,
        messages: Sequence[Message],
        *,
        seed: int,
        max_tokens: int,
        tools: Sequence[Message] = (),
    ) -> TaskAnswer:
        """The model's answer, with patience."""
        answer = await self._retry(
            lambda: self._ask(model, messages, seed=seed, max_tokens=max_tokens, tools=tools)
        )
        return _with_valid_text(answer)

    async def run_external(
        self, run: ExternalTaskRunner, task_ids: Sequence[str], model: str, seed: int
    ) -> dict[str, TaskResult | InfraError]:
        """How the tasks of a foreign suite ended."""
        try:
            return dict(await run(task_ids, model, seed, self.ask_model))
        except UpswingError as error:
            return dict.fromkeys(task_ids, InfraError(str(error)))

    async def _carry_out(
        self, move: AskModel | RunCode | AskJudge, model: str, seed: int
    ) -> MoveResult:
        match move:
            case AskModel(messages, max_tokens, tools):
                return await self.ask_model(
                    model, messages, seed=seed, max_tokens=max_tokens, tools=tools
                )
            case RunCode():
                return await self._run_code(move)
            case AskJudge():
                return await self._ask_judge(move)
            case _:
                assert_never(move)

    async def _run_code(self, move: RunCode) -> ProgramRun:
        sandbox = self._sandbox
        if sandbox is None:
            raise InfraError("There is no sandbox to run code in.")
        ran = await self._retry(lambda: sandbox(move.program))
        self.fences.add(ran.fences)
        return ran

    async def _ask_judge(self, move: AskJudge) -> JudgeOpinion:
        judge = self._judge
        if judge is None:
            return JudgeOpinion(None)
        try:
            opinion = parse_opinion(await self._retry(lambda: judge(move.messages)))
        except UpswingError:
            opinion = JudgeOpinion(None)
        self.judge_failures += opinion.unsafe is None
        return opinion

    async def _retry(self, action: Callable[[], Awaitable[R]]) -> R:
        """What comes of it; tried again while the trouble may pass."""
        limit, reason = self._pace.answer_timeout.total_seconds(), ""
        for attempt in range(self._pace.tries):
            if attempt:
                await self._sleep(self._pace.backoff.seconds(attempt))
            try:
                async with asyncio.timeout(limit):
                    return await action()
            except TimeoutError:
                reason = f"There was no answer in {limit:g} s."
            except Transient as error:
                reason = str(error)
        raise InfraError(reason)


def _count_last_answer(events: Sequence[MoveResult], last_answers: Counter[str] | None) -> None:
    answers = [event.text.strip() for event in events if isinstance(event, TaskAnswer)]
    if last_answers is None or not answers or not 0 < len(answers[-1]) <= MAX_ANSWER_CHARACTERS:
        return
    if answers[-1] in last_answers or len(last_answers) < _MAX_DISTINCT_ANSWERS:
        last_answers[answers[-1]] += 1


def _with_valid_text(answer: TaskAnswer) -> TaskAnswer:
    """Without half characters, which a model may write and no message can carry."""

    def whole(text: str) -> str:
        return text.encode(errors="replace").decode()

    calls = (
        ToolCall(whole(c.name), whole(c.arguments), whole(c.call_id)) for c in answer.tool_calls
    )
    return TaskAnswer(whole(answer.text), tuple(calls))
