"""What do a model's failures have in common? What an analysis of them finds and recommends."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import Struct

FailureLabel = Literal["error", "low_reward", "complaint", "any", "regressed_task"]
"""What counts as a failure: a request that its model did not answer, an episode that earned less than three in four of
the baseline's, one that a user complained about, any of these; or, in a validation, a task done worse than before."""
AnalysisSource = Literal["rollback", "validation", "request"]
"""What it was made for."""


class FailureShare(Struct, frozen=True):
    """Failures among what was seen."""

    failed: int
    seen: int

    @property
    def share(self) -> float:
        return self.failed / self.seen if self.seen else 0.0


class FailureSymptom(Struct, frozen=True):
    """What went wrong, by its kind."""

    kind: str
    count: int
    """Of the candidate's failures."""
    share: float
    baseline: int
    """Of the baseline's."""


class FailureFinding(Struct, frozen=True):
    """What failures have in common that successes have not."""

    feature: str
    """`prompt length`, `tool`, …"""
    value: str
    """`≥ 12,000 characters`, `search`, …"""
    sentence: str
    lift: float
    """How many times as often it fails there as elsewhere."""
    p_value: float
    """Of Fisher's exact test, one-sided."""
    adjusted: float
    """The same, corrected for all that was looked at."""
    there: FailureShare
    elsewhere: FailureShare
    baseline_there: FailureShare
    baseline_elsewhere: FailureShare
    shared: bool = False
    """The baseline fails there, too: it is not this model's doing."""
    goes_with: str = ""
    """The finding that explains it, where it says nothing of its own."""
    examples: tuple[str, ...] = ()
    """Failed trajectories, or tasks."""


class FailureRemedy(Struct, frozen=True):
    """What to do about it."""

    text: str
    because: str
    """What it follows from."""


class FailureAnalysis(Struct, frozen=True):
    """The whole."""

    model_id: str
    baseline_id: str
    source: AnalysisSource
    label: FailureLabel
    candidate: FailureShare
    baseline: FailureShare
    symptoms: tuple[FailureSymptom, ...]
    findings: tuple[FailureFinding, ...]
    """Ranked: those that are this model's own and stand for themselves first."""
    remedies: tuple[FailureRemedy, ...]
    looks: int
    """Comparisons that could have been significant: what is corrected for."""
    summary: str
    notes: tuple[str, ...] = ()
    rollout_id: str = ""
    about: str = ""
    """The decision, incident or validation that it was made for."""
    since: datetime | None = None
    until: datetime | None = None
    made: datetime | None = None
