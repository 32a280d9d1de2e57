"""What does an error look like to a client of OpenAI's API, and what does an error of such a server say?

| written                                              | by                                            |
|------------------------------------------------------|-----------------------------------------------|
| `{"error": {"message", "type", "param", "code"}}`    | gateway and model server, as OpenAI does      |
| the same as the last event of a stream               | both, when a stream goes wrong                |

Other servers write `{"error": "…"}`, `{"message": "…"}` or `{"detail": "…"}`; all of them are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import msgspec

ErrorType = Literal[
    "invalid_request_error",
    "authentication_error",
    "permission_error",
    "not_found_error",
    "rate_limit_error",
    "upstream_error",
    "server_error",
]
DONE = b"data: [DONE]\n\n"
"""The end of a stream."""
_MAX_CHARACTERS = 500


class _ErrorObject(msgspec.Struct):
    message: str
    type: str
    param: str | None
    code: str


def error_body(
    message: str, error_type: str, code: str | None = None, param: str | None = None
) -> bytes:
    """An error as OpenAI writes it; without a `code`, it follows from the type.

    >>> error_body("No.", "not_found_error")
    b'{"error":{"message":"No.","type":"not_found_error","param":null,"code":"not_found"}}'
    >>> error_body("No.", "not_found_error", "model_not_found", "model")
    b'{"error":{"message":"No.","type":"not_found_error","param":"model","code":"model_not_found"}}'
    """
    error_code = code or error_type.removesuffix("_error")
    return msgspec.json.encode({"error": _ErrorObject(message, error_type, param, error_code)})


def error_event(body: bytes) -> bytes:
    """The end of a stream that went wrong: clients raise the error, and none waits for more."""
    return b"data: %s\n\n%s" % (body, DONE)


@dataclass(frozen=True, slots=True)
class ServerError:
    """What an error answer says; empty where it does not say."""

    message: str = ""
    code: str = ""
    type: str = ""
    param: str = ""


def read_error(body: bytes) -> ServerError:
    """The error in an answer, in any of the usual shapes.

    >>> read_error(b'{"error": {"message": "No.", "code": "quota"}}')
    ServerError(message='No.', code='quota', type='', param='')
    >>> [read_error(body).message for body in (b'{"error": "No."}', b'{"detail": "No."}', b'{"message": "No."}', b"No.")]
    ['No.', 'No.', 'No.', '']
    """
    try:
        tree = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ServerError()
    if not isinstance(tree, dict):
        return ServerError()
    error = tree.get("error")
    if not isinstance(error, dict):
        return ServerError(_text(error) or _text(tree.get("message")) or _text(tree.get("detail")))
    return ServerError(*(_text(error.get(name)) for name in ("message", "code", "type", "param")))


def error_message(body: bytes) -> str:
    """What an error answer says, for a sentence of ours.

    >>> error_message(b"<html>")
    'it does not say why.'
    """
    return read_error(body).message or "it does not say why."


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    return str(value)[:_MAX_CHARACTERS]
