"""How is a file of unknown origin read? Only if it is a plain file here, within limits, and exact."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec

from upswing.contracts.typed import from_tree
from upswing.errors import Reason
from upswing.train.checkpoints.manifest import InvalidCheckpoint

JSON_BYTES = 16 << 20
"""Of one JSON file."""
_CHUNK = 1 << 20
S = TypeVar("S", bound=msgspec.Struct)


def open_plain(path: Path) -> BinaryIO:
    """Open a file that is really in its folder: no link, no pipe, no device."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        handle = os.open(path, flags | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError):
        raise InvalidCheckpoint(
            f"{quote_name(path.name)} is no plain file that can be read."
        ) from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise InvalidCheckpoint(f"{quote_name(path.name)} is no plain file.")
    return os.fdopen(handle, "rb")


def sha256_of(path: Path) -> str:
    """The hash of a plain file's bytes."""
    digest = hashlib.sha256()
    with open_plain(path) as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def read_bytes(path: Path, limit: int) -> bytes:
    """The bytes of a plain file that is not larger than this."""
    with open_plain(path) as file:
        raw = file.read(limit + 1)
    if len(raw) > limit:
        raise InvalidCheckpoint(
            f"{quote_name(path.name)} is larger than {limit} bytes.", Reason.TOO_LARGE
        )
    return raw


def read_json(path: Path, limit: int = JSON_BYTES) -> dict[str, Any]:
    """The object in a JSON file, or `Refused`."""
    return strict_json(read_bytes(path, limit), path.name)


def strict_json(raw: bytes, what: str) -> dict[str, Any]:
    """An object with one spelling: no key twice, no NaN, not nested without end.

    >>> strict_json(b'{"a": 1, "a": 2}', "x.json")
    Traceback (most recent call last):
    upswing.train.checkpoints.manifest.InvalidCheckpoint: x.json says 'a' twice.
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, value in pairs:
            if key in made:
                raise InvalidCheckpoint(f"{what} says {quote_name(key)} twice.")
            made[key] = value
        return made

    def no_number(constant: str) -> Any:
        raise InvalidCheckpoint(f"{what} says {constant}, which is no number.", Reason.NOT_A_NUMBER)

    try:
        tree = json.loads(raw.decode(), object_pairs_hook=once, parse_constant=no_number)
    except RecursionError:
        raise InvalidCheckpoint(f"{what} is nested too deeply.", Reason.TOO_DEEP) from None
    except ValueError as error:
        raise InvalidCheckpoint(f"{what} is not JSON: {error}.", Reason.MALFORMED) from None
    if not isinstance(tree, dict):
        raise InvalidCheckpoint(f"{what} is not a JSON object.")
    return tree


def convert_struct(tree: dict[str, Any], kind: type[S], what: str) -> S:
    """The typed form of a JSON object, or `Refused` with the place that is wrong."""
    try:
        return from_tree(tree, kind)
    except msgspec.ValidationError as error:
        raise InvalidCheckpoint(f"{what} cannot be used: {error}.") from None
    except RecursionError:
        raise InvalidCheckpoint(f"{what} is nested too deeply.", Reason.TOO_DEEP) from None


def quote_name(name: str) -> str:
    """A name of theirs in a sentence of ours: short, and nothing in it acts on a terminal.

    >>> print(quote_name("a"), quote_name("x" * 99)[-5:])
    'a' xxx…'
    """
    quoted = ascii(name)
    return quoted if len(quoted) <= 80 else quoted[:78] + "…'"
