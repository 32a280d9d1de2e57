"""What does an error look like to a client of Anthropic's API?"""

from __future__ import annotations

from typing import Any

import msgspec

from upswing.errors import Reason, Rejected

_TYPES = {"upstream_error": "api_error", "server_error": "api_error"}
"""Types that Anthropic's API calls otherwise; the others have the same name there."""


class ThreadUnsupported(Rejected):
    """A request that relies on a conversation held by the server: its client can send all of it instead."""

    error_code = "thread_unsupported_request"
    """By which Anthropic's clients know to go on without."""

    def __init__(self) -> None:
        message = "`thread` needs a stored conversation, and none is stored here"
        remedy = "send the whole conversation in `messages`, without `thread`"
        super().__init__(Reason.SCHEMA, f"{message}: {remedy}.")


def error_body(message: str, error_type: str, error_code: str = "") -> bytes:
    """An error as Anthropic writes it; `error_code` is one that its clients act on.

    >>> error_body("No.", "server_error")
    b'{"type":"error","error":{"type":"api_error","message":"No."}}'
    """
    error: dict[str, Any] = {"type": _TYPES.get(error_type, error_type), "message": message}
    if error_code:
        error["details"] = {"error_code": error_code}
    return msgspec.json.encode({"type": "error", "error": error})
