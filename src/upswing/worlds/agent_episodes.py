"""Who did which task, how did it end, and what does the user say of it?

What every request of an agent says of itself:

| header, or key of `metadata`  | what it is                                                 |
|-------------------------------|------------------------------------------------------------|
| `X-Episode-Id`                | this episode, with all its requests                        |
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
from typing import Any

from upswing.worlds.world import UNFINISHED, Task, WorldObservation, WorldOutcome

_LATE = 1 / 3
"""The share of those who say something that says it late."""


def window_of_continuous_task(task: Task) -> str | None:
    """The window that a task of a continuous world lies in; None where the clock decides."""
    window: str | None = getattr(task, "window_id", None)
    return window


def window_of_task(task: Task, now: str) -> str:
    """The window that the task is done in: its own, else the clock's."""
    return window_of_continuous_task(task) or now


def agent_name(prefix: str, task: Task, member: int) -> str:
    """The agent that does this task as this member of the group; where a task has a temperament, the name says it.

    >>> agent_name("agent", Task("t", ""), 1)
    'agent-1'
    """
    temperament = getattr(task, "temperament", "")
    return f"{prefix}-{temperament}-{member}" if temperament else f"{prefix}-{member}"


@dataclass(frozen=True, slots=True)
class EpisodeSpec:
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
    def metadata(self) -> dict[str, Any]:
        """What the trajectory's metadata should say."""
        metadata: dict[str, Any] = {"scenario_id": self.task.task_id, "window_id": self.window}
        metadata |= {"is_evaluation": True} if self.evaluation else {}
        return metadata | ({"purpose": self.purpose} if self.purpose else {})

    @property
    def headers(self) -> dict[str, str]:
        return {
            "X-Episode-Id": self.episode_id,
            "X-Task-Id": self.task.task_id,
            "X-Agent-Id": self.agent,
        }


@dataclass(frozen=True, slots=True)
class AgentTurn:
    """What was seen, what was said about it, and by which model."""

    seen: WorldObservation
    reply: str
    model: str


@dataclass(frozen=True, slots=True)
class AgentEpisode:
    """An episode, so far or to its end."""

    spec: EpisodeSpec
    instructions: str = ""
    turns: tuple[AgentTurn, ...] = ()
    outcome: WorldOutcome = UNFINISHED
    trouble: str = ""
    """Why it was broken off: the status of a request, or the kind of its error."""

    @property
    def model(self) -> str | None:
        """Who answered; None when nobody did, or more than one."""
        models = {turn.model for turn in self.turns}
        return models.pop() if len(models) == 1 else None

    @property
    def result(self) -> EpisodeResult:
        """The episode in numbers."""
        return EpisodeResult(
            self.model,
            self.spec.task.task_id,
            self.spec.agent,
            self.outcome.score,
            self.outcome.success,
            self.outcome.fault,
            len(self.turns),
        )


@dataclass(frozen=True)
class EpisodeResult:
    """How one agent fared at one task."""

    model: str | None
    """Who answered; None when nobody did, or more than one."""
    task_id: str
    agent: str
    score: float
    success: bool
    fault: bool
    """The world or the connection to the model failed: the score says nothing."""
    turns: int


def mean_score_by_model(results: Iterable[EpisodeResult]) -> dict[str, float]:
    """The mean score under each model; what a fault spoiled says nothing.

    >>> pairs = ((1, 0), (0, 0), (0, 1))
    >>> mean_score_by_model([EpisodeResult("tiny", "t", "a", s, s == 1, f, 1) for s, f in pairs])
    {'tiny': 0.5}
    """
    scores: dict[str, list[float]] = {}
    for each in results:
        if each.model is not None and not each.fault:
            scores.setdefault(each.model, []).append(each.score)
    return {model: sum(some) / len(some) for model, some in sorted(scores.items())}


def missing_attempts(results: Sequence[EpisodeResult], wanted: int) -> int:
    """Attempts that the model with the most of them lacks to make a group; 0 where models did not differ.

    >>> some = [EpisodeResult(model, "t", "a", 1.0, True, False, 1) for model in ("old", "new", "old")]
    >>> missing_attempts(some, 4), missing_attempts(some[:1], 4), missing_attempts([], 4)
    (2, 0, 0)
    """
    counts = Counter(each.model for each in results if each.model is not None and not each.fault)
    return max(0, wanted - max(counts.values())) if len(counts) > 1 else 0


@dataclass(frozen=True, slots=True)
class UserFeedback:
    """What a user says, and whether at once."""

    pleased: bool
    late: bool


def draw_feedback(episode: AgentEpisode, share: float, seed: int) -> UserFeedback | None:
    """What the user says of it; None for those who say nothing.

    It follows from the seed, the agent, the window and the task. Nobody is asked in an evaluation,
    and nobody blames the agent when a part was away.
    """
    spec = episode.spec
    if spec.evaluation or episode.outcome.fault:
        return None
    identity = f"{seed}/{spec.agent}/{spec.window}/{spec.task.task_id}"
    chance = Random(identity)  # noqa: S311 - a script, not a secret
    if chance.random() >= share:
        return None
    return UserFeedback(_is_pleased(episode.outcome), late=chance.random() < _LATE)


def _is_pleased(outcome: WorldOutcome) -> bool:
    return outcome.success if outcome.mood is None else outcome.mood == "pleased"
