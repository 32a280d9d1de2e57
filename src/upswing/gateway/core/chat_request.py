"""What does the gateway need to know of a request? A few fields; the rest goes on unread.

The body is scanned once, and only these become values. What is forwarded is the client's own bytes,
or, when the model goes by another name at its server, the same values under the same keys with
that one replaced.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Raw

from upswing.contracts.backend import fields_for_strict_server
from upswing.contracts.typed import from_json, json_decoder
from upswing.errors import Reason, Rejected
from upswing.gateway.core.exploration import raised_temperature
from upswing.gateway.core.reported_outcome import CLIENT_METADATA_KEYS
from upswing.openai.requests import unreadable_body

_EPISODE_FIELDS = ("tensorzero::episode_id", "episode_id")
"""Ours and TensorZero's, unknown to model servers: they are not passed on."""
MAX_FIELD_BYTES = 1024 * 1024
"""Of everything beside `messages`: tools, formats, metadata. More is answered with 413."""
MAX_METADATA_BYTES = 256 * 1024
"""Of the metadata that goes into a trajectory. More is answered with 413."""
_ABSENT = Raw(b"")


class ClientMetadata(msgspec.Struct, gc=False):
    """What of a request's metadata anybody reads: ids and `CLIENT_METADATA_KEYS`. A client may put anything there."""

    episode_id: Raw = _ABSENT
    session_id: Raw = _ABSENT
    user_id: Raw = _ABSENT
    agent_id: Raw = _ABSENT
    task_id: Raw = _ABSENT
    window_id: Raw = _ABSENT
    window_hours: Raw = _ABSENT
    scenario_id: Raw = _ABSENT
    is_evaluation: Raw = _ABSENT
    environment: Raw = _ABSENT
    test_results: Raw = _ABSENT
    linter_results: Raw = _ABSENT
    security_scan: Raw = _ABSENT
    ground_truth: Raw = _ABSENT
    infra_error: Raw = _ABSENT
    outcome: Raw = _ABSENT
    purpose: Raw = _ABSENT
    domain: Raw = _ABSENT
    segment: Raw = _ABSENT
    reset: Raw = _ABSENT
    record: Raw = _ABSENT


class ChatRequest(msgspec.Struct, gc=False):
    """The fields of a chat completion request that decide who answers it."""

    messages: Raw
    model: str = ""
    stream: bool | None = None
    stream_options: Raw = _ABSENT
    logprobs: Raw = _ABSENT
    return_token_ids: Raw = _ABSENT
    user: str | None = None
    safety_identifier: str | None = None
    metadata: ClientMetadata | None = None
    episode_id: str | None = None
    tensorzero_episode_id: str | None = msgspec.field(default=None, name="tensorzero::episode_id")


class _OtherRequest(msgspec.Struct, gc=False):
    prompt: Raw = _ABSENT
    input: Raw = _ABSENT
    model: str = ""
    stream: bool | None = None
    metadata: ClientMetadata | None = None
    episode_id: str | None = None


class _StreamOptions(msgspec.Struct, gc=False):
    include_usage: Any = None


@dataclass(frozen=True, slots=True)
class AddedFields:
    """What a server is asked for beside what its client wants: it is taken out of what goes to the client."""

    logprobs: bool = False
    token_ids: bool = False
    usage: bool = False
    """At the end of a stream."""

    def __bool__(self) -> bool:
        return self.logprobs or self.token_ids or self.usage


NOTHING_ADDED = AddedFields()
_FIELDS = json_decoder(dict[str, Raw])
_TRUE = b"true"
_UNWANTED = (b"false", b"null")
_USAGE = "stream_options"
_WHOLE_NUMBER = re.compile(rb"-?[0-9]{1,256}")
_ENCODER = msgspec.json.Encoder()
_USAGE_OPTIONS = Raw(b'{"include_usage":true}')


def read_chat_request(body: bytes) -> ChatRequest:
    """The request in `body`, or `Rejected` with what is wrong with it.

    >>> read_chat_request(b'{"model": "m"}')
    Traceback (most recent call last):
    upswing.errors.Rejected: Object missing required field `messages`.
    """
    try:
        chat = from_json(body, ChatRequest)
    except msgspec.ValidationError as error:
        raise Rejected(Reason.SCHEMA, f"{error}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise unreadable_body(error) from None
    if bytes(memoryview(chat.messages)[:1]) != b"[":
        raise Rejected(Reason.SCHEMA, "`messages` is a list of messages.")
    if (beside := len(body) - memoryview(chat.messages).nbytes) > MAX_FIELD_BYTES:
        raise _too_large("The fields beside `messages` have", beside, MAX_FIELD_BYTES)
    return chat


def read_other_request(body: bytes) -> ChatRequest:
    """What decides who answers a completion or embeddings, or `Rejected`; they have no messages."""
    try:
        other = from_json(body, _OtherRequest)
    except msgspec.ValidationError as error:
        raise Rejected(Reason.SCHEMA, f"{error}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise unreadable_body(error) from None
    if (beside := len(body) - len(other.prompt) - len(other.input)) > MAX_FIELD_BYTES:
        raise _too_large("The fields beside `prompt` and `input` have", beside, MAX_FIELD_BYTES)
    return ChatRequest(
        Raw(b"[]"),
        other.model,
        other.stream,
        episode_id=other.episode_id,
        metadata=other.metadata,
    )


def client_metadata(chat: ChatRequest) -> bytes:
    """The metadata that goes into a trajectory, as JSON; `Rejected` when it is too much.

    >>> client_metadata(read_chat_request(b'{"messages":[],"metadata":{"purpose": "work","else":[1]}}'))
    b'{"purpose":"work"}'
    """
    if chat.metadata is None:
        return b"{}"
    given = [(key, bytes(getattr(chat.metadata, key))) for key in CLIENT_METADATA_KEYS]
    kept = b",".join(b'"%s":%s' % (key.encode(), raw) for key, raw in given if raw)
    if len(kept) > MAX_METADATA_BYTES:
        raise _too_large("`metadata` has", len(kept), MAX_METADATA_BYTES)
    _decode_value(whole := b"{%s}" % kept)  # whoever reads it later can
    return whole


def metadata_text(chat: ChatRequest, key: str, *, allow_numbers: bool = False) -> str | None:
    """A text in the metadata, or where `allow_numbers` may be one a whole number; None when there is none.

    >>> numbered = read_chat_request(b'{"messages":[],"metadata":{"task_id":7,"user_id":[1]}}')
    >>> metadata_text(numbered, "task_id", allow_numbers=True), metadata_text(numbered, "user_id")
    ('7', None)
    """
    raw = b"" if chat.metadata is None else bytes(getattr(chat.metadata, key))
    if raw[:1] == b'"':
        return str(_decode_value(raw)) or None
    if allow_numbers and _WHOLE_NUMBER.fullmatch(raw):
        return raw.decode()
    return None


def added_fields(chat: ChatRequest, extra: Mapping[str, Any]) -> AddedFields:
    """What `upstream_body` adds to this request; `stream_options` that is None in `extra`: its server refuses that.

    >>> added_fields(read_chat_request(b'{"messages":[],"stream":true,"logprobs":false}'), {"logprobs": True})
    AddedFields(logprobs=True, token_ids=False, usage=True)
    >>> bool(added_fields(read_chat_request(b'{"messages":[],"logprobs":true}'), {"logprobs": True}))
    False
    """
    return AddedFields(
        extra.get("logprobs") is True and bytes(chat.logprobs) != _TRUE,
        extra.get("return_token_ids") is True and bytes(chat.return_token_ids) != _TRUE,
        chat.stream is True and extra.get(_USAGE, True) is not None and not _asks_for_usage(chat),
    )


def _asks_for_usage(chat: ChatRequest) -> bool:
    if bytes(memoryview(chat.stream_options)[:1]) != b"{":
        return False
    return from_json(chat.stream_options, _StreamOptions).include_usage is True


def _decode_value(raw: bytes) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise unreadable_body(error) from None


def _too_large(subject: str, size: int, limit: int) -> Rejected:
    return Rejected(Reason.TOO_LARGE, f"{subject} {size} bytes, and {limit} are taken.")


def upstream_body(
    body: bytes,
    chat: ChatRequest,
    model_name: str,
    extra_fields: Mapping[str, Any],
    temperature: float | None = None,
    *,
    strict: bool = False,
    count_usage: bool = False,
) -> bytes:
    """The body for a server that calls the model `model_name`; `temperature` is what it explores at.

    A `strict` one gets no field that OpenAI's interface does not have. `count_usage`: a stream is to say what it took.

    >>> body = b'{"model":"a", "messages":[ ], "seed":1.50}'
    >>> upstream_body(body, read_chat_request(body), "a", {}) is body
    True
    >>> upstream_body(body, read_chat_request(body), "b", {"logprobs": True, "seed": 2})
    b'{"model":"b","messages":[ ],"seed":1.50,"logprobs":true}'
    >>> cold = b'{"model":"a","messages":[],"temperature":0}'
    >>> upstream_body(cold, read_chat_request(cold), "a", {}, temperature=0.7)
    b'{"model":"a","messages":[],"temperature":0.7}'
    >>> more = b'{"model":"a","messages":[],"guided_json":{},"metadata":{"session_id":"s"}}'
    >>> upstream_body(more, read_chat_request(more), "a", {}, strict=True)
    b'{"model":"a","messages":[]}'
    >>> streamed = b'{"model":"a","messages":[],"stream":true}'
    >>> upstream_body(streamed, read_chat_request(streamed), "a", {}, count_usage=True)
    b'{"model":"a","messages":[],"stream":true,"stream_options":{"include_usage":true}}'
    """
    names_episode = chat.episode_id is not None or chat.tensorzero_episode_id is not None
    if (
        chat.model == model_name
        and not extra_fields
        and not names_episode
        and temperature is None
        and not strict
        and not count_usage
    ):
        return body
    fields = _FIELDS.decode(body)
    if strict:
        fields = fields_for_strict_server(fields)
    _replace_fields(fields, model_name, temperature)
    if count_usage:
        fields[_USAGE] = _with_usage(fields.get(_USAGE))
    for field, value in extra_fields.items():
        if value is not None and (field not in fields or bytes(fields[field]) in _UNWANTED):
            fields[field] = Raw(_ENCODER.encode(value))
    return _ENCODER.encode(fields)


def native_body(body: bytes, model_name: str | None, temperature: float | None = None) -> bytes:
    """The body of a request in another shape, for a server that speaks it; None: the model is as its client names it.

    >>> native_body(b'{"model":"a","input":"Hi","episode_id":"e"}', "b")
    b'{"model":"b","input":"Hi"}'
    """
    fields = _FIELDS.decode(body)
    _replace_fields(fields, model_name, temperature)
    return _ENCODER.encode(fields)


def _replace_fields(
    fields: dict[str, Raw], model_name: str | None, temperature: float | None
) -> None:
    if temperature is not None and (
        warmer := raised_temperature(fields.get("temperature"), temperature)
    ):
        fields["temperature"] = warmer
    if model_name is not None:
        fields["model"] = _encoded_name(model_name)
    for field in _EPISODE_FIELDS:
        fields.pop(field, None)


def _with_usage(options: Raw | None) -> Raw:
    """A stream's options, with the count of its tokens at the end."""
    if options is None or bytes(memoryview(options)[:1]) != b"{":
        return _USAGE_OPTIONS
    given: dict[str, Any] = _FIELDS.decode(options)
    return Raw(_ENCODER.encode(given | {"include_usage": True}))


@lru_cache(maxsize=256)
def _encoded_name(model_name: str) -> Raw:
    return Raw(_ENCODER.encode(model_name))
