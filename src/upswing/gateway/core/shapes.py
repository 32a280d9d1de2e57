"""In which shape does a client ask, and in which is the model's server asked?

| a client asks              | its server gets                                                              |
|----------------------------|------------------------------------------------------------------------------|
| a chat completion          | the same                                                                     |
| OpenAI's Responses,        | the same, where the server speaks that shape and its chat completions have   |
| Anthropic's Messages       | no token ids, which training needs; else a chat completion, and the answer   |
|                            | is translated back. What chat cannot say goes only to who speaks the shape   |
| a completion, embeddings   | the same: nobody's episode, and not recorded                                 |

Whatever the shape, the gateway knows a request by its chat form: episodes, recording and evidence are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from upswing.anthropic.errors import ThreadUnsupported
from upswing.anthropic.errors import error_body as anthropic_error_body
from upswing.anthropic.request import MessageSettings, translate_message_request
from upswing.contracts.traffic import Model
from upswing.gateway.core.chat_request import (
    NOTHING_ADDED,
    AddedFields,
    ChatRequest,
    added_fields,
    native_body,
    upstream_body,
)
from upswing.openai.errors import error_body
from upswing.openai.responses_request import (
    FindAnswer,
    ResponseSettings,
    translate_response_request,
)

_FORWARDED = (b"anthropic-version", b"anthropic-beta")
"""Headers of a client that belong to the Messages API."""
_NO_ANSWERS: FindAnswer = lambda _: None  # noqa: E731 - a default


class ClientShape(StrEnum):
    """How a request and its answer are written."""

    CHAT = "chat"
    RESPONSES = "responses"
    MESSAGES = "messages"
    COMPLETIONS = "completions"
    EMBEDDINGS = "embeddings"

    @property
    def path(self) -> str:
        """Below a server's `/v1`."""
        return "/chat/completions" if self is ClientShape.CHAT else f"/{self.value}"

    @property
    def conversational(self) -> bool:
        """Is it of an episode, and recorded?"""
        return self not in {ClientShape.COMPLETIONS, ClientShape.EMBEDDINGS}

    @property
    def answer_field(self) -> str:
        """The field by which a whole answer is known."""
        return _ANSWER_FIELDS[self]

    @property
    def last_events(self) -> frozenset[str]:
        """Events that end a stream; none: `[DONE]` does."""
        return _LAST_EVENTS.get(self, frozenset())


_ANSWER_FIELDS = {
    ClientShape.CHAT: "choices",
    ClientShape.COMPLETIONS: "choices",
    ClientShape.RESPONSES: "output",
    ClientShape.MESSAGES: "content",
    ClientShape.EMBEDDINGS: "data",
}
_LAST_EVENTS = {
    ClientShape.RESPONSES: frozenset({"response.completed", "response.incomplete"}),
    ClientShape.MESSAGES: frozenset({"message_stop"}),
}
SHAPE_BY_PATH: Mapping[bytes, ClientShape] = {
    f"{prefix}{shape.path}".encode(): shape for shape in ClientShape for prefix in ("", "/v1")
}


@dataclass(frozen=True, slots=True)
class ShapedRequest:
    """A request in the shape that its client speaks, and as a chat completion."""

    shape: ClientShape
    chat_body: bytes
    """As a chat completion; of completions and embeddings, as it came."""
    original: bytes
    """As it came."""
    native_only: str = ""
    """What chat cannot say of it; empty: nothing."""
    settings: ResponseSettings | MessageSettings | None = None
    headers: bytes = b""
    """Lines for a server that speaks the shape."""


@dataclass(frozen=True, slots=True)
class UpstreamRequest:
    """What a model's server is sent."""

    shape: ClientShape
    """In which it is asked, and answers."""
    body: bytes
    added: AddedFields = NOTHING_ADDED
    headers: bytes = b""


def read_shaped_request(
    shape: ClientShape,
    body: bytes,
    headers: Mapping[bytes, bytes],
    find_answer: FindAnswer = _NO_ANSWERS,
) -> ShapedRequest:
    """The request with its chat form, or `Rejected` with what is wrong with it."""
    match shape:
        case ClientShape.RESPONSES:
            response = translate_response_request(body, find_answer)
            return ShapedRequest(
                shape, response.body, body, response.native_only, response.settings
            )
        case ClientShape.MESSAGES:
            message = translate_message_request(body)
            lines = b"".join(b"%s: %s\r\n" % (n, headers[n]) for n in _FORWARDED if n in headers)
            return ShapedRequest(
                shape, message.body, body, message.native_only, message.settings, lines
            )
        case ClientShape.CHAT | ClientShape.COMPLETIONS | ClientShape.EMBEDDINGS:
            return ShapedRequest(shape, body, body)


def can_answer(model: Model, shaped: ShapedRequest) -> bool:
    """Can this model be asked at all?"""
    return not shaped.native_only or shaped.shape.value in model.shapes


def upstream_request(
    shaped: ShapedRequest, chat: ChatRequest, model: Model, temperature: float | None
) -> UpstreamRequest:
    """What this model's server is sent."""
    shape = shaped.shape
    if shape is ClientShape.EMBEDDINGS:
        # A vector is worth something only beside those of the model that it names.
        name = model.name if chat.model == model.model_id else None
        return UpstreamRequest(shape, native_body(shaped.original, name))
    if shape is ClientShape.COMPLETIONS:
        return UpstreamRequest(shape, native_body(shaped.original, model.name))
    if shape is not ClientShape.CHAT and _is_native(shaped, model):
        body = native_body(shaped.original, model.name, temperature)
        return UpstreamRequest(shape, body, headers=shaped.headers)
    added = added_fields(chat, model.extra)
    body = upstream_body(
        shaped.chat_body,
        chat,
        model.name,
        model.extra,
        temperature,
        strict=model.strict,
        count_usage=added.usage,
    )
    return UpstreamRequest(ClientShape.CHAT, body, added)


def _is_native(shaped: ShapedRequest, model: Model) -> bool:
    if shaped.shape.value not in model.shapes:
        return False
    return bool(shaped.native_only) or not model.extra.get("return_token_ids")


def shaped_error(
    shape: ClientShape,
    message: str,
    error_type: str,
    code: str | None = None,
    param: str | None = None,
) -> bytes:
    """An error as this client reads it."""
    if shape is ClientShape.MESSAGES:
        known = code == ThreadUnsupported.error_code
        return anthropic_error_body(message, error_type, code if known and code else "")
    return error_body(message, error_type, code, param)
