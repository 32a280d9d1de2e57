"""Does this line of code do what the function should? Computed by hand, never executed.

A broken function of two numbers has one hole. One word fills it, or a whole Python expression in
`x` and `y` takes its place:

| function | word  | expression |
|----------|-------|------------|
| total    | long  | x + y      |
| change   | short | x - y      |
| area     | up    | x * y      |
| share    | down  | x // y     |

An expression consists of whole numbers, `x`, `y`, `+ - * // %`, brackets and comparisons, in at most
80 characters; anything else has no value.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable
from typing import Final

PATCHES: Final = {"total": "long", "change": "short", "area": "up", "share": "down"}
"""The word that repairs a function."""
MEANING: Final = {"long": "x + y", "short": "x - y", "up": "x * y", "down": "x // y"}
"""What a word puts into the hole."""

_WRITTEN = re.compile(r"[xy0-9+\-*/%<>=!() ]{1,80}")
_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARED: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def repairs_function(reply: str, function: str, cases: Iterable[tuple[int, int]]) -> bool:
    """Whether the reply computes what the function should, in all of these cases.

    >>> repairs_function("up", "area", [(12, 3)]), repairs_function("y * x", "area", [(12, 3)])
    (True, True)
    >>> repairs_function("x + y", "area", [(12, 3)]), repairs_function("36", "area", [(12, 3), (20, 2)])
    (False, False)
    """
    should, does = MEANING[PATCHES[function]], MEANING.get(reply, reply)
    return all(
        value_of_expression(does, x, y) == value_of_expression(should, x, y) for x, y in cases
    )


def value_of_expression(expression: str, x: int, y: int) -> int | None:
    """What the expression is worth; None where it has no value.

    >>> value_of_expression("(x + 1) % y", 9, 4), value_of_expression("x > y", 9, 4)
    (2, 1)
    >>> value_of_expression("x // 0", 9, 4), value_of_expression("x ** 99", 9, 4), value_of_expression("exit()", 9, 4)
    (None, None, None)
    """
    if not _WRITTEN.fullmatch(expression):
        return None
    try:
        return _value_of_node(ast.parse(expression.strip(), mode="eval").body, {"x": x, "y": y})
    except (SyntaxError, ZeroDivisionError, _NotOurs):
        return None


class _NotOurs(Exception):
    """Python, but more of it than the desk takes."""


def _value_of_node(node: ast.expr, known: dict[str, int]) -> int:
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.Name(id=name) if name in known:
            return known[name]
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value_of_node(inner, known)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](_value_of_node(left, known), _value_of_node(right, known))
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARED:
            return int(
                _COMPARED[type(op)](_value_of_node(left, known), _value_of_node(right, known))
            )
        case _:
            raise _NotOurs
