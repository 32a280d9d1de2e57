"""Something happened to a rollout: how does it stand now, and who gets which share?

`step` is the whole law: a rollout, an event and a time make the next rollout, or `Conflict` when that may
not happen in this state. It neither reads a clock nor a store, so that any history can be played in
memory; what a service does is to write the result down and then make the gateway's plan from `weights`.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from upswing.contracts.model import ValidationResults
from upswing.deploy.core.canary import Canary, Hold, Promote, RollBack, SetWeight, first_canary_step
from upswing.deploy.core.events import (
    ActionDecided,
    ApproveRollout,
    BeginRollout,
    ControllerOutage,
    EndHoldback,
    PauseRollout,
    RestoreRollout,
    ResumeRollout,
    RolloutEvent,
    SuccessorPromoted,
    WithdrawRollout,
)
from upswing.deploy.core.holdback import Holdback
from upswing.deploy.core.ramp import CanaryStep, ramp_steps
from upswing.deploy.core.states import (
    MODEL_STATE_OF_ROLLOUT,
    ROLLOUT_TRANSITIONS,
    ModelState,
    RolloutState,
)
from upswing.deploy.core.strategy import CanaryStrategy, RolloutStrategy
from upswing.errors import Conflict


class Rollout(Struct, frozen=True):
    """One model's way out."""

    rollout_id: str
    """It salts the gateway's buckets, so that each rollout draws its own episodes."""
    model_id: str
    baseline_id: str
    """Who gets the rest, and all of it after a rollback."""
    validation_id: str
    """The passed validation; there is no rollout without one, except by an emergency override."""
    strategy: RolloutStrategy
    steps: tuple[CanaryStep, ...]
    created: datetime
    state: RolloutState = RolloutState.QUEUED
    share: float = 0.0
    canary: Canary | None = None
    paused_at: datetime | None = None
    approved: str | None = None
    """Who agreed to the first traffic."""
    began: datetime | None = None
    """First traffic."""
    ended: datetime | None = None
    """When it got all traffic, or lost it."""
    reason: str = ""
    """The fixed word of its end."""
    sentence: str = ""
    """Why it stands as it does."""
    override: str = ""
    """Who pushed it out without a passed validation; such a one never gets all traffic."""
    results: ValidationResults | None = None
    """What the validation found, as announcements carry it."""
    holdback: Holdback | None = None
    """Of a promoted one: who keeps a share beside it."""

    @property
    def model_state(self) -> ModelState:
        return MODEL_STATE_OF_ROLLOUT[self.state]

    @property
    def weights(self) -> dict[str, float]:
        """The shares of both, which sum to 1; once it is succeeded, its successor's count."""
        return {self.baseline_id: 1 - self.share, self.model_id: self.share}


def new_rollout(
    rollout_id: str,
    model_id: str,
    baseline_id: str,
    validation_id: str,
    strategy: RolloutStrategy,
    now: datetime,
    hours: float = 4.0,
    samples: float = 1.0,
    *,
    results: ValidationResults | None = None,
    override: str = "",
) -> Rollout:
    """A rollout that waits for its turn; `override` names who answers for a missing validation."""
    if not validation_id and not override:
        raise Conflict(f"{model_id} has no passed validation.")
    if model_id == baseline_id:
        raise Conflict(f"{model_id} is the baseline.")
    steps = (
        ramp_steps(strategy.share, hours, samples) if isinstance(strategy, CanaryStrategy) else ()
    )
    return Rollout(
        rollout_id,
        model_id,
        baseline_id,
        validation_id,
        strategy,
        steps,
        now,
        sentence=strategy.sentence,
        override=override,
        results=results,
    )


def apply_event(rollout: Rollout, event: RolloutEvent, now: datetime) -> Rollout:
    """The next rollout, or `Conflict`."""
    match event:
        case BeginRollout():
            return _begin(rollout, event.sampled, event.patience, now)
        case ApproveRollout():
            return _approve(rollout, event, now)
        case ActionDecided():
            return _decided(rollout, event, now)
        case PauseRollout():
            return _pause(rollout, event, now)
        case ResumeRollout():
            return _resume(rollout, event, now)
        case WithdrawRollout():
            after = RolloutState.REPLACED if rollout.canary else RolloutState.CANCELLED
            return _end(rollout, after, event.reason, event.sentence, now)
        case SuccessorPromoted() | RestoreRollout() | EndHoldback():
            return _apply_succession(rollout, event)
        case ControllerOutage():
            return _outage(rollout, event.lasted)
        case _:
            assert_never(event)


def _begin(rollout: Rollout, sampled: int, patience: timedelta, now: datetime) -> Rollout:
    if rollout.state not in {RolloutState.QUEUED, RolloutState.AWAITING}:
        raise _refused(rollout, RolloutState.RAMPING)
    if rollout.strategy.approval and rollout.approved is None:
        if rollout.state is RolloutState.AWAITING:
            return rollout
        return _to(rollout, RolloutState.AWAITING, sentence="It waits for a person's approval.")
    if not isinstance(rollout.strategy, CanaryStrategy):
        return _promoted(rollout, rollout.strategy.sentence, now, began=now)
    canary = first_canary_step(rollout.steps, now, patience, sampled)
    sentence = rollout.strategy.sentence
    return _to(
        rollout,
        RolloutState.RAMPING,
        canary=canary,
        share=canary.current_step.share,
        began=now,
        sentence=sentence,
    )


def _approve(rollout: Rollout, event: ApproveRollout, now: datetime) -> Rollout:
    if rollout.canary and rollout.state in {RolloutState.RAMPING, RolloutState.PAUSED}:
        sentence = f"{event.by} approved 100 %."
        return replace(rollout, canary=replace(rollout.canary, approved=True), sentence=sentence)
    agreed = replace(rollout, approved=event.by, sentence=f"{event.by} approved it.")
    if rollout.state is RolloutState.QUEUED:
        return agreed
    return _begin(agreed, event.sampled, event.patience, now)


def _decided(rollout: Rollout, event: ActionDecided, now: datetime) -> Rollout:
    action, canary = event.action, rollout.canary
    match action:
        case Hold():
            return replace(rollout, sentence=action.sentence)
        case SetWeight():
            if rollout.state is not RolloutState.RAMPING or canary is None:
                raise _refused(rollout, RolloutState.RAMPING)
            if canary.is_last_step or action.step != canary.step + 1:
                raise Conflict(
                    f"{rollout.model_id} is at step {canary.step + 1} of {len(canary.steps)}: "
                    f"step {action.step + 1} is not the next."
                )
            moved = replace(canary, step=action.step, since=now, sampled=event.sampled)
            return replace(
                rollout, canary=moved, share=moved.current_step.share, sentence=action.sentence
            )
        case Promote():
            if canary is None:
                raise _refused(rollout, RolloutState.PROMOTED)
            return _promoted(rollout, action.sentence, now)
        case RollBack():
            return _end(rollout, RolloutState.ROLLED_BACK, action.reason, action.sentence, now)
        case _:
            assert_never(action)


def _pause(rollout: Rollout, event: PauseRollout, now: datetime) -> Rollout:
    if rollout.canary is None or rollout.state not in {RolloutState.RAMPING, RolloutState.PAUSED}:
        raise _refused(rollout, RolloutState.PAUSED)
    share = rollout.share if event.share is None else event.share
    if not 0 <= share < 1:
        raise Conflict(f"A canary is held at a share from 0 up to 1, not at {share:g}.")
    return replace(
        rollout,
        state=RolloutState.PAUSED,
        share=share,
        canary=replace(rollout.canary, paused=True, held=share),
        paused_at=rollout.paused_at or now,
        sentence=f"{event.by} holds it at {share * 100:g} %.",
    )


def _resume(rollout: Rollout, event: ResumeRollout, now: datetime) -> Rollout:
    """The step goes on where it stood: the time of the pause counts for nothing."""
    canary, since = rollout.canary, rollout.paused_at
    if rollout.state is not RolloutState.PAUSED or canary is None or since is None:
        raise _refused(rollout, RolloutState.RAMPING)
    held = max(now - since, timedelta())
    going = replace(
        canary,
        paused=False,
        held=None,
        since=canary.since + held,
        deadline=canary.deadline + held,
    )
    return replace(
        rollout,
        state=RolloutState.RAMPING,
        share=going.current_step.share,
        canary=going,
        paused_at=None,
        sentence=f"{event.by} let it go on.",
    )


def _apply_succession(
    rollout: Rollout, event: SuccessorPromoted | RestoreRollout | EndHoldback
) -> Rollout:
    """What happens to a promoted rollout because of others."""
    match event:
        case SuccessorPromoted():
            sentence = f"{event.by} was promoted."
            return _to(rollout, RolloutState.SUCCEEDED, share=0.0, holdback=None, sentence=sentence)
        case RestoreRollout():
            if rollout.state is not RolloutState.SUCCEEDED:
                raise _refused(rollout, RolloutState.PROMOTED)
            return _to(rollout, RolloutState.PROMOTED, share=1.0, sentence=event.sentence)
        case EndHoldback():
            return replace(rollout, holdback=None)
        case _:
            assert_never(event)


def _outage(rollout: Rollout, lasted: timedelta) -> Rollout:
    """The step and the week go on where they stood; a pause takes care of itself."""
    canary, held = rollout.canary, max(lasted, timedelta())
    if rollout.state is not RolloutState.RAMPING or canary is None:
        return rollout
    later = replace(canary, since=canary.since + held, deadline=canary.deadline + held)
    return replace(rollout, canary=later)


def _promoted(
    rollout: Rollout, sentence: str, now: datetime, began: datetime | None = None
) -> Rollout:
    start = began or rollout.began
    if rollout.override:
        raise Conflict(f"{rollout.model_id} has no passed validation: it never gets all traffic.")
    return _to(
        rollout,
        RolloutState.PROMOTED,
        share=1.0,
        canary=None,
        paused_at=None,
        began=start,
        ended=now,
        reason="promoted",
        sentence=sentence,
    )


def _end(
    rollout: Rollout, state: RolloutState, reason: str, sentence: str, now: datetime
) -> Rollout:
    return _to(
        rollout,
        state,
        share=0.0,
        canary=None,
        paused_at=None,
        ended=now,
        reason=reason,
        sentence=sentence,
        holdback=None,
    )


def _to(rollout: Rollout, state: RolloutState, **changes: object) -> Rollout:
    if state not in ROLLOUT_TRANSITIONS[rollout.state]:
        raise _refused(rollout, state)
    return replace(rollout, state=state, **changes)


def _refused(rollout: Rollout, state: RolloutState) -> Conflict:
    return Conflict(f"The rollout of {rollout.model_id} is {rollout.state}: it cannot be {state}.")
