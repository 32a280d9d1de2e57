"""What is an operation, who may do it, and what does it answer?

| access     | who may                                                                                |
|------------|----------------------------------------------------------------------------------------|
| `read`     | a key of scope `reader` or `assistant`                                                 |
| `request`  | a key of scope `assistant`: it asks for work, or takes traffic away from a model        |
| `person`   | an operator's key, and a person who confirms this very request                          |
"""

from __future__ import annotations

import shlex
import unicodedata
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from upswing.contracts.field_errors import schema_error_sentence
from upswing.contracts.typed import from_tree
from upswing.errors import Misuse
from upswing.integrations.operations.loop_port import LoopPort

LONGEST = 6_000
"""Characters of an answer: a model reads all of it, and pays for it."""
UNSEEN = frozenset({"Cc", "Cf", "Co", "Cn", "Cs"})
"""Kinds of characters that a reader does not see: control and format characters, which carry hidden words."""


class Access(StrEnum):
    """Who may."""

    READ = "read"
    REQUEST = "request"
    PERSON = "person"


class Link(NamedTuple):
    """Where there is more."""

    uri: str
    title: str


@dataclass(frozen=True, slots=True)
class OperationAnswer:
    """What came of it, in few words."""

    text: str
    links: Sequence[Link] = ()
    data: dict[str, Any] = field(default_factory=dict)
    """The same as values, small."""


class Arguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an operation takes; none of them by place."""


Run = Callable[[LoopPort, Any], Awaitable[OperationAnswer]]


@dataclass(frozen=True, slots=True)
class PersonStep:
    """What a person is asked, and how they would do it without an assistant."""

    describe: Callable[[Any], str]
    """One sentence with everything that will be done."""
    command: Callable[[Any], Sequence[str]]
    """The words after `upswing`."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that can be asked."""

    name: str
    about: str
    """For whoever chooses among them: what it does, and when."""
    arguments: type[Arguments]
    run: Run
    access: Access = Access.READ
    person: PersonStep | None = None
    """Of one that a person has to confirm."""

    def command(self, asked: Any) -> str:
        """What a person types to do it themselves; safe to paste."""
        words = self.person.command(asked) if self.person else ()
        return shlex.join(["upswing", *words])

    def parse(self, values: dict[str, Any]) -> Any:
        """The arguments, or `Misuse` with what is wrong."""
        try:
            asked = from_tree(values, self.arguments)
        except msgspec.ValidationError as error:
            raise Misuse(schema_error_sentence(error, self.arguments)) from None
        if self.access is Access.PERSON:
            _refuse_unseen(values)
        return asked


def _refuse_unseen(values: Mapping[str, Any]) -> None:
    """A person agrees to what they see, so nothing else may be in it."""
    for name, value in values.items():
        if isinstance(value, str) and any(unicodedata.category(each) in UNSEEN for each in value):
            raise Misuse(
                f"`{name}` has characters that nobody sees: a person does this at a terminal."
            )


@cache
def schema_of(arguments: type[Arguments]) -> dict[str, Any]:
    """JSON Schema of what an operation takes, in one piece.

    >>> class Example(Arguments):
    ...     limit: int = 3
    >>> schema_of(Example)["properties"]
    {'limit': {'type': 'integer', 'default': 3}}
    """
    (whole,), parts = msgspec.json.schema_components([arguments], ref_template="{name}")
    schema = parts[whole["$ref"]] if "$ref" in whole else whole
    return {key: value for key, value in schema.items() if key not in {"title", "description"}}


def bounded(text: str, longest: int = LONGEST) -> str:
    """The beginning of a long text, which says that it is one.

    >>> bounded("abcdef", 3)
    'abc … (3 more characters)'
    """
    if len(text) <= longest:
        return text
    return f"{text[:longest]} … ({len(text) - longest} more characters)"
