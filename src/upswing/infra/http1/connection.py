"""What does one connection go through? Requests one after the other, each admitted before its body is read.

While one that was sent ahead waits, the socket is not read on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from typing import TYPE_CHECKING

from upswing.infra.http1.connection_table import ConnectionState, peer_of_address
from upswing.infra.http1.reader import BadRequest, Reader, Stop
from upswing.infra.http1.request import HttpRequest, InFlight, Refusal
from upswing.infra.http1.wire import JSON, encode_response

if TYPE_CHECKING:
    from upswing.infra.http1.port import Port

log = logging.getLogger(__name__)
_WRITE_BUFFER = 256 * 1024
"""What a client may leave unread before its answer waits."""
_SMALL_PIECE, _LARGE_PIECE = 4 * 1024, 64 * 1024
_SHORT = 64 * 1024
"""A refused body of this size is waited for, so that the connection can go on."""
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_BROKE = "Something of ours broke; the log says what."
_METHODS = b"allow: GET, HEAD, POST, PUT, DELETE, OPTIONS\r\n"


class Connection(asyncio.Protocol):
    """One connection of a client."""

    __slots__ = (
        "_ahead",
        "_begun",
        "_brought",
        "_deaf",
        "_end",
        "_eof",
        "_expects",
        "_got",
        "_in_flight",
        "_lost",
        "_parting",
        "_paused",
        "_pieces",
        "_port",
        "_reader",
        "_refusal",
        "_request",
        "_transport",
        "_unread",
        "_wrote",
        "keyed",
        "peer",
        "state",
    )

    def __init__(self, port: Port) -> None:
        self._port = port
        self._reader = Reader(self, port.limits)
        self._transport: asyncio.Transport = None  # type: ignore[assignment]
        self._ahead: deque[HttpRequest] = deque()
        self._request: HttpRequest | None = None
        """The one that is being answered."""
        self._in_flight: InFlight | None = None
        self._pieces: list[bytes | bytearray] = []
        self._got = self._unread = self._brought = 0
        self._begun = 0.0
        self._refusal: Refusal | None = None
        self._parting: Refusal | None = None
        """The last answer, when those before it are given."""
        self._paused = self._lost = self._deaf = self._expects = self._eof = self._wrote = False
        self._end: ConnectionState | None = None
        self.peer, self.keyed = "", False
        self.state: ConnectionState = "silent"

    # --- asyncio ---------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        self._transport.set_write_buffer_limits(high=_WRITE_BUFFER)
        self.peer = peer_of_address(transport.get_extra_info("peername"))
        self._port.on_connection_opened(self)

    def data_received(self, data: bytes) -> None:
        self._brought += len(data)
        if self._deaf:
            self._unread += len(data)
            if self._unread > self._drainable_bytes():
                self.abort()
            return
        try:
            self._reader.feed(data)
        except Stop:
            pass
        except BadRequest as bad:
            if not self._deaf:
                self._refuse_and_close(
                    self._port.service.refusal_for(bad.status, bad.code, bad.sentence)
                )
        self._update_state()

    def eof_received(self) -> bool:
        """The client sends no more, and may still read: whoever waits for a short answer gets it, and goes.

        What a server generates meanwhile ends: a client that is gone looks just the same. We close it ourselves, so that
        it stands in a line that ends, whether it reads on or not.
        """
        self._eof = self._deaf = True
        self._drop_unread_body()
        if self._in_flight is not None:
            self._cancel_responses()
        if self._request is None and not self._ahead:
            self.close()
        return True

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's form
        self._lost = self._deaf = True
        self._port.on_connection_closed(self)
        self._drop_unread_body()
        if self._in_flight is not None:
            self._cancel_responses()
        for request in self._ahead:
            self._release_body_room(request)
        self._ahead.clear()

    def pause_writing(self) -> None:
        self._paused = True
        self._update_state()
        if self._in_flight is not None:
            self._in_flight.pause()

    def resume_writing(self) -> None:
        self._paused = False
        if self._in_flight is not None:
            self._in_flight.resume()
        elif self._request is None and not self._end:
            self._start_next_request()
        self._update_state()

    # --- what is read ----------------------------------------------------------------------------

    def on_request_head(self, request: HttpRequest) -> None:
        """The key comes before the body."""
        self._pieces, self._got, self._refusal = [], 0, None
        self._begun = self._port.now()
        expectation = request.headers.get(b"expect", b"").lower() if request.chunked else b""
        self._expects = expectation == b"100-continue" and request.size != 0
        self._refusal = self._refusal_of_head(request, expectation)
        if self._refusal is not None:
            if self._expects or (request.size or 0) > (
                self._drainable_bytes() if self.keyed else _SHORT
            ):
                self._refuse_and_close(self._refusal)
                raise Stop
        elif self._expects and self._request is None:
            self._send_continue()

    def _refusal_of_head(self, request: HttpRequest, expectation: bytes) -> Refusal | None:
        port = self._port
        if expectation not in {b"", b"100-continue"}:
            return port.service.refusal_for(417, "bad_http", "Only 100-continue can be expected.")
        if request.path == b"*" and request.method == b"OPTIONS":
            return Refusal(204, b"", _METHODS)
        try:
            found = port.service.admit(request)
        except Exception:
            log.exception("a request broke", extra={"action": "request_failed"})
            return port.service.refusal_for(500, "internal", _BROKE)
        if isinstance(found, Refusal):
            if found.status == 401:
                port.connections.note_key_shown(self, keyed=False)
            return found
        request.admitted = found
        if found.keyed:
            port.connections.note_key_shown(self, keyed=True)
        if request.size is None:
            return None
        if request.size > found.body_bytes:
            return self._too_large_refusal(request)
        return None if port.reserve(request, request.size) else self._no_room_refusal(request)

    def on_body_piece(self, data: bytes) -> None:
        request = self._reader.request
        assert request is not None  # noqa: S101 - a body has headers before it
        self._got += len(data)
        if self._refusal is None and self._got > request.reserved:
            if self._got > request.admitted.body_bytes:
                self._refusal = self._too_large_refusal(request)
            elif not self._port.reserve(request, self._got):
                self._refusal = self._no_room_refusal(request)
        if self._refusal is None:
            self._add_piece(data)
            return
        self._pieces = []
        self._release_body_room(request)
        if self._got > self._drainable_bytes():
            self._refuse_and_close(self._refusal)
            raise Stop

    def _add_piece(self, data: bytes) -> None:
        """Many small pieces become few, which need no more room than their bytes."""
        last = self._pieces[-1] if self._pieces else None
        if last is None or len(data) >= _SMALL_PIECE:
            self._pieces.append(data)
        elif isinstance(last, bytearray) and len(last) < _LARGE_PIECE:
            last += data
        else:
            self._pieces.append(bytearray(data))

    def on_request_complete(self, request: HttpRequest) -> None:
        self._expects = False
        request.at = self._port.now()
        request.keep_alive = request.keep_alive and (
            self.keyed or self._brought <= self._port.limits.keyless_bytes
        )
        if self._refusal is not None:
            request.admitted = self._port.admission_of_refusal(self._refusal)
        else:
            request.body = b"".join(self._pieces)
        self._pieces = []
        if self._request is None and not self._paused:
            self._start_request(request)
        elif len(self._ahead) < max(1, self._port.limits.ahead):
            self._ahead.append(request)
            self._transport.pause_reading()
        else:
            self._refuse_and_close(None)
            self._release_body_room(request)
            raise Stop

    # --- one request after the other -------------------------------------------------------------

    def _start_request(self, request: HttpRequest) -> None:
        self._request = request
        self._update_state()
        if isinstance(refusal := request.admitted.call, Refusal):
            self.reply(request, refusal)
            return
        self._wrote = False
        try:
            in_flight = self._port.service.handle(self, request)
        except Stop:
            raise
        except Exception:
            log.exception("a request broke", extra={"action": "request_failed"})
            self._answer_broken(request)
            return
        if self._request is request:  # it may be answered already
            self._in_flight = in_flight
            if self._paused and in_flight is not None:
                in_flight.pause()

    def _answer_broken(self, request: HttpRequest) -> None:
        """Nobody waits in vain: an answer that has not begun says what happened, and another ends here."""
        if self._request is not request or self._wrote:
            self.abort()
            return
        self.reply(request, self._port.service.refusal_for(500, "internal", _BROKE))

    def write(self, data: bytes) -> None:
        self._wrote = True
        if not self._transport.is_closing():
            self._transport.write(data)

    def reply(self, request: HttpRequest, reply: Refusal) -> None:
        """A whole answer, in the form that its request wants."""
        self.answer(request, reply.status, reply.body, reply.kind, reply.extra)

    def answer(
        self,
        request: HttpRequest,
        status: int,
        body: bytes,
        content_type: bytes = JSON,
        extra_headers: bytes = b"",
    ) -> None:
        bodiless = request.method == b"HEAD"
        self.write(
            encode_response(
                status,
                body,
                content_type,
                extra_headers,
                keep_alive=request.keep_alive,
                bodiless=bodiless,
            )
        )
        self.on_response_written(keep_alive=request.keep_alive)

    def on_response_written(self, *, keep_alive: bool) -> None:
        """The answer is written."""
        self._release_body_room(self._request)
        self._in_flight = self._request = None
        if self._lost or self._transport.is_closing():
            return
        if not keep_alive:
            self._close_after_response()
        elif not self._paused:
            self._start_next_request()
        self._update_state()

    def _close_after_response(self) -> None:
        """After an answer that said so."""
        if self._deaf or self._ahead:  # more came, and is not read
            self._deaf, self._parting = True, None
            self._drain_and_close()
        else:
            self.close()

    def _start_next_request(self) -> None:
        if self._ahead:
            request = self._ahead.popleft()
            if not self._ahead and not self._deaf:
                self._transport.resume_reading()
            self._start_request(request)
        elif self._deaf:
            self._drain_and_close()
        elif self._expects:
            self._send_continue()

    def _send_continue(self) -> None:
        """The time for the body begins when it is asked for."""
        self._expects, self._begun = False, self._port.now()
        self.write(_CONTINUE)

    # --- its place among the others --------------------------------------------------------------

    def _update_state(self) -> None:
        self._port.connections.move_to_state(self, self._current_state(), self._port.now())

    def _current_state(self) -> ConnectionState:
        if self._end or self._paused:
            return self._end or "stalled"
        if self._request is not None:
            return "busy"
        if self._reader.within:
            return "head" if self._reader.request is None else "body"
        return "idle" if self.keyed else "silent"

    def body_deadline(self) -> float:
        limits = self._port.limits
        return self._begun + limits.body_seconds + self._got / limits.body_rate

    def on_overdue(self) -> None:
        """It has stood in its line for too long."""
        if self.state in {"head", "body"}:
            message = "The request did not come in time."
            refused = self._refusal if self.state == "body" else None
            self._refuse_and_close(refused or self._port.service.refusal_for(408, "slow", message))
            self._update_state()
        elif self.state in {"silent", "idle"}:
            self.close()
        else:
            self.abort()

    # --- its end ---------------------------------------------------------------------------------

    def _drop_unread_body(self) -> None:
        """A body that will not be whole."""
        self._release_body_room(self._reader.request)
        self._pieces = []

    def _cancel_responses(self) -> None:
        """Nobody waits for the answer any more, nor for those behind it."""
        in_flight, self._in_flight = self._in_flight, None
        self._release_body_room(self._request)
        self._request = None
        for request in self._ahead:
            self._release_body_room(request)
        self._ahead.clear()
        if in_flight is not None:
            in_flight.cancel()

    def close(self) -> None:
        """What is written still goes to the client."""
        self._deaf = True
        self._end = "closing"
        self._transport.close()
        self._update_state()

    def abort(self) -> None:
        self._deaf = True
        self._transport.abort()

    def turn_away(self, refusal: Refusal) -> None:
        """There is no room for it."""
        self._refuse_and_close(refusal)

    def _refuse_and_close(self, refusal: Refusal | None) -> None:
        """Read no more; when those before it are answered, say this and go."""
        self._deaf = True
        self._parting = refusal
        self._pieces = []
        self._release_body_room(self._reader.request)
        if self._request is None and not self._ahead:
            self._drain_and_close()
        else:
            self._transport.pause_reading()

    def _drain_and_close(self) -> None:
        """A connection that is closed on unread bytes is reset, and its last answer with it: so wait."""
        if self._end or self._transport.is_closing():
            return
        if self._eof:  # nothing can come any more
            self.close()
            return
        self._end = "lingering"
        self._transport.resume_reading()
        if refusal := self._parting:
            self.write(
                encode_response(
                    refusal.status, refusal.body, refusal.kind, refusal.extra, keep_alive=False
                )
            )
        with contextlib.suppress(OSError):  # it may be gone already
            self._transport.write_eof()
        self._update_state()

    def _drainable_bytes(self) -> int:
        """How many bytes of a refused body are thrown away."""
        most = self._port.limits.unread_bytes
        return most if self.keyed else most // 8

    def _release_body_room(self, request: HttpRequest | None) -> None:
        if request is not None and request.reserved:
            self._port.release(request)

    def _too_large_refusal(self, request: HttpRequest) -> Refusal:
        message = f"The body may have {request.admitted.body_bytes} bytes."
        return self._body_refusal(request, 413, "too_large", message)

    def _no_room_refusal(self, request: HttpRequest) -> Refusal:
        message = "Too many large requests are under way; try again later."
        return self._body_refusal(request, 429, "uploads", message)

    def _body_refusal(
        self, request: HttpRequest, status: int, reason: str, message: str
    ) -> Refusal:
        refusal = self._port.service.refusal_for(status, reason, message)
        return request.admitted.reword(refusal) if request.admitted.reword else refusal
