"""Is this whole answer one, and what does a server's error say?"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from upswing.contracts.typed import json_decoder
from upswing.gateway.core.error_fields import client_field, client_sentence, field_in
from upswing.gateway.core.faults import CLIENT_ERROR_STATUSES, Fault
from upswing.gateway.core.shapes import ClientShape, shaped_error
from upswing.gateway.core.sse import event_payloads
from upswing.openai.errors import read_error

_PASSED = (b"retry-after", b"x-request-id")
_NOTHING = Raw(b"")
_NOT_FOUND = 404


class _Body(msgspec.Struct, gc=False):
    error: Raw = _NOTHING
    choices: Raw = _NOTHING
    output: Raw = _NOTHING
    content: Raw = _NOTHING
    data: Raw = _NOTHING


_BODY = json_decoder(_Body)


def check_answer(body: bytes, known_by: str = "choices") -> Fault | None:
    """Is this whole answer one, by the field that its shape has? Some servers answer 200 and mean an error.

    >>> check_answer(b'{"choices": []}') is None, check_answer(b'{"error": "oom"}'), check_answer(b"<html>")
    (True, <Fault.ERROR_BODY: ...>, <Fault.GARBAGE: ...>)
    """
    try:
        answer = _BODY.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Fault.GARBAGE
    if answer.error and bytes(answer.error) != b"null":
        return Fault.ERROR_BODY
    return None if getattr(answer, known_by) else Fault.GARBAGE


def error_message_in(body: bytes) -> str:
    """The message in a server's error.

    >>> error_message_in(b'{"error": {"message": "out of memory"}}'), error_message_in(b"<html>")
    ('out of memory', '')
    """
    try:
        tree: Any = msgspec.json.decode(body)
        error = tree.get("error", tree)
        message = error.get("message", "") if isinstance(error, dict) else error
    except (msgspec.DecodeError, UnicodeDecodeError, AttributeError, RecursionError):
        return ""
    return str(message)[:500]


def stream_error_message(data: bytes) -> str:
    r"""The message in the error event among these.

    >>> stream_error_message(b'data: {"error": {"message": "out of memory"}}\n\n')
    'out of memory'
    """
    found = (error_message_in(each) for each in event_payloads(data) if b'"error"' in each)
    return next(filter(None, found), "")


def translate_error(
    status: int,
    body: bytes,
    headers: dict[bytes, bytes],
    shape: ClientShape = ClientShape.CHAT,
    asked: ClientShape | None = None,
) -> tuple[bytes, bytes]:
    """A server's refusal as a client hears it: the body, in the words of its shape, and headers.

    `asked`: the shape in which the server was asked, where that is another one.
    """
    known = check_answer(body) is Fault.ERROR_BODY
    if shape is ClientShape.MESSAGES:
        known = known and b'"type":"error"' in body.replace(b" ", b"")
    translated = asked is not None and asked is not shape
    missing = status == _NOT_FOUND and not shape.conversational and not _of_model(body)
    if not known or translated or missing:
        error_type = (
            "invalid_request_error" if status in CLIENT_ERROR_STATUSES else "upstream_error"
        )
        said = error_message_in(body)
        told = read_error(body)
        if missing:
            message = f"The model's server has no path /v1{shape.path}"
            message = f"{message}: {said}" if said else f"{message}."
        else:
            message = client_sentence(shape, said) or f"The model's server answered {status}."
        code = told.code if known and told.code else "upstream_status"
        param = client_field(shape, told.param) or field_in(message)
        kind = told.type if known and shape is not ClientShape.MESSAGES else ""
        body = shaped_error(shape, message, kind or error_type, code, param)
    return body, b"".join(b"%s: %s\r\n" % (n, headers[n]) for n in _PASSED if n in headers)


def _of_model(body: bytes) -> bool:
    """Does a 404 speak of the model, and not of the path?"""
    told = read_error(body)
    return "model" in f"{told.message} {told.code}".lower()
