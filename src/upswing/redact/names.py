"""What is this value called from now on? The same value always the same, a new one never as before."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Any

import msgspec

from upswing.contracts.typed import msgpack_decoder

PLACEHOLDER = re.compile(r"<([a-z][a-z0-9]*(?:-[a-z0-9]+)*)-([0-9]{1,9})>")

_SAVED = msgpack_decoder(tuple[dict[str, int], list[tuple[str, bytes, str]]])


class Names:
    """The placeholders of one trajectory. Holds digests of values, never values.

    >>> names = Names.numbered_after("mail <email-3>")
    >>> names.placeholder_for("email", "bob@x.org"), names.placeholder_for("email", "eve@x.org")
    ('<email-4>', '<email-5>')
    >>> names.placeholder_for("email", "bob@x.org")
    '<email-4>'
    """

    __slots__ = ("_given", "_last")

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        self._given: dict[tuple[str, bytes], str] = {}

    @classmethod
    def numbered_after(cls, value: Any) -> Names:
        """Names that go on after the placeholders already present in a text or a tree."""
        names = cls()
        names.reserve_placeholders_in(value)
        return names

    def reserve_placeholders_in(self, value: Any) -> None:
        """Placeholders in `value` are taken: new numbers come after them."""
        stack = [value]
        while stack:
            item = stack.pop()
            if isinstance(item, str):
                if "<" in item:
                    self._reserve_placeholders_in_text(item)
            elif isinstance(item, dict):
                stack.extend(item)
                stack.extend(item.values())
            elif isinstance(item, list | tuple):
                stack.extend(item)

    def _reserve_placeholders_in_text(self, text: str) -> None:
        for kind, number in PLACEHOLDER.findall(text):
            if len(number) < 9:  # a forged number must not push ours out of the pattern
                self._last[kind] = max(self._last.get(kind, 0), int(number))

    def placeholder_for(self, kind: str, value: str) -> str:
        """The placeholder of this value."""
        key = (kind, blake2b(value.encode("utf-8", "surrogatepass"), digest_size=16).digest())
        if key not in self._given:
            self._last[kind] = self._last.get(kind, 0) + 1
            self._given[key] = f"<{kind}-{self._last[kind]}>"
        return self._given[key]

    def to_bytes(self, limit: int) -> bytes:
        """These names for another process; beyond `limit` bytes only how far each kind has counted.

        >>> names = Names()
        >>> first = names.placeholder_for("email", "bob@x.org")
        >>> Names.from_bytes(names.to_bytes(1000)).placeholder_for("email", "bob@x.org")
        '<email-1>'
        >>> Names.from_bytes(names.to_bytes(0)).placeholder_for("email", "bob@x.org")
        '<email-2>'
        """
        given = [(kind, digest, name) for (kind, digest), name in self._given.items()]
        whole = msgspec.msgpack.encode((self._last, given))
        return whole if len(whole) <= limit else msgspec.msgpack.encode((self._last, []))

    @classmethod
    def from_bytes(cls, saved: bytes) -> Names:
        """The names that `to_bytes` gave."""
        names = cls()
        names._last, given = _SAVED.decode(saved)
        names._given = {(kind, digest): name for kind, digest, name in given}
        return names

    def __repr__(self) -> str:
        return f"Names({self._last!r})"
