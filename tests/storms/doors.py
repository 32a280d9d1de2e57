"""Which doors has a loop? Every path that its OpenAPI document names, so that a new one is stormed without being listed."""

from itertools import product
from urllib.parse import quote

ENDLESS = {"/v1/events"}
"""Streams: tests/api/test_events.py reads them."""


def operations(document, *methods):
    """(method, path, names of its parameters in the path, names of those in its query)."""
    for path, known in document["paths"].items():
        for method in known.keys() & {each.lower() for each in methods}:
            named = known[method].get("parameters", ())
            inside, behind = (
                [each["name"] for each in named if each["in"] == where]
                for where in ("path", "query")
            )
            yield method.upper(), path, inside, behind


def fill(path, names, value_of):
    """The path with these values in the place of its parameters."""
    for name in names:
        path = path.replace(f"{{{name}}}", quote(value_of(name), safe=""))
    return path


def questions(document, values):
    """Every path that can be read, with each of these values in the place of each parameter."""
    for _, path, inside, _ in operations(document, "GET"):
        if path not in ENDLESS:
            for some in product(values, repeat=len(inside)):
                yield fill(path, inside, dict(zip(inside, some, strict=True)).__getitem__)
