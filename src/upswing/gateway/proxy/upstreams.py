"""How is a model reached? Its server's connections, and the head of every request to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from upswing.contracts.backend_keys import key_for
from upswing.contracts.traffic import Model
from upswing.gateway.core.shapes import ClientShape, UpstreamRequest
from upswing.gateway.limits import GatewayLimits
from upswing.gateway.proxy.connections import ConnectionPool

_VERSION = b"anthropic-version: 2023-06-01\r\n"
"""Of a client that does not say: the one that there is."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """How one model is reached."""

    model: Model
    pool: ConnectionPool
    key: str = field(repr=False)
    head: bytes
    """A chat completion's request, up to the number of its bytes."""

    def head_for(self, request: UpstreamRequest) -> bytes:
        if request.shape is ClientShape.CHAT:
            return self.head
        return request_head(self.model, self.key, request.shape, request.headers)


class Upstreams:
    """To every model that has been asked; models of one server share its connections."""

    def __init__(self, limits: GatewayLimits, keys: Mapping[str, str]) -> None:
        """`keys`: the beginning of a server's URL → the key that it wants."""
        self._limits, self._keys = limits, dict(keys)
        self._upstreams: dict[str, Upstream] = {}
        self._pools: dict[str, ConnectionPool] = {}

    def for_model(self, model: Model) -> Upstream:
        upstream = self._upstreams.get(model.model_id)
        if upstream is None or (upstream.model is not model and upstream.model != model):
            upstream = self._upstreams[model.model_id] = self._create(model)
        return upstream

    def close_idle(self, now: float) -> None:
        for pool in self._pools.values():
            pool.close_idle(now)

    def close(self) -> None:
        for pool in self._pools.values():
            pool.close()

    def _create(self, model: Model) -> Upstream:
        parts = urlsplit(model.backend)
        origin = f"{parts.scheme}://{parts.netloc}"
        if origin not in self._pools:
            self._pools[origin] = ConnectionPool(origin, self._limits)
        key = key_for(model.backend, self._keys)
        return Upstream(model, self._pools[origin], key, request_head(model, key))


def request_head(
    model: Model, key: str, shape: ClientShape = ClientShape.CHAT, headers: bytes = b""
) -> bytes:
    """The head of every request of this shape to this model; `headers` are whole lines.

    >>> request_head(Model("m", "http://h:1", "m"), "").splitlines()[0]
    b'POST /v1/chat/completions HTTP/1.1'
    """
    parts = urlsplit(model.backend)
    path = (parts.path.rstrip("/") or "/v1") + shape.path
    lines = [f"POST {path} HTTP/1.1", f"host: {parts.netloc}", "content-type: application/json"]
    lines += [f"authorization: Bearer {key}"] if key else []
    lines += [f"x-api-key: {key}"] if key and shape is ClientShape.MESSAGES else []
    head = "\r\n".join([*lines, "accept-encoding: identity", ""]).encode()
    if shape is ClientShape.MESSAGES and b"anthropic-version:" not in headers:
        headers += _VERSION
    return head + headers + b"content-length: "
