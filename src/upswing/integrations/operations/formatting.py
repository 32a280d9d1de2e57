"""How do values of the loop become short lines, and what may be asked for?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta

from upswing.integrations.operations.operation import Arguments
from upswing.integrations.operations.quoting import one_line

END = r"$(?!\n)"
"""The end of a text in a pattern: `$` alone lets a line break stand behind it."""
Name = Annotated[
    str, Meta(min_length=1, max_length=200, pattern=rf"^[A-Za-z0-9][A-Za-z0-9._:\-]*{END}")
]
Identifier = Annotated[str, Meta(min_length=1, max_length=200, pattern=rf"^[^\x00-\x1f/]+{END}")]
Limit = Annotated[int, Meta(ge=1, le=50, description="How many, 1 to 50.")]
Span = Annotated[
    str,
    Meta(
        pattern=rf"^([0-9]{{1,5}}[smhdw]|\d{{4}}-\d\d-\d\d[T0-9:.Z+\-]*){END}",
        description="Back from now, such as `36h` or `30d`, or a time such as 2026-01-15T00:00:00Z.",
    ),
]


def lines(found: Iterable[str], nothing: str) -> str:
    """One below the other, or a sentence that there is nothing."""
    return "\n".join(found) or nothing


def figure(value: Any, digits: int = 3) -> str:
    """A number as short as it can be; a dash where there is none.

    >>> figure(0.51234), figure(None), figure(12)
    ('0.512', '–', '12')
    """
    if value is None or isinstance(value, bool) or not isinstance(value, int | float):
        return "–" if value is None else str(value)
    return str(value) if isinstance(value, int) else f"{value:.{digits}f}"


def more_page(found: Mapping[str, Any]) -> str:
    cursor = found.get("next")
    return f"\nThere are more: ask again with cursor={cursor}" if cursor else ""


def pairs(values: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name} {figure(value) if isinstance(value, int | float) else one_line(value, 80)}"
        for name, value in values.items()
        if not isinstance(value, dict | list) and value is not None
    )


def value_text(value: Any) -> str:
    if isinstance(value, Mapping):
        return pairs(value) or "–"
    return figure(value) if isinstance(value, float) else one_line(value, 200)


def tree_text(tree: Any) -> str:
    """A tree of ours in one line."""
    if isinstance(tree, Mapping):
        return ", ".join(f"{name}={tree_text(value)}" for name, value in tree.items())
    if isinstance(tree, Sequence) and not isinstance(tree, str):
        return f"[{len(tree)} …]" if len(tree) > 8 else f"[{', '.join(map(tree_text, tree))}]"
    return figure(tree) if isinstance(tree, float) else one_line(tree, 120)


class NoArgs(Arguments, frozen=True):
    """Takes nothing."""
