"""How did the evidence of a rollout grow? Points for a drawing of an interval that shrinks.

A point is kept whenever there are a fiftieth more rewards than at the last one, or the share has changed: each of the
first fifty, then ever fewer; 10,000 rewards leave some 300 points.
"""

from __future__ import annotations

from datetime import datetime
from math import isfinite

from upswing.deploy.core.health import canary_figures
from upswing.deploy.core.limits import RolloutLimits
from upswing.deploy.core.record import RolloutRecord
from upswing.deploy.core.rows import EvidencePoint

_GROWTH = 50
"""A point for every part of this size."""


def next_point(
    rollout_id: str, record: RolloutRecord, limits: RolloutLimits, now: datetime
) -> EvidencePoint | None:
    """The point that is due, which the record then remembers; None: none is."""
    if record.evidence is None:
        return None
    rewards = record.evidence.rewards.candidates
    share = record.shares[-1].share if record.shares else 0.0
    if share == record.drawn_share and rewards < record.drawn + max(1, record.drawn // _GROWTH):
        return None
    record.drawn, record.drawn_share = rewards, share
    figures = canary_figures(record.evidence, limits)
    return EvidencePoint(
        rollout_id,
        now,
        share,
        figures.rewards,
        figures.difference,
        _finite(figures.lower),
        _finite(figures.upper),
        figures.requests,
        round(figures.error_share * figures.requests),
    )


def _finite(bound: float) -> float | None:
    return bound if isfinite(bound) else None
