"""What goes back to the client, and in which form? Heads, ids and pieces of one answer."""

from __future__ import annotations

from upswing.gateway.core.faults import Fault
from upswing.gateway.core.shapes import ClientShape, shaped_error
from upswing.infra.http1.connection import Connection as ClientConnection
from upswing.infra.http1.wire import JSON, encode_response, status_line

SSE_HEADERS = b"content-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n"
JSON_HEADERS = b"content-type: application/json\r\n"
_RETRY_SOON = b"retry-after: 2\r\n"
"""A model server that died is back in seconds."""


class ResponseWriter:
    """Writes one answer to its client."""

    __slots__ = (
        "_chunked",
        "_client",
        "_episode_id",
        "_inference_id",
        "_keep_alive",
        "_shape",
        "started",
    )

    def __init__(
        self,
        client: ClientConnection,
        shape: ClientShape,
        episode_id: str,
        inference_id: str,
        *,
        keep_alive: bool,
        chunked: bool,
    ) -> None:
        """`chunked`: the client speaks HTTP/1.1, so that an answer can end before the connection."""
        self._client, self._keep_alive, self._chunked = client, keep_alive and chunked, chunked
        self._shape, self._episode_id, self._inference_id = shape, episode_id, inference_id
        self.started = False
        """The client has seen a part of it, so it is too late for another answer."""

    def write_whole(self, status: int, body: bytes, model_id: str) -> None:
        """An answer at one go."""
        self.started = True
        ids, closing = self._id_headers(model_id), self._connection_header()
        self._client.write(
            b"%s%s%s%scontent-length: %d\r\n\r\n%s"
            % (status_line(status), JSON_HEADERS, ids, closing, len(body), body)
        )

    def write_error(
        self, status: int, body: bytes, model_id: str, extra_headers: bytes = b""
    ) -> None:
        self.started = True
        headers = self._id_headers(model_id) + extra_headers
        self._client.write(
            encode_response(status, body, JSON, headers, keep_alive=self._keep_alive)
        )

    def write_fault(self, fault: Fault, message: str, model_id: str) -> None:
        info = fault.info
        body = shaped_error(self._shape, message or info.message, info.error_type, info.code)
        self.write_error(info.status, body, model_id, _RETRY_SOON if info.status == 503 else b"")

    def start_stream(
        self, content_headers: bytes, model_id: str, data: bytes, *, last: bool
    ) -> None:
        """The first piece of an answer that goes on as it comes."""
        self.started = True
        framing = b"transfer-encoding: chunked\r\n" if self._chunked else b""
        ids, closing = self._id_headers(model_id), self._connection_header()
        head = b"HTTP/1.1 200 OK\r\n%s%s%s%s\r\n" % (content_headers, framing, ids, closing)
        self._client.write(head + self._framed(data, last=last))

    def write_piece(self, data: bytes, *, last: bool = False) -> None:
        self._client.write(self._framed(data, last=last))

    def write_cut_off(self, last_events: bytes) -> None:
        """The rest does not come: say so with these events, and hang up."""
        self._keep_alive = False
        self.write_piece(last_events, last=True)

    def finish(self) -> None:
        self._client.on_response_written(keep_alive=self._keep_alive)

    def abort(self) -> None:
        self._client.abort()

    def _connection_header(self) -> bytes:
        return b"" if self._keep_alive else b"connection: close\r\n"

    def _framed(self, data: bytes, *, last: bool) -> bytes:
        if not self._chunked:
            return data
        piece = b"%x\r\n%s\r\n" % (len(data), data) if data else b""
        return piece + b"0\r\n\r\n" if last else piece

    def _id_headers(self, model_id: str) -> bytes:
        return (
            f"x-episode-id: {self._episode_id}\r\n"
            f"x-inference-id: {self._inference_id}\r\n"
            f"x-model-id: {model_id}\r\n"
        ).encode()
