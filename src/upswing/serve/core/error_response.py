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

from upswing.errors import Conflict, Denied, Misuse, Reason, Rejected, Transient, UpswingError
from upswing.openai.errors import ErrorType, error_body, error_event
from upswing.serve.core.chat_request import InvalidChatRequest


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """Why there is no answer."""

    status: int
    message: str
    error_type: ErrorType = "invalid_request_error"
    code: str = "schema"
    param: str | None = None

    def body(self) -> bytes:
        return error_body(self.message, self.error_type, self.code, self.param)

    def sse_event(self) -> bytes:
        return error_event(self.body())

    def headers(self) -> tuple[tuple[bytes, bytes], ...]:
        match self.status:
            case 401:
                return ((b"www-authenticate", b"Bearer"),)
            case 429 | 503:
                return ((b"retry-after", b"1"),)
            case _:
                return ()


TOO_MANY_REQUESTS = ErrorResponse(
    429, "Too many requests are under way; try again soon.", "rate_limit_error", "requests"
)
INTERNAL_ERROR = ErrorResponse(
    500, "Something of ours broke; the log says what.", "server_error", "internal"
)


def error_response(error: UpswingError) -> ErrorResponse:
    """What to tell a client that asked for something when this was raised."""
    message = str(error)
    match error:
        case InvalidChatRequest():
            return ErrorResponse(400, message, code=error.reason, param=error.param)
        case Conflict():
            return ErrorResponse(409, message, code=error.reason)
        case Rejected(reason=Reason.TOO_LARGE):
            return ErrorResponse(400, message, code="context_length_exceeded", param="messages")
        case Rejected():
            return ErrorResponse(400, message, code=error.reason)
        case Misuse():
            return ErrorResponse(404, message, "not_found_error", "model_not_found", "model")
        case Denied():
            return ErrorResponse(401, message, "authentication_error", "key")
        case Transient():
            return ErrorResponse(503, message, "server_error", "unavailable")
        case _:
            return INTERNAL_ERROR
