"""Is this a question that only asks whether an answer comes? Who may ask it, and how little has it to ask for?

A probe is in no record and no evidence, so it must be of no use as an answer.

| a probe                                                     | the answer |
|-------------------------------------------------------------|------------|
| with the installation's own key or an operator's, or where  | 200        |
| no keys are set; `x-upswing-probe: 1`, one answer, one token |            |
| with a client's key                                         | 403        |
| of another value, or for more                               | 400        |
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from upswing.contracts.typed import from_json
from upswing.errors import Denied, Reason, Rejected
from upswing.gateway.core.keys import ANONYMOUS, sender_of
from upswing.principals import GATEWAY


class _RequestedSize(Struct):
    """How much a request asks for."""

    max_tokens: Any = None
    max_completion_tokens: Any = None
    n: Any = None


def check_probe(owner: str, header: bytes, body: bytes) -> None:
    """`Denied` or `Rejected` when this may not be asked as a probe."""
    sender = sender_of(owner)
    if owner != ANONYMOUS and not sender.operator and sender.key_id != GATEWAY:
        raise Denied("A probe takes the installation's own key: leave `x-upswing-probe` out.")
    if header != b"1":
        raise Rejected(Reason.SCHEMA, "`x-upswing-probe` is 1, or is not sent.")
    requested = from_json(body, _RequestedSize)
    sizes = [
        each for each in (requested.max_tokens, requested.max_completion_tokens) if each is not None
    ]
    if not sizes or any(size != 1 for size in sizes) or requested.n not in (None, 1):
        raise Rejected(Reason.SCHEMA, "A probe asks for one token: `max_tokens` is 1.")
