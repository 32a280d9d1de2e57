"""How do the routes become a port that answers, and one that closes in order?"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from time import monotonic

from upswing.http.app import App, FindsKeys, Request, Response, Route, problem
from upswing.http.openapi import document
from upswing.http1.connection import Connection
from upswing.http1.limits import PortLimits
from upswing.http1.port import Port
from upswing.http1.request import Admitted, Refusal
from upswing.http1.request import Request as Wanted
from upswing.running import listen
from upswing.together import begin, end, helped

_CLOSING_SECONDS = 5.0
"""For answers under way."""
LIMITS = PortLimits(uploads_bytes=256 * 1024 * 1024)


class Front:
    """The loop's HTTP port."""

    def __init__(
        self, routes: Sequence[Route], keys: FindsKeys, host: str, port: int,
        limits: PortLimits = LIMITS,
    ) -> None:  # fmt: skip
        self.app = App([*routes, _about(routes)], keys)
        self._listener = listen(host, port)
        host, port = self._listener.getsockname()[:2]
        self.url = f"http://{host}:{port}"
        self.port = Port(self, limits, monotonic)
        self._answers: set[asyncio.Task[None]] = set()
        self._stop, self._ended = asyncio.Event(), asyncio.Event()
        self._runs = False

    async def run(self) -> None:
        """Answer until it is closed."""
        if self._stop.is_set():
            return
        self._runs = True
        host, port = self._listener.getsockname()[:2]
        await self.port.listen(host, port, self._listener)
        try:
            await helped(self._stop.wait(), port=self.port.tend())
        finally:
            await self.port.close()
            await self._drained()
            await self.port.end()
            self._ended.set()

    async def close(self) -> None:
        """Take no more requests, and let those under way end."""
        self._stop.set()
        if self._runs:
            await self._ended.wait()
        self._listener.close()

    async def _drained(self) -> None:
        self.port.close_unused()
        if self._answers:
            await asyncio.wait(self._answers, timeout=_CLOSING_SECONDS)
        await end(self._answers)

    # --- what the port asks ----------------------------------------------------------------------

    def admit(self, request: Wanted) -> Admitted | Refusal:
        target = request.path.decode("latin-1")
        found = self.app.admit(request.method.decode("latin-1"), target, request.headers)
        if isinstance(found, Response):
            return _told(found)
        keyed = self.app.open or found.principal is not None
        owner = found.principal.key_id if found.principal else ""
        return Admitted(found.route.max_body, keyed, found, owner if keyed else None)

    def take(self, connection: Connection, request: Wanted) -> None:
        task = begin(self._answer(connection, request), name="answer")
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)

    async def _answer(self, connection: Connection, request: Wanted) -> None:
        try:
            response = await self.app.answer(request.admitted.call, request.body)
        except asyncio.CancelledError:
            connection.abort()
            raise
        connection.reply(request, _told(response))

    @staticmethod
    def problem(status: int, word: str, sentence: str) -> Refusal:
        told = problem(status, word, sentence)
        extra = b"retry-after: 1\r\n" if status in {429, 503} else b""
        return Refusal(status, told.body, extra)


def _told(response: Response) -> Refusal:
    extra = b"".join(b"%s: %s\r\n" % header for header in response.headers)
    return Refusal(response.status, response.body, extra, response.content_type.encode())


def _about(routes: Sequence[Route]) -> Route:
    """The route that describes the others and itself."""

    async def openapi(_: Request) -> Response:
        return Response(200, spec)

    answers = {200: ("OpenAPI 3.1.", {"type": "object"})}
    about = Route("GET", "/openapi.json", "This document.", openapi, frozenset(), answers=answers)
    spec = json.dumps(document([*routes, about])).encode()
    return about
