"""Which worlds are there? Ours by their names, made from a seed; a user's by their entry points.

| name                                   | world                                                     |
|----------------------------------------|-----------------------------------------------------------|
| `triage` and the others of `WORLDS`    | ours, made from the seed                                  |
| `package.module:attribute`             | whatever is there; see `own`                              |
| a name of the group `upswing.worlds`   | what an installed package offers                          |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from upswing.errors import Misuse
from upswing.worlds.crafting import Crafting
from upswing.worlds.desk import ServiceDesk
from upswing.worlds.market import Market
from upswing.worlds.own import installed_worlds, is_address, is_entry_point, load_world
from upswing.worlds.triage import Triage
from upswing.worlds.workshop import Workshop
from upswing.worlds.world import World

WORLDS: Mapping[str, Callable[[int], World[Any, Any]]] = {
    "triage": Triage,
    "triage-check": lambda seed: Triage(seed, check_first=True),
    "desk": ServiceDesk,
    "market": Market,
    "workshop": Workshop,
    "crafting": Crafting,
}
"""Name → what makes that world from a seed."""


def make_world(name: str, seed: int = 0) -> World[Any, Any]:
    """The world of this name; `Misuse` when there is none.

    >>> make_world("triage", 3).training[0].task_id
    'triage-3-0176'
    """
    if name in WORLDS:
        return WORLDS[name](seed)
    if is_entry_point(name):
        return load_world(name)
    installed = installed_worlds()
    if name not in installed:
        there = ", ".join((*WORLDS, *sorted(installed)))
        raise Misuse(
            f"There is no world {name!r}; there are {there}, and package.module:attribute."
        )
    return load_world(installed[name])


def locate_world(name: str, registered: Mapping[str, str]) -> str:
    """Where a world is that somebody asked for: its entry point or address, or its name where it is ours.

    `registered` are those of the config, by name. `Misuse` when there is none of this name. A request
    brings no code: an entry point is taken where the config has it, and nowhere else.

    >>> locate_world("mine", {"mine": "shop.worlds:Shop"}), locate_world("desk", {})
    ('shop.worlds:Shop', 'desk')
    >>> locate_world("os:abort", {})
    Traceback (most recent call last):
    upswing.errors.Misuse: os:abort is code: name it in [validate.worlds] to have it run.
    """
    if name in registered:
        return registered[name]
    if name in WORLDS or is_address(name) or name in registered.values():
        return name
    if is_entry_point(name):
        raise Misuse(f"{name[:200]} is code: name it in [validate.worlds] to have it run.")
    installed = installed_worlds()
    if name not in installed:
        there = ", ".join(dict.fromkeys((*WORLDS, *sorted(registered), *sorted(installed))))
        raise Misuse(f"There is no world {name[:200]!r}; there are {there}.")
    return name


def known_worlds(seed: int = 0) -> dict[str, World[Any, Any]]:
    """All of ours, by their names."""
    return {name: make(seed) for name, make in WORLDS.items()}


def world_of_task(task_id: str) -> str | None:
    """The world of ours that a task comes from: its id begins with the world's name and a seed.

    >>> world_of_task("triage-check-3-0176"), world_of_task("market-research"), world_of_task("desk-0-held-0001")
    ('triage-check', None, 'desk')
    """
    found = _OURS.match(task_id)
    return found[1] if found else None


_OURS = re.compile(rf"({'|'.join(sorted(WORLDS, key=len, reverse=True))})-\d+-")
