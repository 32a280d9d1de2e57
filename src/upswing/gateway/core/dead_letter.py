"""What is left of an episode that can never be recorded? A dead letter: whose it was, and why.

No content of it is in the letter: what cannot be read cannot be redacted either.
"""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256
from uuid import UUID

import msgspec

from upswing.contracts import DeadLetter, encode
from upswing.errors import Reason
from upswing.gateway.core.episode_redaction import RedactedMessage
from upswing.gateway.core.frames import EpisodeFrame, RecordOutcome
from upswing.redact import RedactionFailed, Redactor

SUBJECT = "/v1/episodes/close"
"""Where it came from."""
_MAX_DETAIL = 1000


class RejectedEpisode(msgspec.Struct, frozen=True, array_like=True):
    """An episode that is given up."""

    trajectory_id: str
    episode_id: str
    agent_id: str
    reason: str
    detail: str
    sha256: str
    """Of its content."""


def rejected_episode(frame: EpisodeFrame, outcome: RecordOutcome) -> RejectedEpisode:
    """Of an episode that the recorder could look at."""
    digest = sha256()
    for conversation in frame.conversations:
        digest.update(conversation.request)
    return RejectedEpisode(
        frame.trajectory_id,
        frame.episode_id,
        frame.agent_id,
        outcome.reason or Reason.POISON,
        outcome.detail,
        digest.hexdigest(),
    )


def dead_letter_of(rejected: RejectedEpisode, now: datetime, redactor: Redactor) -> RedactedMessage:
    """The dead letter; made twice, it is the same one, because its id is the trajectory's."""
    text = (
        f"Episode {rejected.episode_id} of {rejected.agent_id} was not recorded: {rejected.detail}"
    )
    try:
        detail = str(redactor.text(text[:_MAX_DETAIL]).value)
    except RedactionFailed:
        detail = "The reason could not be redacted, so it is not shown."
    letter = DeadLetter(
        dead_id=UUID(rejected.trajectory_id),
        timestamp=now,
        subject=SUBJECT,
        reason=rejected.reason,
        detail=detail,
        deliveries=1,
        sha256=rejected.sha256,
    )
    return RedactedMessage(rejected.trajectory_id, encode(letter))
