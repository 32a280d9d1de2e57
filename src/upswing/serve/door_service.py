"""How does a request come in, and an answer go out? A thin hand on ASGI."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from typing import Any

from upswing.serve.problems import Problem
from upswing.together import begin

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = tuple[tuple[bytes, bytes], ...]

JSON, EVENTS = b"application/json", b"text/event-stream; charset=utf-8"


class Gone(Exception):
    """The client has hung up."""


async def body_of(scope: Scope, receive: Receive, limit: int) -> bytes | None:
    """The whole body; None when it is larger than the limit. `Gone` when the client leaves first."""
    declared = dict(scope["headers"]).get(b"content-length", b"0")
    if not declared.isdigit() or int(declared) > limit:
        return None
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limit:
            return None
        if not message.get("more_body"):
            return b"".join(parts)


async def reply(
    send: Send, status: int, body: bytes, kind: bytes = JSON, more: Headers = ()
) -> None:
    headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body)), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def refuse(send: Send, problem: Problem) -> None:
    await reply(send, problem.status, problem.body(), more=problem.headers())


class Stream:
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


async def while_there(receive: Receive, work: Coroutine[Any, Any, None]) -> None:
    """Do the work as long as the client is there to hear of it; else `Gone`."""
    working, gone = begin(work), begin(_until_gone(receive))
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise Gone
        await working
    finally:
        working.cancel()
        gone.cancel()
        await asyncio.gather(working, gone, return_exceptions=True)


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
