"""What can happen to a rollout?

| event    | who makes it happen                                    |
|----------|--------------------------------------------------------|
| Begin    | the controller, when nothing else is on its way         |
| Approve  | a person                                                |
| Decided  | the controller, after each look                         |
| Pause    | an operator who sets the traffic by hand                |
| Resume   | an operator                                             |
| Withdraw | the controller, for a newer model; an operator          |
| Succeed  | the controller, when another model is promoted          |
| Restore  | the controller, when that one is rolled back            |
| EndHoldback | the controller, when its days are over or a canary begins; an operator |
| Outage   | the controller, when its plan did not hold for a while  |
"""

from __future__ import annotations

from datetime import timedelta

from msgspec import Struct

from upswing.deploy.core.canary import PATIENCE, CanaryAction


class BeginRollout(Struct, frozen=True, tag="begin"):
    """Its turn has come. Where an approval is asked for, it waits for that first."""

    sampled: int = 0
    patience: timedelta = PATIENCE


class ApproveRollout(Struct, frozen=True, tag="approve"):
    """A person agrees: to the first traffic, or to 100 % while it ramps."""

    by: str
    sampled: int = 0
    patience: timedelta = PATIENCE


class ActionDecided(Struct, frozen=True, tag="decided"):
    """An action is carried out; `sampled` rewards had been seen by then."""

    action: CanaryAction
    sampled: int = 0


class PauseRollout(Struct, frozen=True, tag="pause"):
    """An operator holds the traffic, at this share if one is named."""

    by: str
    share: float | None = None


class ResumeRollout(Struct, frozen=True, tag="resume"):
    by: str


class WithdrawRollout(Struct, frozen=True, tag="withdraw"):
    """It ends before it is decided: cancelled if it had no traffic, else replaced."""

    reason: str
    sentence: str


class SuccessorPromoted(Struct, frozen=True, tag="succeed"):
    """Another model was promoted."""

    by: str


class RestoreRollout(Struct, frozen=True, tag="restore"):
    """The model promoted after it was rolled back."""

    sentence: str


class EndHoldback(Struct, frozen=True, tag="end_holdback"):
    """Nobody keeps a share beside the promoted model any more."""

    sentence: str


class ControllerOutage(Struct, frozen=True, tag="outage"):
    """Nobody led for so long, so it had no traffic: that time counts for nothing."""

    lasted: timedelta


RolloutEvent = (
    BeginRollout
    | ApproveRollout
    | ActionDecided
    | PauseRollout
    | ResumeRollout
    | WithdrawRollout
    | SuccessorPromoted
    | RestoreRollout
    | EndHoldback
    | ControllerOutage
)
