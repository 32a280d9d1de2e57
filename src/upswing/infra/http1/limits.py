"""How much does a port take from whom, and how long does it wait?"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

_KB, _MB = 1024, 1024 * 1024


class PortLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The bounds of a port. Times are real time; nothing speeds them up."""

    body_bytes: Annotated[int, Meta(ge=1024, le=1024 * _MB)] = 32 * _MB
    """Of a request, 1 KB to 1 GB: a larger one is answered with 413. A prompt with pictures fits."""
    uploads_bytes: Annotated[int, Meta(ge=1024)] = 512 * _MB
    """Request bodies in memory at once, counted as they are declared, of one key half of what the others leave;
    beyond it a request is answered with 429."""
    connections: Annotated[int, Meta(ge=1)] = 8192
    """Of clients; at most half of the files that the process may open. Beyond it one that has shown
    no key is dropped, then one that is unused; when all are in use, the newest is closed with 503."""
    peer_connections: Annotated[int, Meta(ge=1)] = 4096
    """From one address; beyond it, the same among its own."""
    peer_keyless: Annotated[int, Meta(ge=1)] = 512
    """From one address and without a key so far; beyond it, the oldest of them is dropped."""
    line_bytes: Annotated[int, Meta(ge=64)] = 16 * _KB
    """The address that is asked for; a longer one is answered with 414."""
    header_bytes: Annotated[int, Meta(ge=128)] = 64 * _KB
    """All headers together; more are answered with 431."""
    header_count: Annotated[int, Meta(ge=1)] = 100
    """More are answered with 431."""
    ahead: Annotated[int, Meta(ge=0)] = 16
    """Requests that are sent on one connection before the answer to an earlier one."""
    keyless_bytes: Annotated[int, Meta(ge=1024)] = 4 * _MB
    """On one connection without a key; then it is closed after an answer."""
    unread_bytes: Annotated[int, Meta(ge=0)] = 64 * _MB
    """Of a refused body, read on and thrown away so that the client hears the refusal; an eighth of
    it from one without a key."""
    head_seconds: Annotated[float, Meta(gt=0)] = 10.0
    """From the first byte of a request to the end of its headers; a slower one is answered with 408."""
    body_seconds: Annotated[float, Meta(gt=0)] = 30.0
    """For the body, and a second more for every `body_rate` bytes that have come; then 408."""
    body_rate: Annotated[int, Meta(ge=1)] = 16 * _KB
    """Bytes a second."""
    client_seconds: Annotated[float, Meta(gt=0)] = 60.0
    """A client that takes longer to read on is disconnected."""
    linger_seconds: Annotated[float, Meta(gt=0)] = 2.0
    """After a last answer, for the client to hear it."""
    keyless_seconds: Annotated[float, Meta(gt=0)] = 30.0
    """A connection without a request, on which no key was shown."""
    idle_seconds: Annotated[float, Meta(gt=0)] = 600.0
    """A kept connection without a request; above the 300 s that client libraries keep theirs."""
