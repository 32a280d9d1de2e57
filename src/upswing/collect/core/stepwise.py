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
    check_end,
    check_step,
    copy_unknown_fields,
    first_present_field,
    format_time,
    object_or_wrapped,
    outcome_of_end,
    trajectory_from_steps,
    turn_from_step,
)
from upswing.contracts.steps import uuid_for_external_id as trajectory_id_of
from upswing.contracts.typed import json_decoder
from upswing.dataset.outcome import parse_outcome
from upswing.errors import Conflict, Reason, Rejected
from upswing.redact import Names, RedactionFailed, Redactor
from upswing.redact.identity import redact_identity
from upswing.redact.messages import CLOSED_IN_HEAD, remove_listed_words, restore_listed_words

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


class _StoredMetadata(msgspec.Struct, frozen=True):
    outcome: Any = None


class _StoredOutcome(msgspec.Struct, frozen=True):
    """Of a stored trajectory only how it went; the rest is passed over."""

    metadata: _StoredMetadata


_STORED = json_decoder(_StoredOutcome)


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


def begin(
    start: Tree, redactor: Redactor, *, new_id: str, now: datetime, key_id: str = ""
) -> Start:
    """The head of a trajectory; what it does not say is filled in. Names of its own are `key_id`'s alone.

    A head that no trajectory can be made of is refused now, and not when it ends.
    """
    if not isinstance(first_present_field(start, "agentId"), str):
        raise Rejected(Reason.SCHEMA, "The start needs an `agent_id`.")
    head = {"trajectory_id": new_id, "start_time": format_time(now)} | start
    names = {
        key: redact_identity(redactor, kind, head[key])
        for kind, keys in _IDENTITIES.items()
        for key in keys
        if isinstance(head.get(key), str)
    }
    rest = {key: value for key, value in head.items() if key not in names}
    rest, words = remove_listed_words(rest, CLOSED_IN_HEAD)
    clean = restore_listed_words(dict(_redacted(redactor, rest, Names())), words) | names
    trajectory_from_steps(clean, [{}], {})
    user = first_present_field(clean, "userId")
    return Start(
        trajectory_id_of(str(first_present_field(clean, "trajectoryId")), key_id),
        clean,
        user if isinstance(user, str) else None,
    )


def with_step_number(step: Tree, *, now: datetime, next_number: int) -> Tree:
    """The step with a number and a time; `Rejected` when no turn can be made of it."""
    number = first_present_field(step, "stepNumber")
    if number is None:
        step = step | {"step_number": next_number}
    elif not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < 2**31:
        raise Rejected(Reason.SCHEMA, "`step_number` is a whole number from 0 to 2147483647.")
    check_step(step)
    timed = (
        step
        if first_present_field(step, "timestamp") is not None
        else step | {"timestamp": format_time(now)}
    )
    turn_from_step(timed, default_time=now)
    return timed


def step_number(step: Tree) -> int:
    return int(first_present_field(step, "stepNumber"))


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
    trajectory_id: str = "",
) -> bytes:
    """The whole trajectory as a message, ready for admission like any other."""
    check_end(end)
    ended = {"end_time": format_time(now)} | dict(end)
    return canonical(trajectory_from_steps(head, steps, ended, trajectory_id))


def unread_end(end: Mapping[str, Any]) -> str:
    """What of an end is not read; empty when all of it is.

    >>> unread_end({"outcom": "completed"})
    '`outcom` of the end is not read; how it went is said by `outcome`, or `final_status` and `share`.'
    """
    names = ", ".join(f"`{name[:40]}`" for name in copy_unknown_fields(end, END))
    hint = "how it went is said by `outcome`, or `final_status` and `share`"
    return f"{names} of the end is not read; {hint}." if names else ""


def check_same_end(end: Mapping[str, Any], stored: bytes) -> None:
    """`Conflict` when a trajectory that has ended is told to have gone otherwise."""
    outcome = outcome_of_end(end)
    if outcome is None:
        outcome = object_or_wrapped(first_present_field(end, "metadata")).get("outcome")
    parsed = parse_outcome(outcome)
    holds = parse_outcome(_STORED.decode(stored).metadata.outcome)
    if outcome is not None and (parsed.value, parsed.source) != (holds.value, holds.source):
        raise Conflict(
            f"The trajectory has ended {holds.description}, which holds; this end says another."
        )


def _redacted(redactor: Redactor, tree: Any, names: Names) -> Any:
    try:
        return redactor.tree(tree, names).value
    except RedactionFailed as error:
        raise Rejected(
            Reason.REDACTION_FAILED, f"The redactor gave up, so nothing is kept: {error}"
        ) from None
