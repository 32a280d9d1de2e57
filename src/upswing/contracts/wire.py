"""What do all wire types share? Strictness, time, ids, and objects that stay open.

A wire type is a frozen `msgspec.Struct` that refuses fields it does not know. Where the contract
says "open to more keys", the field is a plain dict, so that nothing a producer adds is lost, and
`OPEN` names the type that its known keys are checked against.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar
from uuid import UUID

from msgspec import Meta, Struct

_LEAP_DAY = r"(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29"
_DAY = (
    r"\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])"
    r"|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))"
)
_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?"
_ZONE = r"(?:[Zz]|[+-](?:[01]\d|2[0-3]):?[0-5]\d)"
END = r"$(?!\n)"
"""The end of the text, also for Python's `$`, which would let a newline follow."""
TIMESTAMP_PATTERN = rf"^(?!0000)(?:{_DAY}|{_LEAP_DAY})[Tt ]{_CLOCK}{_ZONE}{END}"
"""The calendar as one pattern, so that a JSON Schema validator and the type checks agree."""

UUID_PATTERN = (
    rf"^(?:[0-9A-Fa-f]{{8}}(?:-[0-9A-Fa-f]{{4}}){{3}}-[0-9A-Fa-f]{{12}}|[0-9A-Fa-f]{{32}}){END}"
)

Timestamp = Annotated[
    datetime,
    Meta(
        tz=True,
        description="RFC 3339 date and time with a zone.",
        examples=["2025-12-08T13:00:00Z"],
        extra_json_schema={"pattern": TIMESTAMP_PATTERN},
    ),
]
Id = Annotated[
    UUID,
    Meta(
        description="A UUID; written with dashes, in lower case.",
        examples=["0d4c7a52-7f2e-4c39-9a4e-6f8d2f0b8a11"],
        extra_json_schema={"pattern": UUID_PATTERN},
    ),
]
Share = Annotated[float, Meta(ge=0, le=1)]
NonNegative = Annotated[float, Meta(ge=0)]
Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Json = dict[str, Any]
"""A JSON object whose keys the contract leaves open."""


class Wire(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A part of a message: nothing but the fields named here."""


class Message(Wire, frozen=True, kw_only=True):
    """A whole message, as it travels on its subject."""

    OPEN: ClassVar[dict[str, type[Struct]]] = {}


class Known(Struct, frozen=True, kw_only=True):
    """The known keys of an open object; others are kept and not looked at."""
