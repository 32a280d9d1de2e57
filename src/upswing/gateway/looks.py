"""Is this whole answer one, and what does a server's error say?"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from upswing.contracts.typed import json_decoder
from upswing.gateway.faults import CLIENTS_OWN, Fault
from upswing.gateway.problems import error_body

_PASSED = (b"retry-after", b"x-request-id")
_NOTHING = Raw(b"")


class _Body(msgspec.Struct, gc=False):
    error: Raw = _NOTHING
    choices: Raw = _NOTHING


_BODY = json_decoder(_Body)


def look_at(body: bytes) -> Fault | None:
    """Is this whole answer one? Some servers answer 200 and mean an error.

    >>> look_at(b'{"choices": []}') is None, look_at(b'{"error": "oom"}'), look_at(b"<html>")
    (True, <Fault.ERROR_BODY: ...>, <Fault.GARBAGE: ...>)
    """
    try:
        answer = _BODY.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Fault.GARBAGE
    if answer.error and bytes(answer.error) != b"null":
        return Fault.ERROR_BODY
    return None if answer.choices else Fault.GARBAGE


def told_by(body: bytes) -> str:
    """The sentence in a server's error.

    >>> told_by(b'{"error": {"message": "out of memory"}}'), told_by(b"<html>")
    ('out of memory', '')
    """
    try:
        tree: Any = msgspec.json.decode(body)
        error = tree.get("error", tree)
        message = error.get("message", "") if isinstance(error, dict) else error
    except (msgspec.DecodeError, UnicodeDecodeError, AttributeError, RecursionError):
        return ""
    return str(message)[:500]


def passed_on(status: int, body: bytes, headers: dict[bytes, bytes]) -> tuple[bytes, bytes]:
    """A server's refusal as a client hears it: the body, in OpenAI's words, and headers."""
    if look_at(body) is not Fault.ERROR_BODY:
        sentence = told_by(body) or f"The model's server answered {status}."
        kind = "invalid_request_error" if status in CLIENTS_OWN else "upstream_error"
        body = error_body(sentence, kind, "upstream_status")
    return body, b"".join(b"%s: %s\r\n" % (n, headers[n]) for n in _PASSED if n in headers)
