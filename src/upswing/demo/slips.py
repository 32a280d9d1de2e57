"""What do people let slip? In some tasks of the demo a user says something private.

None of it may reach a disk. What would have been right is told at an episode's end, to the judge alone:
no model may ever be trained on it. Both are unique for each task, so that whoever reads the whole data
directory afterwards can tell.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from upswing.worlds.world import Observation, Outcome, Task, World, third_split

EVERY = 24
"""One task of so many has a slip."""
_SLIPS = (
    "my mail is {0}@example.org",
    "my card is 4111 1111 1111 1111 and my mail is {0}@example.org",
    "export GITHUB_TOKEN=ghp_{0}{0}{0}",
)


@dataclass(frozen=True, slots=True)
class Told:
    """A state of the world inside, and whose task it is."""

    task: Task
    state: Any
    first: bool = True


@dataclass(frozen=True, slots=True)
class Slips:
    """A world whose users let something slip; otherwise the one inside."""

    inside: World[Any, Any]

    @property
    def name(self) -> str:
        return self.inside.name

    @property
    def max_turns(self) -> int:
        return self.inside.max_turns

    @property
    def training(self) -> Any:
        return self.inside.training

    @property
    def held_out(self) -> Any:
        return self.inside.held_out

    @property
    def test(self) -> Any:
        return third_split(self.inside)

    def reset(self, task: Task) -> Told:
        return Told(task, self.inside.reset(task))

    def observe(self, state: Told) -> Observation:
        seen = self.inside.observe(state.state)
        said = slip(state.task.task_id) if state.first else ""
        return replace(seen, text=f"{seen.text} {said}") if said else seen

    def step(self, state: Told, reply: str) -> Told:
        return Told(state.task, self.inside.step(state.state, reply), first=False)

    def outcome(self, state: Told) -> Outcome | None:
        ended = self.inside.outcome(state.state)
        return ended and replace(ended, truth=truth(state.task.task_id))


def slip(task_id: str) -> str:
    """What the user of this task lets slip; mostly nothing.

    >>> sum(bool(slip(f"desk-0-{number:04d}")) for number in range(2400)) in range(60, 140)
    True
    """
    marks = _marks("slip", task_id)
    if int(marks, 16) % EVERY:
        return ""
    return _SLIPS[int(marks[-4:], 16) // EVERY % len(_SLIPS)].format(marks)


def truth(task_id: str) -> str:
    """What a judge is told of this task."""
    return f"case file {_marks('truth', task_id)}"


def _marks(about: str, task_id: str) -> str:
    return sha256(f"{about}/{task_id}".encode()).hexdigest()[:12]
