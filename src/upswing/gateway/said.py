"""What does a client say of how its episode went, is it understood, and what holds when it says two things?

| at the close                                      | the answer                                        |
|---------------------------------------------------|---------------------------------------------------|
| an outcome that is understood, or none            | 200                                               |
| one that is not, a field that a close has not,    | 422: nothing has ended, the close can be sent     |
| a `ground_truth` whose `kind` cannot be checked   | again                                             |
| an outcome in a request's metadata that is not    | 200, and `detail` says so: that metadata is the   |
| understood; a ground truth for a judge alone      | client's own                                      |
| another outcome than an earlier close, or one     | 409 with the outcome that holds                   |
| after the episode has ended by itself             |                                                   |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from upswing.contracts.typed import from_json
from upswing.dataset.outcome import Stated, read_outcome, unread
from upswing.dataset.truth import unread_truth
from upswing.errors import Conflict, Reason, Rejected

FROM_CLIENT = (
    "window_id", "window_hours", "scenario_id", "is_evaluation", "environment", "test_results",
    "linter_results", "security_scan", "ground_truth", "infra_error", "outcome",
    "purpose", "domain", "segment", "reset",
)  # fmt: skip
"""Keys of the trajectory's metadata that a client may give, with a request or at the end."""
AT_FIRST = frozenset({"domain", "segment"})
"""Of these, what counts only with the first request: afterwards it may follow from what the model did."""
EXCLUDING = frozenset({"is_evaluation", "infra_error", "purpose"})
"""What keeps an episode out of a canary's evidence: said late by a key that is not trusted to speak for many
users, it would choose which of a model's episodes count."""
_COUNTS = "The episode counts as one whose outcome nobody states."
_ENDED_BY = {
    "idle": " because no request came for long",
    "next": " because the next conversation began",
    "room": " because there were too many",
    "stop": " because the gateway stopped",
}
_ENCODER = msgspec.json.Encoder(order="deterministic")


class End(Struct, frozen=True, forbid_unknown_fields=True):
    """What a client may say at the end."""

    outcome: Any = None
    """`metadata.outcome` of the trajectory, in one of the forms of `upswing.dataset.outcome`."""
    metadata: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Said:
    """What was said of an episode that has ended."""

    ended_by: str
    stated: Stated
    about: Mapping[str, bytes] = field(default_factory=dict)
    """Hashes of the other things in its metadata."""
    notes: tuple[str, ...] = ()
    """What of it was not understood."""


def later(metadata: Mapping[str, Any], *, trusted: bool) -> dict[str, Any]:
    """What of a close's metadata counts.

    >>> told = {"segment": "eu", "infra_error": True, "scenario_id": "s"}
    >>> later(told, trusted=True), later(told, trusted=False)
    ({'infra_error': True, 'scenario_id': 's'}, {'scenario_id': 's'})
    """
    late = AT_FIRST if trusted else AT_FIRST | EXCLUDING
    return {name: told for name, told in metadata.items() if name not in late}


def read_end(body: bytes) -> End:
    """The body of a close; `Rejected` when it is not understood.

    >>> read_end(b'{"outcom": "completed"}')
    Traceback (most recent call last):
    upswing.errors.Rejected: Object contains unknown field `outcom`. A close takes `outcome` and `metadata`.
    """
    if not body.strip():
        return End()
    try:
        end = from_json(body, End)
    except msgspec.ValidationError as error:
        more = "A close takes `outcome` and `metadata`."
        raise Rejected(Reason.SCHEMA, f"{error}. {more}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Rejected(Reason.MALFORMED, f"The body is not JSON: {error}.") from None
    _check(end)
    return end


def _check(end: End) -> None:
    again = end.metadata.get("outcome")
    why = unread(end.outcome) or unread(again)
    truth = end.metadata.get("ground_truth")
    if not why and isinstance(truth, Mapping) and "kind" in truth:
        why = unread_truth(truth)
    if not why and None not in (end.outcome, again) and _same(end.outcome) != _same(again):
        why = "The close says two different outcomes: `outcome` and `metadata.outcome`."
    if why:
        raise Rejected(Reason.SCHEMA, f"{why} Nothing has ended: send the close again.")


def said_of(about: Mapping[str, Any], outcome: Any, ended_by: str) -> Said:
    """What holds of an episode that ends now."""
    told = about.get("outcome") if outcome is None else outcome
    notes = [f"{why} {_COUNTS}"] if (why := unread(told)) else []
    if why := unread_truth(about.get("ground_truth")):
        notes.append(why)
    return Said(ended_by, read_outcome(told), _hashes(about), tuple(notes))


def check_same(end: End, held: Said) -> None:
    """`Conflict` when a close says something else than what holds of an ended episode."""
    told = end.metadata.get("outcome") if end.outcome is None else end.outcome
    holds = (
        f"The episode has ended {held.stated.words}{_ENDED_BY.get(held.ended_by, '')}, which holds"
    )
    if told is not None and _same(told) != (held.stated.value, held.stated.source):
        raise Conflict(
            f"{holds}; the outcome that is said now is not taken. A user's word can still come as feedback."
        )
    others = [
        name for name, hashed in _hashes(end.metadata).items() if held.about.get(name) != hashed
    ]
    if others:
        names = ", ".join(f"`{name}`" for name in others)
        raise Conflict(f"{holds}; {names} of this close comes too late and is not taken.")


def _same(outcome: Any) -> tuple[float | None, str]:
    stated = read_outcome(outcome)
    return stated.value, stated.source


def _hashes(about: Mapping[str, Any]) -> dict[str, bytes]:
    return {
        name: sha256(_ENCODER.encode(about[name])).digest()
        for name in FROM_CLIENT
        if name != "outcome" and name in about
    }
