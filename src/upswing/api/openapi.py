"""What can be asked on this port? The OpenAPI document, made from the routes themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from upswing import __version__
from upswing.api.router import JSON, Problem, Route

_COMMON = {
    401: "No key, an unknown key, or a revoked one.",
    403: "The key's scope does not reach this far.",
    405: "Another method is needed.",
    503: "The store is away; try again.",
}


def openapi_document(routes: Sequence[Route]) -> dict[str, Any]:
    """OpenAPI 3.1 of these routes."""
    kinds = [kind for route in routes for kind in _types(route)]
    _, parts = msgspec.json.schema_components(
        [Problem, *kinds], ref_template="#/components/schemas/{name}"
    )
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Upswing",
            "version": __version__,
            "description": "Hand over what agents did; ask what became of it.",
        },
        "paths": paths,
        "components": {
            "schemas": parts,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _types(route: Route) -> list[Any]:
    values = [*route.takes.values(), *(kind for _, kind in route.answers.values())]
    return [kind for kind in values if isinstance(kind, type)]


def _operation(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": route.summary,
        "operationId": f"{route.method.lower()}_{route.path.strip('/').replace('/', '_').replace('{', '').replace('}', '').replace('.', '_')}",
        "responses": {
            str(status): _response(*reply) for status, reply in sorted(_responses(route).items())
        },
    }
    parameters = [
        {"name": name, "in": where, "required": where == "path", "schema": schema}
        for where, group in (("path", route.params), ("query", route.query))
        for name, schema in group.items()
    ]
    if parameters:
        operation["parameters"] = parameters
    if route.takes:
        operation["requestBody"] = {
            "required": True,
            "content": {kind: {"schema": _schema(body)} for kind, body in route.takes.items()},
        }
    if route.scopes:
        operation["security"] = [{"key": []}]
        operation["description"] = f"Needs a key with scope {' or '.join(sorted(route.scopes))}."
    return operation


def _responses(route: Route) -> dict[int, tuple[str, Any]]:
    replies: dict[int, tuple[str, Any]] = dict(route.answers)
    if route.scopes:
        for status in (401, 403, 503):
            replies.setdefault(status, (_COMMON[status], Problem))
    if route.takes:
        replies.setdefault(413, ("The body is too large.", Problem))
        replies.setdefault(415, ("Another content type is needed.", Problem))
    return replies


def _response(meaning: str, kind: Any) -> dict[str, Any]:
    if kind is None:
        return {"description": meaning}
    if isinstance(kind, str):
        return {"description": meaning, "content": {kind: {"schema": {"type": "string"}}}}
    return {"description": meaning, "content": {JSON: {"schema": _schema(kind)}}}


def _schema(kind: Any) -> dict[str, Any]:
    if isinstance(kind, dict):
        return kind
    return {"$ref": f"#/components/schemas/{kind.__name__}"}


def inline_refs(tree: dict[str, Any]) -> dict[str, Any]:
    """A schema as part of another document: its definitions stand where they are used."""
    parts = tree.get("$defs", {})

    def resolve(node: Any) -> Any:
        if isinstance(node, dict):
            if "$ref" in node:
                return resolve(parts[node["$ref"].rpartition("/")[2]])
            return {
                key: resolve(value)
                for key, value in node.items()
                if key not in {"$defs", "$schema", "$id"}
            }
        return [resolve(item) for item in node] if isinstance(node, list) else node

    made: dict[str, Any] = resolve(tree)
    return made
