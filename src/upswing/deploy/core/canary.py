"""A canary stands at this step and looks like this: what now?

    verdict ╲ step           not yet due   due         last, due   last, due, proven   too late
    HEALTHY                  Hold          SetWeight   Hold        Promote             RollBack
    INCONCLUSIVE             Hold          Hold        Hold        Hold                RollBack
    FAILING                  RollBack      RollBack    RollBack    RollBack            RollBack
    HEALTHY, approved        Hold          SetWeight   Promote     Promote             RollBack
    INCONCLUSIVE, approved   Hold          Hold        Promote     Promote             RollBack
    FAILING, approved        RollBack      RollBack    RollBack    RollBack            RollBack
    HEALTHY, paused          Hold          Hold        Hold        Hold                Hold
    INCONCLUSIVE, paused     Hold          Hold        Hold        Hold                Hold
    FAILING, paused          RollBack      RollBack    RollBack    RollBack            RollBack

*Due*: the step has lasted its time and seen its sample. *Proven*: shown not to lose more than the limit.
*Too late*: undecided when its time ran out; where only more users could decide it, it holds instead, and a
person is asked. *Approved*: an operator's word for 100 %; it stands for the proof and for the last step's
sample, not for its time. *Paused*: an operator holds the traffic; neither the step nor the deadline runs on,
and a failing model goes back all the same.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import assert_never

from msgspec import Struct

from upswing.deploy.core.health import HealthStatus, HealthVerdict
from upswing.deploy.core.ramp import CanaryStep

PATIENCE = timedelta(days=7)
"""How long a canary may stay undecided."""
UNDECIDED = "undecided"


class Canary(Struct, frozen=True):
    """Where a canary stands."""

    steps: tuple[CanaryStep, ...]
    step: int
    since: datetime
    """When the step began."""
    deadline: datetime
    sampled: int = 0
    """Rewards that had been seen when the step began."""
    approved: bool = False
    paused: bool = False
    held: float | None = None
    """The share at which an operator holds it; None where nobody does, or a version before this wrote it."""

    @property
    def current_step(self) -> CanaryStep:
        return self.steps[self.step]

    @property
    def is_last_step(self) -> bool:
        return self.step == len(self.steps) - 1


class SetWeight(Struct, frozen=True, tag="set_weight"):
    """Take the next step."""

    step: int
    share: float
    sentence: str


class Hold(Struct, frozen=True, tag="hold"):
    sentence: str


class Promote(Struct, frozen=True, tag="promote"):
    """All traffic: the candidate becomes the baseline."""

    sentence: str


class RollBack(Struct, frozen=True, tag="roll_back"):
    """No traffic, at once."""

    reason: str
    """A fixed word: the verdict's cause, `undecided`, or what an operator says."""
    sentence: str


CanaryAction = SetWeight | Hold | Promote | RollBack


def first_canary_step(
    steps: tuple[CanaryStep, ...], now: datetime, patience: timedelta = PATIENCE, sampled: int = 0
) -> Canary:
    """A canary that gets its first traffic now."""
    return Canary(steps, 0, now, now + patience, sampled)


def next_action(canary: Canary, verdict: HealthVerdict, now: datetime) -> CanaryAction:
    """The table, from its strongest word to its weakest."""
    if verdict.health is HealthStatus.FAILING:
        reason = verdict.cause.value if verdict.cause else HealthStatus.FAILING.value
        return RollBack(reason, verdict.sentence)
    if canary.paused:
        at = "" if canary.held is None else f" at {_percent(canary.held)}"
        return Hold(f"An operator holds it{at}.")
    waits = missing_for_step(canary, verdict.rewards, now)
    if canary.is_last_step and (ready := _ready_to_promote(canary, verdict, now, waits)):
        return ready
    if not now < canary.deadline and not verdict.too_few_users:
        return RollBack(UNDECIDED, f"Its time is over, and it is undecided: {verdict.sentence}")
    if waits is not None:
        return Hold(waits)
    match verdict.health:
        case HealthStatus.INCONCLUSIVE:
            return Hold(f"Nobody can say yet: {verdict.sentence}")
        case HealthStatus.HEALTHY:
            return _forward(canary, verdict)
        case _:
            assert_never(verdict.health)


def _ready_to_promote(
    canary: Canary, verdict: HealthVerdict, now: datetime, waits: str | None
) -> Promote | None:
    if canary.approved and now - canary.since >= canary.current_step.dwell:
        return Promote(f"An operator approved it: {verdict.sentence}")
    if waits is None and verdict.health is HealthStatus.HEALTHY and verdict.proven:
        return Promote(verdict.sentence)
    return None


def _forward(canary: Canary, verdict: HealthVerdict) -> SetWeight | Hold:
    if canary.is_last_step:
        return Hold(f"100 % needs proof: {verdict.sentence}")
    after = canary.steps[canary.step + 1]
    sentence = (
        f"From {_percent(canary.current_step.share)} to {_percent(after.share)}: {verdict.sentence}"
    )
    return SetWeight(canary.step + 1, after.share, sentence)


def missing_for_step(canary: Canary, rewards: int, now: datetime) -> str | None:
    """What the step still waits for, as a sentence; None: it is due.

    A clock that went backwards shortens nothing: the step waits until its time has passed.
    """
    step, share = canary.current_step, _percent(canary.current_step.share)
    if not now - canary.since >= step.dwell:
        until = canary.since + step.dwell
        return f"{share} lasts until {until:%Y-%m-%d %H:%M:%S} UTC at least."
    seen = rewards - canary.sampled
    if not seen >= step.sample:
        return f"{share} has seen {max(seen, 0)} of {step.sample} rewards."
    return None


def _percent(share: float) -> str:
    return f"{share * 100:g} %"
