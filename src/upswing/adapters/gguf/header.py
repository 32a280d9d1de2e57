"""What does a GGUF file say about itself, before a byte of its weights is looked at?

    GGUF │ version │ how many tensors, how many fields │ fields: key, type, value │ tensors: name, shape

A field's value keeps the place where it stands in the file, so that a copy can be changed there.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from upswing.errors import Misuse

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_STRING, _ARRAY = 8, 9
_SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
"""GGUF's number of a type, and what `struct` calls it."""
_MOST = 1 << 24
"""Of fields, tensors, or items of a list: more is not a model but a trap."""


@dataclass(frozen=True, slots=True)
class Field:
    """One value of the header."""

    value: Any
    at: int
    """Where the value starts in the file; of a list, its first item."""


@dataclass(frozen=True, slots=True)
class Header:
    fields: dict[str, Field]
    tensors: dict[str, tuple[int, ...]]
    """Name → shape as GGUF has it: the length of a row first."""

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a field."""
        found = self.fields.get(key)
        return default if found is None else found.value


def read_header(path: Path) -> Header:
    """Fields and tensors of a GGUF file, or `Misuse`."""
    try:
        with (
            path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as body,
        ):
            return _Reading(body).header()
    except (OSError, struct.error, UnicodeDecodeError, ValueError) as error:
        raise Misuse(f"{path} is no GGUF file that can be read: {error}.") from None


class _Reading:
    """Goes through the header once, from its start to its end."""

    def __init__(self, body: mmap.mmap) -> None:
        self._body = body
        self._at = 0

    def header(self) -> Header:
        if self._bytes(4) != _MAGIC:
            raise ValueError("it does not begin with GGUF")
        if (version := self._number("I")) not in _VERSIONS:
            raise ValueError(f"its version is {version}")
        tensors, fields = self._count(), self._count()
        read = dict(self._field() for _ in range(fields))
        return Header(read, dict(self._tensor() for _ in range(tensors)))

    def _field(self) -> tuple[str, Field]:
        key, kind = self._text(), self._number("I")
        if kind != _ARRAY:
            at = self._at
            return key, Field(self._value(kind), at)
        kind, count = self._number("I"), self._count()
        at = self._at
        return key, Field(self._items(kind, count), at)

    def _items(self, kind: int, count: int) -> list[Any]:
        if kind == _STRING:
            return [self._text() for _ in range(count)]
        form = f"<{count}{self._scalar(kind)}"
        return list(struct.unpack(form, self._bytes(struct.calcsize(form))))

    def _value(self, kind: int) -> Any:
        return self._text() if kind == _STRING else self._number(self._scalar(kind))

    def _tensor(self) -> tuple[str, tuple[int, ...]]:
        name, axes = self._text(), self._number("I")
        if axes > 8:
            raise ValueError(f"{name[:80]!r} has {axes} axes")
        shape = tuple(self._number("Q") for _ in range(axes))
        self._bytes(12)  # its type and its place
        return name, shape

    @staticmethod
    def _scalar(kind: int) -> str:
        if kind not in _SCALARS:
            raise ValueError(f"it has a value of the unknown type {kind}")
        return _SCALARS[kind]

    def _count(self) -> int:
        count: int = self._number("Q")
        if count > _MOST:
            raise ValueError("it counts more than a model has")
        return count

    def _text(self) -> str:
        return self._bytes(self._count()).decode()

    def _number(self, form: str) -> Any:
        return struct.unpack(f"<{form}", self._bytes(struct.calcsize(f"<{form}")))[0]

    def _bytes(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._body):
            raise ValueError("its end is missing")
        found = self._body[self._at : end]
        self._at = end
        return found
