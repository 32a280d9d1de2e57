"""Does this trajectory enter the loop, and in which form?

    bytes ─▶ decode once ─▶ order ─▶ redact ─▶ canonical bytes + hash ─▶ enrich ─▶ Admitted
               │              │        │
               └──────────────┴────────┴──▶ Rejected, with a reason and a sentence

Both doors, HTTP and NATS, come through here, so a trajectory means the same at each.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import msgspec

from upswing.collect.enrich import enrich
from upswing.contracts import Feedback, Trajectory, canonical, decode, decode_trajectory
from upswing.errors import Reason, Rejected
from upswing.ports import Admitted, AdmittedFeedback
from upswing.redact import RedactionFailed, Redactor
from upswing.redact.identity import identity


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a message we take."""

    max_bytes: int = 8 * 1024 * 1024
    """A message of more bytes is refused unread. The embedded bus carries no more either."""
    max_depth: int = 64
    """Deeper nesting is refused: nothing useful is that deep, and recursion is a weapon."""
    window_hours: int = 1
    """The length of a window, in hours, for trajectories that do not name theirs."""


@dataclass(frozen=True, slots=True)
class Admission:
    """What came in, cleaned; `redacted` tells whether the raw form must be erased."""

    admitted: Admitted
    redacted: bool
    findings: int


def admit(raw: bytes, redactor: Redactor, limits: Limits) -> Admission:
    """The trajectory in `raw`, fit to be stored, or `Rejected`."""
    check_size(raw, limits)
    trajectory = decode_trajectory(raw)
    _check_order(trajectory)
    tree: dict[str, Any] = msgspec.to_builtins(trajectory)
    _check_depth(tree, limits.max_depth)
    clean, findings = _clean(tree, redactor)
    body = canonical(clean)
    admitted = enrich(trajectory, clean, body, sha256(body).digest(), limits.window_hours)
    return Admission(admitted, redacted=bool(findings), findings=findings)


def admit_feedback(raw: bytes, redactor: Redactor, limits: Limits, principal: str) -> tuple[AdmittedFeedback, bool]:
    """The feedback in `raw`, fit to be stored, and whether it had to be redacted."""
    check_size(raw, limits)
    feedback = decode(Feedback, raw)
    tree: dict[str, Any] = msgspec.to_builtins(feedback)
    _check_depth(tree, limits.max_depth)
    known = {"feedback_id": tree["feedback_id"], "timestamp": tree["timestamp"], "type": tree["type"]}
    user = tree.pop("user_id", None)
    clean, findings = _redact(tree, redactor)
    clean |= known
    if user is not None:
        clean["user_id"] = identity(redactor, "user", user)
        findings += clean["user_id"] != user
    body = canonical(clean)
    admitted = AdmittedFeedback(
        feedback.feedback_id, sha256(body).digest(), body,
        *(clean.get(target) for target in ("trajectory_id", "episode_id", "inference_id", "user_id")),
        principal,
    )  # fmt: skip
    return admitted, findings > 0


def check_size(raw: bytes, limits: Limits) -> None:
    if len(raw) > limits.max_bytes:
        raise Rejected(
            Reason.TOO_LARGE, f"The message has {len(raw)} bytes; the limit is {limits.max_bytes}."
        )


def _check_order(trajectory: Trajectory) -> None:
    if trajectory.end_timestamp < trajectory.start_timestamp:
        raise Rejected(Reason.TIME_ORDER, "The trajectory ends before it starts.")
    turns = trajectory.turns
    for before, after in zip(turns, turns[1:], strict=False):
        if after.turn_id <= before.turn_id:
            raise Rejected(
                Reason.TURN_ORDER, f"Turn {after.turn_id} comes after turn {before.turn_id}."
            )
        if after.timestamp < before.timestamp:
            raise Rejected(
                Reason.TIME_ORDER, f"Turn {after.turn_id} happens before turn {before.turn_id}."
            )


def _check_depth(tree: Any, limit: int) -> None:
    level: list[Any] = [tree]
    for _ in range(limit):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list)
        ]
        if not level:
            return
    raise Rejected(Reason.TOO_DEEP, f"The message is nested deeper than {limit} levels.")


def _clean(tree: dict[str, Any], redactor: Redactor) -> tuple[dict[str, Any], int]:
    """The redacted tree, and how much was found. Ids stay ids: a private one gets a pseudonym."""
    metadata = dict(tree["metadata"])
    tokens = metadata.pop("tokens", None) if _are_tokens(metadata.get("tokens")) else None
    users = {key: metadata.pop(key) for key in ("user_id",) if isinstance(metadata.get(key), str)}
    fixed = {key: tree[key] for key in ("trajectory_id", "start_timestamp", "end_timestamp")}
    names = {"agent_id": "agent", "session_id": "session"}
    body = {key: value for key, value in tree.items() if key not in fixed and key not in names}
    body["metadata"] = metadata

    clean, findings, first_turn = _redact_turns(body, redactor)
    for key, kind in names.items():
        clean[key] = identity(redactor, kind, tree[key])
        findings += clean[key] != tree[key]
    for key, value in users.items():
        clean["metadata"][key] = identity(redactor, "user", value)
        findings += clean["metadata"][key] != value
    if tokens is not None:
        kept = [part for part in tokens if first_turn is None or part["turn_id"] < first_turn]
        if kept:
            clean["metadata"]["tokens"] = kept
    return clean | fixed, findings


def _redact_turns(body: dict[str, Any], redactor: Redactor) -> tuple[dict[str, Any], int, int | None]:
    """Also the id of the first turn whose text changed: token ids beyond it spell the old text."""
    outcome = _redacted(body, redactor)
    changed = [
        body["turns"][finding.path[1]]["turn_id"] if finding.path[0] == "turns" else 0
        for finding in outcome.findings
        if finding.path[0] in {"turns", "task_context"}
    ]
    clean = dict(outcome.value)
    clean["metadata"] = dict(clean["metadata"])
    return clean, len(outcome.findings), min(changed, default=None)


def _redact(tree: dict[str, Any], redactor: Redactor) -> tuple[dict[str, Any], int]:
    outcome = _redacted(tree, redactor)
    return dict(outcome.value), len(outcome.findings)


def _redacted(tree: dict[str, Any], redactor: Redactor) -> Any:
    try:
        return redactor.tree(tree)
    except RedactionFailed as error:
        raise Rejected(
            Reason.REDACTION_FAILED, f"The redactor gave up, so nothing is kept: {error}"
        ) from None


def _are_tokens(value: object) -> bool:
    """Numbers only, so that there is nothing to redact in them."""
    return isinstance(value, list) and all(
        isinstance(part, dict)
        and set(part) <= {"turn_id", "ids", "logprobs"}
        and isinstance(part.get("turn_id"), int)
        and all(
            isinstance(part.get(key, []), list)
            and all(isinstance(number, int | float) for number in part.get(key, []))
            for key in ("ids", "logprobs")
        )
        for part in value
    )
