"""How is a model reached? Its server's connections, and the head of every request to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from upswing.backend_keys import key_for
from upswing.gateway.backend_service import Backend
from upswing.gateway.limits import Limits
from upswing.gateway.plan import Model


@dataclass(frozen=True, slots=True)
class Way:
    """How one model is reached."""

    model: Model
    backend: Backend
    head: bytes
    """The request up to the number of its bytes."""


class Ways:
    """To every model that has been asked; models of one server share its connections."""

    def __init__(self, limits: Limits, keys: Mapping[str, str]) -> None:
        """`keys`: the beginning of a server's URL → the key that it wants."""
        self._limits, self._keys = limits, dict(keys)
        self._ways: dict[str, Way] = {}
        self._backends: dict[str, Backend] = {}

    def to(self, model: Model) -> Way:
        way = self._ways.get(model.model_id)
        if way is None or (way.model is not model and way.model != model):
            way = self._ways[model.model_id] = self._new(model)
        return way

    def tidy(self, now: float) -> None:
        for backend in self._backends.values():
            backend.tidy(now)

    def close(self) -> None:
        for backend in self._backends.values():
            backend.close()

    def _new(self, model: Model) -> Way:
        parts = urlsplit(model.backend)
        origin = f"{parts.scheme}://{parts.netloc}"
        if origin not in self._backends:
            self._backends[origin] = Backend(origin, self._limits)
        return Way(
            model, self._backends[origin], head_for(model, key_for(model.backend, self._keys))
        )


def head_for(model: Model, key: str) -> bytes:
    """The head of every request to this model.

    >>> head_for(Model("m", "http://h:1", "m"), "").splitlines()[0]
    b'POST /v1/chat/completions HTTP/1.1'
    """
    parts = urlsplit(model.backend)
    path = (parts.path.rstrip("/") or "/v1") + "/chat/completions"
    lines = [f"POST {path} HTTP/1.1", f"host: {parts.netloc}", "content-type: application/json"]
    lines += [f"authorization: Bearer {key}"] if key else []
    return "\r\n".join([*lines, "accept-encoding: identity", "content-length: "]).encode()
