"""What may an operator do with a rollout that stands like this?

| state               | approve | hold | go on | roll back |
|---------------------|---------|------|-------|-----------|
| `queued`            | yes     |      |       | yes       |
| `awaiting_approval` | yes     |      |       | yes       |
| `ramping`           | yes     | yes  |       | yes       |
| `paused`            | yes     |      | yes   | yes       |
| `promoted`          |         |      |       | yes       |
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RolloutMove:
    """A button: what it is called in the API and on the page, and what it asks."""

    action: str
    verb: str
    question: str
    danger: bool = False


MOVES = {
    "approve": RolloutMove(
        "approve",
        "Approve",
        "{model} gets its first traffic, or, if it ramps already, may get all of it when its evidence allows.",
    ),
    "pause": RolloutMove(
        "pause",
        "Hold",
        "{model} keeps the share that it has until you let it go on. Its rollback still works by itself.",
    ),
    "resume": RolloutMove(
        "resume",
        "Go on",
        "{model} goes on where it stood; the time of the pause counts for nothing.",
    ),
    "rollback": RolloutMove(
        "rollback",
        "Roll back",
        "{model} loses all traffic, and {baseline} answers again. Open episodes go on there.",
        danger=True,
    ),
}
_TABLE: dict[str, tuple[str, ...]] = {
    "queued": ("approve", "rollback"),
    "awaiting_approval": ("approve", "rollback"),
    "ramping": ("approve", "pause", "rollback"),
    "paused": ("approve", "resume", "rollback"),
    "promoted": ("rollback",),
}


def moves_for(state: str) -> tuple[str, ...]:
    """The names of the moves, in the table's order.

    >>> moves_for("paused"), moves_for("rolled_back")
    (('approve', 'resume', 'rollback'), ())
    """
    return _TABLE.get(state, ())
