"""Do users complain more about the candidate than about the baseline of the same period?

Complaints come late, and many users only ever speak when they are unhappy. So only complaints are
counted, one per trajectory, each with the share of traffic that the candidate had when that trajectory
began. If users are equally unhappy with both, a complaint is about the candidate with exactly that
probability, whenever it comes in. The bet is that it is so with three times the odds; a candidate is
failing when that wins and complaints are at least twice as frequent as the baseline's.
"""

from __future__ import annotations

from math import log

from msgspec import Struct, field

from upswing.deploy.core.sequential_test import SequentialTest

_BOLDER = 1.5
"""The bet is on so many times the factor that matters."""


class ComplaintEvidence(Struct):
    """All that is remembered of the complaints of a rollout."""

    factor: float = 2.0
    """How many times the baseline's rate matters."""
    seq: int = 0
    """The newest sequence number that was looked at."""
    pending: list[int] = field(default_factory=list, name="aside")
    """Up to that, those whose trajectory is not known yet: they do not hold up the others."""
    candidate: int = 0
    baseline: int = 0
    more: SequentialTest = field(default_factory=SequentialTest)
    run_candidate: int = 0
    run_expected: float = 0.0
    """Complaints about the candidate that the baseline's let expect, since the bets began to win."""

    def observe(self, seq: int, *, candidate: bool, share: float) -> bool:
        """Take a trajectory's first complaint; False when it does not count.

        Where only one model had traffic there is nothing to compare: such a share is passed over.
        """
        if seq in self.pending:
            self.pending.remove(seq)
        elif seq <= self.seq:
            return False
        self.seq = max(self.seq, seq)
        if not 0.001 <= share <= 0.999:
            return False
        odds = _BOLDER * self.factor
        feared = odds * share / (1 - share + odds * share)
        growth = log(feared / share) if candidate else log((1 - feared) / (1 - share))
        if self.more.bet(growth):
            self.run_candidate, self.run_expected = 0, 0.0
        if candidate:
            self.candidate += 1
            self.run_candidate += 1
        else:
            self.baseline += 1
            self.run_expected += share / (1 - share)
        return True

    @property
    def ratio(self) -> float:
        """How many times as frequent as the baseline's, drawn a little toward 1."""
        return (self.run_candidate + 1) / (self.run_expected + 1)
