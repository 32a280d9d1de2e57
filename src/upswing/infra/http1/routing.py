"""Which endpoint does a request mean, and which methods does its path take?

| template                 | takes                                                                    |
|--------------------------|--------------------------------------------------------------------------|
| `/v1/models`             | this path, also where its letters are percent-encoded                    |
| `/v1/models/{name}`      | one segment, which may hold an encoded slash                             |
| `/api/{rest...}`         | all that follows, with its slashes                                       |

HEAD is answered as GET where GET is, and OPTIONS by the list of methods.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar
from urllib.parse import unquote

E = TypeVar("E")
_PARAMETER = re.compile(r"\{(\w+)(\.\.\.)?\}")


@dataclass(frozen=True, slots=True)
class RouteMatch(Generic[E]):
    """The endpoint of a request, and what its path names."""

    endpoint: E
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NoRoute:
    """No endpoint."""

    allowed: str = ""
    """The methods that the path takes; none: there is no such path."""


class RouteTable(Generic[E]):
    """Endpoints by method and path template."""

    def __init__(self, routes: Iterable[tuple[str, str, E]]) -> None:
        """Method, template and endpoint of each; where several templates fit, the first counts."""
        self._plain: dict[str, dict[str, E]] = {}
        self._templates: dict[str, tuple[re.Pattern[str], dict[str, E]]] = {}
        for method, template, endpoint in routes:
            if "{" in template:
                methods = self._templates.setdefault(template, (_path_pattern(template), {}))[1]
            else:
                methods = self._plain.setdefault(template, {})
            methods[method] = endpoint

    def find(self, method: str, path: str) -> RouteMatch[E] | NoRoute:
        """The endpoint for a request, by its path without a query.

        >>> table = RouteTable([("GET", "/models/{name}", 1), ("POST", "/models", 2)])
        >>> table.find("HEAD", "/models/a%2Fb")
        RouteMatch(endpoint=1, parameters={'name': 'a/b'})
        >>> table.find("GET", "/models"), table.find("GET", "/")
        (NoRoute(allowed='OPTIONS, POST'), NoRoute(allowed=''))
        """
        methods, parameters = self._methods_of_path(path)
        if methods is None:
            return NoRoute()
        endpoint = methods.get("GET" if method == "HEAD" else method)
        if endpoint is not None:
            return RouteMatch(endpoint, parameters)
        heads = {"HEAD"} if "GET" in methods else set()
        return NoRoute(", ".join(sorted({*methods, *heads, "OPTIONS"})))

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Method and template of every endpoint."""
        for template, methods in self._plain.items():
            yield from ((method, template) for method in methods)
        for template, (_, methods) in self._templates.items():
            yield from ((method, template) for method in methods)

    def _methods_of_path(self, path: str) -> tuple[Mapping[str, E] | None, Mapping[str, str]]:
        if (methods := self._plain.get(unquote(path))) is not None:
            return methods, {}
        # Matched before decoding, so that an encoded slash is part of a name and not of the path.
        for pattern, methods in self._templates.values():
            if found := pattern.fullmatch(path):
                return methods, {name: unquote(value) for name, value in found.groupdict().items()}
        return None, {}


def _path_pattern(template: str) -> re.Pattern[str]:
    def named_group(found: re.Match[str]) -> str:
        return f"(?P<{found[1]}>{'.+' if found[2] else '[^/]+'})"

    return re.compile(_PARAMETER.sub(named_group, template))
