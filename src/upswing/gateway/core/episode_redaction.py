"""What of an ended episode may be published? Its trajectory, redacted, or nothing.

This runs in the recorder's process: an episode may hold anything, and whoever reads it may crash
on it. Nothing unredacted leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from upswing.config import Settings
from upswing.contracts import Feedback, Trajectory, canonical, decode, from_builtins
from upswing.contracts.depth import check_depth, free_form_parts
from upswing.errors import Reason, Rejected
from upswing.gateway.core.frames import EpisodeFrame
from upswing.gateway.core.trajectory import build_trajectory
from upswing.redact import RedactionFailed, Redactor, Rule, default_rules
from upswing.redact.messages import Clean as RedactedTree
from upswing.redact.messages import redact_feedback, redact_trajectory

MAX_BYTES = 8 * 1024 * 1024 - 4096
"""What the embedded bus carries, less its own headers."""


@dataclass(frozen=True, slots=True)
class RedactedMessage:
    """A message that may be published."""

    message_id: str
    """Its id."""
    body: bytes


@dataclass(frozen=True, slots=True)
class MessageBounds:
    """How much of a message the loop takes: what it would refuse later is refused here."""

    max_bytes: int = MAX_BYTES
    max_depth: int = 64


_DEFAULT_BOUNDS = MessageBounds()


def message_bounds(settings: Settings) -> MessageBounds:
    return MessageBounds(min(MAX_BYTES, settings.collect.max_bytes), settings.collect.max_depth)


def make_redactor(settings: Settings) -> Redactor:
    """The built-in rules and the user's own; `ValueError` when one of those cannot be used."""
    user_rules = tuple(Rule(rule.name, rule.pattern) for rule in settings.redact.rules)
    return Redactor(rules=default_rules(public_ip=settings.redact.public_ip) + user_rules)


def redact_episode(
    frame: EpisodeFrame, redactor: Redactor, bounds: MessageBounds = _DEFAULT_BOUNDS
) -> RedactedMessage:
    """The trajectory of an episode, without what must not be stored; or `Rejected`."""

    def build() -> RedactedMessage:
        trajectory = from_builtins(Trajectory, build_trajectory(frame))
        tree = msgspec.to_builtins(trajectory)
        check_depth([*free_form_parts(tree)], bounds.max_depth)
        _check_size(len(msgspec.json.encode(tree)), 2 * bounds.max_bytes)  # redaction takes longer
        return _encode_redacted(frame.trajectory_id, redact_trajectory(tree, redactor), bounds)

    return _reject_unreadable(build)


def redact_feedback_message(
    raw: bytes, redactor: Redactor, bounds: MessageBounds = _DEFAULT_BOUNDS
) -> RedactedMessage:
    """The same for feedback."""

    def build() -> RedactedMessage:
        feedback = decode(Feedback, raw)
        tree = msgspec.to_builtins(feedback)
        check_depth(tree, bounds.max_depth)
        return _encode_redacted(str(feedback.feedback_id), redact_feedback(tree, redactor), bounds)

    return _reject_unreadable(build)


def _reject_unreadable(work: Callable[[], RedactedMessage]) -> RedactedMessage:
    """A message may hold anything. One that cannot be read is refused, and takes no other along."""
    try:
        return work()
    except Rejected:
        raise
    except RecursionError:
        raise Rejected(Reason.TOO_DEEP, "The message is nested too deeply.") from None
    except RedactionFailed as error:
        raise Rejected(
            Reason.REDACTION_FAILED, f"The redactor gave up, so nothing is kept: {error}"
        ) from None
    except Exception as error:
        message = f"The recorder cannot read this message ({type(error).__name__})."
        raise Rejected(Reason.UNREADABLE, message) from error


def _encode_redacted(
    message_id: str, redacted: RedactedTree, bounds: MessageBounds
) -> RedactedMessage:
    body = canonical(redacted.tree)
    _check_size(len(body), bounds.max_bytes)
    return RedactedMessage(message_id, body)


def _check_size(size: int, limit: int) -> None:
    if size > limit:
        raise Rejected(Reason.TOO_LARGE, f"The message has {size} bytes, and {limit} are taken.")
