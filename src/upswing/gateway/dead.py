"""What is left of an episode that can never be recorded? A dead letter: whose it was, and why.

Nothing that was said in it is in the letter: what cannot be read cannot be redacted either.
"""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256
from uuid import UUID

import msgspec

from upswing.contracts import DeadLetter, encode
from upswing.errors import Reason
from upswing.gateway.frames import EpisodeFrame, Kept
from upswing.gateway.worker import Clean
from upswing.redact import RedactionFailed, Redactor

CLOSE = "/v1/episodes/close"
"""Where it came from."""
_LONGEST = 1000


class Refusal(msgspec.Struct, frozen=True, array_like=True):
    """An episode that is given up."""

    trajectory_id: str
    episode_id: str
    agent_id: str
    reason: str
    detail: str
    sha256: str
    """Of what was heard in it."""


def refusal_of(frame: EpisodeFrame, kept: Kept) -> Refusal:
    """Of an episode that the recorder could look at."""
    heard = sha256()
    for chain in frame.chains:
        heard.update(chain.request)
    return Refusal(
        frame.trajectory_id, frame.episode_id, frame.agent_id, kept.reason or Reason.POISON,
        kept.detail, heard.hexdigest(),
    )  # fmt: skip


def letter_of(refusal: Refusal, now: datetime, redactor: Redactor) -> Clean:
    """The dead letter; said twice, it is the same one, because its id is the trajectory's."""
    told = f"Episode {refusal.episode_id} of {refusal.agent_id} was not recorded: {refusal.detail}"
    try:
        detail = str(redactor.text(told[:_LONGEST]).value)
    except RedactionFailed:
        detail = "The reason could not be redacted, so it is not shown."
    letter = DeadLetter(
        dead_id=UUID(refusal.trajectory_id), timestamp=now, subject=CLOSE, reason=refusal.reason,
        detail=detail, deliveries=1, sha256=refusal.sha256,
    )  # fmt: skip
    return Clean(refusal.trajectory_id, encode(letter))
