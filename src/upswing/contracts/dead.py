"""What could not be taken, and why? dead.v1, on `agent.rl.dead.<stage>`."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from upswing.contracts.wire import END, Id, Message, Positive, Timestamp

PAYLOAD_LIMIT = 64 * 1024


class DeadLetter(Message, frozen=True, kw_only=True):
    """A message that a stage gave up on, redacted, with the reason."""

    dead_id: Id
    timestamp: Timestamp
    subject: Annotated[str, Meta(description="Where it came from: a subject or an HTTP path.")]
    reason: Annotated[
        str,
        Meta(
            pattern=r"^[a-z][a-z_]*" + END,
            description="A fixed word: `malformed`, `schema`, `too_large`, `too_deep`, "
            "`conflict`, `redaction_failed`, `poison`, …",
        ),
    ]
    detail: Annotated[str, Meta(description="One sentence, redacted.")]
    deliveries: Positive
    payload: (
        Annotated[str, Meta(max_length=PAYLOAD_LIMIT, description="Redacted text, at most 64 KB.")]
        | UnsetType
    ) = UNSET
    sha256: (
        Annotated[str, Meta(pattern=r"^[0-9a-f]{64}" + END, description="Of the raw bytes.")]
        | UnsetType
    ) = UNSET
