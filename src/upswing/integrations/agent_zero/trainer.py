"""What does the rl-trainer's tool do? It asks the loop with a key that reads and requests, and answers in text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from upswing.errors import UpswingError
from upswing.integrations.agent_zero.connection import PluginConnection
from upswing.integrations.agent_zero.trainer_prompt import TOOL
from upswing.integrations.operations.catalog import OPERATIONS, operation_named
from upswing.integrations.operations.loop_port import LoopPort
from upswing.integrations.operations.operation import Access, Operation
from upswing.integrations.operations.quoting import short_answer

_NO_KEY = "This Agent Zero has no key for the loop: a person runs `upswing agent-zero install` again while the loop runs."


def trainer_client(connection: PluginConnection) -> LoopPort | None:
    """The loop with the assistant's key; None where the plugin has none."""
    if connection.loop_url is None or connection.assistant_key is None:
        return None
    return LoopPort(connection.loop_url, connection.assistant_key)


async def operate(loop: LoopPort | None, method: str, arguments: Mapping[str, Any]) -> str:
    """What came of it, or a sentence with what to do."""
    if loop is None:
        return _NO_KEY
    if not method:
        names = ", ".join(f"{TOOL}:{each.name}" for each in OPERATIONS)
        return f"Name what you ask for: {names}."
    try:
        operation = operation_named(method)
        asked = operation.parse(_own_arguments(operation, arguments))
        if operation.access is Access.PERSON and operation.person is not None:
            what, how = operation.person.describe(asked), operation.command(asked)
            return f"Only a person can do this. It would: {what} They do it with: `{how}`"
        return short_answer((await operation.run(loop, asked)).text)
    except UpswingError as error:
        return f"{error}"


def _own_arguments(operation: Operation, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Without `reason`, where an operation has no place for it: Agent Zero takes no call without arguments."""
    takes = operation.arguments.__struct_fields__
    return {
        str(name): value for name, value in arguments.items() if name != "reason" or name in takes
    }
