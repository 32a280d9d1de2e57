"""A server failed: is that reported, retried, or does another model answer?

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
a difference (`is_model_evidence`): who cannot reach the baseline's server has learned nothing about
the models there, and who never asked it because too many wait has learned nothing of any model.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from upswing.openai.errors import ErrorType


@dataclass(frozen=True, slots=True)
class FaultInfo:
    """What a fault means to the client."""

    code: str
    status: int
    message: str
    error_type: ErrorType = "upstream_error"


class Fault(Enum):
    """What can go wrong between the gateway and a model's server."""

    UNREACHABLE = FaultInfo(
        "unreachable", 503, "The model's server cannot be reached just now; try again soon."
    )
    STALE = FaultInfo(
        "stale", 503, "The model's server closed the connection without an answer; try again soon."
    )
    BUSY = FaultInfo(
        "busy",
        429,
        "The model's server has no room for more requests; try again later.",
        "rate_limit_error",
    )
    SLOW = FaultInfo("slow", 504, "The model's server did not begin to answer in time.")
    STALLED = FaultInfo("stalled", 504, "The model's server stopped in the middle of its answer.")
    CUT_SHORT = FaultInfo("cut_short", 502, "The model's server ended its answer half-way.")
    GARBAGE = FaultInfo(
        "garbage", 502, "The model's server answered something that is no chat completion."
    )
    ERROR_BODY = FaultInfo("error_body", 502, "The model's server answered with an error.")
    STATUS = FaultInfo("status", 502, "The model's server refused the request.")
    TOO_LARGE = FaultInfo("too_large", 502, "The answer of the model's server is too large.")

    @property
    def info(self) -> FaultInfo:
        info: FaultInfo = self.value
        return info


class Remedy(Enum):
    """What to do about a fault."""

    RETRY = "again"
    FALL_BACK = "fall_back"
    EXTERNAL_FALLBACK = "elsewhere"
    REPORT = "tell"
    CUT_OFF = "cut"


_NOT_STARTED = frozenset({Fault.UNREACHABLE, Fault.STALE})
"""Faults after which a second try is safe: the request did not reach the server's model, or the
server let a kept connection go just as it was used. A generation has no effect but its answer."""


def choose_remedy(
    fault: Fault,
    *,
    started: bool,
    retried: bool,
    has_alternative: bool,
    fallback_allowed: bool,
    has_external: bool = False,
) -> Remedy:
    """What to do about this fault; `has_external`: a server that is not ours may still be asked.

    >>> choose_remedy(Fault.SLOW, started=False, retried=False, has_alternative=True, fallback_allowed=True)
    <Remedy.FALL_BACK: 'fall_back'>
    """
    if started:
        return Remedy.CUT_OFF
    if fault in _NOT_STARTED and not retried:
        return Remedy.RETRY
    if has_alternative and fallback_allowed:
        return Remedy.FALL_BACK
    if fault in _NOT_STARTED and has_external:
        return Remedy.EXTERNAL_FALLBACK
    return Remedy.REPORT


PATIENCE_SECONDS = 5.0
"""Of silence by a server, after which a client that hangs up has given up waiting. A model on a busy machine may
pause for a second or two between two pieces; whoever stops reading in the middle of a flow has what it wanted."""


def gave_up_waiting(*, generated: bool, silent_seconds: float) -> bool:
    """A client hung up: because nothing came? Else it had read enough, and the model did what was asked.

    | when it hung up, the server              | that says                                                  |
    |------------------------------------------|------------------------------------------------------------|
    | had said nothing, or had become silent   | that its client gave up, and nothing of the model          |
    | was in the middle of its answer          | that the model answered: no error, and nobody abandoned it |

    >>> gave_up_waiting(generated=True, silent_seconds=0.1), gave_up_waiting(generated=False, silent_seconds=0.1)
    (False, True)
    """
    return not generated or not silent_seconds < PATIENCE_SECONDS


CAUSED_BY_REQUEST = frozenset({Fault.SLOW, Fault.TOO_LARGE})
"""Faults that a request can bring about by how much it asks for, whoever answers."""


def is_model_evidence(fault: Fault | None, *, on_baseline_server: bool) -> bool:
    """Whether a request that went so is evidence about the model that was chosen for it.

    A server that is started anew is away for seconds, with every model on it: the baseline, and
    candidates beside it. Whether that server lives, the controller asks by itself. A candidate on a
    server of its own has to be there. That the gateway itself has no room for one more request says how
    many came, and nothing of who would have answered.

    >>> is_model_evidence(Fault.UNREACHABLE, on_baseline_server=True)
    False
    >>> is_model_evidence(Fault.BUSY, on_baseline_server=False)
    False
    """
    if fault is Fault.BUSY:
        return False
    return not (on_baseline_server and fault is Fault.UNREACHABLE)


CLIENT_ERROR_STATUSES = frozenset({400, 413, 415, 422})
"""Statuses by which a server says that the request itself is wrong, whoever is asked."""
