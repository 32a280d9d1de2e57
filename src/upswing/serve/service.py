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
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from upswing.serve.admin_service import Admin, Changed
from upswing.serve.answers import models
from upswing.serve.chat_service import Chat
from upswing.serve.door_service import Receive, Scope, Send, refuse, reply
from upswing.serve.limits import Limits
from upswing.serve.metrics import Collector, Tally
from upswing.serve.ports import Engine, Gauged, Load
from upswing.serve.problems import BROKEN, Problem

log = logging.getLogger(__name__)
Handler = Callable[[Scope, Receive, Send], Awaitable[None]]
_CLOSING = Problem(503, "The model server is closing.", "server_error", "unavailable")
_DEFAULT = Limits()
_TICK = 0.02


class ModelServer:
    """The ASGI application around an engine."""

    def __init__(
        self, engine: Engine, *, clock: Callable[[], float], new_id: Callable[[], str],
        limits: Limits = _DEFAULT, key: str | None = None, public: bool = False,
        changed: Changed | None = None,
    ) -> None:  # fmt: skip
        self._engine, self._started = engine, int(clock())
        self.tally = Tally()
        self.chat = Chat(engine, limits, self.tally, clock=clock, new_id=new_id)
        self.admin = Admin(engine, key=key, public=public, changed=changed)
        self._registry = CollectorRegistry()
        self._registry.register(
            Collector(self.tally, lambda: self.chat.under_way, engine.names, self._load)
        )
        self._routes: dict[str, dict[str, Handler]] = {
            "/v1/chat/completions": {"POST": self.chat.take},
            "/v1/models": {"GET": self._models},
            "/v1/load_lora_adapter": {"POST": self.admin.load},
            "/v1/unload_lora_adapter": {"POST": self.admin.unload},
            "/health": {"GET": self._health},
            "/metrics": {"GET": self._metrics},
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        methods = self._routes.get(scope["path"])
        if methods is None:
            await refuse(
                send, Problem(404, "There is no such path.", "not_found_error", "not_found")
            )
        elif (handler := methods.get(scope["method"])) is None:
            told = f"This path takes {', '.join(methods)}."
            await refuse(send, Problem(405, told, code="method_not_allowed"))
        else:
            await self._handled(handler, scope, receive, send)

    async def drained(self, seconds: float) -> bool:
        """Take no more requests; whether those under way have ended in this time."""
        self.chat.closing = _CLOSING
        deadline = asyncio.get_running_loop().time() + seconds
        while self.chat.under_way:
            if asyncio.get_running_loop().time() >= deadline:
                return False
            await asyncio.sleep(_TICK)
        return True

    @staticmethod
    async def _handled(handler: Handler, scope: Scope, receive: Receive, send: Send) -> None:
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
            await refuse(send, BROKEN)

    async def _models(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        engine = self._engine
        await reply(send, 200, models(engine.names(), engine.base, self._started))

    async def _health(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        closing = self.chat.closing is not None
        told = {
            "status": "closing" if closing else "ok",
            "base": self._engine.base,
            "models": list(self._engine.names()),
            "under_way": self.chat.under_way,
        }
        await reply(send, 503 if closing else 200, msgspec.json.encode(told))

    async def _metrics(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        body = generate_latest(self._registry)
        await reply(send, 200, body, CONTENT_TYPE_LATEST.encode())

    def _load(self) -> Load | None:
        return self._engine.busy() if isinstance(self._engine, Gauged) else None
