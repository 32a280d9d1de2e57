"""What may become of a model, and of its rollout, and which of these go together?

The tables are the law: reducers look into them, and the diagrams in the documentation are drawn from
them. A name that ends a rollout has no successors, except that a model whose successor was taken back
answers again.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar


class Model(StrEnum):
    TRAINED = "trained"
    VALIDATING = "validating"
    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"
    """Validation could not say."""
    ABORTED = "aborted"
    """It does not ship: passed, but not better, or the model that it was trained from answers no more."""
    CANARY = "canary"
    DEPLOYED = "deployed"
    """It is the baseline."""
    RETIRED = "retired"
    """Another took its place, without its fault."""
    ROLLED_BACK = "rolled_back"


class Rollout(StrEnum):
    QUEUED = "queued"
    AWAITING = "awaiting_approval"
    RAMPING = "ramping"
    PAUSED = "paused"
    """An operator holds the traffic."""
    PROMOTED = "promoted"
    """It has all traffic and is watched; the model before it stands by."""
    SUCCEEDED = "succeeded"
    """Another model was promoted after it."""
    ROLLED_BACK = "rolled_back"
    REPLACED = "replaced"
    """A newer model took its place on the way."""
    CANCELLED = "cancelled"
    """It never got traffic."""


MODEL: dict[Model, frozenset[Model]] = {
    Model.TRAINED: frozenset({Model.VALIDATING, Model.ABORTED}),
    Model.VALIDATING: frozenset(
        {Model.PASSED, Model.FAILED, Model.UNDECIDED, Model.TRAINED, Model.ABORTED}
    ),
    Model.PASSED: frozenset({Model.CANARY, Model.DEPLOYED, Model.ABORTED, Model.VALIDATING}),
    Model.FAILED: frozenset({Model.VALIDATING}),
    Model.UNDECIDED: frozenset({Model.VALIDATING}),
    Model.ABORTED: frozenset({Model.VALIDATING}),
    Model.CANARY: frozenset({Model.DEPLOYED, Model.ROLLED_BACK, Model.RETIRED}),
    Model.DEPLOYED: frozenset({Model.RETIRED, Model.ROLLED_BACK}),
    Model.RETIRED: frozenset({Model.CANARY, Model.DEPLOYED, Model.VALIDATING}),
    Model.ROLLED_BACK: frozenset({Model.VALIDATING}),
}

ROLLOUT: dict[Rollout, frozenset[Rollout]] = {
    Rollout.QUEUED: frozenset(
        {Rollout.AWAITING, Rollout.RAMPING, Rollout.PROMOTED, Rollout.CANCELLED}
    ),
    Rollout.AWAITING: frozenset({Rollout.RAMPING, Rollout.PROMOTED, Rollout.CANCELLED}),
    Rollout.RAMPING: frozenset(
        {Rollout.PAUSED, Rollout.PROMOTED, Rollout.ROLLED_BACK, Rollout.REPLACED}
    ),
    Rollout.PAUSED: frozenset(
        {Rollout.RAMPING, Rollout.PROMOTED, Rollout.ROLLED_BACK, Rollout.REPLACED}
    ),
    Rollout.PROMOTED: frozenset({Rollout.SUCCEEDED, Rollout.ROLLED_BACK}),
    Rollout.SUCCEEDED: frozenset({Rollout.PROMOTED}),
    Rollout.ROLLED_BACK: frozenset(),
    Rollout.REPLACED: frozenset(),
    Rollout.CANCELLED: frozenset(),
}

TOGETHER: dict[Rollout, Model] = {
    Rollout.QUEUED: Model.PASSED,
    Rollout.AWAITING: Model.PASSED,
    Rollout.RAMPING: Model.CANARY,
    Rollout.PAUSED: Model.CANARY,
    Rollout.PROMOTED: Model.DEPLOYED,
    Rollout.SUCCEEDED: Model.RETIRED,
    Rollout.ROLLED_BACK: Model.ROLLED_BACK,
    Rollout.REPLACED: Model.RETIRED,
    Rollout.CANCELLED: Model.PASSED,
}
"""The state of the model whose rollout stands like this."""

FIRST: tuple[Model, Rollout] = (Model.TRAINED, Rollout.QUEUED)
ACTIVE = frozenset({Rollout.RAMPING, Rollout.PAUSED})
"""These have traffic of their own beside a baseline. At most one ramps; an operator may hold several."""
OVER = frozenset({Rollout.ROLLED_BACK, Rollout.REPLACED, Rollout.CANCELLED})
WITHDRAWN = frozenset({Model.ROLLED_BACK, Model.ABORTED, Model.RETIRED})
"""These answer nobody; one that stands by ends what it began."""
OVERRIDABLE = frozenset(
    {Model.TRAINED, Model.FAILED, Model.UNDECIDED, Model.ABORTED, Model.ROLLED_BACK}
)
"""From here an operator's emergency override leads to a canary, and nothing else does: it is no row of
the table."""


State = TypeVar("State", bound=StrEnum)


def before(table: Mapping[State, frozenset[State]], state: State) -> list[State]:
    """The states from which one may come to this one, in the table's order."""
    return [earlier for earlier, later in table.items() if state in later]


def mermaid(table: Mapping[State, frozenset[State]], first: State) -> str:
    """The table as a diagram.

    >>> print(mermaid({Rollout.QUEUED: frozenset({Rollout.CANCELLED}), Rollout.CANCELLED: frozenset()},
    ...               Rollout.QUEUED))
    stateDiagram-v2
        [*] --> queued
        queued --> cancelled
        cancelled --> [*]
    """
    order = list(table)
    lines = ["stateDiagram-v2", f"    [*] --> {first}"]
    for state, after in table.items():
        lines += [f"    {state} --> {later}" for later in sorted(after, key=order.index)]
        lines += [] if after else [f"    {state} --> [*]"]
    return "\n".join(lines)
