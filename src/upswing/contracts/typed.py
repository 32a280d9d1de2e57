"""How do bytes become a typed value, in a process with threads?

msgspec looks at a type when it first meets it, and what it has found so far is seen by every thread: one that
comes meanwhile reads a half-made table, and the process dies of it. So types are looked at here, one at a
time, and msgspec's own functions that take a type are called nowhere else (a test reads the tree for that).
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any, TypeVar, overload

import msgspec

T = TypeVar("T")
_one_at_a_time = threading.RLock()


@overload
def json_decoder(kind: type[T]) -> msgspec.json.Decoder[T]: ...
@overload
def json_decoder(kind: Any) -> msgspec.json.Decoder[Any]: ...
def json_decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    """What reads this type from JSON; made once."""
    return _json_decoder(kind)


@overload
def msgpack_decoder(kind: type[T]) -> msgspec.msgpack.Decoder[T]: ...
@overload
def msgpack_decoder(kind: Any) -> msgspec.msgpack.Decoder[Any]: ...
def msgpack_decoder(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    """What reads this type from MessagePack; made once."""
    return _msgpack_decoder(kind)


@overload
def from_json(raw: bytes | bytearray | memoryview | str, kind: type[T]) -> T: ...
@overload
def from_json(raw: bytes | bytearray | memoryview | str, kind: Any) -> Any: ...
def from_json(raw: bytes | bytearray | memoryview | str, kind: Any) -> Any:
    """The value of this type in JSON text, or `msgspec.MsgspecError`.

    `ValidationError` is for whole JSON only: of a message that was cut off, nobody knows its shape.
    """
    try:
        return json_decoder(kind).decode(raw)
    except msgspec.ValidationError:
        check_whole(raw)
        raise


def check_whole(raw: bytes | bytearray | memoryview | str) -> None:
    """`msgspec.DecodeError`, which is no `ValidationError`, where this is no JSON.

    >>> check_whole(b'{"a": [1, 2')
    Traceback (most recent call last):
    msgspec.DecodeError: Input data was truncated
    """
    with contextlib.suppress(RecursionError):  # it may be whole, and too deep
        json_decoder(msgspec.Raw).decode(raw)


@overload
def from_msgpack(raw: bytes, kind: type[T]) -> T: ...
@overload
def from_msgpack(raw: bytes, kind: Any) -> Any: ...
def from_msgpack(raw: bytes, kind: Any) -> Any:
    """The value of this type in MessagePack, or `msgspec.MsgspecError`."""
    return msgpack_decoder(kind).decode(raw)


@overload
def from_tree(tree: Any, kind: type[T], *, as_they_are: Sequence[type] = ...) -> T: ...
@overload
def from_tree(tree: Any, kind: Any, *, as_they_are: Sequence[type] = ...) -> Any: ...
def from_tree(tree: Any, kind: Any, *, as_they_are: Sequence[type] = ()) -> Any:
    """The value of this type in plain dicts and lists, or `msgspec.ValidationError`.

    Values of the types `as_they_are` stand in the tree themselves, not as text.
    """
    json_decoder(kind)  # from here on msgspec knows the type
    return msgspec.convert(tree, kind, builtin_types=as_they_are)


@cache
def _json_decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    with _one_at_a_time:
        return msgspec.json.Decoder(kind)


@cache
def _msgpack_decoder(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    with _one_at_a_time:
        return msgspec.msgpack.Decoder(kind)
