"""Which operations are there?"""

from __future__ import annotations

from upswing.errors import Misuse
from upswing.integrations.operations.confirmed import CONFIRMED
from upswing.integrations.operations.operation import Operation
from upswing.integrations.operations.reading_causes import CAUSES
from upswing.integrations.operations.reading_loop import LOOP
from upswing.integrations.operations.reading_models import MODELS
from upswing.integrations.operations.reading_work import WORK
from upswing.integrations.operations.requesting import REQUESTING

OPERATIONS: tuple[Operation, ...] = (
    *LOOP,
    *WORK,
    *MODELS,
    *CAUSES,
    *REQUESTING,
    *CONFIRMED,
)
_BY_NAME = {operation.name: operation for operation in OPERATIONS}


def operation_named(name: str) -> Operation:
    """`Misuse` with the names that there are."""
    if (found := _BY_NAME.get(name)) is None:
        raise Misuse(f"There is no operation {name!r}; there are: {', '.join(sorted(_BY_NAME))}.")
    return found
