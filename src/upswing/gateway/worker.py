"""What of an ended episode may be published? Its trajectory, redacted, or nothing.

This runs in the recorder's process: an episode may hold anything, and whoever looks at it may die
of it. Nothing unredacted leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from upswing.config import Settings
from upswing.contracts import Feedback, Trajectory, canonical, decode, from_builtins
from upswing.errors import Reason, Rejected
from upswing.gateway.frames import EpisodeFrame
from upswing.gateway.record import trajectory_of
from upswing.redact import RedactionFailed, Redactor, Rule, default_rules
from upswing.redact.messages import Clean as CleanTree
from upswing.redact.messages import redact_feedback, redact_trajectory

MOST_BYTES = 8 * 1024 * 1024 - 4096
"""What the embedded bus carries, less its own headers."""


@dataclass(frozen=True, slots=True)
class Clean:
    """A message that may be published."""

    name: str
    """Its id."""
    body: bytes


def redactor_of(settings: Settings) -> Redactor:
    """The built-in rules and the user's own; `ValueError` when one of those cannot be used."""
    own = tuple(Rule(rule.name, rule.pattern) for rule in settings.redact.rules)
    return Redactor(rules=default_rules() + own)


def clean(frame: EpisodeFrame, redactor: Redactor) -> Clean:
    """The trajectory of an episode, without what must not be stored; or `Rejected`."""
    try:
        trajectory = from_builtins(Trajectory, trajectory_of(frame))
    except RecursionError:
        raise Rejected(Reason.TOO_DEEP, "The episode is nested too deeply.") from None
    return _redacted(
        frame.trajectory_id, msgspec.to_builtins(trajectory), redactor, redact_trajectory
    )


def clean_feedback(raw: bytes, redactor: Redactor) -> Clean:
    """The same for a user's word."""
    feedback = decode(Feedback, raw)
    return _redacted(feedback.feedback_id, msgspec.to_builtins(feedback), redactor, redact_feedback)


def _redacted(
    name: str, tree: dict[str, Any], redactor: Redactor, redact: Callable[..., CleanTree]
) -> Clean:
    try:
        body = canonical(redact(tree, redactor).tree)
    except RedactionFailed as error:
        raise Rejected(
            Reason.REDACTION_FAILED, f"The redactor gave up, so nothing is kept: {error}"
        ) from None
    if len(body) > MOST_BYTES:
        raise Rejected(Reason.TOO_LARGE, f"The message has {len(body)} bytes.")
    return Clean(name, body)
