"""What does a client report of how its episode went, is it understood, and what holds when it reports two things?

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
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from upswing.contracts.typed import from_json
from upswing.dataset.ground_truth import ground_truth_error
from upswing.dataset.outcome import ParsedOutcome, outcome_error, parse_outcome
from upswing.dataset.task import short_id
from upswing.errors import Conflict, Reason, Rejected

CLIENT_METADATA_KEYS = (
    "window_id",
    "window_hours",
    "scenario_id",
    "is_evaluation",
    "environment",
    "test_results",
    "linter_results",
    "security_scan",
    "ground_truth",
    "infra_error",
    "outcome",
    "purpose",
    "domain",
    "segment",
    "reset",
)
"""Keys of the trajectory's metadata that a client may give, with a request or at the end."""
FIRST_REQUEST_ONLY = frozenset({"domain", "segment"})
"""Of these, what counts only with the first request: afterwards it may follow from what the model did."""
EXCLUDES_EVIDENCE = frozenset({"is_evaluation", "infra_error", "purpose"})
"""What keeps an episode out of a canary's evidence: reported late by a key that is not trusted to speak for many
users, it would choose which of a model's episodes count."""
_NO_OUTCOME = "The episode counts as one whose outcome nobody states."
_ENDED_BY = {
    "idle": " because no request came for long",
    "next": " because the next conversation began",
    "room": " because there were too many",
    "stop": " because the gateway stopped",
}
_MAX_NOTE = 2000
"""Characters of what is said about an outcome that is not understood."""
_ENCODER = msgspec.json.Encoder(order="deterministic")


class EpisodeClose(Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a close."""

    outcome: Any = None
    """`metadata.outcome` of the trajectory, in one of the forms of `upswing.dataset.outcome`."""
    metadata: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class ReportedOutcome:
    """What was reported of an episode that has ended."""

    ended_by: str
    stated: ParsedOutcome
    metadata_hashes: Mapping[str, bytes] = field(default_factory=dict)
    """Hashes of the other things in its metadata."""
    notes: tuple[str, ...] = ()
    """What of it was not understood."""

    @property
    def held_bytes(self) -> int:
        """Bytes that it takes in memory, at most."""
        texts = (self.stated.source, *self.notes)
        return sum(100 + 4 * len(text) for text in texts) + 150 * len(self.metadata_hashes)


def late_metadata(metadata: Mapping[str, Any], *, trusted: bool) -> dict[str, Any]:
    """What of a close's metadata counts.

    >>> value = {"segment": "eu", "infra_error": True, "scenario_id": "s"}
    >>> late_metadata(value, trusted=True), late_metadata(value, trusted=False)
    ({'infra_error': True, 'scenario_id': 's'}, {'scenario_id': 's'})
    """
    ignored = FIRST_REQUEST_ONLY if trusted else FIRST_REQUEST_ONLY | EXCLUDES_EVIDENCE
    return {name: value for name, value in metadata.items() if name not in ignored}


def merge_close_metadata(metadata: bytes, close_metadata: Mapping[str, Any]) -> bytes:
    """An episode's metadata with what a close adds, as JSON.

    >>> merge_close_metadata(b'{"domain":"tax"}', {"environment": "a", "unknown": 1})
    b'{"domain":"tax","environment":"a"}'
    """
    added = {name: close_metadata[name] for name in CLIENT_METADATA_KEYS if name in close_metadata}
    return _ENCODER.encode({**msgspec.json.decode(metadata), **added}) if added else metadata


def read_close(body: bytes) -> EpisodeClose:
    """The body of a close; `Rejected` when it is not understood.

    >>> read_close(b'{"outcom": "completed"}')
    Traceback (most recent call last):
    upswing.errors.Rejected: Object contains unknown field `outcom`. A close takes `outcome` and `metadata`.
    """
    if not body.strip():
        return EpisodeClose()
    try:
        close = from_json(body, EpisodeClose)
    except msgspec.ValidationError as error:
        more = "A close takes `outcome` and `metadata`."
        raise Rejected(Reason.SCHEMA, f"{error}. {more}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Rejected(Reason.MALFORMED, f"The body is not JSON: {error}.") from None
    _check_close(close)
    return close


def _check_close(close: EpisodeClose) -> None:
    in_metadata = close.metadata.get("outcome")
    why = outcome_error(close.outcome) or outcome_error(in_metadata)
    truth = close.metadata.get("ground_truth")
    if not why and isinstance(truth, Mapping) and "kind" in truth:
        why = ground_truth_error(truth)
    if (
        not why
        and None not in (close.outcome, in_metadata)
        and _comparable(close.outcome) != _comparable(in_metadata)
    ):
        why = "The close says two different outcomes: `outcome` and `metadata.outcome`."
    if why:
        raise Rejected(Reason.SCHEMA, f"{why} Nothing has ended: send the close again.")


def reported_outcome(metadata: Mapping[str, Any], outcome: Any, ended_by: str) -> ReportedOutcome:
    """What holds of an episode that ends now."""
    value = metadata.get("outcome") if outcome is None else outcome
    notes = [f"{why} {_NO_OUTCOME}"] if (why := outcome_error(value)) else []
    if why := ground_truth_error(metadata.get("ground_truth")):
        notes.append(why)
    parsed, source = parse_outcome(value), _comparable(value)[1]
    stated = replace(parsed, source=source, notes=())  # the notes are in the sentence
    short = tuple(note[:_MAX_NOTE] for note in notes)
    return ReportedOutcome(ended_by, stated, _metadata_hashes(metadata), short)


def check_repeated_close(close: EpisodeClose, held: ReportedOutcome) -> None:
    """`Conflict` when a close says something else than what holds of an ended episode."""
    value = close.metadata.get("outcome") if close.outcome is None else close.outcome
    holds = f"The episode has ended {held.stated.description}{_ENDED_BY.get(held.ended_by, '')}, which holds"
    if value is not None and _comparable(value) != (held.stated.value, held.stated.source):
        raise Conflict(
            f"{holds}; the outcome of this close is not accepted. Feedback of a user is still accepted."
        )
    late_fields = [
        name
        for name, hashed in _metadata_hashes(close.metadata).items()
        if held.metadata_hashes.get(name) != hashed
    ]
    if late_fields:
        names = ", ".join(f"`{name}`" for name in late_fields)
        raise Conflict(f"{holds}; {names} of this close comes too late and is not accepted.")


def _comparable(outcome: Any) -> tuple[float | None, str]:
    stated = parse_outcome(outcome)
    return stated.value, short_id(stated.source)


def _metadata_hashes(metadata: Mapping[str, Any]) -> dict[str, bytes]:
    return {
        name: sha256(_ENCODER.encode(metadata[name])).digest()
        for name in CLIENT_METADATA_KEYS
        if name != "outcome" and name in metadata
    }
