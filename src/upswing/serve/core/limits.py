"""How much is taken on at once? Every knob with its unit and its reason."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class ModelServerLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the model server takes on."""

    requests: Annotated[int, Meta(ge=1)] = 128
    """Under way at once, those that wait for a seat included; one more is told to come again."""
    body_bytes: Annotated[int, Meta(ge=1024)] = 8 * 1024 * 1024
    """Of a request: far more than a context holds, far less than memory."""
