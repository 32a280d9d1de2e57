"""How many requests does an HTTP server answer, when 64 clients never pause?

A load generator of the standard library alone, so that any interpreter can run
it and both sides of a comparison are driven by the same one. HTTP/1.1 with
keep-alive and nothing else: a generator that parses more than it needs measures
itself.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field

BodyMaker = Callable[[int], bytes]
Judge = Callable[[int, bytes], int]
"""Status and body of an answer → how many items it acknowledges."""


@dataclass
class Tally:
    acknowledged: int = 0
    refused: int = 0
    last_refusal: str = ""
    latencies_s: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def summary(self) -> dict[str, object]:
        ordered = sorted(self.latencies_s) or [0.0]
        return {
            "acknowledged": self.acknowledged,
            "refused": self.refused,
            "last_refusal": self.last_refusal,
            "requests": len(self.latencies_s),
            "seconds": self.seconds,
            "per_second": self.acknowledged / self.seconds if self.seconds else 0.0,
            "p50_ms": ordered[len(ordered) // 2] * 1000,
            "p99_ms": ordered[len(ordered) * 99 // 100] * 1000,
        }


class _Connection(asyncio.Protocol):
    """One client: sends, waits for the whole answer, sends the next until time is up."""

    def __init__(self, head: bytes, bodies: "_Bodies", judge: Judge, tally: Tally) -> None:
        self._head = head
        self._bodies = bodies
        self._judge = judge
        self._tally = tally
        self._buffer = bytearray()
        self._sent_at = 0.0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        transport.set_write_buffer_limits(high=8 << 20)
        self._send()

    def _send(self) -> None:
        body = self._bodies.next()
        if body is None:
            self._finish()
            return
        self._sent_at = time.perf_counter()
        # One write: a head that travels alone costs the server a second wake-up.
        self._transport.write(b"%s%d\r\n\r\n%s" % (self._head, len(body), body))

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head_end = self._buffer.find(b"\r\n\r\n")
        if head_end < 0:
            return
        head = bytes(self._buffer[:head_end]).lower()
        answer = _whole_body(head, self._buffer, head_end + 4)
        if answer is None:
            return
        self._buffer.clear()  # never pipelined: whatever came belongs to this answer
        self._tally.latencies_s.append(time.perf_counter() - self._sent_at)
        status = int(head[9:12])
        count = self._judge(status, answer)
        self._tally.acknowledged += count
        if count < self._bodies.items_each:
            self._tally.refused += self._bodies.items_each - count
            self._tally.last_refusal = f"{status} {answer[:300]!r}"
        self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self._tally.refused += self._bodies.items_each
            self._tally.last_refusal = f"the server closed the connection: {exc!r}"
            self.done.set_result(None)

    def _finish(self) -> None:
        if not self.done.done():
            self.done.set_result(None)
        self._transport.close()


def _whole_body(head: bytes, buffer: bytearray, start: int) -> bytes | None:
    at = head.find(b"content-length:")
    if at >= 0:
        length = int(head[at + 15 :].split(b"\r\n", 1)[0])
        return bytes(buffer[start : start + length]) if len(buffer) - start >= length else None
    if b"chunked" not in head:
        return b""
    return _unchunked(buffer, start)


def _unchunked(buffer: bytearray, at: int) -> bytes | None:
    parts = bytearray()
    while True:
        line_end = buffer.find(b"\r\n", at)
        if line_end < 0:
            return None
        length = int(bytes(buffer[at:line_end]).split(b";")[0], 16)
        begin = line_end + 2
        if len(buffer) < begin + length + 2:
            return None
        if length == 0:
            return bytes(parts)
        parts += buffer[begin : begin + length]
        at = begin + length + 2


class _Bodies:
    """Hands every request its own body until the time is up."""

    def __init__(self, make: BodyMaker, items_each: int, first: int, deadline: float) -> None:
        self._make = make
        self._number = first
        self._deadline = deadline
        self.items_each = items_each

    def next(self) -> bytes | None:
        if time.perf_counter() >= self._deadline:
            return None
        self._number += 1
        return self._make(self._number)


async def drive(
    address: tuple[str, int],
    path: str,
    headers: dict[str, str],
    make: BodyMaker,
    judge: Judge,
    *,
    clients: int,
    seconds: float,
    items_each: int = 1,
    first: int = 0,
) -> Tally:
    """Keep `clients` connections busy; requests under way at the end still count, as does their time."""
    host, port = address
    lines = [f"POST {path} HTTP/1.1", f"Host: {host}:{port}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    head = "\r\n".join([*lines, "Content-Length: "]).encode()
    tally = Tally()
    begin = time.perf_counter()
    bodies = _Bodies(make, items_each, first, begin + seconds)
    loop = asyncio.get_running_loop()
    connections = [
        (await loop.create_connection(lambda: _Connection(head, bodies, judge, tally), host, port))[
            1
        ]
        for _ in range(clients)
    ]
    await asyncio.gather(*(connection.done for connection in connections))
    tally.seconds = time.perf_counter() - begin
    return tally


def run(*args: object, **kwargs: object) -> dict[str, object]:
    """`drive` on the quickest event loop at hand."""
    with contextlib.suppress(ImportError):
        import uvloop

        return uvloop.run(drive(*args, **kwargs)).summary()
    return asyncio.run(drive(*args, **kwargs)).summary()
