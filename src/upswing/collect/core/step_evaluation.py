"""What does one request of the step-wise endpoints become? A value in, a value out, like a whole trajectory.

| request        | becomes                                                                 |
|----------------|-------------------------------------------------------------------------|
| `StartRequest` | `OpenedStart`: the redacted head                                         |
| `AddStepRequest`  | `CleanedStep`: the redacted step, and earlier ones that change with it   |
| `EndRequest`   | `EndedSteps`: the whole trajectory, ready for admission                  |
| `RefuseRequest`| `RejectedMessage`: what may be kept of it                                        |
| any of them    | `RejectedMessage`, where it can never be taken                                   |

Redaction costs seconds for a long message, so these values cross to another process (`upswing.collect.worker`).
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from upswing.collect.core.evaluate import refusal
from upswing.collect.core.stepwise import (
    Tree,
    assemble,
    begin,
    clean_step,
    parse,
    step_number,
    unread_end,
    with_step_number,
)
from upswing.contracts import canonical
from upswing.contracts.steps import first_present_field, uuid_for_external_id
from upswing.errors import Reason, Rejected
from upswing.principals import BEGUN_BY
from upswing.records import RejectedMessage
from upswing.redact import Names, Redactor

RAW_LIMIT = 64 * 1024
"""Bytes of a step, as it was sent, that are remembered beside its redacted form."""
NAMES_LIMIT = 256 * 1024
"""Bytes of placeholders that are remembered for one trajectory; beyond it only their numbers are."""
MANY = "_many"
"""In the head of an open trajectory: the key that opened it speaks for many users."""
OWN_ID = "_id"
"""In the head of an open trajectory: its id, where the key made it another than the name alone would."""
_OURS = frozenset({BEGUN_BY, MANY, OWN_ID})


class StartRequest(msgspec.Struct, frozen=True, tag=True):
    """A trajectory that begins."""

    raw: bytes
    new_id: str
    now: datetime
    key_id: str = ""
    many: bool = True
    scoped: bool = False
    """A name that is no UUID is this key's alone, and may be another trajectory of another key."""


class AddStepRequest(msgspec.Struct, frozen=True, tag=True):
    """One more step of an open trajectory."""

    raw: bytes
    now: datetime
    next_number: int
    earlier: list[bytes]
    """The last steps before it, each as it was sent where that is known."""
    names: bytes | None
    """The placeholders given so far; None: read them from `seen`."""
    seen: list[bytes] = []
    """Head and steps as they are stored."""


class EndRequest(msgspec.Struct, frozen=True, tag=True):
    """An open trajectory that ends."""

    raw: bytes
    now: datetime
    head: bytes
    steps: list[bytes]


class RefuseRequest(msgspec.Struct, frozen=True, tag=True):
    """Something that is refused for a reason that its sender's process knows."""

    raw: bytes
    reason: Reason
    detail: str


class OpenedStart(msgspec.Struct, frozen=True, tag=True):
    trajectory_id: str
    head: bytes
    user_id: str | None
    shared_id: str = ""
    """What its name alone makes of its id: where a loop of an earlier version has it."""


class CleanedStep(msgspec.Struct, frozen=True, tag=True):
    number: int
    body: bytes
    earlier: list[bytes]
    """The earlier steps as they are redacted together with this one."""
    names: bytes
    sent: bytes
    """The step as it was sent, numbered; empty where it is too long to be remembered."""


class EndedSteps(msgspec.Struct, frozen=True, tag=True):
    whole: bytes
    note: str


StepwiseRequest = StartRequest | AddStepRequest | EndRequest | RefuseRequest
StepwiseVerdict = OpenedStart | CleanedStep | EndedSteps | RejectedMessage


def evaluate_stepwise(request: StepwiseRequest, redactor: Redactor) -> StepwiseVerdict:
    """The verdict on one request."""
    try:
        match request:
            case StartRequest():
                return _opened(request, redactor)
            case AddStepRequest():
                return _cleaned(request, redactor)
            case EndRequest():
                return _ended(request)
            case RefuseRequest():
                return refusal(request.raw, Rejected(request.reason, request.detail), redactor)
    except Rejected as error:
        return refusal(request.raw, error, redactor)
    except RecursionError:
        deep = Rejected(Reason.TOO_DEEP, "The message is nested too deeply.")
        return refusal(request.raw, deep, redactor)


def _opened(request: StartRequest, redactor: Redactor) -> OpenedStart:
    start = begin(
        parse(request.raw),
        redactor,
        new_id=request.new_id,
        now=request.now,
        key_id=request.key_id if request.scoped else "",
    )
    opener = {BEGUN_BY: request.key_id, MANY: request.many} if request.key_id else {}
    shared = uuid_for_external_id(str(first_present_field(start.head, "trajectoryId")))
    own = {OWN_ID: start.trajectory_id} if start.trajectory_id != shared else {}
    theirs = {name: value for name, value in start.head.items() if name not in _OURS}
    head = canonical({**theirs, **opener, **own})
    return OpenedStart(start.trajectory_id, head, start.user_id, shared)


def _cleaned(request: AddStepRequest, redactor: Redactor) -> CleanedStep:
    step = with_step_number(parse(request.raw), now=request.now, next_number=request.next_number)
    if request.names is None:
        names = Names.numbered_after([body.decode("utf-8", "replace") for body in request.seen])
    else:
        names = Names.from_bytes(request.names)
    clean = clean_step(step, [parse(body) for body in request.earlier], redactor, names)
    return CleanedStep(
        step_number(step),
        canonical(clean.step),
        [canonical(tree) for tree in clean.earlier],
        names.to_bytes(NAMES_LIMIT),
        msgspec.json.encode(step) if len(request.raw) <= RAW_LIMIT else b"",
    )


def _ended(request: EndRequest) -> EndedSteps:
    end = parse(request.raw or b"{}")
    whole = parse(request.head)
    head: Tree = {name: value for name, value in whole.items() if name not in _OURS}
    steps = [parse(body) for body in request.steps]
    own_id = str(whole.get(OWN_ID) or "")
    return EndedSteps(assemble(head, steps, end, request.now, own_id), unread_end(end))
