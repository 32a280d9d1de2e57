"""Which part of a long list is asked for? Filters, limits and cursors, the same for every list.

A cursor says how far a list was read, by the number of a row: rows that come in meanwhile have higher numbers, so
no row is missed or given twice. It belongs to its list and its filters; with others it is refused, because what it
leaves out would not be what the reader thinks. A moment that was said as a span (`7d`) stays the moment of the first page.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import msgspec

from upswing.api.router import Request
from upswing.contracts.typed import from_json
from upswing.errors import Reason, Rejected
from upswing.infra.sql.paging import PageWanted
from upswing.infra.sql.store import from_microseconds, to_microseconds

LIMIT, MOST = 50, 200
"""Rows of a page, if nobody says how many, and at most."""
_SPANS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_MOMENT = {
    "type": "string",
    "maxLength": 40,
    "examples": ["36h", "2026-01-15T08:00:00Z"],
    "description": "A time, or how far back: 90m, 36h, 7d, 2w.",
}
_CURSOR = {"type": "string", "maxLength": 400, "description": "`next` of the page before."}
_EARLIEST = datetime(1970, 1, 2, tzinfo=UTC)


class _Cursor(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    digest: str
    position: int | str
    since_us: int | None
    until_us: int | None


@dataclass(frozen=True, slots=True)
class PageQuery:
    """What is asked of a list."""

    filters: Mapping[str, str]
    """Without `limit`, `cursor`, `since` and `until`; an empty one counts as not said."""
    limit: int
    position: int | str | None
    """The row before which the page begins; None: at the newest."""
    since: datetime | None
    until: datetime | None
    digest: str = ""

    @property
    def before(self) -> int | None:
        """The number before which the page begins."""
        return self.position if isinstance(self.position, int) else None

    def wanted(self, **equal: object) -> PageWanted:
        """The same for a table; `equal`: column → value, or None."""
        return PageWanted(self.limit, self.before, self.since, self.until, equal)

    def cursor(self, position: int | str | None) -> str | None:
        """What the next page begins with; None: this is the last one."""
        if position is None:
            return None
        moments = (
            None if each is None else to_microseconds(each) for each in (self.since, self.until)
        )
        raw = msgspec.json.encode(_Cursor(self.digest, position, *moments))
        return base64.urlsafe_b64encode(raw).decode().rstrip("=")


@dataclass(frozen=True, slots=True)
class ListQuery:
    """The parameters that a list takes."""

    name: str
    """Of the list: a cursor of another one is refused."""
    filters: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    """Name → JSON Schema, which each value is held to."""
    moments: bool = True
    """Whether it takes `since` and `until`."""
    paged: bool = True
    limit: int = LIMIT
    most: int = MOST

    @property
    def schema(self) -> dict[str, dict[str, Any]]:
        """For the route."""
        moments = {"since": _MOMENT, "until": _MOMENT} if self.moments else {}
        limit = {"type": "integer", "minimum": 1, "maximum": self.most}
        paging = {"limit": limit, "cursor": _CURSOR} if self.paged else {}
        return {**self.filters, **moments, **paging}

    def read(self, request: Request, now: Callable[[], datetime] | None = None) -> PageQuery:
        """`Rejected` says what is wrong, and what may be said; `now` is for lists that take moments."""
        query = request.query
        if unknown := sorted(query.keys() - self.schema.keys()):
            known = ", ".join(sorted(self.schema)) or "none"
            raise Rejected(
                Reason.SCHEMA, f"There is no filter `{unknown[0][:50]}` here; known: {known}."
            )
        filters = {name: query[name] for name in self.filters if query.get(name)}
        for name in filters:
            check_value(filters, name, self.filters[name])
        _check_ranges(filters)
        digest = self._digest(query)
        limit = integer_of(query, "limit", self.limit, 1, self.most) if self.paged else self.limit
        if self.paged and query.get("cursor"):
            found = self._decode(query["cursor"], digest)
            since, until = (
                None if us is None else from_microseconds(us)
                for us in (found.since_us, found.until_us)
            )
            return PageQuery(filters, limit, found.position, since, until, digest)
        since, until = (
            time_of(query[name], name, now()) if now and query.get(name) else None
            for name in ("since", "until")
        )
        if since and until and since > until:
            raise Rejected(Reason.SCHEMA, "`until` lies before `since`.")
        return PageQuery(filters, limit, None, since, until, digest)

    def _digest(self, query: Mapping[str, str]) -> str:
        """Of the list and its filters; how many rows a page has may change."""
        parts = sorted(
            (name, text) for name, text in query.items() if name not in {"limit", "cursor"}
        )
        return sha256(repr((self.name, parts)).encode(errors="replace")).hexdigest()[:16]

    def _decode(self, text: str, digest: str) -> _Cursor:
        found = _read_cursor(text)
        if found is None:
            raise Rejected(
                Reason.SCHEMA, "`cursor` is `next` of the page before, and nothing else."
            )
        if found.digest != digest:
            raise Rejected(
                Reason.SCHEMA,
                "This cursor belongs to another list or to other filters: begin without `cursor`.",
            )
        return found


def _read_cursor(text: str) -> _Cursor | None:
    """None when it is none that we made."""
    try:
        raw = base64.urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4))
        found = from_json(raw, _Cursor)
    except (binascii.Error, ValueError, msgspec.DecodeError):
        return None
    moments = all(us is None or 0 <= us < 2**57 for us in (found.since_us, found.until_us))
    place = not isinstance(found.position, int) or -1 <= found.position < 2**62
    return found if moments and place else None


def check_value(query: Mapping[str, str], name: str, schema: Mapping[str, Any]) -> None:
    """`Rejected` names what the schema of a parameter allows.

    >>> check_value({"state": "on"}, "state", {"enum": ["on", "off"]})
    >>> check_value({"state": "x"}, "state", {"enum": ["on", "off"]})
    Traceback (most recent call last):
    upswing.errors.Rejected: `state` is one of on, off.
    """
    kind, text = schema.get("type"), query[name]
    if "enum" in schema:
        choice_of(query, name, tuple(schema["enum"]))
    elif kind == "integer":
        integer_of(query, name, 0, schema.get("minimum", 0), schema.get("maximum", 10**9 - 1))
    elif kind == "number":
        number_of(query, name)
    elif not schema.get("minLength", 0) <= len(text) <= schema.get("maxLength", len(text)):
        least, most = schema.get("minLength", 0), schema["maxLength"]
        raise Rejected(Reason.SCHEMA, f"`{name}` has {least} to {most} characters.")


def _check_ranges(query: Mapping[str, str]) -> None:
    """`min_x` is not above `max_x`."""
    for low in (name for name in query if name.startswith("min_")):
        high = f"max_{low.removeprefix('min_')}"
        least, most = number_of(query, low), number_of(query, high)
        if least is not None and most is not None and least > most:
            raise Rejected(Reason.SCHEMA, f"`{low}` is above `{high}`: nothing lies between.")


def integer_of(
    query: Mapping[str, str], name: str, default: int, minimum: int, maximum: int
) -> int:
    """A number of a query.

    >>> integer_of({"limit": "7"}, "limit", 50, 1, 200), integer_of({}, "limit", 50, 1, 200)
    (7, 50)
    """
    text = query.get(name, str(default))
    if not (
        text.isascii() and text.isdecimal() and len(text) <= 9 and minimum <= int(text) <= maximum
    ):
        raise Rejected(Reason.SCHEMA, f"`{name}` is a number from {minimum} to {maximum}.")
    return int(text)


def number_of(query: Mapping[str, str], name: str) -> float | None:
    """A number of a query that may have a point, within what anybody measures."""
    text = query.get(name)
    if not text:
        return None
    try:
        value = float(text) if len(text) <= 40 and text.isascii() else float("nan")
    except ValueError:
        value = float("nan")
    if not -1e9 <= value <= 1e9:
        raise Rejected(Reason.SCHEMA, f"`{name}` is a number such as 0.5.")
    return value


def choice_of(query: Mapping[str, str], name: str, known: tuple[str, ...]) -> str | None:
    """One of these words."""
    text = query.get(name)
    if text and text not in known:
        raise Rejected(Reason.SCHEMA, f"`{name}` is one of {', '.join(known)}.")
    return text or None


def time_of(text: str, name: str, now: datetime) -> datetime:
    """A moment, or how far back from now.

    >>> noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    >>> time_of("36h", "since", noon), time_of("2026-01-01T10:00:00+02:00", "since", noon)
    (datetime.datetime(2025, 12, 31, 0, 0, tzinfo=datetime.timezone.utc), datetime.datetime(2026, 1, 1, 8, 0, tzinfo=datetime.timezone.utc))
    """
    number, unit = text[:-1], _SPANS.get(text[-1:])
    try:
        if unit and number.isascii() and number.isdecimal() and len(number) <= 5:
            return max(_EARLIEST, now - timedelta(**{unit: int(number)}))
        found = datetime.fromisoformat(text.replace(" ", "+"))
        aware = found if found.tzinfo else found.replace(tzinfo=UTC)
        return max(_EARLIEST, aware.astimezone(UTC))
    except (ValueError, OverflowError):
        raise Rejected(
            Reason.SCHEMA,
            f"`{name}` is a time such as 2026-01-15T08:00:00Z, or a span such as 36h or 7d.",
        ) from None
