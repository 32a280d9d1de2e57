"""How does a request come in, and an answer go out? A thin hand on ASGI."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from typing import Any

from upswing.infra.tasks import cancel_all, start_task
from upswing.serve.core.error_response import ErrorResponse

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = tuple[tuple[bytes, bytes], ...]

JSON, EVENTS = b"application/json", b"text/event-stream; charset=utf-8"


class ClientDisconnected(Exception):
    """The client has hung up."""


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes | None:
    """The whole body; None when it is larger than the limit. `ClientDisconnected` when the client leaves first."""
    declared = dict(scope["headers"]).get(b"content-length", b"0")
    if not declared.isdigit() or int(declared) > limit:
        return None
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limit:
            return None
        if not message.get("more_body"):
            return b"".join(parts)


async def send_response(
    send: Send, status: int, body: bytes, content_type: bytes = JSON, extra_headers: Headers = ()
) -> None:
    headers = [
        (b"content-type", content_type),
        (b"content-length", b"%d" % len(body)),
        *extra_headers,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def send_error(send: Send, problem: ErrorResponse) -> None:
    await send_response(send, problem.status, problem.body(), extra_headers=problem.headers())


class EventStream:
    """An answer that goes out piece by piece; it begins with the first."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun = False

    async def write(self, data: bytes, *, last: bool = False) -> None:
        if not self.begun:
            self.begun = True
            headers = [(b"content-type", EVENTS), (b"cache-control", b"no-cache")]
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        if data or last:
            await self._send({"type": "http.response.body", "body": data, "more_body": not last})


async def run_until_disconnect(receive: Receive, work: Coroutine[Any, Any, None]) -> None:
    """Do the work as long as the client is there to hear of it; else `ClientDisconnected`."""
    working, gone = start_task(work), start_task(_wait_for_disconnect(receive))
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnected
        await working
    finally:
        await cancel_all((working, gone))


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
