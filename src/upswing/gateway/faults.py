"""A server failed: who is told, and does somebody else answer?

| what the client has seen | baseline             | candidate                                    |
|--------------------------|----------------------|----------------------------------------------|
| nothing, and the server  | the same server once | the same server once more, then as below     |
| cannot have begun        | more, then as below  |                                              |
| nothing                  | the error            | the baseline answers, if fallback is allowed |
| nothing, and the server  | `[gateway] fallback` | the baseline, then as it                     |
| is away                  | answers; without one |                                              |
|                          | 503: try again soon  |                                              |
| part of a stream         | an error event, end  | an error event, end                          |

Whatever is done about it, it is the failing model's error and counts as that. Only the evidence makes
a difference (`tells_of_the_model`): who cannot reach the baseline's server has learned nothing about
the models there, and who never asked it because too many wait has learned nothing of any model.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from upswing.gateway.problems import Kind


@dataclass(frozen=True, slots=True)
class About:
    """What a fault means to the client."""

    word: str
    status: int
    sentence: str
    kind: Kind = "upstream_error"


class Fault(Enum):
    """What can go wrong between the gateway and a model's server."""

    UNREACHABLE = About(
        "unreachable", 503, "The model's server cannot be reached just now; try again soon."
    )
    STALE = About(
        "stale", 503, "The model's server closed the connection without an answer; try again soon."
    )
    BUSY = About(
        "busy",
        429,
        "The model's server has no room for more requests; try again later.",
        "rate_limit_error",
    )
    SLOW = About("slow", 504, "The model's server did not begin to answer in time.")
    STALLED = About("stalled", 504, "The model's server stopped in the middle of its answer.")
    CUT_SHORT = About("cut_short", 502, "The model's server ended its answer half-way.")
    GARBAGE = About(
        "garbage", 502, "The model's server answered something that is no chat completion."
    )
    ERROR_BODY = About("error_body", 502, "The model's server answered with an error.")
    STATUS = About("status", 502, "The model's server refused the request.")
    TOO_LARGE = About("too_large", 502, "The answer of the model's server is too large.")  # fmt: skip

    @property
    def about(self) -> About:
        about: About = self.value
        return about


class Remedy(Enum):
    """What to do about a fault."""

    AGAIN = "again"
    FALL_BACK = "fall_back"
    ELSEWHERE = "elsewhere"
    TELL = "tell"
    CUT = "cut"


_NOT_BEGUN = frozenset({Fault.UNREACHABLE, Fault.STALE})
"""Faults after which a second try is safe: the request did not reach the server's model, or the
server let a kept connection go just as it was used. A generation has no effect but its answer."""


def remedy(
    fault: Fault, *, started: bool, tried_again: bool, candidate: bool, fallback: bool,
    elsewhere: bool = False,
) -> Remedy:  # fmt: skip
    """What to do about this fault; `elsewhere`: a server that is not ours may still be asked.

    >>> remedy(Fault.SLOW, started=False, tried_again=False, candidate=True, fallback=True)
    <Remedy.FALL_BACK: 'fall_back'>
    """
    if started:
        return Remedy.CUT
    if fault in _NOT_BEGUN and not tried_again:
        return Remedy.AGAIN
    if candidate and fallback:
        return Remedy.FALL_BACK
    if fault in _NOT_BEGUN and elsewhere:
        return Remedy.ELSEWHERE
    return Remedy.TELL


BY_REQUEST = frozenset({Fault.SLOW, Fault.TOO_LARGE})
"""Faults that a request can bring about by how much it asks for, whoever answers."""


def tells_of_the_model(fault: Fault | None, *, beside_baseline: bool) -> bool:
    """Whether a request that went so is evidence about the model that was chosen for it.

    A server that is started anew is away for seconds, with every model on it: the baseline, and
    candidates beside it. Whether that server lives, the controller asks by itself. A candidate on a
    server of its own has to be there. That the gateway itself has no room for one more request says how
    many came, and nothing of who would have answered.

    >>> tells_of_the_model(Fault.UNREACHABLE, beside_baseline=True)
    False
    >>> tells_of_the_model(Fault.BUSY, beside_baseline=False)
    False
    """
    if fault is Fault.BUSY:
        return False
    return not (beside_baseline and fault is Fault.UNREACHABLE)


CLIENTS_OWN = frozenset({400, 413, 415, 422})
"""Statuses by which a server says that the request itself is wrong, whoever is asked."""
