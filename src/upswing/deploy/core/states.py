"""What may become of a model, and of its rollout, and which of these go together?

The tables are the law: reducers look into them, and the diagrams in the documentation are drawn from
them. A name that ends a rollout has no successors, except that a model whose successor was rolled back
answers again.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar


class ModelState(StrEnum):
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


class RolloutState(StrEnum):
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


MODEL_TRANSITIONS: dict[ModelState, frozenset[ModelState]] = {
    ModelState.TRAINED: frozenset({ModelState.VALIDATING, ModelState.ABORTED}),
    ModelState.VALIDATING: frozenset(
        {
            ModelState.PASSED,
            ModelState.FAILED,
            ModelState.UNDECIDED,
            ModelState.TRAINED,
            ModelState.ABORTED,
        }
    ),
    ModelState.PASSED: frozenset(
        {ModelState.CANARY, ModelState.DEPLOYED, ModelState.ABORTED, ModelState.VALIDATING}
    ),
    ModelState.FAILED: frozenset({ModelState.VALIDATING}),
    ModelState.UNDECIDED: frozenset({ModelState.VALIDATING}),
    ModelState.ABORTED: frozenset({ModelState.VALIDATING}),
    ModelState.CANARY: frozenset({ModelState.DEPLOYED, ModelState.ROLLED_BACK, ModelState.RETIRED}),
    ModelState.DEPLOYED: frozenset({ModelState.RETIRED, ModelState.ROLLED_BACK}),
    ModelState.RETIRED: frozenset({ModelState.CANARY, ModelState.DEPLOYED, ModelState.VALIDATING}),
    ModelState.ROLLED_BACK: frozenset({ModelState.VALIDATING}),
}

ROLLOUT_TRANSITIONS: dict[RolloutState, frozenset[RolloutState]] = {
    RolloutState.QUEUED: frozenset(
        {RolloutState.AWAITING, RolloutState.RAMPING, RolloutState.PROMOTED, RolloutState.CANCELLED}
    ),
    RolloutState.AWAITING: frozenset(
        {RolloutState.RAMPING, RolloutState.PROMOTED, RolloutState.CANCELLED}
    ),
    RolloutState.RAMPING: frozenset(
        {
            RolloutState.PAUSED,
            RolloutState.PROMOTED,
            RolloutState.ROLLED_BACK,
            RolloutState.REPLACED,
        }
    ),
    RolloutState.PAUSED: frozenset(
        {
            RolloutState.RAMPING,
            RolloutState.PROMOTED,
            RolloutState.ROLLED_BACK,
            RolloutState.REPLACED,
        }
    ),
    RolloutState.PROMOTED: frozenset({RolloutState.SUCCEEDED, RolloutState.ROLLED_BACK}),
    RolloutState.SUCCEEDED: frozenset({RolloutState.PROMOTED}),
    RolloutState.ROLLED_BACK: frozenset(),
    RolloutState.REPLACED: frozenset(),
    RolloutState.CANCELLED: frozenset(),
}

MODEL_STATE_OF_ROLLOUT: dict[RolloutState, ModelState] = {
    RolloutState.QUEUED: ModelState.PASSED,
    RolloutState.AWAITING: ModelState.PASSED,
    RolloutState.RAMPING: ModelState.CANARY,
    RolloutState.PAUSED: ModelState.CANARY,
    RolloutState.PROMOTED: ModelState.DEPLOYED,
    RolloutState.SUCCEEDED: ModelState.RETIRED,
    RolloutState.ROLLED_BACK: ModelState.ROLLED_BACK,
    RolloutState.REPLACED: ModelState.RETIRED,
    RolloutState.CANCELLED: ModelState.PASSED,
}
"""The state of the model whose rollout stands like this."""

INITIAL_STATES: tuple[ModelState, RolloutState] = (ModelState.TRAINED, RolloutState.QUEUED)
ACTIVE = frozenset({RolloutState.RAMPING, RolloutState.PAUSED})
"""These have traffic of their own beside a baseline. At most one ramps; an operator may hold several."""
OVER = frozenset({RolloutState.ROLLED_BACK, RolloutState.REPLACED, RolloutState.CANCELLED})
WITHDRAWN = frozenset({ModelState.ROLLED_BACK, ModelState.ABORTED, ModelState.RETIRED})
"""These answer nobody; one that stands by ends what it began."""
OVERRIDABLE = frozenset(
    {
        ModelState.TRAINED,
        ModelState.FAILED,
        ModelState.UNDECIDED,
        ModelState.ABORTED,
        ModelState.ROLLED_BACK,
    }
)
"""From here an operator's emergency override leads to a canary, and nothing else does: it is no row of
the table."""


State = TypeVar("State", bound=StrEnum)


def states_before(table: Mapping[State, frozenset[State]], state: State) -> list[State]:
    """The states from which one may come to this one, in the table's order."""
    return [earlier for earlier, later in table.items() if state in later]


def mermaid_diagram(table: Mapping[State, frozenset[State]], first: State) -> str:
    """The table as a diagram.

    >>> print(mermaid_diagram({RolloutState.QUEUED: frozenset({RolloutState.CANCELLED}), RolloutState.CANCELLED: frozenset()},
    ...               RolloutState.QUEUED))
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
