"""How do the routes become a port that answers, and one that closes in order?"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator, Sequence

import uvicorn

from upswing.http.app import App, FindsKeys, Request, Response, Route
from upswing.http.openapi import document
from upswing.running import listen

_CLOSING_SECONDS = 8


class Front:
    """The loop's HTTP port."""

    def __init__(self, routes: Sequence[Route], keys: FindsKeys, host: str, port: int) -> None:
        self.app = App([*routes, _about(routes)], keys)
        self._listener = listen(host, port)
        self._server = _Server(
            uvicorn.Config(
                self.app, lifespan="off", access_log=False, log_config=None, http="httptools", proxy_headers=False,
                server_header=False, date_header=False, timeout_graceful_shutdown=5, backlog=2048,
            )
        )  # fmt: skip
        self._ended = asyncio.Event()

    @property
    def url(self) -> str:
        host, port = self._listener.getsockname()[:2]
        return f"http://{host}:{port}"

    async def run(self) -> None:
        """Answer until it is closed."""
        try:
            await self._server.serve(sockets=[self._listener])
        finally:
            self._ended.set()

    async def close(self) -> None:
        """Take no more requests, and let those under way end."""
        self._server.should_exit = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSING_SECONDS):
                await self._ended.wait()


def _about(routes: Sequence[Route]) -> Route:
    """The route that describes the others and itself."""

    async def openapi(_: Request) -> Response:
        return Response(200, spec)

    answers = {200: ("OpenAPI 3.1.", {"type": "object"})}
    about = Route("GET", "/openapi.json", "This document.", openapi, frozenset(), answers=answers)
    spec = json.dumps(document([*routes, about])).encode()
    return about


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to us: we stop the parts in order."""
        yield
