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
_ENUM = re.compile(r"Invalid (?:enum )?value (?P<value>.*)")
_PATTERN = re.compile(r"Expected `str` matching regex ")
_EXPECTED = re.compile(r"Expected `(?P<kind>[^`]+)`(?P<bound>.*?)(?:, got `(?P<got>[^`]+)`)?$")
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "null": "nothing",
}
_BOUNDS = (
    (" >= ", " of at least "),
    (" <= ", " of at most "),
    (" > ", " above "),
    (" < ", " below "),
    (".0", ""),
)


def locate_mistake(error: msgspec.ValidationError, kind: type[msgspec.Struct]) -> tuple[str, str]:
    """The place as a person writes it (`table.name`), and what is wrong there.

    >>> from typing import Annotated
    >>> count = ("count", Annotated[int, msgspec.Meta(ge=1)], 1)
    >>> fields = [("word", str, ""), count]
    >>> Table = msgspec.defstruct("Table", fields, forbid_unknown_fields=True)
    >>> def told(tree):
    ...     try:
    ...         msgspec.convert(tree, Table)
    ...     except msgspec.ValidationError as error:
    ...         return locate_mistake(error, Table)
    >>> told({"count": 0})
    ('count', 'expected a whole number of at least 1')
    >>> told({"cuont": 3})
    ('cuont', 'there is no such name; did you mean `count`? There are word, count')
    """
    found = _SENTENCE.match(str(error))
    what, path = (found["what"], found["path"] or "") if found else (str(error), "")
    if unknown := _UNKNOWN.match(what):
        return _join_path(path, unknown["name"]), _unknown_name_sentence(
            unknown["name"], list(_field_names_at(kind, path))
        )
    if missing := _MISSING.match(what):
        return path, f"`{missing['name']}` is missing"
    if enum := _ENUM.match(what):
        allowed = ", ".join(str(each) for each in _allowed_values_at(kind, path))
        return path, f"{enum['value']} is none of {allowed}" if allowed else what
    names = ", ".join(_field_names_at(kind, path)) if what.startswith("Expected `object`") else ""
    return path, _expected_sentence(what) + (f"; it has {names}" if names else "")


def schema_error_sentence(error: msgspec.ValidationError, kind: type[Any]) -> str:
    """The sentence of msgspec about a message, with what is allowed there instead of a pattern.

    >>> from typing import Annotated, Literal
    >>> name = Annotated[str, msgspec.Meta(pattern="^[a-z]+$", description="Lower-case letters.")]
    >>> Table = msgspec.defstruct("Table", [("name", name), ("type", Literal["up", "down"], "up")])
    >>> def sentence(tree):
    ...     try:
    ...         msgspec.convert(tree, Table)
    ...     except msgspec.ValidationError as error:
    ...         return schema_error_sentence(error, Table)
    >>> sentence({"name": "a", "type": "like"})
    "Invalid enum value 'like', allowed are down, up - at `$.type`."
    >>> sentence({"name": "A B"})
    'Expected `str`: lower-case letters - at `$.name`.'
    >>> Strict = msgspec.defstruct("Strict", [("name", str)], forbid_unknown_fields=True)
    >>> try:
    ...     msgspec.convert({"name": "a", "nmae": "b"}, Strict)
    ... except msgspec.ValidationError as error:
    ...     print(schema_error_sentence(error, Strict))
    Object contains unknown field `nmae`, known are name.
    """
    found = _SENTENCE.match(str(error))
    if found is None:
        return f"{error}."
    what, path = found["what"], found["path"] or ""
    if _ENUM.match(what):
        allowed = ", ".join(str(each) for each in _allowed_values_at(kind, path))
        what = f"{what}, allowed are {allowed}" if allowed else what
    elif _UNKNOWN.match(what):
        what = f"{what}, known are {', '.join(_field_names_at(kind, path))}"
    elif _PATTERN.match(what) and (described := _field_description(kind, path)):
        what = f"Expected `str`: {described}"
    place = str(error)[len(found["what"]) :]
    return f"{what}{place}."


def setting_name(path: str) -> str:
    """The name of a setting as it stands in the file.

    >>> setting_name("train.algorithm"), setting_name("gateway.explore.share"), setting_name("train")
    ('[train] algorithm', '[gateway] explore.share', '[train]')
    """
    table, _, name = path.partition(".")
    return f"[{table}] {name}".strip()


def _join_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _unknown_name_sentence(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    hint = f"; did you mean {' or '.join(f'`{each}`' for each in near)}?" if near else "."
    return f"there is no such name{hint} There are {', '.join(known)}"


def _expected_sentence(what: str) -> str:
    found = _EXPECTED.match(what)
    if found is None:
        return what
    bound = found["bound"]
    for sign, word in _BOUNDS:
        bound = bound.replace(sign, word)
    kinds = " or ".join(_KINDS.get(each, each) for each in found["kind"].split(" | "))
    got = f", not {_KINDS.get(found['got'], found['got'])}" if found["got"] else ""
    return f"expected {kinds}{bound}{got}"


def _field_names_at(kind: type[msgspec.Struct], path: str) -> Iterator[str]:
    for each in _types_at_path(kind, path):
        if isinstance(each, inspect.StructType):
            yield from (field.encode_name for field in each.fields)


def _allowed_values_at(kind: type[msgspec.Struct], path: str) -> Iterator[Any]:
    for each in _types_at_path(kind, path):
        if isinstance(each, inspect.LiteralType):
            yield from sorted(each.values, key=str)
        elif isinstance(each, inspect.EnumType):
            yield from sorted(member.value for member in each.cls)


def _field_description(kind: type[msgspec.Struct], path: str) -> str:
    """What a field's own description says, as the end of a sentence; empty where it has none."""
    for each in _types_at_path(kind, path, flat=False):
        schema = (each.extra_json_schema or {}) if isinstance(each, inspect.Metadata) else {}
        if text := str(schema.get("description", "")):
            return f"{text[0].lower()}{text[1:]}".removesuffix(".")
    return ""


def _types_at_path(
    kind: type[msgspec.Struct], path: str, *, flat: bool = True
) -> list[inspect.Type]:
    """The types that may stand at a path; not `flat`: with the descriptions around them."""
    found: list[inspect.Type] = [inspect.type_info(kind)]
    for step in re.findall(r"[^.\[\]]+|\[[^\]]*\]", path):
        found = [
            inner
            for each in found
            for inner in _flatten_type(each)
            for inner in _types_one_step_below(inner, step)
        ]
    return [inner for each in found for inner in _flatten_type(each)] if flat else found


def _flatten_type(kind: inspect.Type) -> list[inspect.Type]:
    """Itself, or what a union or a bound holds."""
    match kind:
        case inspect.UnionType(types=types):
            return [inner for each in types for inner in _flatten_type(each)]
        case inspect.Metadata(type=inner):
            return _flatten_type(inner)
        case _:
            return [kind]


def _types_one_step_below(kind: inspect.Type, step: str) -> list[inspect.Type]:
    match kind:
        case inspect.StructType():
            tags = [inspect.LiteralType((kind.tag,))] if step == kind.tag_field else []
            return [*tags, *(field.type for field in kind.fields if field.encode_name == step)]
        case inspect.DictType():
            return [kind.value_type]
        case inspect.ListType() | inspect.VarTupleType():
            return [kind.item_type]
        case _:
            return []
