"""How do the routes become a port that answers, and one that closes in order?"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable, Coroutine, Sequence
from time import monotonic
from typing import Any

from upswing.api.openapi import openapi_document
from upswing.api.router import (
    AdmittedCall,
    Request,
    Response,
    Route,
    Router,
    StreamingAnswer,
    own_error_form,
    problem,
)
from upswing.infra.http1.connection import Connection
from upswing.infra.http1.limits import PortLimits
from upswing.infra.http1.port import Port
from upswing.infra.http1.request import AdmittedRequest, HttpRequest, Refusal
from upswing.infra.http1.streaming import StreamedResponse
from upswing.infra.instance import open_listening_socket
from upswing.infra.sql.keys import Keys
from upswing.infra.tasks import cancel_all, run_with_helpers, start_task

log = logging.getLogger(__name__)
_CLOSING_SECONDS = 5.0
"""For answers under way."""
LIMITS = PortLimits(uploads_bytes=256 * 1024 * 1024)


class HttpServer:
    """The loop's HTTP port."""

    def __init__(
        self,
        routes: Sequence[Route],
        keys: Keys | None,
        host: str,
        port: int,
        limits: PortLimits = LIMITS,
    ) -> None:
        self.app = Router([*routes, _openapi_route(routes)], keys)
        self._listener = open_listening_socket(host, port)
        host, port = self._listener.getsockname()[:2]
        self.url = f"http://{host}:{port}"
        self.port = Port(self, limits, monotonic)
        self._answers: set[asyncio.Task[None]] = set()
        self._streams: set[asyncio.Task[None]] = set()
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
            await run_with_helpers(self._stop.wait(), port=self.port.close_overdue_forever())
        finally:
            await self.port.close()
            await self._drain()
            await self.port.close_all()
            self._ended.set()

    async def close(self) -> None:
        """Take no more requests, and let those under way end."""
        self._stop.set()
        if self._runs:
            await self._ended.wait()
        self._listener.close()

    async def _drain(self) -> None:
        self.port.close_unused()
        await cancel_all(self._streams)
        if self._answers:
            await asyncio.wait(self._answers, timeout=_CLOSING_SECONDS)
        await cancel_all(self._answers)

    # --- what the port asks ----------------------------------------------------------------------

    def admit(self, request: HttpRequest) -> AdmittedRequest | Refusal:
        target = request.path.decode("latin-1")
        found = self.app.admit(request.method.decode("latin-1"), target, request.headers)
        if isinstance(found, Response):
            return _to_refusal(found)
        keyed = self.app.open or found.principal is not None
        owner = found.principal.key_id if found.principal else ""
        return AdmittedRequest(
            found.route.max_body, keyed, found, owner if keyed else None, _rewording(found)
        )

    def handle(self, connection: Connection, request: HttpRequest) -> StreamedResponse | None:
        if not request.admitted.call.route.streams:
            self._start(self._answer(connection, request), self._answers)
            return None
        streamed = StreamedResponse(connection, request)
        streamed.task = self._start(self._stream(connection, request, streamed), self._streams)
        return streamed

    def _start(
        self, work: Coroutine[Any, Any, None], among: set[asyncio.Task[None]]
    ) -> asyncio.Task[None]:
        task = start_task(work, name="answer")
        among.add(task)
        task.add_done_callback(among.discard)
        return task

    async def _answer(self, connection: Connection, request: HttpRequest) -> None:
        try:
            response = await self.app.answer(request.admitted.call, request.body)
        except asyncio.CancelledError:
            connection.abort()
            raise
        if isinstance(response, StreamingAnswer):
            raise TypeError(f"{request.admitted.call.route.path} does not say that it streams.")
        connection.reply(request, _to_refusal(response))

    async def _stream(
        self, connection: Connection, request: HttpRequest, streamed: StreamedResponse
    ) -> None:
        """Until the client goes, or the loop ends: a stream does not end by itself."""
        try:
            response = await self.app.answer(request.admitted.call, request.body)
            if isinstance(response, Response):
                connection.reply(request, _to_refusal(response))
                return
            await self._write_pieces(request, response, streamed)
        except asyncio.CancelledError:
            connection.abort()
            raise
        except Exception:
            log.exception("a stream broke", extra={"action": "request_failed"})
            connection.abort()

    @staticmethod
    async def _write_pieces(
        request: HttpRequest, response: StreamingAnswer, streamed: StreamedResponse
    ) -> None:
        try:
            extra = b"".join(b"%s: %s\r\n" % header for header in response.headers)
            streamed.start(200, response.content_type.encode(), extra)
            async with contextlib.aclosing(response.pieces) as pieces:
                if request.method != b"HEAD":
                    async for piece in pieces:
                        await streamed.write(piece)
            streamed.finish()
        finally:
            response.close()

    @staticmethod
    def refusal_for(status: int, reason: str, message: str) -> Refusal:
        response = problem(status, reason, message)
        extra = b"retry-after: 1\r\n" if status in {429, 503} else b""
        return Refusal(status, response.body, extra)


def _rewording(call: AdmittedCall) -> Callable[[Refusal], Refusal] | None:
    """How the port's refusals of this call's body look, where its route has a form of its own."""
    if call.route.error_form is own_error_form:
        return None

    def reword(refusal: Refusal) -> Refusal:
        reworded = call.route.error_form(Response(refusal.status, refusal.body), call.content_type)
        return Refusal(refusal.status, reworded.body, refusal.extra, reworded.content_type.encode())

    return reword


def _to_refusal(response: Response) -> Refusal:
    extra = b"".join(b"%s: %s\r\n" % header for header in response.headers)
    return Refusal(response.status, response.body, extra, response.content_type.encode())


def _openapi_route(routes: Sequence[Route]) -> Route:
    """The route that describes the others and itself."""

    async def openapi(_: Request) -> Response:
        return Response(200, spec)

    answers = {200: ("OpenAPI 3.1.", {"type": "object"})}
    described = Route(
        "GET", "/openapi.json", "This document.", openapi, frozenset(), answers=answers
    )
    spec = json.dumps(openapi_document([*routes, described])).encode()
    return described
