"""Does this trajectory enter the loop, and in which form?

    bytes ─▶ decode once ─▶ order ─▶ redact ─▶ canonical bytes + hash ─▶ decode again, enrich ─▶ Admitted
               │              │        │                                     │
               └──────────────┴────────┴─────────────────────────────────────┴──▶ Rejected, with a reason

Both doors, HTTP and NATS, come through here, so a trajectory means the same at each. What is admitted
can be read again: no stage after this one meets a body that is not a trajectory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from itertools import pairwise
from typing import Any

import msgspec

from upswing.collect.core.enrich import enrich, key_of
from upswing.contracts import Feedback, Message, Trajectory, canonical, decode, decode_trajectory
from upswing.contracts.depth import check_depth, free_form_parts
from upswing.contracts.feedback import SHAPE
from upswing.contracts.steps import OUTSIDE, YEARS
from upswing.dataset.ground_truth import ground_truth_error
from upswing.dataset.outcome import outcome_error
from upswing.dataset.task import short_id
from upswing.errors import Reason, Rejected
from upswing.records import Admitted, AdmittedFeedback
from upswing.redact import RedactionFailed, Redactor
from upswing.redact.messages import redact_feedback, redact_trajectory

_LEFT_OUT = "missing required field"


@dataclass(frozen=True, slots=True)
class AdmissionLimits:
    """How much of a message we take."""

    max_bytes: int = 8 * 1024 * 1024
    """A message of more bytes is refused unread. The embedded bus carries no more either."""
    max_depth: int = 64
    """Deeper nesting is refused: nothing useful is that deep, and recursion is a weapon."""
    window_hours: int = 1
    """The length of a window, in hours, for trajectories that do not name theirs."""


@dataclass(frozen=True, slots=True)
class Admission:
    """What came in, cleaned, and how much was redacted in it."""

    admitted: Admitted
    findings: int
    unread: str = ""
    """Which part of what it says of its success is not understood, and what can be written."""

    @property
    def redacted(self) -> bool:
        """Whether the raw form must be erased."""
        return self.findings > 0


def admit(raw: bytes, redactor: Redactor, limits: AdmissionLimits) -> Admission:
    """The trajectory in `raw`, fit to be stored, or `Rejected`."""
    check_size(raw, limits)
    trajectory = decode_trajectory(raw)
    _check_order(trajectory)
    tree: dict[str, Any] = msgspec.to_builtins(trajectory)
    check_depth([*free_form_parts(tree)], limits.max_depth)
    with _failing_closed():
        clean = redact_trajectory(tree, redactor)
    body = canonical(clean.tree)
    _check_again(Trajectory, body)
    admitted = enrich(trajectory, clean.tree, body, sha256(body).digest(), limits.window_hours)
    return Admission(admitted, clean.findings, _unread(tree["metadata"]))


def _unread(metadata: Mapping[str, Any]) -> str:
    """What is right may have any form that a judge can read; one with a `kind` is for a check."""
    truth = metadata.get("ground_truth")
    meant = isinstance(truth, Mapping) and "kind" in truth
    return outcome_error(metadata.get("outcome")) or (ground_truth_error(truth) if meant else "")


def admit_feedback(
    raw: bytes, redactor: Redactor, limits: AdmissionLimits
) -> tuple[AdmittedFeedback, int]:
    """The feedback in `raw`, fit to be stored, and how much was redacted in it."""
    check_size(raw, limits)
    feedback = _read_feedback(raw)
    _check_year(feedback.timestamp)
    tree: dict[str, Any] = msgspec.to_builtins(feedback)
    check_depth(tree, limits.max_depth)
    with _failing_closed():
        clean = redact_feedback(tree, redactor)
    body = canonical(clean.tree)
    _check_again(Feedback, body)
    episode, sender = clean.tree.get("episode_id"), key_of(clean.tree.get("metadata"))
    admitted = AdmittedFeedback(
        feedback_id=clean.tree["feedback_id"],
        content_hash=sha256(body).digest(),
        body=body,
        trajectory_id=clean.tree.get("trajectory_id"),
        episode_id=None if episode is None else short_id(episode),
        inference_id=clean.tree.get("inference_id"),
        user_id=clean.tree.get("user_id"),
        principal=sender["key_id"],
        many=bool(sender["key_id"]) and sender["many"],
    )
    return admitted, clean.findings


def _read_feedback(raw: bytes) -> Feedback:
    """Who left out a field hears what feedback looks like."""
    try:
        return decode(Feedback, raw)
    except Rejected as error:
        if _LEFT_OUT not in error.detail:
            raise
        raise Rejected(error.reason, f"{error.detail} {SHAPE}") from None


def check_size(raw: bytes, limits: AdmissionLimits) -> None:
    if len(raw) > limits.max_bytes:
        raise Rejected(
            Reason.TOO_LARGE, f"The message has {len(raw)} bytes; the limit is {limits.max_bytes}."
        )


def _check_order(trajectory: Trajectory) -> None:
    turns = trajectory.turns
    for moment in (trajectory.start_timestamp, trajectory.end_timestamp):
        _check_year(moment)
    for turn in turns:
        _check_year(turn.timestamp)
    if trajectory.end_timestamp < trajectory.start_timestamp:
        raise Rejected(Reason.TIME_ORDER, "The trajectory ends before it starts.")
    for before, after in pairwise(turns):
        if after.turn_id <= before.turn_id:
            raise Rejected(
                Reason.TURN_ORDER, f"Turn {after.turn_id} comes after turn {before.turn_id}."
            )
        if after.timestamp < before.timestamp:
            raise Rejected(
                Reason.TIME_ORDER, f"Turn {after.turn_id} happens before turn {before.turn_id}."
            )


def _check_year(moment: datetime) -> None:
    """Stages go a day, or a window, forth and back from a time."""
    try:
        year = moment.astimezone(UTC).year
    except OverflowError:
        year = 0
    if year not in YEARS:
        raise Rejected(Reason.SCHEMA, OUTSIDE)


def _check_again(kind: type[Message], body: bytes) -> None:
    """What redaction made of it must be a message still: whoever reads the row depends on it."""
    try:
        decode(kind, body)
    except Rejected as error:
        sentence = f"Once redacted it is no {kind.__name__.lower()} any more: {error}"
        raise Rejected(error.reason, sentence) from None


@contextmanager
def _failing_closed() -> Iterator[None]:
    try:
        yield
    except RedactionFailed as error:
        raise Rejected(
            Reason.REDACTION_FAILED, f"The redactor gave up, so nothing is kept: {error}"
        ) from None
