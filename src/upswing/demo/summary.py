"""What came out of a run of the demo? The numbers for people and for scripts."""

from __future__ import annotations

from msgspec import Struct

from upswing.demo.view import Line


class HeldOut(Struct, frozen=True):
    """The score on held-out tasks, with its interval."""

    model_id: str
    mean: float
    low: float
    high: float
    tasks: int


class ModelLine(Struct, frozen=True):
    """A model that took part."""

    model_id: str
    parent: str | None
    state: str
    """promoted, rolled_back, refused, base …"""
    sentence: str
    """Why it is in that state."""
    validated: float | None = None
    """Improvement that validation measured."""


class Summary(Struct, frozen=True):
    """`--summary FILE` is this as JSON."""

    world: str
    model: str
    seed: int
    heldout_before: float
    heldout_before_interval: tuple[float, float]
    heldout_after: float
    heldout_after_interval: tuple[float, float]
    heldout_tasks: int
    improved: bool
    """Whether the interval of the difference lies above zero."""
    difference: float
    difference_interval: tuple[float, float]
    measured: tuple[HeldOut, ...]
    """Every measurement on the held-out tasks, in the order of the run."""
    rolled_back: tuple[str, ...]
    """Models that the loop rolled back."""
    taken_back_seconds: float | None
    """Real time from the sabotaged model's first answer to the last share taken from it."""
    seconds: float
    stages: dict[str, float]
    """Stage → seconds of real time; `first_improved` is when the first better model had all traffic."""
    models: tuple[ModelLine, ...]
    episodes: int
    peak_memory_gb: float | None
    files: dict[str, str]
    """What is where: `data`, `report`, `charts`, `log`."""
    decisions: tuple[Line, ...]
    sentence: str
    """The result in words."""
