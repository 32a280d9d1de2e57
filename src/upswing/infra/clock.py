"""What time is it, on a machine whose clock may be set while we run?

The wall's time when the process began, and what has passed since by a clock that nobody sets. So a
wall clock that jumps by a day lengthens and shortens nothing here: no step of a ramp, no lease, no
wait. The next process begins with the wall's time again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

log = logging.getLogger(__name__)
_JUMP = timedelta(minutes=1)
"""What is worth a word; less than that is how clocks are corrected every day."""
_PASSING = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""It goes on while a machine sleeps."""


def wall_time() -> datetime:
    """What the machine's clock shows."""
    return datetime.now(UTC)  # noqa: TID251 - here is where time comes from


def monotonic_seconds() -> float:
    """Seconds, counted from anywhere; nobody sets this clock."""
    return time.clock_gettime(_PASSING)


class SteadyClock:
    """Time that only passes.

    >>> from itertools import count
    >>> jumps = iter([datetime(2026, 1, 5), datetime(2026, 1, 4), datetime(2026, 1, 6)])
    >>> clock = SteadyClock(lambda: next(jumps), count().__next__)
    >>> clock(), clock()
    (datetime.datetime(2026, 1, 5, 0, 0, 1), datetime.datetime(2026, 1, 5, 0, 0, 2))
    """

    def __init__(
        self,
        wall: Callable[[], datetime] = wall_time,
        passing: Callable[[], float] = monotonic_seconds,
    ) -> None:
        self._wall, self._passing = wall, passing
        self._start, self._began = wall(), passing()
        self._apart = timedelta()

    def __call__(self) -> datetime:
        now = self._start + timedelta(seconds=self._passing() - self._began)
        apart = self._wall() - now
        if abs(apart - self._apart) > _JUMP:
            self._apart = apart
            log.warning(
                "the machine's clock was set: it shows %s %s than this process counts, whose time goes on",
                timedelta(seconds=round(abs(apart).total_seconds())),
                "more" if apart > timedelta() else "less",
                extra={"action": "clock_set"},
            )
        return now
