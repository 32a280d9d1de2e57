r"""How is a tree written as YAML? The little that configuration files need: mappings, lists, scalars, long texts.

>>> print(dump({"groups": [{"name": "a b", "for": "5m", "on": True, "expr": "x\n  > 1"}], "none": []}), end="")
groups:
  - name: 'a b'
    for: 5m
    'on': true
    expr: |-
      x
        > 1
none: []
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

Tree = Mapping[str, "Tree"] | Sequence["Tree"] | str | float | bool
_PLAIN = re.compile(r"[A-Za-z_/][\w./-]*|\d+[smhd]")
_BLOCK = re.compile(r"\S(.*\S)?(\n+ *\S(.*\S)?)+")
_ENDS_NO_LINE = re.compile(r"[^\n\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]*")
"""Nothing that YAML takes for the end of a line, or refuses."""
"""Several lines, the first of which is not indented, and none of which ends with a space."""
_RESERVED = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}
"""What YAML takes for something else than text."""


def dump(tree: Tree) -> str:
    """The tree as YAML, with a line end."""
    return "\n".join(_lines(tree)) + "\n"


def _lines(tree: Tree) -> Iterator[str]:
    if isinstance(tree, Mapping) and tree:
        for key, value in tree.items():
            first, *rest = _lines(value)
            nested = isinstance(value, Mapping | Sequence) and not isinstance(value, str) and value
            yield f"{_text(key)}:" if nested else f"{_text(key)}: {first}"
            yield from (f"  {line}".rstrip() for line in ((first, *rest) if nested else rest))
    elif isinstance(tree, Sequence) and not isinstance(tree, str) and tree:
        for value in tree:
            first, *rest = _lines(value)
            yield f"- {first}"
            yield from (f"  {line}".rstrip() for line in rest)
    elif isinstance(tree, str) and _BLOCK.fullmatch(tree) and _is_plain(tree):
        yield "|-"
        yield from tree.split("\n")
    else:
        yield _scalar(tree)


def _scalar(value: Tree) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return repr(value)
        case str():
            return _text(value)
        case Mapping():
            return "{}"
        case _:
            return "[]"


def _is_plain(text: str) -> bool:
    return all(map(_ENDS_NO_LINE.fullmatch, text.split("\n")))


def _spelled(character: str) -> str:
    """As it stands between double quotes."""
    if _ENDS_NO_LINE.fullmatch(character):
        return f"\\{character}" if character in '"\\' else character
    return f"\\u{ord(character):04x}"


def _text(value: str) -> str:
    if _PLAIN.fullmatch(value) and value.lower() not in _RESERVED:
        return value
    if not _ENDS_NO_LINE.fullmatch(value):
        return '"' + "".join(map(_spelled, value)) + '"'
    return "'" + value.replace("'", "''") + "'"
