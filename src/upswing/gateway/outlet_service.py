"""What goes back to the client, and in which form? Heads, ids and pieces of one answer."""

from __future__ import annotations

from typing import Protocol

from upswing.gateway.faults import Fault
from upswing.gateway.problems import JSON, error_body, error_event, response, status_line

EVENTS = b"content-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n"
WHOLE = b"content-type: application/json\r\n"
_SOON = b"retry-after: 2\r\n"
"""A model server that died is back in seconds."""


class Client(Protocol):
    """The connection that a request came on."""

    def write(self, data: bytes) -> None: ...
    def finished(self, *, keep: bool) -> None: ...
    def abort(self) -> None: ...


class Outlet:
    """The way back of one answer."""

    __slots__ = ("_chunked", "_client", "_episode_id", "_inference_id", "_keep", "started")

    def __init__(
        self, client: Client, episode_id: str, inference_id: str, *, keep: bool, chunked: bool
    ) -> None:
        """`chunked`: the client speaks HTTP/1.1, so that an answer can end before the connection."""
        self._client, self._keep, self._chunked = client, keep and chunked, chunked
        self._episode_id, self._inference_id = episode_id, inference_id
        self.started = False
        """The client has seen a part of it, so it is too late for another answer."""

    def whole(self, status: int, body: bytes, model_id: str) -> None:
        """An answer at one go."""
        self.started = True
        self._client.write(
            b"%s%s%s%scontent-length: %d\r\n\r\n%s"
            % (status_line(status), WHOLE, self._ids(model_id), self._last(), len(body), body)
        )

    def refusal(self, status: int, body: bytes, model_id: str, extra: bytes = b"") -> None:
        self.started = True
        self._client.write(
            response(status, body, JSON, self._ids(model_id) + extra, keep=self._keep)
        )

    def fault(self, fault: Fault, told: str, model_id: str) -> None:
        about = fault.about
        body = error_body(told or about.sentence, about.kind, about.word)
        self.refusal(about.status, body, model_id, _SOON if about.status == 503 else b"")

    def begin(self, kind: bytes, model_id: str, data: bytes, *, last: bool) -> None:
        """The first piece of an answer that goes on as it comes."""
        self.started = True
        framing = b"transfer-encoding: chunked\r\n" if self._chunked else b""
        ids = self._ids(model_id)
        head = b"HTTP/1.1 200 OK\r\n%s%s%s%s\r\n" % (kind, framing, ids, self._last())
        self._client.write(head + self._framed(data, last=last))

    def send(self, data: bytes, *, last: bool = False) -> None:
        self._client.write(self._framed(data, last=last))

    def cut(self, fault: Fault) -> None:
        """The rest does not come: say so, and hang up."""
        about = fault.about
        self._keep = False
        self.send(error_event(about.sentence, about.kind, about.word), last=True)

    def close(self) -> None:
        self._client.finished(keep=self._keep)

    def abort(self) -> None:
        self._client.abort()

    def _last(self) -> bytes:
        return b"" if self._keep else b"connection: close\r\n"

    def _framed(self, data: bytes, *, last: bool) -> bytes:
        if not self._chunked:
            return data
        piece = b"%x\r\n%s\r\n" % (len(data), data) if data else b""
        return piece + b"0\r\n\r\n" if last else piece

    def _ids(self, model_id: str) -> bytes:
        return (
            f"x-episode-id: {self._episode_id}\r\n"
            f"x-inference-id: {self._inference_id}\r\n"
            f"x-model-id: {model_id}\r\n"
        ).encode()
