"""How much does the gateway take on, and how long does it wait?"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from upswing.infra.http1.limits import PortLimits

_MB = 1024 * 1024


class GatewayLimits(PortLimits, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The gateway's bounds, beside those of every port."""

    answer_bytes: Annotated[int, Meta(ge=1024)] = 64 * _MB
    """Of an answer that comes whole; a larger one is an error of its server."""
    held_bytes: Annotated[int, Meta(ge=1024)] = 1 * _MB
    """Of an answer that is held back until it is whole and checked; a larger one goes on as it
    comes, at the client's pace."""
    requests: Annotated[int, Meta(ge=1)] = 2048
    """Under way at once; beyond it a request is answered with 429."""
    backend_connections: Annotated[int, Meta(ge=1)] = 512
    """To one server."""
    backend_waiting: Annotated[int, Meta(ge=0)] = 512
    """Requests that wait for one of them; beyond it a request is answered with 429."""
    connect_seconds: Annotated[float, Meta(gt=0)] = 5.0
    stall_seconds: Annotated[float, Meta(gt=0)] = 60.0
    """Between two pieces of an answer."""
    backend_idle_seconds: Annotated[float, Meta(gt=0)] = 60.0
    """A kept connection to a server, unused."""
    episodes: Annotated[int, Meta(ge=1)] = 100_000
    """Open at once; beyond it the one unused for longest ends."""
    episode_seconds: Annotated[float, Meta(gt=0)] = 900.0
    """Without a request; then the episode ends."""
    recording_bytes: Annotated[int, Meta(ge=0)] = 256 * _MB
    """Of all that is held of open episodes, and again of ended ones that wait to be published: beyond it
    episodes of the key that holds most are not recorded, and counted as lost. An eighth of it is for what is remembered of ended ones."""
    close_seconds: Annotated[float, Meta(gt=0)] = 10.0
    """How long the call that ends an episode waits until it is durable."""
