"""A request's body cannot be read: what is wrong with it?"""

from __future__ import annotations

from upswing.errors import Reason, Rejected


def unreadable_body(error: Exception) -> Rejected:
    """What is wrong with a body that cannot be read as JSON.

    >>> unreadable_body(RecursionError("maximum recursion depth exceeded")).reason.value
    'too_deep'
    """
    if isinstance(error, RecursionError):
        return Rejected(Reason.TOO_DEEP, "The body is nested too deeply.")
    return Rejected(Reason.MALFORMED, f"The body is not JSON: {error}.")
