"""A model is ready to go out: does it begin, wait, or take the place of the one that is on its way?

| on its way           | policy wait | policy replace |
|----------------------|-------------|----------------|
| nothing              | Begin       | Begin          |
| the same model       | Skip        | Skip           |
| a newer model        | Skip        | Skip           |
| an older, early      | Wait        | Replace        |
| an older, last step  | Wait        | Wait           |
| an older, unproven   | Replace     | Replace        |

A canary at its last step has most of its evidence together; it is decided before anything replaces it.
One that was not shown to be better and waits for an operator's word keeps nobody waiting.
Of several that wait, the newest goes next and the others are passed over: `Skip`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

Policy = Literal["wait", "replace"]


class Contender(Struct, frozen=True):
    """A model that goes out, or wants to."""

    model_id: str
    version: int
    last_step: bool = False
    unproven: bool = False
    """It waits for an operator's word, because it was not shown to be better."""


class Begin(Struct, frozen=True, tag="begin"):
    sentence: str


class Wait(Struct, frozen=True, tag="wait"):
    sentence: str


class Replace(Struct, frozen=True, tag="replace"):
    sentence: str


class Skip(Struct, frozen=True, tag="skip"):
    sentence: str


Reception = Begin | Wait | Replace | Skip


def receive(newcomer: Contender, running: Contender | None, policy: Policy = "wait") -> Reception:
    """The table."""
    new = newcomer.model_id
    if running is None:
        return Begin(f"Nothing else is on its way: {new} begins.")
    old = running.model_id
    if old == new:
        return Skip(f"{new} is on its way already.")
    if not newcomer.version > running.version:
        return Skip(f"{old} is newer than {new} and on its way.")
    if running.unproven:
        return Replace(f"{new} takes the place of {old}, which nobody approved.")
    if running.last_step:
        return Wait(f"{new} waits: {old} is at its last step.")
    if policy == "replace":
        return Replace(f"{new} takes the place of {old}, which is older.")
    return Wait(f"{new} waits until {old} is decided.")


def next_in_line(waiting: Sequence[Contender]) -> tuple[Contender | None, tuple[Contender, ...]]:
    """Who begins when the way is free, and who is passed over."""
    ordered = sorted(waiting, key=lambda one: one.version)
    return (ordered[-1], tuple(ordered[:-1])) if ordered else (None, ())
