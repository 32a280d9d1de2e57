"""Which task was it, where does it belong, and what was done? Read from a redacted trajectory."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from upswing.contracts import canonical
from upswing.redact.identity import LONGEST

UNNAMED = "conversation-"
"""How a task id begins that earlier gateways made up when nobody named a task."""


def short_id(name: str) -> str:
    """The id itself, or, of a long one, its beginning and a hash of the whole: two stay two.

    >>> short_id("tax-7"), len(short_id("x" * 300)), short_id("x" * 300) == short_id("x" * 3000)
    ('tax-7', 256, False)
    """
    if len(name) <= LONGEST:
        return name
    return f"{name[: LONGEST - 33]}-{sha256(name.encode()).hexdigest()[:32]}"


def task_key(body: Mapping[str, Any]) -> str:
    """The task that its client names; else a hash of what was asked for first.

    A recorder that knows no task calls it like the trajectory itself.

    >>> task_key({"trajectory_id": "a", "task_context": {"task_id": "tax-7", "instructions": ""}})
    'tax-7'
    >>> asked = {"task_context": {"task_id": "a", "instructions": "Add 1 and 2."},
    ...          "turns": [{"observation": {"content": "Add 1 and 2."}}]}
    >>> task_key({"trajectory_id": "a", **asked})
    'request-7f7d604f3d05488122b0ae5c9736f28f'
    """
    context = body["task_context"]
    named = context["task_id"]
    if named and named != body["trajectory_id"] and not named.startswith(UNNAMED):
        return short_id(str(named))
    first = body["turns"][0]["observation"]["content"]
    return f"request-{_digest([context['instructions'], first])}"


def is_continuous(body: Mapping[str, Any]) -> bool:
    """Whether it says in which window or scenario it was, and that is not just its task again.

    >>> at = {"task_context": {"task_id": "t"}}
    >>> [is_continuous({**at, "metadata": m}) for m in ({}, {"scenario_id": "t"}, {"scenario_id": "s"})]
    [False, False, True]
    """
    metadata = body["metadata"]
    scenario = _text_or_empty(metadata.get("scenario_id"))
    if scenario:
        return scenario != str(body["task_context"]["task_id"])
    return bool(_text_or_empty(metadata.get("window_id")))


def actions_digest(body: Mapping[str, Any]) -> str:
    """A hash of all actions, so that attempts that are alike are seen to be."""
    return _digest([turn["action"] for turn in body["turns"]])


def request_digest(body: Mapping[str, Any]) -> str:
    """A hash of all that was asked and shown: a question under many names is one question."""
    shown = [turn["observation"]["content"] for turn in body["turns"]]
    return _digest([body["task_context"]["instructions"], shown])


def _digest(part: Any) -> str:
    return sha256(canonical(part)).hexdigest()[:32]


def _text_or_empty(value: Any) -> str:
    return value if isinstance(value, str) else ""
