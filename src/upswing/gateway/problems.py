"""How is a client told that something went wrong? In OpenAI's words, so that its library understands."""

from __future__ import annotations

from typing import Literal

import msgspec

from upswing.errors import Reason, Rejected
from upswing.http1.wire import JSON, response, status_line

__all__ = ["JSON", "STATUS_OF", "Kind", "error_body", "error_event", "response", "status_line"]
Kind = Literal[
    "invalid_request_error", "authentication_error", "permission_error", "not_found_error",
    "rate_limit_error", "upstream_error", "server_error",
]  # fmt: skip
STATUS_OF = {
    Reason.TOO_LARGE: 413,
    Reason.CONFLICT: 409,
    Reason.NOT_YOURS: 403,
    Reason.MALFORMED: 400,
    Reason.TOO_DEEP: 400,
    Reason.NOT_A_NUMBER: 400,
}
"""The HTTP status of each reason; the others are 400 to a model's client and 422 to an operator."""


class _Error(msgspec.Struct):
    message: str
    type: str
    param: str | None = None
    code: str | None = None


def error_body(message: str, kind: str, code: str | None = None) -> bytes:
    """An error as OpenAI writes it; without a narrower word in `code`, that of its kind.

    >>> error_body("No.", "not_found_error")
    b'{"error":{"message":"No.","type":"not_found_error","param":null,"code":"not_found"}}'
    """
    word = code or kind.removesuffix("_error")
    return msgspec.json.encode({"error": _Error(message, kind, None, word)})


def unreadable(error: Exception) -> Rejected:
    """What is wrong with a body that cannot be read as JSON.

    >>> unreadable(RecursionError("maximum recursion depth exceeded")).reason.value
    'too_deep'
    """
    if isinstance(error, RecursionError):
        return Rejected(Reason.TOO_DEEP, "The body is nested too deeply.")
    return Rejected(Reason.MALFORMED, f"The body is not JSON: {error}.")


def error_event(message: str, kind: str, code: str | None = None) -> bytes:
    """The end of a stream that went wrong: clients raise the error, and none waits for more."""
    return b"data: %s\n\ndata: [DONE]\n\n" % error_body(message, kind, code)
