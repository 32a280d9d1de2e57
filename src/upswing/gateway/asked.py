"""What does the gateway need to know of a request? A few fields; the rest goes on unread.

The body is scanned once, and only these become values. What is forwarded is the client's own bytes,
or, when the model goes by another name at its server, the same values under the same keys with
that one replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Raw

from upswing.contracts.backend import sendable
from upswing.contracts.typed import from_json, json_decoder
from upswing.errors import Reason, Rejected
from upswing.gateway.explore import warmed
from upswing.gateway.problems import unreadable

_EPISODE_FIELDS = ("tensorzero::episode_id", "episode_id")
"""Ours and TensorZero's, unknown to model servers: they are not passed on."""


class Asked(msgspec.Struct, gc=False):
    """The fields of a chat completion request that decide who answers it."""

    messages: Raw
    model: str = ""
    stream: bool | None = None
    user: str | None = None
    safety_identifier: str | None = None
    metadata: dict[str, Any] | None = None
    episode_id: str | None = None
    their_episode_id: str | None = msgspec.field(default=None, name="tensorzero::episode_id")


_FIELDS = json_decoder(dict[str, Raw])
_ENCODER = msgspec.json.Encoder()


def read_asked(body: bytes) -> Asked:
    """The request in `body`, or `Rejected` with what is wrong with it.

    >>> read_asked(b'{"model": "m"}')
    Traceback (most recent call last):
    upswing.errors.Rejected: Object missing required field `messages`.
    """
    try:
        asked = from_json(body, Asked)
    except msgspec.ValidationError as error:
        raise Rejected(Reason.SCHEMA, f"{error}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise unreadable(error) from None
    if bytes(memoryview(asked.messages)[:1]) != b"[":
        raise Rejected(Reason.SCHEMA, "`messages` is a list of messages.")
    return asked


def forwarded(
    body: bytes,
    asked: Asked,
    name: str,
    extra: Mapping[str, Any],
    temperature: float | None = None,
    *,
    strict: bool = False,
) -> bytes:
    """The body for a server that calls the model `name`; `temperature` is what it explores at.

    A `strict` one gets no field that OpenAI's interface does not have.

    >>> body = b'{"model":"a", "messages":[ ], "seed":1.50}'
    >>> forwarded(body, read_asked(body), "a", {}) is body
    True
    >>> forwarded(body, read_asked(body), "b", {"logprobs": True, "seed": 2})
    b'{"model":"b","messages":[ ],"seed":1.50,"logprobs":true}'
    >>> cold = b'{"model":"a","messages":[],"temperature":0}'
    >>> forwarded(cold, read_asked(cold), "a", {}, temperature=0.7)
    b'{"model":"a","messages":[],"temperature":0.7}'
    >>> more = b'{"model":"a","messages":[],"guided_json":{},"metadata":{"session_id":"s"}}'
    >>> forwarded(more, read_asked(more), "a", {}, strict=True)
    b'{"model":"a","messages":[]}'
    """
    named = asked.episode_id is not None or asked.their_episode_id is not None
    if asked.model == name and not extra and not named and temperature is None and not strict:
        return body
    fields = _FIELDS.decode(body)
    if strict:
        fields = sendable(fields)
    if temperature is not None and (warm := warmed(fields.get("temperature"), temperature)):
        fields["temperature"] = warm
    fields["model"] = _raw(name)
    if named:
        for field in _EPISODE_FIELDS:
            fields.pop(field, None)
    for field, value in extra.items():
        if field not in fields:
            fields[field] = Raw(_ENCODER.encode(value))
    return _ENCODER.encode(fields)


@lru_cache(maxsize=256)
def _raw(name: str) -> Raw:
    return Raw(_ENCODER.encode(name))
