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
| Restore  | the controller, when that one is taken back             |
| EndHoldback | the controller, when its days are over or a canary begins; an operator |
| Outage   | the controller, when its plan did not hold for a while  |
"""

from __future__ import annotations

from datetime import timedelta

from msgspec import Struct

from upswing.deploy.canary import PATIENCE, Action


class Begin(Struct, frozen=True, tag="begin"):
    """Its turn has come. Where an approval is asked for, it waits for that first."""

    sampled: int = 0
    patience: timedelta = PATIENCE


class Approve(Struct, frozen=True, tag="approve"):
    """A person agrees: to the first traffic, or to 100 % while it ramps."""

    by: str
    sampled: int = 0
    patience: timedelta = PATIENCE


class Decided(Struct, frozen=True, tag="decided"):
    """An action is carried out; `sampled` rewards had been seen by then."""

    action: Action
    sampled: int = 0


class Pause(Struct, frozen=True, tag="pause"):
    """An operator holds the traffic, at this share if one is named."""

    by: str
    share: float | None = None


class Resume(Struct, frozen=True, tag="resume"):
    by: str


class Withdraw(Struct, frozen=True, tag="withdraw"):
    """It ends before it is decided: cancelled if it had no traffic, else replaced."""

    reason: str
    sentence: str


class Succeed(Struct, frozen=True, tag="succeed"):
    """Another model was promoted."""

    by: str


class Restore(Struct, frozen=True, tag="restore"):
    """The model promoted after it was taken back."""

    sentence: str


class EndHoldback(Struct, frozen=True, tag="end_holdback"):
    """Nobody keeps a share beside the promoted model any more."""

    sentence: str


class Outage(Struct, frozen=True, tag="outage"):
    """Nobody led for so long, so it had no traffic: that time counts for nothing."""

    lasted: timedelta


Event = (
    Begin | Approve | Decided | Pause | Resume | Withdraw | Succeed | Restore | EndHoldback | Outage
)
