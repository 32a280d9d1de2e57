"""Does the candidate fail more often than it may, and more often than the baseline beside it?

Gateways tell cumulative counts, so telling the same twice, or an older count after a newer, changes
nothing. What is new in a tally is bet on twice:

- against the limit: that errors have a share of three times the limit (15 %) rather than of the limit;
- against the baseline: Turner, Ly and Grünwald's fair bet for two shares in the same period, which
  multiplies p(θ)/p(θ₀) over the requests of both arms; θ₀ is the mean of the two θ, weighed by requests.

Both must win. A limit that the baseline itself exceeds, or a failure that hits both at once, is not the
candidate's fault.

For failures that cannot wait, the share among the last twenty or so requests is kept as well.
"""

from __future__ import annotations

from math import log

from msgspec import Struct, field

from upswing.deploy.core.sequential_test import SequentialTest

_FADE = 0.95
"""What a request counts for after the next one: the last twenty or so make the recent share."""
_PRIOR = 20.0
"""Requests that the first guess of the baseline's error share weighs as much as."""


class RequestCounts(Struct, frozen=True):
    """Requests and, of these, errors; a fallback is an error of the model that was fallen back from."""

    requests: int = 0
    errors: int = 0

    @property
    def error_rate(self) -> float:
        return self.errors / self.requests if self.requests else 0.0

    @property
    def is_valid(self) -> bool:
        return 0 <= self.errors <= self.requests


NO_REQUESTS = RequestCounts()


class RecentErrors(Struct):
    """The share of errors lately."""

    requests: float = 0.0
    errors: float = 0.0

    @property
    def error_rate(self) -> float:
        return self.errors / self.requests if self.requests > 0 else 0.0

    def add(self, more: RequestCounts) -> None:
        """Errors of one tally count as evenly spread over it."""
        if more.requests:
            keep = _FADE**more.requests
            weight = (1 - keep) / (1 - _FADE)
            self.requests = self.requests * keep + weight
            self.errors = self.errors * keep + weight * more.error_rate


class GatewayCounts(Struct, frozen=True):
    """The newest counts of one gateway."""

    candidate: RequestCounts = NO_REQUESTS
    baseline: RequestCounts = NO_REQUESTS


class ErrorEvidence(Struct):
    """All that is remembered of the errors of a rollout."""

    limit: float = 0.05
    seen: dict[str, GatewayCounts] = field(default_factory=dict)
    candidate: RequestCounts = NO_REQUESTS
    baseline: RequestCounts = NO_REQUESTS
    recent_candidate: RecentErrors = field(default_factory=RecentErrors)
    recent_baseline: RecentErrors = field(default_factory=RecentErrors)
    above_limit: SequentialTest = field(default_factory=SequentialTest)
    above_baseline: SequentialTest = field(default_factory=SequentialTest)
    open_candidate: RequestCounts = NO_REQUESTS
    """Requests that no request of the other arm stands beside yet."""
    open_baseline: RequestCounts = NO_REQUESTS

    def count(
        self, gateway: str, candidate: RequestCounts, baseline: RequestCounts = NO_REQUESTS
    ) -> bool:
        """Take a gateway's cumulative counts; False when nothing in them is new."""
        if not (candidate.is_valid and baseline.is_valid):
            return False
        known = self.seen.get(gateway, GatewayCounts())
        counts = GatewayCounts(_later(known.candidate, candidate), _later(known.baseline, baseline))
        if counts == known:
            return False
        self.seen[gateway] = counts
        self.add(_new(known.candidate, counts.candidate), _new(known.baseline, counts.baseline))
        return True

    def add(self, candidate: RequestCounts, baseline: RequestCounts = NO_REQUESTS) -> None:
        """Take requests that nobody has counted yet."""
        self.candidate = _sum(self.candidate, candidate)
        self.baseline = _sum(self.baseline, baseline)
        self.recent_candidate.add(candidate)
        self.recent_baseline.add(baseline)
        if candidate.requests:
            self.above_limit.bet(self.growth_against_limit(candidate), candidate.requests)
        self.open_candidate = _sum(self.open_candidate, candidate)
        self.open_baseline = _sum(self.open_baseline, baseline)
        if self.open_candidate.requests and self.open_baseline.requests:
            beside = self._against_baseline(self.open_candidate, self.open_baseline)
            self.above_baseline.bet(beside, self.open_candidate.requests)
            self.open_candidate = self.open_baseline = NO_REQUESTS

    def growth_against_limit(self, counts: RequestCounts) -> float:
        """What a bet that errors have three times the limit makes of these counts, as a logarithm."""
        low, high = self.limit, min(3 * self.limit, (1 + self.limit) / 2)
        return _growth(counts, high, low)

    def _against_baseline(self, candidate: RequestCounts, baseline: RequestCounts) -> float:
        """What is feared rests on earlier tallies alone: a bet that knows its outcome is not fair."""
        earlier = _less(self.baseline, baseline)
        guess = (earlier.errors + _PRIOR * self.limit / 5) / (earlier.requests + _PRIOR)
        usual = min(max(guess, self.limit / 10), 0.9)
        feared = min(usual + 2 * self.limit, (1 + usual) / 2)
        n, beside = candidate.requests, baseline.requests
        common = (n * feared + beside * usual) / (n + beside)
        return _growth(candidate, feared, common) + _growth(baseline, usual, common)


def _growth(counts: RequestCounts, of: float, against: float) -> float:
    """The logarithm of p(told | of) / p(told | against)."""
    fine = counts.requests - counts.errors
    return counts.errors * log(of / against) + fine * log((1 - of) / (1 - against))


def _later(known: RequestCounts, counts: RequestCounts) -> RequestCounts:
    """Counts only grow; of two, the larger is the later."""
    return counts if counts.requests >= known.requests and counts.errors >= known.errors else known


def _new(known: RequestCounts, counts: RequestCounts) -> RequestCounts:
    """What came in between. An error that is told after its request counts with the next one."""
    requests, errors = counts.requests - known.requests, counts.errors - known.errors
    return RequestCounts(max(requests, errors), errors)


def _less(all_of_it: RequestCounts, part: RequestCounts) -> RequestCounts:
    return RequestCounts(all_of_it.requests - part.requests, all_of_it.errors - part.errors)


def _sum(one: RequestCounts, other: RequestCounts) -> RequestCounts:
    if not other.requests:
        return one
    return RequestCounts(one.requests + other.requests, one.errors + other.errors)
