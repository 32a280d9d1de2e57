"""A candidate is ready for its rollout: does it start, wait, or replace the rollout in progress?

| in progress          | policy wait    | policy replace |
|----------------------|----------------|----------------|
| nothing              | StartNow       | StartNow       |
| the same model       | SkipCandidate  | SkipCandidate  |
| a newer model        | SkipCandidate  | SkipCandidate  |
| an older, early      | WaitForRunning | ReplaceRunning |
| an older, last step  | WaitForRunning | WaitForRunning |
| an older, unproven   | ReplaceRunning | ReplaceRunning |

A canary at its last step has most of its evidence together; it is decided before anything replaces it.
One that was not shown to be better and waits for an operator's approval keeps nobody waiting.
Of several that wait, the newest goes next and the others are passed over: `SkipCandidate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

NewcomerPolicy = Literal["wait", "replace"]


class RolloutContender(Struct, frozen=True):
    """A model that is being rolled out, or waits for it."""

    model_id: str
    version: int
    last_step: bool = False
    unproven: bool = False
    """It waits for an operator's word, because it was not shown to be better."""


class StartNow(Struct, frozen=True, tag="begin"):
    sentence: str


class WaitForRunning(Struct, frozen=True, tag="wait"):
    sentence: str


class ReplaceRunning(Struct, frozen=True, tag="replace"):
    sentence: str


class SkipCandidate(Struct, frozen=True, tag="skip"):
    sentence: str


StartDecision = StartNow | WaitForRunning | ReplaceRunning | SkipCandidate


def decide_start(
    newcomer: RolloutContender, running: RolloutContender | None, policy: NewcomerPolicy = "wait"
) -> StartDecision:
    """The table."""
    new = newcomer.model_id
    if running is None:
        return StartNow(f"Nothing else is on its way: {new} begins.")
    old = running.model_id
    if old == new:
        return SkipCandidate(f"{new} is on its way already.")
    if not newcomer.version > running.version:
        return SkipCandidate(f"{old} is newer than {new} and on its way.")
    if running.unproven:
        return ReplaceRunning(f"{new} takes the place of {old}, which nobody approved.")
    if running.last_step:
        return WaitForRunning(f"{new} waits: {old} is at its last step.")
    if policy == "replace":
        return ReplaceRunning(f"{new} takes the place of {old}, which is older.")
    return WaitForRunning(f"{new} waits until {old} is decided.")


def next_in_line(
    waiting: Sequence[RolloutContender],
) -> tuple[RolloutContender | None, tuple[RolloutContender, ...]]:
    """Who begins when the way is free, and who is passed over."""
    ordered = sorted(waiting, key=lambda one: one.version)
    return (ordered[-1], tuple(ordered[:-1])) if ordered else (None, ())
