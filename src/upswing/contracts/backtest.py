"""What would another policy have decided? What stages say of one decision, and what a backtest reports.

A *difference* is a decision that comes out otherwise under the changed policy, on the same inputs. An *effect* is
what would have followed from it, which nobody saw: it is modelled, and says so.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import Struct

RolloutEnd = Literal["promoted", "rolled_back", "open", "not_begun", "unknown"]
"""`open`: the journal ends before it is decided. `unknown`: nobody can say how it would have gone."""


class ReplayedDecision(Struct, frozen=True):
    """What a decision comes to: an action in a word, its detail, and the sentence for a reader."""

    action: str
    detail: str = ""
    sentence: str = ""

    def decides_like(self, other: ReplayedDecision) -> bool:
        """Whether both say the same, in whatever words."""
        return (self.action, self.detail) == (other.action, other.detail)


class PolicyReplay(Struct, frozen=True):
    """One journalled decision under the policy of its time, and under the changed one."""

    about: str
    """The model that it is about; empty: none."""
    then: ReplayedDecision
    now: ReplayedDecision
    as_journalled: bool = True
    """Today's rules decide under the policy of its time what the journal says."""

    @property
    def same(self) -> bool:
        return self.then.decides_like(self.now)


class DecisionDifference(Struct, frozen=True):
    """A decision that comes out otherwise."""

    decision_id: str
    decided: datetime
    stage: str
    kind: str
    about: str
    then: ReplayedDecision
    now: ReplayedDecision
    acts: bool
    """Something else is done; False: only the reason differs."""


class ModelledEnd(Struct, frozen=True):
    """How a rollout ends, and when."""

    ended: RolloutEnd
    at: datetime | None = None
    episodes: int | None = None
    """Scored episodes of the candidate until then; None: nobody can say."""
    reason: str = ""


class RolloutEffect(Struct, frozen=True):
    """What the changed policy would have made of one rollout."""

    rollout_id: str
    model_id: str
    then: ModelledEnd
    now: ModelledEnd
    hours: float | None
    """Later (positive) or earlier (negative) to the same end; None: the ends differ, or nobody can say."""
    episodes: int | None
    """Episodes more (positive) or fewer (negative) that the candidate would have had."""
    difference: float | None
    """Reward of the candidate minus the baseline's, as last seen."""
    sentence: str


class TrainingEffect(Struct, frozen=True):
    """How often the changed policy would have trained."""

    journalled: int
    """Jobs that the journal has."""
    then: int
    """Jobs that the model of the past has under the policy of its time."""
    now: int
    """Jobs that it has under the changed one."""
    first_then: datetime | None
    first_now: datetime | None
    sentence: str


class StageCount(Struct, frozen=True):
    """How the decisions of a stage came out."""

    stage: str
    replayed: int
    differ: int
    acts: int
    """Of these, those in which something else is done."""


class UnreadableEntries(Struct, frozen=True):
    """Journal entries that cannot be replayed, by what is wrong with them."""

    sentence: str
    count: int
    examples: tuple[str, ...]
    """Ids of the first."""


class PolicyKnob(Struct, frozen=True):
    """A knob that the changed policy names."""

    name: str
    value: str
    note: str = ""
    """Why it is not replayed; empty: it is."""


class BacktestCost(Struct, frozen=True):
    """What the changed policy would have cost (positive) or saved (negative), all in all."""

    training_jobs: int
    worse_episodes: int
    """Episodes answered by a model that earned less than the one beside it."""
    hours_to_promotion: float
    """Over all rollouts that are promoted under both policies."""
    promotions: int
    """Promotions more or fewer."""
    rollbacks: int


class BacktestReport(Struct, frozen=True):
    """The whole."""

    since: datetime
    until: datetime
    decisions: int
    """Journal entries in that time."""
    knobs: tuple[PolicyKnob, ...]
    stages: tuple[StageCount, ...]
    differences: tuple[DecisionDifference, ...]
    """The oldest first, of each stage no more than are shown."""
    shown: int
    total: int
    cost: BacktestCost
    training: TrainingEffect | None
    rollouts: tuple[RolloutEffect, ...]
    unreadable: tuple[UnreadableEntries, ...]
    ruled_otherwise: int
    """Decisions that today's code makes otherwise, whatever the policy; `upswing explain` shows one."""
    truncated: bool
    """There are more decisions than a backtest takes: the newest were replayed."""
    summary: str
    notes: tuple[str, ...] = ()
