"""By which steps does a canary grow, how long does each last at least, and how much must it have seen?

With the usual four hours:

| share | begins at | lasts at least | sees at least |
|-------|-----------|----------------|---------------|
| 10 %  | 0         | 60 min         | 50 rewards    |
| 25 %  | +60 min   | 60 min         | 100 rewards   |
| 50 %  | +120 min  | 120 min        | 200 rewards   |
| 100 % | +240 min  |                |               |

A canary from 5 % has one step more before them: 60 minutes and 25 rewards. The hours are a lower
bound, for where little happens the samples take longer. An initial share of its own takes the place
of the highest usual step that is not above it: from 20 % it goes on to 25 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct


class CanaryStep(Struct, frozen=True):
    """One share of the traffic, and what has to pass before the next."""

    share: float
    dwell: timedelta
    sample: int
    """Rewards of the candidate's trajectories, counted from the step's begin."""


HOURS = 4.0
_USUAL = ((0.05, 0.25, 25), (0.10, 0.25, 50), (0.25, 0.25, 100), (0.50, 0.50, 200))
"""Share, part of the ramp's hours, sample."""


def ramp_steps(
    initial: float = 0.10, hours: float = HOURS, samples: float = 1.0
) -> tuple[CanaryStep, ...]:
    """The steps below 100 %; `samples` scales how much each has to see.

    >>> [(step.share, int(step.dwell.total_seconds() / 60)) for step in ramp_steps()]
    [(0.1, 60), (0.25, 60), (0.5, 120)]
    >>> [step.share for step in ramp_steps(0.05)], [step.share for step in ramp_steps(0.2)]
    ([0.05, 0.1, 0.25, 0.5], [0.2, 0.25, 0.5])
    """
    if not (0 < initial <= 0.5 and 0 <= hours < float("inf") and 0 <= samples < float("inf")):
        raise ValueError(f"no ramp leads from {initial} in {hours} hours, {samples} of the samples")
    at = max((i for i, (share, _, _) in enumerate(_USUAL) if share <= initial), default=0)
    steps = [
        CanaryStep(share, timedelta(hours=hours * part), max(1, round(sample * samples)))
        for share, part, sample in _USUAL[at:]
    ]
    return (CanaryStep(initial, steps[0].dwell, steps[0].sample), *steps[1:])


def ramp_knobs(steps: Sequence[CanaryStep]) -> tuple[float, float, float] | None:
    """The initial share, hours and samples that lead to these steps; None: no ramp makes them.

    >>> ramp_knobs(ramp_steps(0.05, 6.0, 0.5))
    (0.05, 6.0, 0.5)
    """
    if not steps:
        return None
    _, part, sample = _USUAL[-1]
    hours = steps[-1].dwell / timedelta(hours=1) / part
    known = steps[0].share, hours, steps[-1].sample / sample
    try:
        return known if ramp_steps(*known) == tuple(steps) else None
    except ValueError:
        return None


def ramp_schedule(steps: Sequence[CanaryStep], start: datetime) -> list[tuple[datetime, float]]:
    """When each share comes at the earliest, 100 % last; percentages, as announcements carry them."""
    schedule: list[tuple[datetime, float]] = []
    at = start
    for step in steps:
        schedule.append((at, round(step.share * 100, 6)))
        at += step.dwell
    return [*schedule, (at, 100.0)]
