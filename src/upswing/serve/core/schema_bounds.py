"""How large a grammar would a schema make, and is that bearable?

llama.cpp makes a grammar of a schema before it draws a token, and meanwhile answers nobody. Seventy bytes can ask for one that
takes all memory, so what a schema would cost is counted first:

| of a schema                              | counts                                             |
|------------------------------------------|----------------------------------------------------|
| each part of it                          | 1                                                  |
| names of properties, `const`, `enum`     | their characters                                   |
| properties that are not required         | the square of their number: any may be left out    |
| `minItems`, `maxItems`                   | the larger of them                                 |
| `minLength`                              | a hundredth of it                                  |
| `pattern`                                | its characters, those in brackets as often as they |
|                                          | are repeated and as deep as they stand             |
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

MAX_COST = 50_000
"""Above it llama.cpp takes seconds to make a grammar; schemas of agents' tools cost hundreds."""
MAX_DEPTH = 64
"""Levels of objects and lists in a schema; llama.cpp itself gives up at less than two hundred."""
_LITERALS = frozenset({"const", "enum"})
_PATTERN_TOKEN = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\{(\d*),?(\d*)\}|.", re.DOTALL)


def check_schema_cost(schemas: Sequence[Any]) -> None:
    """`ValueError` with what is wrong when these schemas together would cost too much.

    >>> check_schema_cost([{"type": "array", "items": {"type": "string"}, "minItems": 1000000000}])
    Traceback (most recent call last):
    ValueError: the schema is too large: what it repeats and leaves open makes more than 50000 parts
    """
    cost = 0
    waiting: list[tuple[Any, int]] = [(schema, 1) for schema in schemas]
    while waiting:
        part, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise ValueError(f"the schema is nested more than {MAX_DEPTH} levels deep")
        if isinstance(part, Mapping):
            cost += 1 + _own_cost(part)
            waiting += [(each, depth + 1) for name, each in part.items() if name not in _LITERALS]
        elif isinstance(part, list | tuple):
            cost += 1
            waiting += [(each, depth + 1) for each in part]
        if cost > MAX_COST:
            message = "the schema is too large: what it repeats and leaves open makes more than"
            raise ValueError(f"{message} {MAX_COST} parts")


def _own_cost(part: Mapping[str, Any]) -> int:
    """Of an object in a schema, without what stands in it."""
    properties, required = part.get("properties"), part.get("required")
    names = properties if isinstance(properties, Mapping) else {}
    listed = required if isinstance(required, list | tuple) else ()
    wanted = {each for each in listed if isinstance(each, str)}
    optional = len(names) - len(wanted & names.keys())
    pattern = part.get("pattern")
    return (
        sum(map(len, names))
        + optional**2
        + sum(len(msgspec.json.encode(part[name])) for name in _LITERALS & part.keys())
        + max(_count(part.get("minItems")), _count(part.get("maxItems")))
        + _count(part.get("minLength"), 100)
        + (pattern_cost(pattern) if isinstance(pattern, str) else 0)
    )


def _count(value: Any, share: int = 1) -> int:
    """A number of times, or this part of it, as far as it is one; more than all is as much as all."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(min(max(value, 0), share * (MAX_COST + 1))) // share


def pattern_cost(pattern: str) -> int:
    r"""How many characters a regular expression would have if all that it repeats were written out.

    >>> pattern_cost("ab"), pattern_cost("[a-z]{4}-x"), pattern_cost("(a{10}){10}"), pattern_cost(r"\(a")
    (2, 6, 110, 2)
    """
    levels = [0]
    """What was counted at each level of brackets that is open."""
    last = 0
    for token in _PATTERN_TOKEN.finditer(pattern):
        match token[0]:
            case "(":
                levels.append(0)
                last = 0
            case ")":
                inner = levels.pop() if len(levels) > 1 else 0
                last = len(levels) + inner
                levels[-1] += last
            case "*" | "+" | "?":
                levels[-1] += 1
            case text if text[0] == "{" and token[1] is not None:
                times = max(_capped_repeat_count(token[1]), _capped_repeat_count(token[2]))
                levels[-1] += last * (times - 1) if times > 1 else 0
                last *= max(times, 1)
            case _:
                last = 1
                levels[-1] += last
        if sum(levels[-2:]) > MAX_COST:
            return MAX_COST + 1
    return min(sum(levels) + len(levels) ** 2 - 1, MAX_COST + 1)


def _capped_repeat_count(digits: str) -> int:
    return min(int(digits[:9] or 0), MAX_COST + 1)
