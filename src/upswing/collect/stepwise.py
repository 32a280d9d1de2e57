"""How does a trajectory that is told step by step stay clean while it grows?

Each step is redacted when it comes. A secret may be cut in two by the border between steps; its
first half looks harmless until the second arrives. So a new step is redacted together with the
last ones, and an earlier step that turns out to hold a part is rewritten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from upswing.contracts import canonical
from upswing.contracts.steps import (
    END,
    end_outcome,
    field,
    rest,
    stamp,
    trajectory_of_steps,
    tree,
    turn_of,
)
from upswing.contracts.steps import identity as trajectory_id_of
from upswing.dataset.outcome import read_outcome
from upswing.errors import Conflict, Reason, Rejected
from upswing.redact import Names, RedactionFailed, Redactor
from upswing.redact.identity import identity
from upswing.redact.messages import CLOSED_IN_HEAD, with_words, without_words

LOOK_BACK = 3
"""How many earlier steps a new one is read together with."""
_IDENTITIES = {
    "agent": ("agentId", "agent_id"),
    "session": ("sessionId", "session_id"),
    "user": ("userId", "user_id"),
    "task": ("taskId", "task_id", "scenarioId", "scenario_id"),
}
_FIXED = ("stepNumber", "step_number", "timestamp")
Tree = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Start:
    """A trajectory that begins: its id and its redacted head."""

    trajectory_id: str
    head: Tree
    user_id: str | None


@dataclass(frozen=True, slots=True)
class CleanStep:
    """A redacted step, and the earlier ones as they look together with it."""

    step: Tree
    earlier: list[Tree]


def parse(raw: bytes) -> Tree:
    """A JSON object, or `Rejected`."""
    try:
        tree = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Rejected(Reason.MALFORMED, f"{error}.") from None
    except RecursionError:
        raise Rejected(Reason.TOO_DEEP, "The message is nested too deeply.") from None
    if not isinstance(tree, dict):
        raise Rejected(Reason.SCHEMA, "A JSON object is needed.")
    return tree


def begin(told: Tree, redactor: Redactor, *, new_id: str, now: datetime) -> Start:
    """The head of a trajectory; what it does not say is filled in.

    A head that no trajectory can be made of is refused now, and not when it ends.
    """
    if not isinstance(field(told, "agentId"), str):
        raise Rejected(Reason.SCHEMA, "The start needs an `agent_id`.")
    head = {"trajectory_id": new_id, "start_time": stamp(now)} | told
    names = {
        key: identity(redactor, kind, head[key])
        for kind, keys in _IDENTITIES.items()
        for key in keys
        if isinstance(head.get(key), str)
    }
    rest = {key: value for key, value in head.items() if key not in names}
    rest, words = without_words(rest, CLOSED_IN_HEAD)
    clean = with_words(dict(_redacted(redactor, rest, Names())), words) | names
    trajectory_of_steps(clean, [{}], {})
    user = field(clean, "userId")
    return Start(
        trajectory_id_of(str(field(clean, "trajectoryId"))),
        clean,
        user if isinstance(user, str) else None,
    )


def numbered(step: Tree, *, now: datetime, next_number: int) -> Tree:
    """The step with a number and a time; `Rejected` when no turn can be made of it."""
    number = field(step, "stepNumber")
    if number is None:
        step = step | {"step_number": next_number}
    elif not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < 2**31:
        raise Rejected(Reason.SCHEMA, "`step_number` is a whole number from 0 to 2147483647.")
    timed = step if field(step, "timestamp") is not None else step | {"timestamp": stamp(now)}
    turn_of(timed, default_time=now)
    return timed


def step_number(step: Tree) -> int:
    return int(field(step, "stepNumber"))


def clean_step(step: Tree, earlier: Sequence[Tree], redactor: Redactor, names: Names) -> CleanStep:
    """The step, redacted together with the last ones before it."""
    whole = [*earlier, step]
    clean = _redacted(redactor, [_free_text(each) for each in whole], names)
    *before, last = [{**_fixed(each), **text} for each, text in zip(whole, clean, strict=True)]
    return CleanStep(last, before)


def _fixed(step: Tree) -> Tree:
    """Numbers and times are no free text."""
    return {key: value for key, value in step.items() if key in _FIXED}


def _free_text(step: Tree) -> Tree:
    return {key: value for key, value in step.items() if key not in _FIXED}


def assemble(
    head: Mapping[str, Any],
    steps: Sequence[Mapping[str, Any]],
    end: Mapping[str, Any],
    now: datetime,
) -> bytes:
    """The whole trajectory as a message, ready for admission like any other."""
    return canonical(trajectory_of_steps(head, steps, {"end_time": stamp(now)} | dict(end)))


def unread_end(end: Mapping[str, Any]) -> str:
    """What of an end is not read; empty when all of it is.

    >>> unread_end({"outcom": "completed"})
    '`outcom` of the end is not read; how it went is said by `outcome`, or `final_status` and `share`.'
    """
    names = ", ".join(f"`{name[:40]}`" for name in rest(end, END))
    said = "how it went is said by `outcome`, or `final_status` and `share`"
    return f"{names} of the end is not read; {said}." if names else ""


def check_same_end(end: Mapping[str, Any], stored: bytes) -> None:
    """`Conflict` when a trajectory that has ended is told to have gone otherwise."""
    told = end_outcome(end)
    if told is None:
        told = tree(field(end, "metadata")).get("outcome")
    said = read_outcome(told)
    holds = read_outcome(msgspec.json.decode(stored)["metadata"].get("outcome"))
    if told is not None and (said.value, said.source) != (holds.value, holds.source):
        raise Conflict(
            f"The trajectory has ended {holds.words}, which holds; this end says another."
        )


def _redacted(redactor: Redactor, tree: Any, names: Names) -> Any:
    try:
        return redactor.tree(tree, names).value
    except RedactionFailed as error:
        raise Rejected(
            Reason.REDACTION_FAILED, f"The redactor gave up, so nothing is kept: {error}"
        ) from None
