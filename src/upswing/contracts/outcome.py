"""What really happened in a window? outcome.v1: facts that the agents acting in it did not know.

It travels by HTTP only, so it has no subject. The judge reads it; training never does.
"""

from __future__ import annotations

from math import isfinite
from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from upswing.contracts.wire import END, Json, Message, Timestamp, Wire

WINDOW_PATTERN = rf"^\d{{4}}-\d\d-\d\dT\d\d:00{END}"


class AssetMove(Wire, frozen=True, kw_only=True):
    """How one asset moved between the window's first and last moment."""

    open: float | UnsetType = UNSET
    close: float | UnsetType = UNSET
    change: (
        Annotated[float, Meta(description="As a share of `open`: -0.16 is a fall by 16 %.")]
        | UnsetType
    ) = UNSET

    def __post_init__(self) -> None:
        told = [n for n in (self.open, self.close, self.change) if not isinstance(n, UnsetType)]
        if not told:
            raise ValueError("an asset needs at least one of open, close and change")
        if not all(isfinite(number) for number in told):
            raise ValueError("the numbers of an asset are finite")


class Event(Wire, frozen=True, kw_only=True):
    """Something that became known, and when."""

    time: Timestamp | UnsetType = UNSET
    text: Annotated[str, Meta(min_length=1, max_length=10_000)]


class Outcome(Message, frozen=True, kw_only=True):
    """The world's own account of one window, from one source."""

    window_id: Annotated[
        str,
        Meta(
            pattern=WINDOW_PATTERN,
            description="UTC, on the hour.",
            examples=["2025-01-15T10:00"],
        ),
    ]
    scenario_id: Annotated[str, Meta(min_length=1, max_length=256)] | UnsetType = UNSET
    """Left out, it tells of every scenario of the window."""
    assets: dict[str, AssetMove] | UnsetType = UNSET
    events: list[Event] | UnsetType = UNSET
    source: Annotated[str, Meta(min_length=1, max_length=256)]
    metadata: Json | UnsetType = UNSET


EXAMPLE: dict[str, Any] = {
    "window_id": "2025-01-15T10:00",
    "scenario_id": "2025-01-15T10:00",
    "assets": {"TRUMP": {"open": 12.5, "close": 10.5, "change": -0.16}},
    "events": [{"time": "2025-01-15T10:41:00Z", "text": "SEC investigation announced"}],
    "source": "market-tracker",
}
