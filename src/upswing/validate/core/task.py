"""What is asked, and how is the answer checked? One line of a task file.

    {"task_id": "code-clamp", "messages": [{"role": "user", "content": "Write …"}],
     "check": {"kind": "code", "cases": [{"give": "clamp(5, 0, 3)", "expect": 3}]},
     "reference": "def clamp(x, low, high): …"}

| check      | the answer is right when                                                             |
|------------|--------------------------------------------------------------------------------------|
| `code`     | every case gives what is expected, in a sandbox                                      |
| `number`   | its final number is the expected one, within the tolerance                           |
| `exact`    | its final line is one of the expected texts                                          |
| `facts`    | every required fact is in it, no contradicted one, and it is not too long            |
| `tools`    | it calls the expected tools with the expected arguments, step by step                |
| `refusal`  | it refuses a harmful request, or does not refuse a harmless one                      |
| `toxicity` | it insults and threatens nobody                                                      |
| `pair`     | two requests that differ only in a person's group are decided alike                  |
| `guarded`  | what the system message protects is not given away or done                           |
| `pinned`   | what went wrong in production does not go wrong again                                |

`reference` is an answer that passes: it documents the task and tests the checker, and no model sees it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from upswing.contracts.checks import Call, Check, Exact, Facts, Number, Pinned, Text
from upswing.contracts.wire import Json


class CodeCase(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What an expression over the answer's code must give."""

    give: Text
    expect: Any
    """In JSON's types: a tuple is a list there."""
    run: str = ""
    """Statements before it."""


class CodeCheck(Check, frozen=True, tag="code", kw_only=True):
    cases: Annotated[tuple[CodeCase, ...], Meta(min_length=1)]


class ToolsCheck(Check, frozen=True, tag="tools", kw_only=True):
    steps: tuple[tuple[Call, ...], ...] = ()
    """The calls of each step, in any order within it. None at all: no tool may be called."""
    say: tuple[tuple[Text, ...], ...] = ()
    """Facts of the final answer, as `facts` has them."""


class RefusalCheck(Check, frozen=True, tag="refusal", kw_only=True):
    expect: Literal["refuse", "answer"]
    about: tuple[Text, ...] = ()
    """Words that an answer to a harmless request would have."""


class ToxicityCheck(Check, frozen=True, tag="toxicity", kw_only=True):
    """Nothing to set."""


class PairCheck(Check, frozen=True, tag="pair", kw_only=True):
    other: Annotated[tuple[Json, ...], Meta(min_length=1)]
    """The same messages about somebody else."""
    choices: Annotated[tuple[Text, ...], Meta(min_length=2)]


class GuardedCheck(Check, frozen=True, tag="guarded", kw_only=True):
    secrets: tuple[Text, ...] = ()
    """Must not be in the answer, in whatever spelling."""
    forbidden_tools: tuple[Text, ...] = ()


AnyCheck = (
    CodeCheck
    | Number
    | Exact
    | Facts
    | ToolsCheck
    | RefusalCheck
    | ToxicityCheck
    | PairCheck
    | GuardedCheck
    | Pinned
)


class ValidationTask(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True
):
    """One thing to do."""

    task_id: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$")]
    messages: Annotated[tuple[Json, ...], Meta(min_length=1)]
    """In the shape of chat completions."""
    check: AnyCheck
    tools: tuple[Json, ...] = ()
    """What the model may call, in the shape of chat completions."""
    max_tokens: Annotated[int, Meta(ge=1, le=32_768)] = 700
    reference: str | tuple[Json, ...] | None = None
    """An answer that passes: text, or the model's messages in order."""


__all__ = [
    "AnyCheck",
    "Call",
    "Check",
    "CodeCase",
    "CodeCheck",
    "Exact",
    "Facts",
    "GuardedCheck",
    "Number",
    "PairCheck",
    "Pinned",
    "RefusalCheck",
    "Text",
    "ToolsCheck",
    "ToxicityCheck",
    "ValidationTask",
]
