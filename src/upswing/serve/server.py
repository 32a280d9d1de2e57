"""The model server: its routes, as an ASGI application.

| route                          | answers                                                     |
|--------------------------------|-------------------------------------------------------------|
| `POST /v1/chat/completions`    | a completion, whole or as a stream                          |
| `GET /v1/models`               | the base first, then what has been loaded                   |
| `POST /v1/load_lora_adapter`   | once it is served; again with the same path: at once        |
| `POST /v1/unload_lora_adapter` | once its requests under way have ended                      |
| `GET /health`                  | 200 while it takes requests, 503 while it closes            |
| `GET /metrics`                 | requests, tokens, batch size, running                       |
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import msgspec
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    ProcessCollector,
    generate_latest,
)

from upswing.infra.http1.routing import NoRoute, RouteTable
from upswing.serve.admin import AdapterAdmin, OnAdaptersChanged
from upswing.serve.asgi import Receive, Scope, Send, send_error, send_response
from upswing.serve.chat import ChatCompletions
from upswing.serve.core.chat_response import model_list_body
from upswing.serve.core.engine import InferenceEngine
from upswing.serve.core.error_response import INTERNAL_ERROR, ErrorResponse
from upswing.serve.core.limits import ModelServerLimits
from upswing.serve.metrics import ModelServerCollector, ServerCounters

log = logging.getLogger(__name__)
Handler = Callable[[Scope, Receive, Send], Awaitable[None]]
_CLOSING = ErrorResponse(503, "The model server is closing.", "server_error", "unavailable")
_DEFAULT = ModelServerLimits()
_POLL_SECONDS = 0.02


class ModelServer:
    """The ASGI application around an engine."""

    def __init__(
        self,
        engine: InferenceEngine,
        *,
        clock: Callable[[], float],
        new_id: Callable[[], str],
        limits: ModelServerLimits = _DEFAULT,
        key: str | None = None,
        public: bool = False,
        on_adapters_changed: OnAdaptersChanged | None = None,
    ) -> None:
        self._engine, self._started = engine, int(clock())
        self.counters = ServerCounters()
        self.chat = ChatCompletions(engine, limits, self.counters, clock=clock, new_id=new_id)
        self.admin = AdapterAdmin(engine, key=key, public=public, on_change=on_adapters_changed)
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._registry.register(
            ModelServerCollector(
                self.counters, lambda: self.chat.in_flight, engine.model_names, engine.stats
            )
        )
        routes: list[tuple[str, str, Handler]] = [
            ("POST", "/v1/chat/completions", self.chat.handle),
            ("GET", "/v1/models", self._serve_models),
            ("POST", "/v1/load_lora_adapter", self.admin.load),
            ("POST", "/v1/unload_lora_adapter", self.admin.unload),
            ("GET", "/health", self._serve_health),
            ("GET", "/metrics", self._serve_metrics),
        ]
        self._routes = RouteTable(routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        found = self._routes.find(scope["method"], scope["path"])
        if isinstance(found, NoRoute):
            await _send_no_route(send, scope["method"], found.allowed)
        else:
            await self._run_handler(found.endpoint, scope, receive, send)

    async def drain(self, seconds: float) -> bool:
        """Take no more requests; whether those under way have ended in this time."""
        self.chat.closing = _CLOSING
        deadline = asyncio.get_running_loop().time() + seconds
        while self.chat.in_flight:
            if asyncio.get_running_loop().time() >= deadline:
                return False
            await asyncio.sleep(_POLL_SECONDS)
        return True

    @staticmethod
    async def _run_handler(handler: Handler, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def sent(message: dict[str, object]) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await handler(scope, receive, sent)  # type: ignore[arg-type]  # a dict is mutable
        except Exception:  # whatever broke, this client hears of it and the others go on
            log.exception("request failed", extra={"action": "request_failed"})
            if begun:
                raise
            await send_error(send, INTERNAL_ERROR)

    async def _serve_models(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        engine = self._engine
        await send_response(
            send, 200, model_list_body(engine.model_names(), engine.base, self._started)
        )

    async def _serve_health(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        closing = self.chat.closing is not None
        health = {
            "status": "closing" if closing else "ok",
            "base": self._engine.base,
            "models": list(self._engine.model_names()),
            "under_way": self.chat.in_flight,
        }
        await send_response(send, 503 if closing else 200, msgspec.json.encode(health))

    async def _serve_metrics(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        body = generate_latest(self._registry)
        await send_response(send, 200, body, CONTENT_TYPE_LATEST.encode())


async def _send_no_route(send: Send, method: str, allowed: str) -> None:
    headers = ((b"allow", allowed.encode()),)
    if not allowed:
        refusal = ErrorResponse(404, "There is no such path.", "not_found_error", "not_found")
        await send_error(send, refusal)
    elif method == "OPTIONS":
        await send_response(send, 204, b"", extra_headers=headers)
    else:
        message = f"This path takes {allowed}."
        refusal = ErrorResponse(405, message, code="method_not_allowed")
        await send_response(send, 405, refusal.body(), extra_headers=headers)
