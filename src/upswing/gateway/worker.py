"""What of an ended episode may be published? Its trajectory, redacted, or nothing.

This runs in the recorder's process: an episode may hold anything, and whoever looks at it may die
of it. Nothing unredacted leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from upswing.config import Settings
from upswing.contracts import Feedback, Trajectory, canonical, decode, from_builtins
from upswing.contracts.depth import check_depth, open_parts
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


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much of a message the loop takes: what it would refuse later is refused here."""

    most_bytes: int = MOST_BYTES
    most_depth: int = 64


_USUAL = Bounds()


def bounds_of(settings: Settings) -> Bounds:
    return Bounds(min(MOST_BYTES, settings.collect.max_bytes), settings.collect.max_depth)


def redactor_of(settings: Settings) -> Redactor:
    """The built-in rules and the user's own; `ValueError` when one of those cannot be used."""
    own = tuple(Rule(rule.name, rule.pattern) for rule in settings.redact.rules)
    return Redactor(rules=default_rules(public_ip=settings.redact.public_ip) + own)


def clean(frame: EpisodeFrame, redactor: Redactor, bounds: Bounds = _USUAL) -> Clean:
    """The trajectory of an episode, without what must not be stored; or `Rejected`."""

    def made() -> Clean:
        trajectory = from_builtins(Trajectory, trajectory_of(frame))
        tree = msgspec.to_builtins(trajectory)
        check_depth([*open_parts(tree)], bounds.most_depth)
        _check_size(len(msgspec.json.encode(tree)), 2 * bounds.most_bytes)  # redaction takes longer
        return _redacted(frame.trajectory_id, redact_trajectory(tree, redactor), bounds)

    return _guarded(made)


def clean_feedback(raw: bytes, redactor: Redactor, bounds: Bounds = _USUAL) -> Clean:
    """The same for a user's word."""

    def made() -> Clean:
        feedback = decode(Feedback, raw)
        tree = msgspec.to_builtins(feedback)
        check_depth(tree, bounds.most_depth)
        return _redacted(str(feedback.feedback_id), redact_feedback(tree, redactor), bounds)

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
        raise Rejected(Reason.UNREADABLE, said) from error


def _redacted(name: str, clean: CleanTree, bounds: Bounds) -> Clean:
    body = canonical(clean.tree)
    _check_size(len(body), bounds.most_bytes)
    return Clean(name, body)


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise Rejected(Reason.TOO_LARGE, f"The message has {size} bytes, and {most} are taken.")
