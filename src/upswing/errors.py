"""What does the caller do next? Every error of ours is named by the answer.

| error        | the caller                                                   |
|--------------|--------------------------------------------------------------|
| `Transient`  | tries again later, with back-off: nothing is wrong with it    |
| `Died`       | the same, and counts: it may be the input that kills          |
| `Rejected`   | does not try again: this input can never be taken             |
| `Conflict`   | does not try again: the id is known with other content        |
| `Denied`     | asks an operator for a key, a scope or a role                 |
| `Misuse`     | reads the sentence and mends the set-up (config, flag, lock)  |

Errors of libraries become one of these where they enter: in `infra` and in a stage's running parts.
"""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a message was not taken: the fixed words of dead letters, counters and HTTP answers."""

    MALFORMED = "malformed"
    """Not JSON, or not UTF-8."""
    NOT_A_NUMBER = "not_a_number"
    """NaN or Infinity, which JSON does not have."""
    SCHEMA = "schema"
    """JSON, but not what the contract says."""
    TOO_LARGE = "too_large"
    TOO_DEEP = "too_deep"
    TURN_ORDER = "turn_order"
    """Turn ids that do not rise."""
    TIME_ORDER = "time_order"
    """Time that goes backwards inside a trajectory."""
    CONFLICT = "conflict"
    """A known id with different content; the stored one stays."""
    REDACTION_FAILED = "redaction_failed"
    """The redactor gave up, so nothing of it is kept, not even in the dead letter."""
    NOT_YOURS = "not_yours"
    """Feedback on somebody else's work, or an id that is not the sender's to give."""
    UNKNOWN_TARGET = "unknown_target"
    """Feedback on work that nobody told of while it waited."""
    POISON = "poison"
    """Delivered again and again without an outcome: whoever takes it dies."""
    UNREADABLE = "unreadable"
    """A stage broke down over it; the dead letter says where."""


class UpswingError(Exception):
    """Something the caller can act on; its text is one clear sentence."""


class Transient(UpswingError):
    """A part is away or busy; the same call may work later."""


class Died(Transient):
    """Whoever was asked died while it had this very input in hand, which may be why."""


class Rejected(UpswingError):
    """The input can never be taken; `reason` says which kind of wrong it is."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class Conflict(Rejected):
    """The id is known with different content, which is never overwritten."""

    def __init__(self, detail: str) -> None:
        super().__init__(Reason.CONFLICT, detail)


class Denied(UpswingError):
    """The caller may not do this."""


class Forbidden(Denied):
    """The caller is known, and what it asks for is beyond its scope."""


class Misuse(UpswingError):
    """The set-up or the call is wrong; the sentence says what to do."""


class Damaged(Misuse):
    """The store cannot be trusted any more; to go on would be wrong."""


def count_phrase(number: int, thing: str, things: str = "") -> str:
    """So many of them.

    >>> [count_phrase(number, "group") for number in (0, 1, 2, 1200)], count_phrase(2, "entry", "entries")
    (['0 groups', '1 group', '2 groups', '1,200 groups'], '2 entries')
    """
    return f"{number:,} {thing if number == 1 else things or f'{thing}s'}"
