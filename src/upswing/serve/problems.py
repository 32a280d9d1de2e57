"""How is a client told that something went wrong? In OpenAI's words, so that its library understands.

| what happened                          | status | type                    | code                     |
|----------------------------------------|--------|-------------------------|--------------------------|
| a field is wrong, the body no JSON     | 400    | invalid_request_error   | `schema`, `malformed`    |
| the prompt is longer than the context  | 400    | invalid_request_error   | `context_length_exceeded`|
| the body is too large                  | 413    | invalid_request_error   | `too_large`              |
| the model is not served here           | 404    | not_found_error         | `model_not_found`        |
| the name is in use with another path   | 409    | invalid_request_error   | `conflict`               |
| too many requests are under way        | 429    | rate_limit_error        | `requests`               |
| it closes, or unloads the model        | 503    | server_error            | `unavailable`            |
| the key is missing or wrong            | 401    | authentication_error    | `key`                    |
| this door is closed on this address    | 403    | permission_error        | `forbidden`              |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec

from upswing.errors import Conflict, Denied, Misuse, Reason, Rejected, Transient, UpswingError
from upswing.serve.asked import BadRequest

Kind = Literal[
    "invalid_request_error", "authentication_error", "permission_error", "not_found_error",
    "rate_limit_error", "server_error",
]  # fmt: skip


class _Told(msgspec.Struct):
    message: str
    type: Kind
    param: str | None
    code: str


@dataclass(frozen=True, slots=True)
class Problem:
    """Why there is no answer."""

    status: int
    message: str
    kind: Kind = "invalid_request_error"
    code: str = "schema"
    param: str | None = None

    def body(self) -> bytes:
        """As OpenAI writes it.

        >>> Problem(404, "No.", "not_found_error", "model_not_found", "model").body()
        b'{"error":{"message":"No.","type":"not_found_error","param":"model","code":"model_not_found"}}'
        """
        return msgspec.json.encode({
            "error": _Told(self.message, self.kind, self.param, self.code)
        })  # fmt: skip

    def event(self) -> bytes:
        """The end of a stream that went wrong: clients raise the error, and none waits for more."""
        return b"data: %s\n\ndata: [DONE]\n\n" % self.body()

    def headers(self) -> tuple[tuple[bytes, bytes], ...]:
        match self.status:
            case 401:
                return ((b"www-authenticate", b"Bearer"),)
            case 429 | 503:
                return ((b"retry-after", b"1"),)
            case _:
                return ()


FULL = Problem(
    429, "Too many requests are under way; try again soon.", "rate_limit_error", "requests"
)
BROKEN = Problem(500, "Something of ours broke; the log says what.", "server_error", "internal")


def problem_of(error: UpswingError) -> Problem:
    """What to tell a client that asked for something when this was raised."""
    said = str(error)
    match error:
        case BadRequest():
            return Problem(400, said, code=error.reason, param=error.param)
        case Conflict():
            return Problem(409, said, code=error.reason)
        case Rejected(reason=Reason.TOO_LARGE):
            return Problem(400, said, code="context_length_exceeded", param="messages")
        case Rejected():
            return Problem(400, said, code=error.reason)
        case Misuse():
            return Problem(404, said, "not_found_error", "model_not_found", "model")
        case Denied():
            return Problem(401, said, "authentication_error", "key")
        case Transient():
            return Problem(503, said, "server_error", "unavailable")
        case _:
            return BROKEN
