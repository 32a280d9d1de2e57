"""How is a client told that something went wrong? In OpenAI's words, so that its library understands."""

from __future__ import annotations

from typing import Literal

import msgspec

from upswing.errors import Reason

Kind = Literal[
    "invalid_request_error", "authentication_error", "permission_error", "not_found_error",
    "rate_limit_error", "upstream_error", "server_error",
]  # fmt: skip
JSON = b"application/json"
STATUS_OF = {
    Reason.TOO_LARGE: 413,
    Reason.CONFLICT: 409,
    Reason.NOT_YOURS: 403,
    Reason.MALFORMED: 400,
    Reason.TOO_DEEP: 400,
    Reason.NOT_A_NUMBER: 400,
}
"""The HTTP status of each reason; the others are 400 to a model's client and 422 to an operator."""
_PHRASES = {
    200: "OK", 201: "Created", 202: "Accepted", 400: "Bad Request", 401: "Unauthorized",
    403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 409: "Conflict",
    413: "Content Too Large", 415: "Unsupported Media Type", 422: "Unprocessable Content",
    429: "Too Many Requests", 500: "Internal Server Error", 502: "Bad Gateway",
    503: "Service Unavailable", 504: "Gateway Timeout",
}  # fmt: skip
_LINES = {status: f"HTTP/1.1 {status} {phrase}\r\n".encode() for status, phrase in _PHRASES.items()}


def status_line(status: int) -> bytes:
    r"""How a response begins.

    >>> status_line(200), status_line(299)
    (b'HTTP/1.1 200 OK\r\n', b'HTTP/1.1 299 Status\r\n')
    """
    return _LINES.get(status) or b"HTTP/1.1 %d Status\r\n" % status


class _Error(msgspec.Struct):
    message: str
    type: str
    param: str | None = None
    code: str | None = None


def error_body(message: str, kind: str, code: str | None = None) -> bytes:
    """An error as OpenAI writes it.

    >>> error_body("No.", "server_error")
    b'{"error":{"message":"No.","type":"server_error","param":null,"code":null}}'
    """
    return msgspec.json.encode({"error": _Error(message, kind, None, code)})


def error_event(message: str, kind: str, code: str | None = None) -> bytes:
    """The end of a stream that went wrong: clients raise the error, and none waits for more."""
    return b"data: %s\n\ndata: [DONE]\n\n" % error_body(message, kind, code)


def response(
    status: int, body: bytes, kind: bytes = JSON, extra: bytes = b"", *, keep: bool = True
) -> bytes:
    """A whole HTTP/1.1 response."""
    return b"%scontent-type: %s\r\ncontent-length: %d\r\n%s%s\r\n%s" % (
        status_line(status), kind, len(body), extra, b"" if keep else b"connection: close\r\n", body,
    )  # fmt: skip
