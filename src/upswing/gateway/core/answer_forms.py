"""In which form does an answer go on to its client?

| the server was asked                     | its answer goes on                                             |
|------------------------------------------|----------------------------------------------------------------|
| just what the client asked               | as it came                                                     |
| for logprobs, token ids or usage besides | without them                                                   |
| in chat, for a client of another shape   | in that shape                                                  |
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec
from msgspec import Raw

from upswing.anthropic.answer import message_body
from upswing.anthropic.request import MessageSettings
from upswing.anthropic.stream import MessageStream
from upswing.contracts.typed import json_decoder
from upswing.gateway.core.chat_request import AddedFields
from upswing.gateway.core.shapes import ClientShape, ShapedRequest, UpstreamRequest, shaped_error
from upswing.openai.completions import read_completion
from upswing.openai.errors import DONE, error_event
from upswing.openai.responses_answer import ResponseIds, response_body
from upswing.openai.responses_request import ResponseSettings
from upswing.openai.responses_stream import ResponseStream

_DONE = b"[DONE]"
_FIELDS = json_decoder(dict[str, Raw])
_CHOICES = json_decoder(list[dict[str, Raw]])
_ENCODER = msgspec.json.Encoder()
_USAGE, _NO_USAGE = b'"usage"', b',"usage":null}\n\n'
_EMPTY_LISTS = (b"[]", b"null", b"")


class AnswerForm(Protocol):
    """Writes one answer as its client reads it."""

    streams_whole: bool
    """A whole answer may go on piece by piece, before all of it is there."""

    def whole(self, body: bytes) -> bytes | None:
        """A whole answer; None: it is none."""
        ...

    def events(self, events: bytes) -> bytes:
        """Whole events of a stream; `msgspec.MsgspecError` when one is none of its shape."""
        ...

    def fail(self, message: str, error_type: str, code: str) -> bytes:
        """The end of a stream whose rest does not come."""
        ...


def answer_form(shaped: ShapedRequest, request: UpstreamRequest, answer_id: str) -> AnswerForm:
    """The form in which the answer to `request` goes to the client of `shaped`."""
    if request.shape is shaped.shape:
        if request.added:
            return CleanedAnswer(request.added)
        return PassedAnswer(shaped.shape)
    return TranslatedAnswer(shaped, answer_id)


class PassedAnswer:
    """As it came."""

    streams_whole = True

    def __init__(self, shape: ClientShape) -> None:
        self._shape = shape

    def whole(self, body: bytes) -> bytes | None:
        return body

    def events(self, events: bytes) -> bytes:
        return events

    def fail(self, message: str, error_type: str, code: str) -> bytes:
        if self._shape is ClientShape.RESPONSES:
            return ResponseStream("", ResponseSettings()).fail(message, error_type, code)
        body = shaped_error(self._shape, message, error_type, code)
        if self._shape is ClientShape.MESSAGES:
            return b"event: error\ndata: %s\n\n" % body
        return error_event(body)


class TranslatedAnswer:
    """A chat completion, in the client's shape."""

    streams_whole = False

    def __init__(self, shaped: ShapedRequest, answer_id: str) -> None:
        self._settings, self._answer_id = shaped.settings, answer_id
        self._stream: ResponseStream | MessageStream = (
            MessageStream(answer_id, shaped.settings)
            if isinstance(shaped.settings, MessageSettings)
            else ResponseStream(answer_id, shaped.settings or ResponseSettings())
        )

    def whole(self, body: bytes) -> bytes | None:
        if (completion := read_completion(body)) is None:
            return None
        if isinstance(self._settings, MessageSettings):
            return message_body(completion, self._answer_id, self._settings)
        ids = ResponseIds(self._answer_id)
        return response_body(completion, ids, self._settings or ResponseSettings())

    def events(self, events: bytes) -> bytes:
        written = []
        for line in events.splitlines():
            if line.startswith(b"data:"):
                payload = line[5:].strip()
                stream = self._stream
                written.append(stream.finish() if payload == _DONE else stream.feed(payload))
            elif line.startswith(b":"):  # keeps a connection warm
                written.append(line + b"\n\n")
        return b"".join(written)

    def fail(self, message: str, error_type: str, code: str) -> bytes:
        return self._stream.fail(message, error_type, code)


class CleanedAnswer:
    """A chat completion without what its client did not ask for."""

    streams_whole = False

    def __init__(self, added: AddedFields) -> None:
        self._added = added
        self._choice_fields = (("logprobs",) if added.logprobs else ()) + (
            ("token_ids", "text", "prompt_token_ids") if added.token_ids else ()
        )
        self._marks = ((b'"logprobs"',) if added.logprobs else ()) + (
            (b'_ids"', b'"text"') if added.token_ids else ()
        )

    def whole(self, body: bytes) -> bytes | None:
        if not self._choice_fields:
            return body
        fields = _FIELDS.decode(body)
        self._clean(fields)
        return _ENCODER.encode(fields)

    def events(self, events: bytes) -> bytes:
        if not self._marks and _USAGE not in events:
            return events
        if not any(mark in events for mark in self._marks):
            if not self._added.usage or _USAGE not in events:
                return events
            if events.endswith(_NO_USAGE) and events.count(_USAGE) == 1:  # the usual case
                return events[: -len(_NO_USAGE)] + b"}\n\n"
        return b"".join(map(self._clean_line, events.splitlines(keepends=True)))

    def fail(self, message: str, error_type: str, code: str) -> bytes:
        return error_event(shaped_error(ClientShape.CHAT, message, error_type, code))

    def _clean_line(self, line: bytes) -> bytes:
        """A line of an event; nothing of one that only says what was not asked for."""
        if not line.startswith(b"data:"):
            return line if line.strip() else b""
        if (payload := line[5:].strip()) == _DONE:
            return DONE
        fields = _FIELDS.decode(payload)
        usage = fields.pop("usage", None) if self._added.usage else None
        if usage is not None and bytes(fields.get("choices", Raw(b""))) in _EMPTY_LISTS:
            return b""
        self._clean(fields)
        return b"data: %s\n\n" % _ENCODER.encode(fields)

    def _clean(self, fields: dict[str, Any]) -> None:
        if not self._choice_fields:
            return
        if self._added.token_ids:
            fields.pop("prompt_token_ids", None)
        choices = _CHOICES.decode(fields.get("choices", b"[]"))
        for choice in choices:
            for name in self._choice_fields:
                if name == "logprobs" and name in choice:
                    choice[name] = Raw(b"null")
                else:
                    choice.pop(name, None)
        fields["choices"] = choices
