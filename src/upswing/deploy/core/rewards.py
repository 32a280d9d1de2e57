"""Is the candidate worth less than the baseline beside it, by how much, and how sure is that?

Candidate and baseline rewards come interleaved, at 5 % or at 50 %, while the means of both may drift
together. Only neighbours are compared. Each candidate reward bets that it lies below the usual value m,
with a stake λ; the baseline rewards around it bet the opposite, with small stakes w·λ, until the stakes
are equal: then the *round* is settled. Its wealth factor is

    Π (1 − λ (y − m))  over candidates  ×  Π (1 + λ w (y − m))  over baselines,    Σ w = number of candidates

Whatever the common mean μ is, the expected factor is at most exp(−λ (μ − m) (candidates − Σ w)) = 1, and
less when the candidate is better: a fair bet against "no worse", for bounded rewards of any distribution,
any share, and any drift that is slow beside a round (some ten requests). λ and m are fixed at the round's
begin, from what came before; w follows from who came when, never from the rewards. λ is the best stake against a fall of twice the limit, given
the variance so far (the betting of Waudby-Smith and Ramdas).

The same rounds, with stakes ν that suit the limit, give a confidence sequence for the difference. It has
a closed form because log(1 + ν x) ≥ ν x + (log(1 − ν) + ν) x² for x ≥ −1 (Fan): (centre ± (width +
log 1/α)) / size.

Rewards come late, and shares change. So an episode is compared only with those that began under the same
shares (its *step*): whatever the delay is, it is then the same for both sides. Each step has rounds of its own,
and all bet with one wealth.

A reward that is missing or no number is counted as missing. One outside [0, 1] counts as the nearest end:
leaving it out would hide a candidate that earns −5 now and then.
"""

from __future__ import annotations

from math import isfinite, log, log1p

from msgspec import Struct, field

from upswing.deploy.core.sequential_test import SequentialTest

_SPREAD = 1.5
"""Baseline stakes are so much larger than the shares ask for, so that rounds are settled soon."""
_LARGEST = 1.5
"""The largest stake of one baseline reward, in candidates."""
_WAITING = 4.0
"""Candidate stakes that wait for baseline rewards at most. Then no more candidates are bet on until the
round is settled, and each that comes doubles the baseline's stakes: the shares must have changed."""
_FAR = 0.9
"""Of the wealth, what a single reward can take away at most."""
_CALM = 0.5
"""The largest stake of the confidence sequence."""
MEMORY = 200
"""Rewards that the usual value, and the candidate's share, are the means of."""
_LONG = 500
"""Rewards that the variance is the mean of."""


_STEPS = 16
"""Steps whose rounds are kept open; what comes later for an older one begins anew."""


class BettingRound(Struct):
    """Bets of one step that are not settled yet."""

    stake: float = 0.0
    calm: float = 0.0
    """The stake for the confidence sequence."""
    middle: float = 0.5
    share: float = 1.0
    """The stake of one baseline reward, in candidates."""
    most: float = 1.0
    """What it may grow to when candidates have to wait."""
    full: bool = False
    open: float = 0.0
    """Candidates that no baseline rewards stand against; negative: the other way round."""
    growth: float = 0.0
    candidates: int = 0
    difference: float = 0.0
    noise: float = 0.0
    noise_beside: float = 0.0
    seen: int = 0
    """Rewards of this step."""
    pace: float = 1 / 3
    """The candidate's share of them lately."""


class RewardEvidence(Struct):
    """All that is remembered of the rewards of a rollout."""

    drop: float = 0.05
    """The fall that matters."""
    seq: int = 0
    """The newest sequence number that was looked at."""
    candidates: int = 0
    baselines: int = 0
    missing: int = 0
    """Of the candidate's rewards, those that are not there or no numbers."""
    mean_candidate: float = 0.5
    mean_baseline: float = 0.5
    variance: float = 0.1
    rounds: dict[str, BettingRound] = field(default_factory=dict)
    """By step."""
    worse: SequentialTest = field(default_factory=SequentialTest)
    settled: int = 0
    """Candidate rewards that baseline rewards stand against."""
    difference_sum: float = 0.0
    run_settled: int = 0
    run_sum: float = 0.0
    centre: float = 0.0
    size: float = 0.0
    width: float = 0.0

    def observe(
        self, seq: int, reward: float | None, *, candidate: bool, revision: int = 1, step: str = ""
    ) -> bool:
        """Take one reward; False when it does not count: known, a later revision, or no number."""
        if seq <= self.seq:
            return False
        self.seq = seq
        if revision != 1:
            return False
        if reward is None or not isfinite(reward):
            self.missing += candidate
            return False
        y = 0.0 if reward < 0 else 1.0 if reward > 1 else reward
        now = self._round(step)
        if now.open == 0:
            self._begin(now)
        if candidate:
            self._candidate(now, y)
        else:
            self._baseline(now, y)
        now.seen += 1
        now.pace += (candidate - now.pace) / (now.seen + 3 if now.seen < MEMORY else MEMORY)
        if now.open == 0:
            self._close_round(now)
        return True

    def _round(self, step: str) -> BettingRound:
        if (found := self.rounds.get(step)) is None:
            while len(self.rounds) >= _STEPS:
                self.rounds.pop(next(iter(self.rounds)))
            found = BettingRound()
        else:
            del self.rounds[step]
        self.rounds[step] = found  # those in use are kept
        return found

    @property
    def difference(self) -> float | None:
        """Candidate minus baseline, neighbours compared; None: nothing is compared yet."""
        return self.difference_sum / self.settled if self.settled else None

    @property
    def run_difference(self) -> float | None:
        """The same since the bets began to win."""
        return self.run_sum / self.run_settled if self.run_settled else None

    def lower(self, chance: float) -> float:
        """The difference lies above this, at all times, except with this chance; −1: nothing known."""
        if not self.size > 0:
            return -1.0
        end = (self.centre - self.width + log(chance)) / self.size
        return end if end > -1 else -1.0

    def upper(self, chance: float) -> float:
        """The difference lies below this, at all times, except with this chance; 1: nothing known."""
        if not self.size > 0:
            return 1.0
        end = (self.centre + self.width - log(chance)) / self.size
        return end if end < 1 else 1.0

    def _candidate(self, now: BettingRound, y: float) -> None:
        if now.full or now.open > _WAITING - 1:
            now.full, now.share = True, min(2 * now.share, now.most)
        else:
            off = y - now.middle
            now.growth += log1p(-now.stake * off)
            now.candidates += 1
            now.difference += y
            now.noise += off * off
            now.open += 1
        self.candidates = n = self.candidates + 1
        off = y - self.mean_candidate
        self.mean_candidate += off / (n + 3 if n < MEMORY else MEMORY)
        seen = n + self.baselines
        self.variance += (off * off - self.variance) / (seen + 10 if seen < _LONG else _LONG)

    def _baseline(self, now: BettingRound, y: float) -> None:
        opened = now.open
        room = opened if opened > 0 else opened + 1
        part = min(now.share, room)
        if part > 0:
            off = part * (y - now.middle)
            now.growth += log1p(now.stake * off)
            now.difference -= part * y
            now.noise_beside += off * off
            now.open = opened - part if part < room else 0.0 if opened > 0 else -1.0
        self.baselines = n = self.baselines + 1
        off = y - self.mean_baseline
        self.mean_baseline += off / (n + 3 if n < MEMORY else MEMORY)
        seen = n + self.candidates
        self.variance += (off * off - self.variance) / (seen + 10 if seen < _LONG else _LONG)

    def _begin(self, now: BettingRound) -> None:
        ratio = now.pace / max(1 - now.pace, 1e-6)
        now.share = share = min(_LARGEST, max(0.02, _SPREAD * ratio))
        now.most = most = max(1.0, share)
        now.middle = middle = self.mean_baseline
        spread = self.variance * (1 + share)
        aim = 2 * self.drop
        now.stake = min(aim / (spread + aim * aim), _FAR / max(1 - middle, most * middle))
        now.calm = min(self.drop / (spread + self.drop * self.drop), _CALM)

    def _close_round(self, now: BettingRound) -> None:
        if self.worse.bet(now.growth):
            self.run_settled, self.run_sum = 0, 0.0
        self.run_settled += now.candidates
        self.run_sum += now.difference
        self.settled += now.candidates
        self.difference_sum += now.difference
        beside = _price(now.calm * now.share) / (now.share * now.share)
        self.centre += now.calm * now.difference
        self.size += now.calm * now.candidates
        self.width += _price(now.calm) * now.noise + beside * now.noise_beside
        now.growth = now.difference = now.noise = now.noise_beside = 0.0
        now.candidates, now.full = 0, False


def _price(stake: float) -> float:
    """What a squared deviation costs at this stake; about stake²/2 while it is small."""
    return -log1p(-stake) - stake
