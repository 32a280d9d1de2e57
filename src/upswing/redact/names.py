"""What is this value called from now on? The same value always the same, a new one never as before."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Any

PLACEHOLDER = re.compile(r"<([a-z][a-z0-9]*(?:-[a-z0-9]+)*)-([0-9]{1,9})>")


class Names:
    """The placeholders of one trajectory. Holds digests of values, never values.

    >>> names = Names.seen_in("mail <email-3>")
    >>> names.give("email", "bob@x.org"), names.give("email", "eve@x.org")
    ('<email-4>', '<email-5>')
    >>> names.give("email", "bob@x.org")
    '<email-4>'
    """

    __slots__ = ("_given", "_last")

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        self._given: dict[tuple[str, bytes], str] = {}

    @classmethod
    def seen_in(cls, value: Any) -> Names:
        """Names that go on after the placeholders already present in a text or a tree."""
        names = cls()
        names.note(value)
        return names

    def note(self, value: Any) -> None:
        """Placeholders in `value` are taken: new numbers come after them."""
        stack = [value]
        while stack:
            item = stack.pop()
            if isinstance(item, str):
                if "<" in item:
                    self._note_text(item)
            elif isinstance(item, dict):
                stack.extend(item)
                stack.extend(item.values())
            elif isinstance(item, list | tuple):
                stack.extend(item)

    def _note_text(self, text: str) -> None:
        for kind, number in PLACEHOLDER.findall(text):
            if len(number) < 9:  # a forged number must not push ours out of the pattern
                self._last[kind] = max(self._last.get(kind, 0), int(number))

    def give(self, kind: str, value: str) -> str:
        """The placeholder of this value."""
        key = (kind, blake2b(value.encode("utf-8", "surrogatepass"), digest_size=16).digest())
        if key not in self._given:
            self._last[kind] = self._last.get(kind, 0) + 1
            self._given[key] = f"<{kind}-{self._last[kind]}>"
        return self._given[key]

    def __repr__(self) -> str:
        return f"Names({self._last!r})"
