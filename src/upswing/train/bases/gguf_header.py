"""What does the header of a GGUF file say, before any of its weights is read?

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
class GgufField:
    """One value of the header."""

    value: Any
    at: int
    """Where the value starts in the file; of a list, its first item."""


@dataclass(frozen=True, slots=True)
class GgufHeader:
    fields: dict[str, GgufField]
    tensors: dict[str, tuple[int, ...]]
    """Name → shape as GGUF has it: the length of a row first."""

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a field."""
        found = self.fields.get(key)
        return default if found is None else found.value


def read_header(path: Path) -> GgufHeader:
    """Fields and tensors of a GGUF file, or `Misuse`."""
    try:
        with (
            path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as body,
        ):
            return _HeaderReader(body).header()
    except (OSError, struct.error, UnicodeDecodeError, ValueError) as error:
        raise Misuse(f"{path} is no GGUF file that can be read: {error}.") from None


class _HeaderReader:
    """Goes through the header once, from its start to its end."""

    def __init__(self, body: mmap.mmap) -> None:
        self._body = body
        self._at = 0

    def header(self) -> GgufHeader:
        if self._read_bytes(4) != _MAGIC:
            raise ValueError("it does not begin with GGUF")
        if (version := self._read_number("I")) not in _VERSIONS:
            raise ValueError(f"its version is {version}")
        tensors, fields = self._read_count(), self._read_count()
        read = dict(self._read_field() for _ in range(fields))
        return GgufHeader(read, dict(self._read_tensor() for _ in range(tensors)))

    def _read_field(self) -> tuple[str, GgufField]:
        key, kind = self._read_text(), self._read_number("I")
        if kind != _ARRAY:
            at = self._at
            return key, GgufField(self._read_value(kind), at)
        kind, count = self._read_number("I"), self._read_count()
        at = self._at
        return key, GgufField(self._read_items(kind, count), at)

    def _read_items(self, kind: int, count: int) -> list[Any]:
        if kind == _STRING:
            return [self._read_text() for _ in range(count)]
        form = f"<{count}{self._scalar_format(kind)}"
        return list(struct.unpack(form, self._read_bytes(struct.calcsize(form))))

    def _read_value(self, kind: int) -> Any:
        return (
            self._read_text() if kind == _STRING else self._read_number(self._scalar_format(kind))
        )

    def _read_tensor(self) -> tuple[str, tuple[int, ...]]:
        name, axes = self._read_text(), self._read_number("I")
        if axes > 8:
            raise ValueError(f"{name[:80]!r} has {axes} axes")
        shape = tuple(self._read_number("Q") for _ in range(axes))
        self._read_bytes(12)  # its type and its place
        return name, shape

    @staticmethod
    def _scalar_format(kind: int) -> str:
        if kind not in _SCALARS:
            raise ValueError(f"it has a value of the unknown type {kind}")
        return _SCALARS[kind]

    def _read_count(self) -> int:
        count: int = self._read_number("Q")
        if count > _MOST:
            raise ValueError("it counts more than a model has")
        return count

    def _read_text(self) -> str:
        return self._read_bytes(self._read_count()).decode()

    def _read_number(self, form: str) -> Any:
        return struct.unpack(f"<{form}", self._read_bytes(struct.calcsize(f"<{form}")))[0]

    def _read_bytes(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._body):
            raise ValueError("its end is missing")
        found = self._body[self._at : end]
        self._at = end
        return found
