"""Does this episode try something else? Where agents always ask at temperature 0, nothing is compared.

A share of the episodes, drawn by a hash of their ids, is asked for at a higher temperature. The others
go on as their clients want them, and so does every request that asks for more warmth than that by
itself. What was tried is marked in the trajectory. Off unless it is configured.
"""

from __future__ import annotations

from hashlib import sha256

import msgspec
from msgspec import Raw

from upswing.config import ExploreConfig
from upswing.contracts.typed import from_json

_DEFAULT_TEMPERATURE = 1.0
"""The temperature of a request that names none."""


def exploration_temperature(trajectory_id: str, config: ExploreConfig | None) -> float | None:
    """The temperature that this episode explores at; None: it does not.

    >>> exploration_temperature("e", ExploreConfig(share=1.0)), exploration_temperature("e", ExploreConfig(share=0.0))
    (1.0, None)
    """
    if config is None:
        return None
    draw = int.from_bytes(sha256(f"explore\0{trajectory_id}".encode()).digest()[:8]) / 2**64
    return config.temperature if draw < config.share else None


def raised_temperature(requested: Raw | None, temperature: float) -> Raw | None:
    """The temperature to send instead of what was asked for; None: it is warm enough.

    >>> bytes(raised_temperature(Raw(b"0"), 0.8)), raised_temperature(Raw(b"0.9"), 0.8), raised_temperature(None, 0.8), raised_temperature(Raw(b'"hot"'), 0.8)
    (b'0.8', None, None, None)
    """
    try:
        wanted = None if requested is None else from_json(requested, float | None)
    except msgspec.DecodeError:
        return None  # the server says what is wrong with it
    return (
        Raw(msgspec.json.encode(temperature))
        if (_DEFAULT_TEMPERATURE if wanted is None else wanted) < temperature
        else None
    )
