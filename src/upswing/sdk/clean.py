"""What may leave this process? Only what is redacted, and what the contract would take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

import msgspec

from upswing.contracts import Feedback, Trajectory, from_builtins
from upswing.contracts.steps import Tree, text, trajectory_of_steps
from upswing.errors import Reason, Rejected
from upswing.sdk.logs import Entry, Kind

LARGEST = 8 * 1024 * 1024
"""Bytes of one message: what the bus takes."""


class Form(StrEnum):
    """How a draft is written down."""

    TRAJECTORY = "trajectory"
    STEPS = "steps"
    """`head`, `steps` and `end`, still to be put together."""
    FEEDBACK = "feedback"


@dataclass(frozen=True, slots=True)
class Draft:
    """What the agent handed over, as JSON and unredacted: it stays in memory."""

    form: Form
    raw: bytes


class Redactor(Protocol):
    """Takes out what must never be kept, or raises: then nothing is kept."""

    def tree(self, value: Any) -> Any:
        """The same tree of JSON without secrets and personal data."""

    def name(self, kind: str, value: str) -> str:
        """An id as it is, or a stable pseudonym when it holds something private."""


class _Real:
    """`upswing.redact`, with the rules that the loop itself applies."""

    def __init__(self) -> None:
        from upswing.redact import Redactor as Rules  # noqa: PLC0415 - takes a while to load
        from upswing.redact.identity import identity  # noqa: PLC0415

        self._rules, self._identity = Rules(), identity

    def tree(self, value: Any) -> Any:
        return self._rules.tree(value).value

    def name(self, kind: str, value: str) -> str:
        return self._identity(self._rules, kind, value)


def default_redactor() -> Redactor:
    return _Real()


class Cleaner:
    """Draft in, entry out. The redactor is made at first use, in the worker's thread."""

    def __init__(self, make: Callable[[], Redactor]) -> None:
        self._make = make
        self._redactor: Redactor | None = None

    def warm(self) -> Redactor:
        if self._redactor is None:
            self._redactor = self._make()
        return self._redactor

    def __call__(self, draft: Draft) -> Entry:
        """The entry to send; raises when it cannot be redacted or is not what the contract says."""
        if len(draft.raw) > LARGEST:
            raise Rejected(Reason.TOO_LARGE, "A message holds at most 8 MB.")
        given = msgspec.json.decode(draft.raw)
        if draft.form is Form.FEEDBACK:
            clean = _redacted(given, self.warm(), _FEEDBACK)
            from_builtins(Feedback, clean)
            return Entry(Kind.FEEDBACK, msgspec.json.encode(clean))
        if draft.form is Form.STEPS:
            given = trajectory_of_steps(given["head"], given["steps"], given["end"])
        clean = _trajectory(given, self.warm())
        from_builtins(Trajectory, clean)
        return Entry(Kind.TRAJECTORY, msgspec.json.encode(clean))


_FEEDBACK = {"feedback_id": "", "timestamp": "", "trajectory_id": "", "user_id": "user"}
_TRAJECTORY = {
    "trajectory_id": "",
    "start_timestamp": "",
    "end_timestamp": "",
    "agent_id": "agent",
    "session_id": "session",
}
"""Keys that are no free text: kept as they are, or named by a pseudonym of this kind."""


def _redacted(given: Tree, redactor: Redactor, ids: dict[str, str]) -> Tree:
    apart = {key: given[key] for key in ids if isinstance(given.get(key), str)}
    clean = redactor.tree({key: value for key, value in given.items() if key not in apart})
    named = {k: redactor.name(ids[k], v) if ids[k] else v for k, v in apart.items()}
    return {**clean, **named}


def _trajectory(given: Tree, redactor: Redactor) -> Tree:
    """Users keep an identity; token ids are numbers, and go where the text they spell has gone."""
    about = dict(given["metadata"])
    tokens = about.pop("tokens", None)
    user = about.pop("user_id", None)
    clean = _redacted({**given, "metadata": about}, redactor, _TRAJECTORY)
    clean["turns"] = list(map(_in_shape, given["turns"], clean["turns"]))
    found = {} if user is None else {"user_id": redactor.name("user", text(user))}
    if isinstance(tokens, list) and (kept := _true_tokens(tokens, given, clean)):
        found["tokens"] = redactor.tree(kept)
    return {**clean, "metadata": {**clean["metadata"], **found}}


def _in_shape(given: Tree, clean: Tree) -> Tree:
    """A turn's time and its contract words, which hold nothing private, as they were."""
    return {
        **clean,
        "timestamp": given["timestamp"],
        "observation": {**clean["observation"], "type": given["observation"]["type"]},
        "action": {**clean["action"], "type": given["action"]["type"]},
    }


def _true_tokens(tokens: list[Any], given: Tree, clean: Tree) -> list[Any]:
    """Token ids spell the text before redaction: none from the first turn that it changed."""
    if given["task_context"] != clean["task_context"]:
        return []
    pairs = zip(given["turns"], clean["turns"], strict=True)
    first = next((before["turn_id"] for before, after in pairs if before != after), None)
    return [
        each
        for each in tokens
        if isinstance(each, dict) and (first is None or each.get("turn_id", first) < first)
    ]
