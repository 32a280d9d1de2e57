"""What happened when a policy acted in a world? Text and tokens, turn by turn."""

from __future__ import annotations

from dataclasses import dataclass

from upswing.worlds.world import Task, WorldObservation, WorldOutcome


@dataclass(frozen=True, slots=True)
class EpisodeStep:
    """One turn: what was seen, what was said, and both in the model's tokens."""

    observation: WorldObservation
    reply: str
    prompt_ids: tuple[int, ...]
    """New since the turn before: its closing, this observation, and the cue to speak."""
    completion_ids: tuple[int, ...]
    """What was sampled, the end token included where it was reached."""
    logprobs: tuple[float, ...]
    """Of the completion, under the model at temperature 1."""


@dataclass(frozen=True, slots=True)
class Episode:
    """One attempt at one task."""

    world: str
    task: Task
    policy: str
    member: int
    """Which of the attempts at this task, from 0."""
    temperature: float
    """0 means that the likeliest token was always taken."""
    steps: tuple[EpisodeStep, ...]
    outcome: WorldOutcome

    @property
    def ids(self) -> tuple[int, ...]:
        """The whole conversation as the model saw and wrote it."""
        return tuple(
            token for step in self.steps for token in (*step.prompt_ids, *step.completion_ids)
        )
