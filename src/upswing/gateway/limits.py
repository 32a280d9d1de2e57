"""How much does the gateway take on, and how long does it wait?"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

_MB = 1024 * 1024


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The gateway's bounds. Times are real time; nothing speeds them up."""

    body_bytes: Annotated[int, Meta(ge=1024, le=1024 * _MB)] = 32 * _MB
    """Of a request, 1 KB to 1 GB: a larger one is answered with 413. A prompt with pictures fits."""
    answer_bytes: Annotated[int, Meta(ge=1024)] = 64 * _MB
    """Of an answer that comes whole; a larger one is an error of its server."""
    held_bytes: Annotated[int, Meta(ge=1024)] = 1 * _MB
    """Of an answer that is held back until it is whole and checked; a larger one goes on as it
    comes, at the client's pace."""
    requests: Annotated[int, Meta(ge=1)] = 2048
    """Under way at once; beyond it a request is answered with 429."""
    connections: Annotated[int, Meta(ge=1)] = 8192
    """Of clients; beyond it a connection is closed with 503."""
    uploads_bytes: Annotated[int, Meta(ge=1024)] = 512 * _MB
    """Request bodies in memory at once; beyond it a request is answered with 429."""
    backend_connections: Annotated[int, Meta(ge=1)] = 512
    """To one server."""
    backend_waiting: Annotated[int, Meta(ge=0)] = 512
    """Requests that wait for one of them; beyond it a request is answered with 429."""
    connect_seconds: Annotated[float, Meta(gt=0)] = 5.0
    stall_seconds: Annotated[float, Meta(gt=0)] = 60.0
    """Between two pieces of an answer."""
    client_seconds: Annotated[float, Meta(gt=0)] = 60.0
    """A client that takes longer to send its request, or to read on, is disconnected."""
    idle_seconds: Annotated[float, Meta(gt=0)] = 600.0
    """A kept connection without a request; above the 300 s that client libraries keep theirs."""
    backend_idle_seconds: Annotated[float, Meta(gt=0)] = 60.0
    """A kept connection to a server, unused."""
    episodes: Annotated[int, Meta(ge=1)] = 100_000
    """Open at once; beyond it the one unused for longest ends."""
    episode_seconds: Annotated[float, Meta(gt=0)] = 900.0
    """Without a request; then the episode ends."""
    recording_bytes: Annotated[int, Meta(ge=0)] = 256 * _MB
    """Of open episodes, and again of ended ones that wait to be published: beyond it episodes are
    not recorded, and counted as lost."""
    close_seconds: Annotated[float, Meta(gt=0)] = 10.0
    """How long the call that ends an episode waits until it is durable."""
