"""What must an answer look like? The JSON schema that holds a model to a format, to a call, or to either.

| asked for                                   | the answer is                                                 |
|---------------------------------------------|---------------------------------------------------------------|
| `response_format` `json_object`             | an object                                                     |
| `response_format` `json_schema`             | of that schema                                                |
| `tool_choice` `required`                    | a call of one of the tools                                    |
| `tool_choice` that names a function         | a call of that one                                            |
| `response_format` and tools                 | a call of one of them, or of that schema                      |

`oneOf` is read as `anyOf`: that no second alternative fits, too, cannot be promised. A call is written as `{"name": …, "arguments": {…}}`, one of the forms that are read as one (`tool_calls`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

JsonObject = dict[str, Any]
_DEFINITIONS = ("$defs", "definitions")
_ANY_OBJECT: JsonObject = {"type": "object"}


def format_schema(response_format: Mapping[str, Any] | None) -> JsonObject | None:
    """The schema of a `response_format`; None: any text. `ValueError` says what is wrong with it.

    >>> format_schema({"type": "json_object"}), format_schema({"type": "text"})
    ({'type': 'object'}, None)
    """
    if not response_format or response_format.get("type") in {None, "text"}:
        return None
    match response_format:
        case {"type": "json_object"}:
            return _ANY_OBJECT
        case {"type": "json_schema", "json_schema": {"schema": dict(schema)}}:
            return schema
        case {"type": "json_schema"}:
            raise ValueError("`json_schema` has a `name` and a `schema`, which is an object")
        case _:
            raise ValueError("its `type` is `text`, `json_object` or `json_schema`")


def output_schema(
    tools: Sequence[Mapping[str, Any]], wanted: JsonObject | None, *, must_call: bool
) -> JsonObject | None:
    """The schema of an answer that calls one of these tools, or is as `wanted`; None: any text."""
    if not must_call and wanted is None:
        return None
    kinds = [_call_schema(tool) for tool in tools]
    if not must_call and wanted is not None:
        kinds.append(wanted)
    return _with_references(kinds[0], {}) if len(kinds) == 1 else _any_of(kinds)


def _call_schema(tool: Mapping[str, Any]) -> JsonObject:
    """A call of this tool."""
    nested = tool.get("function")
    function: Mapping[str, Any] = nested if isinstance(nested, Mapping) else tool
    parameters = function.get("parameters")
    arguments = dict(parameters) if isinstance(parameters, Mapping) and parameters else _ANY_OBJECT
    definitions = {key: arguments[key] for key in _DEFINITIONS if key in arguments}
    return {
        "type": "object",
        "properties": {
            "name": {"const": function.get("name")},
            "arguments": {key: value for key, value in arguments.items() if key not in definitions},
        },
        "required": ["name", "arguments"],
        "additionalProperties": False,
        **definitions,
    }


def _any_of(kinds: Sequence[JsonObject]) -> JsonObject:
    """One of several; what each defines for itself is defined once, at the top, under a name of its own."""
    definitions: JsonObject = {}
    alternatives = []
    for number, kind in enumerate(kinds):
        names = {
            f"#/{place}/{name}": f"{number}-{name}"
            for place in _DEFINITIONS
            if isinstance(kind.get(place), dict)
            for name in kind[place]
        }
        renamed = _with_references(kind, names)
        for place in _DEFINITIONS:
            for name, schema in (renamed.pop(place, None) or {}).items():
                definitions[f"{number}-{name}"] = schema
        alternatives.append(renamed)
    return {"anyOf": alternatives, **({"$defs": definitions} if definitions else {})}


def _with_references(value: Any, names: Mapping[str, str]) -> Any:
    """The same schema, with its references to definitions by their new names, and `oneOf` as `anyOf`."""
    if isinstance(value, dict):
        if "oneOf" in value and "anyOf" not in value:
            value = {"anyOf" if key == "oneOf" else key: each for key, each in value.items()}
        return {
            key: f"#/$defs/{names[each]}"
            if key == "$ref" and isinstance(each, str) and each in names
            else _with_references(each, names)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [_with_references(each, names) for each in value]
    return value
