"""Who did which task, how did it end, and what does the user say of it?

What every request of an agent says of itself:

| header, or key of `metadata`  | what it is                                                 |
|-------------------------------|------------------------------------------------------------|
| `X-Episode-Id`                | this errand, with all its requests                         |
| `X-Task-Id`, `scenario_id`    | the task: with the window it makes the group               |
| `X-Agent-Id`                  | who                                                        |
| `window_id`                   | when, in the world's time                                  |
| `is_evaluation`               | kept, and not trained on                                   |
| `purpose`                     | `curriculum`: trained on, and no evidence of a model       |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol, runtime_checkable

from upswing.contracts.outcome import Outcome as Truth
from upswing.worlds.world import UNFINISHED, Observation, Outcome, Task

_LATE = 1 / 3
"""The share of those who say something that says it late."""


@runtime_checkable
class Tempered(Protocol):
    """A task for an agent of some temperament, which its name then tells."""

    @property
    def temperament(self) -> str: ...


@runtime_checkable
class Windowed(Protocol):
    """A task that lies in a window of its own: what really happened then is known of that one."""

    @property
    def window_id(self) -> str: ...


@runtime_checkable
class Tells(Protocol):
    """A world that knows afterwards what really happened in a window."""

    def outcomes(self, window_id: str) -> Sequence[Truth]: ...


def window_for(task: Task, now: str) -> str:
    """The window that the task is done in: its own, else the clock's."""
    return task.window_id if isinstance(task, Windowed) else now


def name_of(prefix: str, task: Task, member: int) -> str:
    """The agent that does this task in this place of the group.

    >>> name_of("agent", Task("t", ""), 1)
    'agent-1'
    """
    kind = f"-{task.temperament}" if isinstance(task, Tempered) else ""
    return f"{prefix}{kind}-{member}"


@dataclass(frozen=True, slots=True)
class Errand:
    """Who does what, and when."""

    episode_id: str
    agent: str
    task: Task
    window: str
    temperature: float = 1.0
    evaluation: bool = False
    purpose: str | None = None
    """Why this task, where it was not simply the next one."""

    @property
    def about(self) -> dict[str, Any]:
        """What the trajectory's metadata should say."""
        told: dict[str, Any] = {"scenario_id": self.task.task_id, "window_id": self.window}
        told |= {"is_evaluation": True} if self.evaluation else {}
        return told | ({"purpose": self.purpose} if self.purpose else {})

    @property
    def headers(self) -> dict[str, str]:
        return {
            "X-Episode-Id": self.episode_id,
            "X-Task-Id": self.task.task_id,
            "X-Agent-Id": self.agent,
        }


@dataclass(frozen=True, slots=True)
class Turn:
    """What was seen, what was said about it, and by which model."""

    seen: Observation
    reply: str
    model: str


@dataclass(frozen=True, slots=True)
class Done:
    """An errand that has ended."""

    errand: Errand
    instructions: str = ""
    turns: tuple[Turn, ...] = ()
    outcome: Outcome = UNFINISHED
    trouble: str = ""
    """Why it was broken off: the status of a request, or the kind of its error."""

    @property
    def model(self) -> str | None:
        """Who answered; None when nobody did, or more than one."""
        models = {turn.model for turn in self.turns}
        return models.pop() if len(models) == 1 else None


@dataclass(frozen=True)
class Played:
    """How one agent fared at one task."""

    model: str | None
    """Who answered; None when nobody did, or more than one."""
    task_id: str
    agent: str
    score: float
    success: bool
    fault: bool
    """The world or the way to the model failed: the score says nothing."""
    turns: int


def played_of(done: Done) -> Played:
    """An errand in numbers."""
    errand, outcome = done.errand, done.outcome
    return Played(
        done.model, errand.task.task_id, errand.agent,
        outcome.score, outcome.success, outcome.fault, len(done.turns),
    )  # fmt: skip


def means(played: Iterable[Played]) -> dict[str, float]:
    """The mean score under each model; what a fault spoiled says nothing.

    >>> means([Played("tiny", "t", "a", s, s == 1, f, 1) for s, f in ((1, 0), (0, 0), (0, 1))])
    {'tiny': 0.5}
    """
    scores: dict[str, list[float]] = {}
    for each in played:
        if each.model is not None and not each.fault:
            scores.setdefault(each.model, []).append(each.score)
    return {model: sum(some) / len(some) for model, some in sorted(scores.items())}


def missing_of(played: Sequence[Played], wanted: int) -> int:
    """Attempts that the model with the most of them lacks to make a group; 0 where models did not differ.

    >>> some = [Played(model, "t", "a", 1.0, True, False, 1) for model in ("old", "new", "old")]
    >>> missing_of(some, 4), missing_of(some[:1], 4), missing_of([], 4)
    (2, 0, 0)
    """
    counts = Counter(each.model for each in played if each.model is not None and not each.fault)
    return max(0, wanted - max(counts.values())) if len(counts) > 1 else 0


@dataclass(frozen=True, slots=True)
class Word:
    """What a user says, and whether at once."""

    pleased: bool
    late: bool


def word_on(done: Done, share: float, seed: int) -> Word | None:
    """What the user says of it; None for those who say nothing.

    It follows from the seed, the agent, the window and the task. Nobody is asked in an evaluation,
    and nobody blames the agent when a part was away.
    """
    errand = done.errand
    if errand.evaluation or done.outcome.fault:
        return None
    about = f"{seed}/{errand.agent}/{errand.window}/{errand.task.task_id}"
    chance = Random(about)  # noqa: S311 - a script, not a secret
    if chance.random() >= share:
        return None
    return Word(_pleased(done.outcome), late=chance.random() < _LATE)


def _pleased(outcome: Outcome) -> bool:
    return outcome.success if outcome.mood is None else outcome.mood == "pleased"
