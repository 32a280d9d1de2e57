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

    def made() -> Clean:
        trajectory = from_builtins(Trajectory, trajectory_of(frame))
        tree = msgspec.to_builtins(trajectory)
        _check_size(len(msgspec.json.encode(tree)), 2 * MOST_BYTES)  # before hours are spent on it
        return _redacted(frame.trajectory_id, tree, redactor, redact_trajectory)

    return _guarded(made)


def clean_feedback(raw: bytes, redactor: Redactor) -> Clean:
    """The same for a user's word."""

    def made() -> Clean:
        feedback = decode(Feedback, raw)
        tree = msgspec.to_builtins(feedback)
        return _redacted(str(feedback.feedback_id), tree, redactor, redact_feedback)

    return _guarded(made)


def _guarded(work: Callable[[], Clean]) -> Clean:
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
        said = f"The recorder cannot read this message ({type(error).__name__})."
        raise Rejected(Reason.POISON, said) from error


def _redacted(
    name: str, tree: dict[str, Any], redactor: Redactor, redact: Callable[..., CleanTree]
) -> Clean:
    body = canonical(redact(tree, redactor).tree)
    _check_size(len(body), MOST_BYTES)
    return Clean(name, body)


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise Rejected(Reason.TOO_LARGE, f"The message has {size} bytes.")
