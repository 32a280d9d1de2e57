"""How deep may a message be nested? Nothing useful is very deep, and recursion is a weapon."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from upswing.errors import Reason, Rejected


def check_depth(tree: Any, max_depth: int) -> None:
    """`Rejected` when this goes deeper; without recursion, which depth would break.

    >>> check_depth({"a": [{}]}, 3)
    >>> check_depth({"a": [{}]}, 2)
    Traceback (most recent call last):
    upswing.errors.Rejected: The message is nested deeper than 2 levels.
    """
    level: list[Any] = [tree]
    for _ in range(max_depth):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list)
        ]
        if not level:
            return
    raise Rejected(Reason.TOO_DEEP, f"The message is nested deeper than {max_depth} levels.")


def free_form_parts(trajectory: dict[str, Any]) -> Iterator[Any]:
    """Where a trajectory may be nested at will; the rest is as deep as its type."""
    yield trajectory["metadata"]
    yield trajectory["task_context"]
    for turn in trajectory["turns"]:
        yield from (turn["observation"], turn["action"], turn["result"])
