"""What does every view of a trajectory's worth look like? A score in [0, 1] with its reasons."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

Source = Literal["automated", "human", "linter", "test_results", "benchmark"]


@dataclass(frozen=True, slots=True)
class Score:
    """One component: how good, who says so, why, and on what evidence."""

    value: float
    """In [0, 1]."""
    source: Source
    reasoning: str
    """A sentence that a person can read."""
    raw_data: dict[str, Any] = field(default_factory=dict)
    confidence: float = 1.0
    """1 when it was reported, less when it had to be derived."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.value <= 1.0 or not math.isfinite(self.value):
            raise ValueError(f"a score lies in [0, 1], not at {self.value}")
