"""Is something wrong around the loop? The facts that metrics and alerts share, and where each becomes trouble.

| condition            | trouble when                                                                    |
|----------------------|---------------------------------------------------------------------------------|
| bus                  | it is not connected; or its server may lose what it acknowledged                |
| gateway              | the loop's own does not answer                                                  |
| model server         | it does not answer                                                              |
| disk                 | less is free than `DiskSpace.needed_bytes`                                      |
| training             | the newest `FAILURES` jobs that ended have all failed                           |
| judge                | its budget does not allow the next question                                     |
| drift                | the baseline earns less than it did at first, by more than the limit and chance |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite

from upswing.records import JudgeUse

FAILURES = 3
"""Training jobs that fail one after the other before a person is called: one may be bad luck."""
LEAST_FREE_BYTES = 64 * 1024 * 1024
"""Of any disk: with less, the store refuses what arrives."""
FREE_SHARE = 0.1
"""Of a disk that should stay free …"""
FREE_BYTES = 10 * 1000**3
"""… up to so much: a tenth of a large disk is not nearly full."""
ERRORS = 3.0
"""Standard errors that a fall must have: a look every minute would find two of them by chance."""


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """The disk below one of our folders."""

    name: str
    """`data` or `models`."""
    free_bytes: int
    size_bytes: int

    @property
    def needed_bytes(self) -> float:
        """What should be free."""
        return max(LEAST_FREE_BYTES, min(FREE_SHARE * self.size_bytes, FREE_BYTES))

    @property
    def nearly_full(self) -> bool:
        """Whether less is free than should be.

        >>> DiskSpace("data", 20 * 1000**3, 4000 * 1000**3).nearly_full
        False
        >>> DiskSpace("data", 9 * 1000**3, 100 * 1000**3).nearly_full
        True
        """
        return not self.free_bytes >= self.needed_bytes


@dataclass(frozen=True, slots=True)
class RewardDrift:
    """What the baseline earns now beside what it earned at first; both are means of raw rewards."""

    model_id: str
    mean: float
    reference: float
    error: float
    """The standard error of the difference."""
    least: float
    """The smallest fall that matters."""

    @property
    def drop(self) -> float:
        return self.reference - self.mean

    @property
    def limit(self) -> float:
        """From here on a fall is neither small nor chance."""
        return max(self.least, ERRORS * self.error)

    @property
    def significant(self) -> bool:
        """Whether it has fallen.

        >>> RewardDrift("m", 0.5, 0.7, 0.02, 0.1).significant, RewardDrift("m", 0.5, 0.7, 0.1, 0.1).significant
        (True, False)
        """
        known = all(map(isfinite, (self.mean, self.reference, self.error)))
        return known and round(self.drop - self.limit, 9) >= 0


@dataclass(frozen=True, slots=True)
class LoopConditions:
    """Everything that was read last; None: there is no such part here, or nobody says."""

    bus_connected: bool = False
    bus_sync_always: bool | None = None
    """Whether the bus's server fsyncs before it acknowledges."""
    model_server_answers: bool | None = None
    disks: tuple[DiskSpace, ...] = ()
    active_jobs: Mapping[str, int] = field(default_factory=dict)
    """Training jobs that are `queued` and `running`."""
    failed_jobs_in_a_row: int = 0
    judge: JudgeUse | None = None
    drift: RewardDrift | None = None
    gateway_answers: bool | None = None
    """The loop's own."""

    @property
    def training_fails(self) -> bool:
        return self.failed_jobs_in_a_row >= FAILURES


def failures_in_a_row(ended: Iterable[str]) -> int:
    """How many jobs failed since the last success, by the states of those that ended, the newest first.

    A job that somebody cancelled says nothing of training.

    >>> failures_in_a_row(["failed", "cancelled", "failed", "completed", "failed"])
    2
    """
    count = 0
    for state in ended:
        if state == "completed":
            break
        count += state == "failed"
    return count
