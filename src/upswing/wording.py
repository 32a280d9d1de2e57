"""What is wrong with a value, for a person? The names of the file or the request, and what is allowed.

msgspec says ``Invalid enum value 'foo' - at `$.train.algorithm` ``. A person wrote `algorithm` into
`[train]`, and wants to know what can stand there.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

_SENTENCE = re.compile(r"(?P<what>.*?)(?: - at `(?:key in )?\$\.?(?P<path>[^`]*)`)?$", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*)`")
_MISSING = re.compile(r"Object missing required field `(?P<name>.*)`")
_ENUM = re.compile(r"Invalid enum value (?P<value>.*)")
_EXPECTED = re.compile(r"Expected `(?P<kind>[^`]+)`(?P<bound>.*?)(?:, got `(?P<got>[^`]+)`)?$")
_KINDS = {
    "int": "a whole number", "float": "a number", "str": "a text", "bool": "true or false",
    "array": "a list", "object": "a table", "null": "nothing",
}  # fmt: skip
_BOUNDS = (
    (" >= ", " of at least "), (" <= ", " of at most "), (" > ", " above "), (" < ", " below "),
    (".0", ""),
)  # fmt: skip


def mistake(error: msgspec.ValidationError, kind: type[msgspec.Struct]) -> tuple[str, str]:
    """The place as a person writes it (`table.name`), and what is wrong there.

    >>> from typing import Annotated
    >>> count = ("count", Annotated[int, msgspec.Meta(ge=1)], 1)
    >>> fields = [("word", str, ""), count]
    >>> Table = msgspec.defstruct("Table", fields, forbid_unknown_fields=True)
    >>> def told(tree):
    ...     try:
    ...         msgspec.convert(tree, Table)
    ...     except msgspec.ValidationError as error:
    ...         return mistake(error, Table)
    >>> told({"count": 0})
    ('count', 'expected a whole number of at least 1')
    >>> told({"cuont": 3})
    ('cuont', 'there is no such name; did you mean `count`? There are word, count')
    """
    found = _SENTENCE.match(str(error))
    what, path = (found["what"], found["path"] or "") if found else (str(error), "")
    if unknown := _UNKNOWN.match(what):
        return _below(path, unknown["name"]), _no_such(unknown["name"], list(_fields(kind, path)))
    if missing := _MISSING.match(what):
        return path, f"`{missing['name']}` is missing"
    if enum := _ENUM.match(what):
        allowed = ", ".join(str(each) for each in _choices(kind, path))
        return path, f"{enum['value']} is none of {allowed}" if allowed else what
    return path, _expected(what)


def counted(number: int, thing: str, things: str = "") -> str:
    """So many of them.

    >>> [counted(number, "group") for number in (0, 1, 2, 1200)], counted(2, "entry", "entries")
    (['0 groups', '1 group', '2 groups', '1,200 groups'], '2 entries')
    """
    return f"{number:,} {thing if number == 1 else things or f'{thing}s'}"


def setting(path: str) -> str:
    """The name of a setting as it stands in the file.

    >>> setting("train.algorithm"), setting("gateway.explore.share"), setting("train")
    ('[train] algorithm', '[gateway] explore.share', '[train]')
    """
    table, _, name = path.partition(".")
    return f"[{table}] {name}".strip()


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _no_such(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    hint = f"; did you mean {' or '.join(f'`{each}`' for each in near)}?" if near else "."
    return f"there is no such name{hint} There are {', '.join(known)}"


def _expected(what: str) -> str:
    found = _EXPECTED.match(what)
    if found is None:
        return what
    bound = found["bound"]
    for sign, word in _BOUNDS:
        bound = bound.replace(sign, word)
    kinds = " or ".join(_KINDS.get(each, each) for each in found["kind"].split(" | "))
    got = f", not {_KINDS.get(found['got'], found['got'])}" if found["got"] else ""
    return f"expected {kinds}{bound}{got}"


def _fields(kind: type[msgspec.Struct], path: str) -> Iterator[str]:
    for each in _at(kind, path):
        if isinstance(each, inspect.StructType):
            yield from (field.encode_name for field in each.fields)


def _choices(kind: type[msgspec.Struct], path: str) -> Iterator[Any]:
    for each in _at(kind, path):
        if isinstance(each, inspect.LiteralType):
            yield from sorted(each.values, key=str)


def _at(kind: type[msgspec.Struct], path: str) -> list[inspect.Type]:
    """The types that may stand at a path."""
    found: list[inspect.Type] = [inspect.type_info(kind)]
    for step in re.findall(r"[^.\[\]]+|\[[^\]]*\]", path):
        found = [inner for each in found for inner in _flat(each) for inner in _step(inner, step)]
    return [inner for each in found for inner in _flat(each)]


def _flat(kind: inspect.Type) -> list[inspect.Type]:
    """Itself, or what a union or a bound holds."""
    match kind:
        case inspect.UnionType(types=types):
            return [inner for each in types for inner in _flat(each)]
        case inspect.Metadata(type=inner):
            return _flat(inner)
        case _:
            return [kind]


def _step(kind: inspect.Type, step: str) -> list[inspect.Type]:
    match kind:
        case inspect.StructType():
            return [field.type for field in kind.fields if field.encode_name == step]
        case inspect.DictType():
            return [kind.value_type]
        case inspect.ListType() | inspect.VarTupleType():
            return [kind.item_type]
        case _:
            return []
