"""What would it be worth to say the same every time? What a model reaches beyond that, it has learned.

Of the answers that were given, the most frequent are tried: each is given to every task, in every
turn, and the best of them is reported. A model that has collapsed to one answer reaches just that.
Tasks whose answers are run or judged are left out; a suite that has mostly such tasks has no score.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from upswing.contracts.validation import TaskAnswer
from upswing.errors import UpswingError
from upswing.validate.core.moves import AskModel, MoveResult, PlayableTask, TaskResult

MAX_CANDIDATES = 16
"""Answers that are tried, the most frequent ones."""
MAX_ANSWER_CHARACTERS = 200
"""Characters; whoever says more does not say the same every time."""
_MAX_MOVES = 64


@dataclass(frozen=True, slots=True)
class ConstantAnswer:
    """The answer that is worth most when it is given to every task."""

    answer: str
    score: float


def best_constant_answer(
    tasks: Sequence[PlayableTask], answers: Counter[str], max_candidates: int = MAX_CANDIDATES
) -> ConstantAnswer | None:
    """The best of the most frequent answers; None where no task can be asked."""
    found = []
    for answer, _ in sorted(answers.items(), key=lambda each: (-each[1], each[0]))[:max_candidates]:
        scores = [score for task in tasks if (score := constant_score(task, answer)) is not None]
        if scores and 2 * len(scores) >= len(tasks):
            found.append(ConstantAnswer(answer, math.fsum(scores) / len(scores)))
    return max(found, key=lambda each: each.score, default=None)


def constant_score(task: PlayableTask, answer: str) -> float | None:
    """What a task gives to whoever always says this; None when it does not tell by itself."""
    events: list[MoveResult] = []
    try:
        for _ in range(_MAX_MOVES):
            move = task.next_move(events)
            if isinstance(move, TaskResult):
                return move.score if math.isfinite(move.score) else None
            if not isinstance(move, AskModel):
                return None
            events.append(TaskAnswer(answer))
    except UpswingError:
        return None
    return 0.0
