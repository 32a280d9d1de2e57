"""Which worlds do we have ourselves? Each by its name, made from a seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from upswing.errors import Misuse
from upswing.worlds.crafting import Crafting
from upswing.worlds.desk import Desk
from upswing.worlds.market import Market
from upswing.worlds.triage import Triage
from upswing.worlds.workshop import Workshop
from upswing.worlds.world import World

WORLDS: Mapping[str, Callable[[int], World[Any, Any]]] = {
    "triage": Triage,
    "triage-check": lambda seed: Triage(seed, check_first=True),
    "desk": Desk,
    "market": Market,
    "workshop": Workshop,
    "crafting": Crafting,
}
"""Name → what makes that world from a seed."""


def world_of(name: str, seed: int = 0) -> World[Any, Any]:
    """The world of this name; `Misuse` when there is none.

    >>> world_of("triage", 3).training[0].task_id
    'triage-3-0176'
    """
    if name not in WORLDS:
        raise Misuse(f"There is no world {name!r}; there are {', '.join(WORLDS)}.")
    return WORLDS[name](seed)


def known_worlds(seed: int = 0) -> dict[str, World[Any, Any]]:
    """All of them, by their names."""
    return {name: make(seed) for name, make in WORLDS.items()}
