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

_USUAL = 1.0
"""The temperature of a request that names none."""


def exploring(trajectory_id: str, explore: ExploreConfig | None) -> float | None:
    """The temperature that this episode explores at; None: it does not.

    >>> exploring("e", ExploreConfig(share=1.0)), exploring("e", ExploreConfig(share=0.0))
    (1.0, None)
    """
    if explore is None:
        return None
    draw = int.from_bytes(sha256(f"explore\0{trajectory_id}".encode()).digest()[:8]) / 2**64
    return explore.temperature if draw < explore.share else None


def warmed(asked: Raw | None, temperature: float) -> Raw | None:
    """The temperature to send instead of what was asked for; None: it is warm enough.

    >>> bytes(warmed(Raw(b"0"), 0.8)), warmed(Raw(b"0.9"), 0.8), warmed(None, 0.8), warmed(Raw(b'"hot"'), 0.8)
    (b'0.8', None, None, None)
    """
    try:
        wanted = None if asked is None else from_json(asked, float | None)
    except msgspec.DecodeError:
        return None  # the server says what is wrong with it
    return (
        Raw(msgspec.json.encode(temperature))
        if (_USUAL if wanted is None else wanted) < temperature
        else None
    )
