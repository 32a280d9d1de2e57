"""Are these bytes a message of ours? Decode once, check everything, name what is wrong."""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec

from upswing.contracts.field_errors import schema_error_sentence
from upswing.contracts.trajectory import PROFILES, Trajectory
from upswing.contracts.typed import from_json, from_tree
from upswing.contracts.wire import Message
from upswing.errors import Reason, Rejected

M = TypeVar("M", bound=Message)
S = TypeVar("S", bound=msgspec.Struct)

_WHOLE_FLOAT = "Expected `int`, got `float`"

_AT_BYTE = re.compile(r"byte (\d+)")
_NOT_A_NUMBER = re.compile(rb"-?(?:NaN|Infinity)")
_CANONICAL = msgspec.json.Encoder(order="deterministic")


def decode(message: type[M], raw: bytes) -> M:
    """The message in `raw`, or `Rejected` with the reason and the place.

    >>> decode(Trajectory, b"{}")
    Traceback (most recent call last):
    upswing.errors.Rejected: Object missing required field `trajectory_id`.
    """
    try:
        value: M = from_json(raw, message)
    except msgspec.ValidationError as error:
        if _WHOLE_FLOAT not in str(error):
            raise Rejected(Reason.SCHEMA, schema_error_sentence(error, message)) from None
        return from_builtins(message, msgspec.json.decode(raw))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _malformed_rejection(raw, error) from None
    except RecursionError:
        raise Rejected(Reason.TOO_DEEP, "The message is nested too deeply.") from None
    _check_open_objects(value)
    return value


def decode_trajectory(raw: bytes) -> Trajectory:
    """`decode`, for the message that comes most."""
    return decode(Trajectory, raw)


def from_builtins(message: type[M], tree: Any) -> M:
    """The message in an already parsed JSON tree, or `Rejected`."""
    try:
        value = _convert(tree, message)
    except msgspec.ValidationError as error:
        raise Rejected(Reason.SCHEMA, schema_error_sentence(error, message)) from None
    _check_open_objects(value)
    return value


def encode(message: Message) -> bytes:
    """The message as bytes. Writing is strict: what we would not read, we do not write."""
    raw = msgspec.json.encode(message)
    decode(type(message), raw)
    profile = message.subordinate_profile if isinstance(message, Trajectory) else None
    if isinstance(profile, str) and profile not in PROFILES:
        raise Rejected(
            Reason.SCHEMA,
            f"subordinate_profile is one of {', '.join(sorted(PROFILES))} when written.",
        )
    return raw


def canonical(tree: Any) -> bytes:
    """One spelling for one content: keys sorted, numbers and times normalised."""
    return _CANONICAL.encode(tree)


def _check_open_objects(value: Message) -> None:
    for field, known in value.OPEN.items():
        part = getattr(value, field)
        if part is msgspec.UNSET:
            continue
        try:
            _convert(part, known)
        except msgspec.ValidationError as error:
            raise Rejected(
                Reason.SCHEMA, _prefix_field_path(field, schema_error_sentence(error, known))
            ) from None


def _convert(tree: Any, kind: type[S]) -> S:
    try:
        return from_tree(tree, kind)
    except msgspec.ValidationError as error:
        if _WHOLE_FLOAT not in str(error):
            raise
    return from_tree(_whole_floats_as_ints(tree), kind)


def _prefix_field_path(field: str, sentence: str) -> str:
    """Move the place that msgspec names from the open object to the whole message."""
    return (
        sentence.replace("`$", f"`$.{field}", 1)
        if "`$" in sentence
        else f"{sentence.removesuffix('.')} - at `$.{field}`."
    )


def _whole_floats_as_ints(tree: Any) -> Any:
    """JSON Schema counts 3.0 as an integer, and so do we; msgspec does not."""
    match tree:
        case float() if tree.is_integer():
            return int(tree)
        case dict():
            return {key: _whole_floats_as_ints(value) for key, value in tree.items()}
        case list():
            return [_whole_floats_as_ints(value) for value in tree]
        case _:
            return tree


def _malformed_rejection(raw: bytes, error: Exception) -> Rejected:
    at = _AT_BYTE.search(str(error))
    if (at and _NOT_A_NUMBER.match(raw, max(0, int(at[1]) - 1))) or _NOT_A_NUMBER.match(
        raw, int(at[1]) if at else 0
    ):
        return Rejected(Reason.NOT_A_NUMBER, "NaN and Infinity are not numbers of JSON.")
    if isinstance(error, UnicodeDecodeError):
        return Rejected(Reason.MALFORMED, "The message is not UTF-8.")
    return Rejected(Reason.MALFORMED, f"{error}.")
