"""What came in, and what becomes of it? The whole verdict on one message, as a value.

A verdict holds all that is ever kept of a message: its clean form, or why it was refused and what
of it may be shown. Whoever has the verdict no longer needs the message, so something that may be
hostile can be evaluated in another process (`upswing.collect.worker`).
"""

from __future__ import annotations

import re
from enum import StrEnum
from hashlib import sha256

import msgspec

from upswing.collect.core.admit import AdmissionLimits, admit, admit_feedback
from upswing.collect.core.dead_letter import payload_of, sentence_of
from upswing.errors import Reason, Rejected
from upswing.records import Admitted, AdmittedFeedback, RejectedMessage
from upswing.redact import Redactor
from upswing.redact.identity import redact_identity

_USER = re.compile(rb'"user_?[iI]d"\s{0,9}:\s{0,9}("(?:[^"\\]|\\.){1,400}")')
_SEARCHED = 1024 * 1024


class MessageKind(StrEnum):
    """What a message claims to be."""

    TRAJECTORY = "t"
    FEEDBACK = "f"


class Passed(msgspec.Struct, frozen=True, tag=True):
    """A trajectory that enters; `findings` says how much was redacted in it."""

    admitted: Admitted
    findings: int
    unread: str = ""
    """What is not understood of its success; a door that can answer refuses it for that."""


class PassedFeedback(msgspec.Struct, frozen=True, tag=True):
    """A user's word that enters."""

    admitted: AdmittedFeedback
    findings: int


Verdict = Passed | PassedFeedback | RejectedMessage


def evaluate(kind: MessageKind, raw: bytes, redactor: Redactor, limits: AdmissionLimits) -> Verdict:
    """The verdict on one message."""
    try:
        if kind is MessageKind.TRAJECTORY:
            admission = admit(raw, redactor, limits)
            unread = sentence_of(admission.unread, redactor) if admission.unread else ""
            return Passed(admission.admitted, admission.findings, unread)
        feedback, findings = admit_feedback(raw, redactor, limits)
    except Rejected as error:
        return refusal(raw, error, redactor)
    return PassedFeedback(feedback, findings)


def refusal(raw: bytes, error: Rejected, redactor: Redactor) -> RejectedMessage:
    """What is kept of a message that is refused."""
    payload = None if error.reason is Reason.REDACTION_FAILED else payload_of(raw, redactor)
    user = user_of(raw)
    return RejectedMessage(
        error.reason,
        sentence_of(error.detail, redactor),
        digest(raw),
        payload,
        None if user is None or payload is None else redact_identity(redactor, "user", user),
    )


def user_of(raw: bytes) -> str | None:
    """The user that a message names, even if it is too broken to be read.

    >>> user_of(b'{"metadata": {"user_id": "u1"}, oops')
    'u1'
    """
    found = _USER.search(raw[:_SEARCHED])
    if found is None:
        return None
    try:
        return str(msgspec.json.decode(found[1]))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def digest(raw: bytes) -> str:
    return sha256(raw).hexdigest()
