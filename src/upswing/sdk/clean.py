"""What may leave this process? Only what is redacted, and what the contract would take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from upswing.contracts import Feedback, Trajectory, from_builtins
from upswing.contracts.steps import Tree, trajectory_from_steps
from upswing.errors import Reason, Rejected
from upswing.infra.spool_log import SpoolEntry, SpoolEntryKind

if TYPE_CHECKING:
    from upswing.redact import Redactor

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


def default_redactor() -> Redactor:
    """The rules that the loop itself applies."""
    from upswing.redact import Redactor as Rules  # noqa: PLC0415 - takes a while to load

    return Rules()


class Cleaner:
    """Draft in, entry out. The redactor is made at first use, in the worker's thread."""

    def __init__(self, make: Callable[[], Redactor]) -> None:
        self._make = make
        self._redactor: Redactor | None = None

    def warm(self) -> Redactor:
        if self._redactor is None:
            self._redactor = self._make()
        return self._redactor

    def __call__(self, draft: Draft) -> SpoolEntry:
        """The entry to send; raises when it cannot be redacted or is not what the contract says."""
        if len(draft.raw) > LARGEST:
            raise Rejected(Reason.TOO_LARGE, "A message holds at most 8 MB.")
        given: Tree = msgspec.json.decode(draft.raw)
        redactor = self.warm()
        from upswing.redact.messages import redact_feedback, redact_trajectory  # noqa: PLC0415

        if draft.form is Form.FEEDBACK:
            clean = redact_feedback(given, redactor).tree
            from_builtins(Feedback, clean)
            return SpoolEntry(SpoolEntryKind.FEEDBACK, msgspec.json.encode(clean))
        if draft.form is Form.STEPS:
            given = trajectory_from_steps(given["head"], given["steps"], given["end"])
        clean = redact_trajectory(given, redactor).tree
        from_builtins(Trajectory, clean)
        return SpoolEntry(SpoolEntryKind.TRAJECTORY, msgspec.json.encode(clean))
