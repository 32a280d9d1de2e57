"""Which models can be asked for, as clients of OpenAI's and of Anthropic's API read it?

| a client                          | reads                                                       |
|-----------------------------------|-------------------------------------------------------------|
| any                               | OpenAI's list                                               |
| with the header anthropic-version | Anthropic's                                                 |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

ALIAS = "upswing"
"""What a client may call whoever answers; it is listed last."""
_EPOCH = "1970-01-01T00:00:00Z"


def model_list(names: Sequence[str], *, anthropic: bool) -> dict[str, Any]:
    """The list of these models, and of the name for whoever answers.

    >>> [each["id"] for each in model_list(["base"], anthropic=False)["data"]], model_list([], anthropic=False)["data"]
    (['base', 'upswing'], [])
    """
    names = [*names, ALIAS] if names and ALIAS not in names else names
    data = [model_entry(name, anthropic=anthropic) for name in names]
    if not anthropic:
        return {"object": "list", "data": data}
    first, last = (names[0], names[-1]) if names else (None, None)
    return {"data": data, "has_more": False, "first_id": first, "last_id": last}


def model_entry(name: str, *, anthropic: bool) -> dict[str, Any]:
    """One model.

    >>> model_entry("base", anthropic=False)
    {'id': 'base', 'object': 'model', 'created': 0, 'owned_by': 'upswing'}
    """
    if anthropic:
        return {"type": "model", "id": name, "display_name": name, "created_at": _EPOCH}
    return {"id": name, "object": "model", "created": 0, "owned_by": "upswing"}
