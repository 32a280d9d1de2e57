"""Does a loss hide in a mean? The same test for parts of the traffic, and for what the mean hardly weighs.

| guard              | compares                                                     | fails at a fall of   |
|--------------------|--------------------------------------------------------------|----------------------|
| task completion    | how far tasks were completed, alone                          | twice the limit      |
| worst outcomes     | the share of episodes that earn more than next to nothing    | twice the limit      |
| a segment          | the rewards of one domain, agent type or declared segment    | twice the limit      |
| everything smaller | the rewards of all segments of its kind that are not followed | twice the limit     |

A segment is followed by itself once it has come ten times, the first ten of each kind; so the largest are.
Which they are follows from who came, never from what was earned, so each guard is a fair bet of its own. The
chance of a false alarm is shared out among all there can be.
"""

from __future__ import annotations

from msgspec import Struct, field

from upswing.deploy.core.limits import RolloutLimits
from upswing.deploy.core.rewards import RewardEvidence
from upswing.deploy.core.rows import ObservedReward

COMPLETION, WORST = "task completion", "the share of worst outcomes"
_WORST = 0.1
"""Rewards up to this are the worst outcomes."""
_FOLLOWED, _FIRST, _KNOWN = 10, 10, 500
"""Segments of a kind that are followed, episodes before one is, and names of a kind that are remembered."""
_KINDS = 3
_MOST = 2 + _KINDS * (_FOLLOWED + 1)
"""Guards that there can be."""
_WIDER = 2.0
_DOUBTFUL = 2.0
"""Odds from which on a guard is waited for, times the guards there are."""
_GONE = 500
"""Rows without one of its own after which a guard is not waited for."""


def guard_drop(limit: float) -> float:
    """The fall that matters to a guard, where `limit` matters to the whole."""
    return min(0.5, _WIDER * limit)


class SegmentGuards(Struct):
    """It changes in place, like the evidence that it belongs to."""

    tests: dict[str, RewardEvidence] = field(default_factory=dict)
    came: dict[str, dict[str, int]] = field(default_factory=dict)
    """By kind: how often each segment has come that is not followed yet."""
    rows: int = 0
    last: dict[str, int] = field(default_factory=dict)
    """Guard → the row that it saw last."""

    def observe(self, row: ObservedReward, *, candidate: bool, limit: float) -> None:
        """Take one episode; `limit` is the fall of the whole that matters."""
        self.rows += 1
        total = row.raw_total
        self._bet(COMPLETION, row, row.completion, candidate, limit)
        self._bet(WORST, row, None if total is None else float(total > _WORST), candidate, limit)
        for segment in row.segments:
            self._bet(self._tracked_segment(segment), row, total, candidate, limit)

    def failing(self, limits: RolloutLimits) -> tuple[str, RewardEvidence] | None:
        """A guard that has seen too great a loss, not by chance."""
        chance = limits.guard_chance / _MOST
        for name, test in self.tests.items():
            if test.worse.rejects_null(chance) and (test.run_difference or 0.0) <= -test.drop:
                return name, test
        return None

    def losing_guard(self) -> tuple[str, RewardEvidence] | None:
        """A guard that is losing and has not settled whether that is chance; not one that comes no more."""
        odds = _DOUBTFUL * max(1, len(self.tests))
        for name, test in self.tests.items():
            comes = self.rows - self.last.get(name, 0) < _GONE
            if comes and test.worse.wealth >= odds and (test.run_difference or 0.0) <= -test.drop:
                return name, test
        return None

    def _bet(
        self, name: str, row: ObservedReward, value: float | None, candidate: bool, limit: float
    ) -> None:
        if value is None:
            return
        test = self.tests.get(name)
        if test is None:
            test = self.tests[name] = RewardEvidence(drop=guard_drop(limit))
        test.observe(row.seq, value, candidate=candidate, step=row.step)
        self.last[name] = self.rows

    def _tracked_segment(self, segment: str) -> str:
        """The guard of a segment: its own, or that of all the smaller ones of its kind."""
        if segment in self.tests:
            return segment
        kind = next(
            each for each in ("domain", "agent type", "segment") if segment.startswith(each)
        )
        pooled = f"any other {kind}"
        came = self.came.setdefault(kind, {})
        if segment in came or len(came) < _KNOWN:
            came[segment] = came.get(segment, 0) + 1
        own = sum(name.startswith(f"{kind} ") for name in self.tests)
        if came.get(segment, 0) > _FIRST and own < _FOLLOWED:
            del came[segment]
            return segment
        return pooled
