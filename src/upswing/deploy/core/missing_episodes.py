"""Episodes came back and cannot be compared: what may that hide?

An episode that a second model had to finish, because its own failed or the lease ran out, or whose last request got no
answer, is nobody's reward. Such losses may have one arm only, and may be its worst episodes, or its best. So what one
arm has lost beyond the other counts as the worst, or the best, that it may have been:

    flatters = (c − b)⁺ · mean of the candidate + (b − c)⁺ · (1 − mean of the baseline)
    blames   = (b − c)⁺ · mean of the baseline  + (c − b)⁺ · (1 − mean of the candidate)

with c and b the shares that candidate and baseline have lost. A proof has to hold without what may flatter, and a
failure has to be as large as matters without what may blame. What both lose alike says nothing of either.
"""

from __future__ import annotations

from msgspec import Struct

from upswing.deploy.core.rewards import RewardEvidence


class LostEpisodes(Struct):
    """It changes in place, like the evidence that it belongs to."""

    candidate: int = 0
    baseline: int = 0

    def observe(self, *, candidate: bool) -> None:
        self.candidate += candidate
        self.baseline += not candidate

    def upward_bias(self, rewards: RewardEvidence) -> float:
        """By how much the candidate may look better than it is.

        >>> rewards = RewardEvidence(candidates=90, baselines=100, mean_candidate=0.6)
        >>> round(LostEpisodes(candidate=10).upward_bias(rewards), 3), LostEpisodes().upward_bias(rewards)
        (0.06, 0.0)
        """
        more = self._more(rewards)
        return max(0.0, more) * _share(rewards.mean_candidate) + max(0.0, -more) * (
            1 - _share(rewards.mean_baseline)
        )

    def downward_bias(self, rewards: RewardEvidence) -> float:
        """By how much it may look worse."""
        more = self._more(rewards)
        return max(0.0, -more) * _share(rewards.mean_baseline) + max(0.0, more) * (
            1 - _share(rewards.mean_candidate)
        )

    def _more(self, rewards: RewardEvidence) -> float:
        """The share that the candidate has lost beyond the baseline."""
        return _part(self.candidate, rewards.candidates) - _part(self.baseline, rewards.baselines)


def _part(lost: int, left: int) -> float:
    return lost / (lost + left) if lost else 0.0


def _share(mean: float) -> float:
    return min(1.0, max(0.0, mean))
