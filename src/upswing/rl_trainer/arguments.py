"""Is an argument what a function needs? If not, `Misuse` names it: whoever calls these by hand reads a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from upswing.errors import Misuse


def text(value: Any, name: str) -> str:
    """A text with something in it.

    >>> text(5, "subject")
    Traceback (most recent call last):
    upswing.errors.Misuse: `subject` is a text, not int.
    """
    if not isinstance(value, str):
        raise Misuse(f"`{name}` is a text, not {type(value).__name__}.")
    if not value.strip():
        raise Misuse(f"`{name}` is empty.")
    return value


def message(value: Any, name: str) -> dict[str, Any]:
    """An object that JSON can say."""
    if not isinstance(value, Mapping):
        raise Misuse(f"`{name}` is a dict, not {type(value).__name__}.")
    try:
        msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise Misuse(f"`{name}` cannot be written as JSON: {error}.") from None
    return dict(value)


def several(value: Any, name: str) -> list[Any]:
    """A list or tuple: one text is not a list of its letters.

    >>> several("email", "patterns")
    Traceback (most recent call last):
    upswing.errors.Misuse: `patterns` is a list, not str.
    """
    if not isinstance(value, list | tuple | set | frozenset):
        raise Misuse(f"`{name}` is a list, not {type(value).__name__}.")
    return list(value)


def seconds(value: Any, name: str) -> float:
    """A span of time."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise Misuse(f"`{name}` is a number of seconds above 0, not {value!r}.")
    return float(value)


def weights_of(value: Any, name: str) -> dict[str, float] | None:
    """Names with numbers; None: the usual ones."""
    if value is None:
        return None
    found = message(value, name)
    for key, weight in found.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not weight >= 0:
            raise Misuse(f"`{name}` has numbers from 0 on, and {key!r} is {weight!r}.")
    return found
