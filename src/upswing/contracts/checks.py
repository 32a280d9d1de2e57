"""How can somebody else's answer be checked? The checks that a client may send along.

`upswing.validate.core.task` has their table, and those that only a task file may have.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from upswing.contracts.wire import Json

Text = Annotated[str, Meta(min_length=1)]


class Check(Struct, frozen=True, tag_field="kind", forbid_unknown_fields=True, kw_only=True):
    """How an answer is checked."""


class Number(Check, frozen=True, tag="number", kw_only=True):
    value: float
    tolerance: Annotated[float, Meta(ge=0)] = 0.0
    """Absolute."""


class Exact(Check, frozen=True, tag="exact", kw_only=True):
    any_of: Annotated[tuple[Text, ...], Meta(min_length=1)]


class Facts(Check, frozen=True, tag="facts", kw_only=True):
    required: Annotated[tuple[tuple[Text, ...], ...], Meta(min_length=1)]
    """Each fact with the wordings that count."""
    contradicted: tuple[tuple[Text, ...], ...] = ()
    """What the sources speak against, with its wordings."""
    max_words: Annotated[int, Meta(ge=1)] = 120
    """Whoever copies the sources has not answered."""


class Call(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An expected tool call."""

    name: Text
    arguments: Json
    """Name → value, or `{"any_of": [values]}`, or `{"contains": text}`."""
    optional: Json = {}
    """Arguments that may be left out, and what they may be; true: anything."""
    result: Any = None
    """What the tool answers, so that the next step can follow."""


class Pinned(Check, frozen=True, tag="pinned", kw_only=True):
    contains: tuple[Text, ...] = ()
    excludes: tuple[Text, ...] = ()
    calls: tuple[Call, ...] = ()
    """Each of them must be called."""
    calls_not: tuple[Call, ...] = ()
    differs_from: tuple[str, ...] = ()
    """Answers that were wrong: the same text again is wrong again."""
