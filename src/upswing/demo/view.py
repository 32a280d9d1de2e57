"""What does the demo show at a moment? Everything on the screen, as a value.

The screen, the plain lines and the report are functions of it; only the story fills it, from rows of the
running loop.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

State = Literal["waiting", "working", "done", "refused"]


class Stage(Struct, frozen=True):
    """One stage of the loop, in the data's order."""

    name: str
    """agents, collect, reward, trigger, train, validate, deploy"""
    state: State = "waiting"
    count: int = 0
    """Of whatever the stage makes: episodes, trajectories, rewards, decisions, jobs …"""
    note: str = ""
    """What it does right now, in a few words."""
    seconds: float | None = None
    """Real time that it has worked so far."""


class Line(Struct, frozen=True):
    """A decision of the loop, or a step of the demo."""

    second: float
    """Since the demo began."""
    stage: str
    """trigger, train, validate, deploy; `demo` for what the demo does itself."""
    kind: str
    """such as `train`, `set_weight`, `promote`, `roll_back`"""
    sentence: str
    decision_id: str | None = None


class ModelScores(Struct, frozen=True):
    """What one model's episodes scored, in the order in which they ended."""

    model_id: str
    points: tuple[tuple[float, float], ...]
    """(second, mean score of the episodes that ended in the two seconds before)"""
    mean: float
    count: int


class Scored(Struct, frozen=True):
    """One episode, or the mean of a few that ended together."""

    second: float
    model_id: str
    score: float


class Share(Struct, frozen=True):
    """Who answers how much from this moment on."""

    second: float
    traffic: dict[str, float]
    """Model → percent."""


class JobView(Struct, frozen=True):
    """The training job that runs, or the last one."""

    job_id: str
    status: str
    percent: float
    step: int = 0
    steps: int = 0
    loss: float | None = None
    reward: float | None = None
    doing: str = ""


class ValidationView(Struct, frozen=True):
    """The validation that runs, or the last one."""

    model_id: str
    verdict: str
    """running, pass, fail, inconclusive"""
    done: int
    of: int
    sentence: str = ""


class CanaryView(Struct, frozen=True):
    """The rollout that is under way, or the last one."""

    model_id: str
    state: str
    """ramping, promoted, rolled_back …"""
    percent: float
    steps: tuple[int, ...]
    """The ramp, such as 10, 25, 50, 100."""
    sentence: str = ""


class View(Struct, frozen=True):
    """All of it."""

    title: str
    second: float
    clock: str
    """The loop's own time, sped up: `Tue 14:20`."""
    speed: int
    chapter: str
    """What the story is at, in a sentence."""
    stages: tuple[Stage, ...] = ()
    earned: tuple[ModelScores, ...] = ()
    """One for each model, the oldest first."""
    traffic: dict[str, float] = {}
    """Model → percent."""
    baseline: str = ""
    job: JobView | None = None
    proof: ValidationView | None = None
    canary: CanaryView | None = None
    log: tuple[Line, ...] = ()
    """The newest last."""
    page: str = ""
    """The address of the loop's web page; empty: it has none."""
