"""A model was promoted: does it still hold up against the one before it?

A share of the episodes, the *holdback*, stays with the model before it for the days in which it is watched. Both
are then compared by the canary's own test, with the roles turned: the holdback is the small side, as a canary is,
and a reward y counts as 1 − y. So "the holdback is worse" reads "the promoted model is", by the same amount, and the
few rewards of the small side are all used.

| what is seen                                                         | answer                    |
|----------------------------------------------------------------------|---------------------------|
| it earns less than the holdback, not by chance, by the limit or more | RollBack                  |
| users keep their model, and they are too few                         | nothing                   |
| fewer episodes of one of the two come back than were drawn           | nothing, and that is said |
| anything else                                                        | nothing                   |

| a promotion                               | holdback                     |
|-------------------------------------------|------------------------------|
| by a proof, an approval or a policy       | yes, until the days are over |
| by an operator's 100 %                    | none                         |
| of the model before, after a rollback     | none                         |
| after a model that is withdrawn since     | none                         |

It ends when the next canary begins.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct, field

from upswing.deploy.core.health import earns_less, format_odds
from upswing.deploy.core.limits import RolloutLimits
from upswing.deploy.core.missing_episodes import LostEpisodes
from upswing.deploy.core.rewards import RewardEvidence
from upswing.deploy.core.sample_ratio import SampleRatio


class Holdback(Struct, frozen=True):
    """Who keeps a share beside a promoted model."""

    model_id: str
    share: float
    until: datetime
    """By the clock of ramps."""


class HoldbackEvidence(Struct):
    """It changes in place, like the watch that it belongs to."""

    model_id: str
    rewards: RewardEvidence = field(default_factory=RewardEvidence)
    by_user: bool = False
    """Its rewards are those of users, one each."""
    ratio: SampleRatio = field(default_factory=SampleRatio)
    """Of what chance gave to the two, what came back."""
    lost: LostEpisodes = field(default_factory=LostEpisodes)
    """Of that, what cannot be compared."""

    def observe(
        self, seq: int, reward: float | None, *, held: bool, step: str = "", by_user: bool = False
    ) -> bool:
        """Take one reward, of the holdback or of the promoted model."""
        self.by_user |= by_user
        turned = None if reward is None else 1.0 - reward
        return self.rewards.observe(seq, turned, candidate=held, step=step)

    @property
    def difference(self) -> float | None:
        """Promoted model minus holdback, neighbours compared; None: nothing is compared yet."""
        return self.rewards.difference

    def failing(self, limits: RolloutLimits) -> str | None:
        """Why the promoted model is worse, as a sentence; None: it is not, or nobody can say."""
        rewards = self.rewards
        if self.ratio.mismatch() is not None:
            return None
        if self.by_user and rewards.candidates + rewards.baselines < limits.min_users:
            return None
        if not earns_less(rewards, limits, downward_bias=self.lost.downward_bias(rewards)):
            return None
        return (
            f"It earns {-(rewards.run_difference or 0.0):.3f} less than {self.model_id} beside it, over "
            f"{rewards.run_settled} rewards of that: more than {rewards.drop:g}, and not by chance "
            f"(odds of {format_odds(rewards.worse.wealth)})."
        )

    @property
    def mismatch_sentence(self) -> str:
        """Why nothing can be said of the two, as a sentence; empty: nothing is lost."""
        if (lost := self.ratio.mismatch()) is None:
            return ""
        whose, came, drawn = lost
        name = self.model_id if whose == "candidate" else "the promoted model"
        return (
            f"Sample ratio mismatch: {came} episodes of {name} came back where {drawn} were drawn, so it is not "
            "compared with the model before it."
        )


def begin_holdback(
    model_id: str, limits: RolloutLimits, *, reward_seq: int = 0
) -> HoldbackEvidence:
    """Nothing seen yet."""
    return HoldbackEvidence(model_id, RewardEvidence(drop=limits.reward, seq=reward_seq))
