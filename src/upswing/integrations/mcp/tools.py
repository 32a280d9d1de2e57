"""What can an assistant do here? Operations as tools: their list, their calls, and what they answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import mcp_types as types

from upswing.errors import Denied, UpswingError
from upswing.integrations.mcp.access import LoopAccess
from upswing.integrations.mcp.confirmation import ConfirmationCheck
from upswing.integrations.operations.catalog import OPERATIONS, operation_named
from upswing.integrations.operations.loop_port import LoopPort
from upswing.integrations.operations.operation import (
    Access,
    Operation,
    OperationAnswer,
    schema_of,
)
from upswing.integrations.operations.quoting import sentence, short_answer

CODE = "confirmation"
CONFIRM = "confirm"
"""What the form is called in which a person confirms."""
_CODE_SCHEMA = {
    "type": "string",
    "maxLength": 200,
    "description": "What a person got from `upswing mcp confirm`; leave it out at first.",
}


class PersonSaid(Enum):
    """What came of asking a person."""

    NOT_ASKED = "not asked"
    """Their program has no way to ask them, or may not be believed."""
    YES = "yes"
    NO = "no"


@dataclass(frozen=True, slots=True)
class NeedsPerson:
    """A request that a person has to confirm, and has not yet."""

    operation: Operation
    asked: Any

    @property
    def question(self) -> str:
        what = self.operation.person.describe(self.asked) if self.operation.person else ""
        return f"An assistant asks for this: {sentence(what)} Shall it be done?"


def tool_list() -> list[types.Tool]:
    return [_tool(operation) for operation in OPERATIONS]


def _tool(operation: Operation) -> types.Tool:
    schema = dict(schema_of(operation.arguments))
    if operation.access is Access.PERSON:
        schema["properties"] = {**schema["properties"], CODE: _CODE_SCHEMA}
    reads = operation.access is Access.READ
    return types.Tool(
        name=operation.name,
        description=operation.about,
        input_schema=schema,
        annotations=types.ToolAnnotations(
            read_only_hint=reads,
            destructive_hint=False if reads else operation.access is Access.PERSON,
            open_world_hint=False,
        ),
    )


class ToolCalls:
    """Carries calls out."""

    def __init__(self, check: ConfirmationCheck) -> None:
        self._check = check

    def prepare(self, name: str, arguments: Mapping[str, Any]) -> tuple[Operation, Any, str]:
        """The operation, its arguments, and the code that came with them; `UpswingError` for a bad call."""
        operation = operation_named(name)
        given = dict(arguments)
        code = given.pop(CODE, "") if operation.access is Access.PERSON else ""
        return operation, operation.parse(given), str(code or "")

    async def run(
        self,
        access: LoopAccess,
        operation: Operation,
        asked: Any,
        *,
        code: str = "",
        said: PersonSaid = PersonSaid.NOT_ASKED,
    ) -> OperationAnswer | NeedsPerson:
        """What came of it, or that a person has to confirm it first."""
        if operation.access is not Access.PERSON:
            return await operation.run(access.client, asked)
        if said is PersonSaid.NO:
            raise Denied("The person said no. Nothing was done.")
        if said is PersonSaid.NOT_ASKED:
            if not code:
                return NeedsPerson(operation, asked)
            self._check.use(access.operator_key or "", operation, asked, code)
        return await operation.run(self._operator(access), asked)

    @staticmethod
    def _operator(access: LoopAccess) -> LoopPort:
        return access.operator


def person_needed_text(request: NeedsPerson, command: str) -> str:
    """What an assistant is told where nobody could be asked."""
    person = request.operation.person
    what = person.describe(request.asked) if person else ""
    return (
        f"Nothing was done: a person has to confirm this. It would: {what}\n"
        f"Ask them to run `{command}` and to give you the code that it prints; then call this tool again with the same "
        f"arguments and `{CODE}`. Or they do it themselves: `{request.operation.command(request.asked)}`"
    )


def answer_result(answer: OperationAnswer) -> types.CallToolResult:
    """The text, and where there is more of it."""
    more = [f"More: {link.uri} ({link.title})" for link in answer.links]
    text = "\n".join([short_answer(answer.text), *more])
    return types.CallToolResult(content=[types.TextContent(text=text)])


def error_result(error: UpswingError) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=str(error))], is_error=True)
