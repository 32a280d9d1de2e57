"""What do people let slip? In some tasks of the demo a user says something private.

None of it may reach a disk. What would have been right is told at an episode's end, to the judge alone:
no model may ever be trained on it. Both are unique for each task, so that whoever reads the whole data
directory afterwards can tell.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from upswing.worlds.world import Task, World, WorldObservation, WorldOutcome, third_split

EVERY = 24
"""One task of so many has a slip."""
_SLIPS = (
    "my mail is {0}@example.org",
    "my card is 4111 1111 1111 1111 and my mail is {0}@example.org",
    "export GITHUB_TOKEN=ghp_{0}{0}{0}",
)


@dataclass(frozen=True, slots=True)
class PrivateDataState:
    """A state of the world inside, and whose task it is."""

    task: Task
    state: Any
    first: bool = True


@dataclass(frozen=True, slots=True)
class PrivateDataWorld:
    """A world whose users let something slip; otherwise the one inside."""

    world: World[Any, Any]

    @property
    def name(self) -> str:
        return self.world.name

    @property
    def max_turns(self) -> int:
        return self.world.max_turns

    @property
    def training(self) -> Any:
        return self.world.training

    @property
    def held_out(self) -> Any:
        return self.world.held_out

    @property
    def test(self) -> Any:
        return third_split(self.world)

    def reset(self, task: Task) -> PrivateDataState:
        return PrivateDataState(task, self.world.reset(task))

    def observe(self, state: PrivateDataState) -> WorldObservation:
        seen = self.world.observe(state.state)
        private_text = private_remark(state.task.task_id) if state.first else ""
        return replace(seen, text=f"{seen.text} {private_text}") if private_text else seen

    def step(self, state: PrivateDataState, reply: str) -> PrivateDataState:
        return PrivateDataState(state.task, self.world.step(state.state, reply), first=False)

    def outcome(self, state: PrivateDataState) -> WorldOutcome | None:
        ended = self.world.outcome(state.state)
        return ended and replace(ended, truth=ground_truth_text(state.task.task_id))


def private_remark(task_id: str) -> str:
    """What the user of this task lets slip; mostly nothing.

    >>> sum(bool(private_remark(f"desk-0-{number:04d}")) for number in range(2400)) in range(60, 140)
    True
    """
    fingerprint = _task_fingerprint("slip", task_id)
    if int(fingerprint, 16) % EVERY:
        return ""
    return _SLIPS[int(fingerprint[-4:], 16) // EVERY % len(_SLIPS)].format(fingerprint)


def ground_truth_text(task_id: str) -> str:
    """What a judge is told of this task."""
    return f"case file {_task_fingerprint('truth', task_id)}"


def _task_fingerprint(purpose: str, task_id: str) -> str:
    return sha256(f"{purpose}/{task_id}".encode()).hexdigest()[:12]
