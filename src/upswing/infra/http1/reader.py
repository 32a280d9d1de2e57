"""Which requests are in these bytes? `httptools` says, within limits and by the standard.

Two things it does not do. It gathers a header of any length before it shows it, so what comes without
an event is counted here. And when a client offers another protocol (`Upgrade: h2c`, as Java's does with
its first request) it takes the request for ended after its headers; a server that does not follow the
offer has to read the request as it is, so the rest goes to a parser that has not seen the offer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import httptools

from upswing.infra.http1.limits import PortLimits
from upswing.infra.http1.request import Headers, HttpRequest

if TYPE_CHECKING:
    from upswing.infra.http1.connection import Connection

T = TypeVar("T")
_ORIGIN = re.compile(rb"[A-Za-z][A-Za-z0-9+.\-]*://[^/?#]*")
"""Scheme and authority of a whole address: what they end at, a query too, is not theirs."""
_WANTED = frozenset(
    {
        b"anthropic-beta",
        b"anthropic-version",
        b"x-api-key",
        b"x-assistant-key",
        b"x-record",
        b"authorization",
        b"content-encoding",
        b"content-length",
        b"content-type",
        b"expect",
        b"transfer-encoding",
        b"x-episode-id",
        b"episode_id",
        b"episode-id",
        b"x-session-id",
        b"x-user-id",
        b"x-agent-id",
        b"x-task-id",
        b"x-model-id",
        b"x-upswing-probe",
        b"accept",
        b"user-agent",
        b"host",
        b"last-event-id",
        b"traceparent",
    }
)


class BadRequest(Exception):
    """It cannot be read on."""

    def __init__(self, status: int, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.code, self.sentence = status, code, sentence


class Stop(Exception):
    """The connection wants no more of it."""


class Reader:
    """Bytes to requests, for one connection."""

    __slots__ = (
        "_bad",
        "_connection",
        "_count",
        "_headers",
        "_hosts",
        "_limits",
        "_parser",
        "_progress",
        "_raw",
        "_resuming",
        "_size",
        "_upgrading",
        "_url",
        "request",
        "within",
    )

    def __init__(self, connection: Connection, limits: PortLimits) -> None:
        self._connection, self._limits = connection, limits
        self._parser = httptools.HttpRequestParser(self)
        self._bad: Exception | None = None
        self._progress = self._resuming = self._upgrading = False
        self._raw = 0
        self.within = False
        """Some of a request has come, and not all."""
        self.request: HttpRequest | None = None
        """The one whose body is to come."""
        self._begin_parsing()

    def feed(self, data: bytes) -> None:
        """`BadRequest` when it cannot be read on, `Stop` when it was not to be."""
        self._progress = False
        size = len(data)
        while True:
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserUpgrade as found:
                data = data[found.args[0] :]
                self._reparse_without_upgrade()
                if data:
                    continue
            except httptools.HttpParserError:
                raise self._bad or _not_http_error() from None
            break
        self._raw = 0 if self._progress else self._raw + size
        if self._raw > self._limits.header_bytes + self._limits.line_bytes:
            raise BadRequest(431, "headers", "The headers are too long.")

    def _reparse_without_upgrade(self) -> None:
        """The rest of this request, to a parser to which nothing was offered."""
        request = self.request
        if request is None:
            return
        lines = [b"%s / HTTP/1.1" % request.method, b"host: -"]
        lines += [
            b"%s: %s" % (name, request.headers[name])
            for name in (b"content-length", b"transfer-encoding")
            if name in request.headers
        ]
        lines += [] if self._parser.should_keep_alive() else [b"connection: close"]
        self._parser = httptools.HttpRequestParser(self)
        self._upgrading, self._resuming = False, True
        try:
            self._parser.feed_data(b"\r\n".join([*lines, b"", b""]))
        except httptools.HttpParserError:
            raise self._bad or _not_http_error() from None
        finally:
            self._resuming = False

    def _begin_parsing(self) -> None:
        self._headers: Headers = {}
        self._url = b""
        self._size = self._count = self._hosts = 0

    def _bad_request(self, status: int, code: str, sentence: str) -> BadRequest:
        self._bad = BadRequest(status, code, sentence)
        return self._bad

    # --- httptools -------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if not self._resuming:
            self._begin_parsing()
            self.within = True

    def on_url(self, url: bytes) -> None:
        if self._resuming:
            return
        self._url += url
        if len(self._url) > self._limits.line_bytes:
            most = self._limits.line_bytes
            raise self._bad_request(414, "headers", f"The address may have {most} bytes.")

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._resuming:
            return
        self._size += len(name) + len(value)
        self._count += 1
        limits = self._limits
        if self._size > limits.header_bytes or self._count > limits.header_count:
            message = f"There may be {limits.header_count} headers of {limits.header_bytes} bytes."
            raise self._bad_request(431, "headers", message)
        if self.request is not None:  # a trailer: what comes after the body decides nothing
            return
        name = name.lower()
        if name in _WANTED:
            if name == b"transfer-encoding" and name in self._headers:  # one list, over two lines
                value = self._headers[name] + b", " + value
            self._headers[name] = value
            self._hosts += name == b"host"

    def on_headers_complete(self) -> None:
        if self._resuming:
            return
        self._progress = True
        self._upgrading = self._parser.should_upgrade()
        method, version = self._parser.get_method(), self._parser.get_http_version()
        if version not in {"1.0", "1.1"}:
            raise self._bad_request(505, "bad_http", "This port speaks HTTP/1.1.")
        if self._hosts > 1 or (version == "1.1" and not self._hosts):
            raise self._bad_request(400, "bad_http", "HTTP/1.1 wants one Host header.")
        if method == b"CONNECT":
            raise self._bad_request(501, "bad_http", "This is no proxy.")
        declared = self._headers.get(b"content-length", b"0")
        coding = self._headers.get(b"transfer-encoding")
        if coding is not None and coding.strip().lower() != b"chunked":
            raise self._bad_request(
                501, "bad_http", "The only transfer coding known here is chunked."
            )
        self.request = HttpRequest(
            method,
            origin_form_of_target(self._url),
            self._headers,
            size=int(declared) if coding is None else None,
            chunked=version == "1.1",
        )
        self._notify(self._connection.on_request_head, self.request)

    def on_body(self, body: bytes) -> None:
        self._progress = True
        self._notify(self._connection.on_body_piece, body)

    def on_message_complete(self) -> None:
        if self._upgrading:  # so it seems to the parser
            return
        self._progress = True
        request, self.request, self.within = self.request, None, False
        if request is not None:
            request.keep_alive = self._parser.should_keep_alive() and request.chunked
            self._notify(self._connection.on_request_complete, request)

    def _notify(self, callback: Callable[[T], None], value: T) -> None:
        try:
            callback(value)
        except Exception as error:
            self._bad = error
            raise


def _not_http_error() -> BadRequest:
    return BadRequest(400, "bad_http", "This is not a request that HTTP/1.1 knows.")


def origin_form_of_target(target: bytes) -> bytes:
    """A path, also where a client writes the whole address as it would to a proxy.

    >>> origin_form_of_target(b"/a?b"), origin_form_of_target(b"http://host:1/a?b"), origin_form_of_target(b"http://host"), origin_form_of_target(b"*")
    (b'/a?b', b'/a?b', b'/', b'*')
    >>> origin_form_of_target(b"http://host?b=/a")
    b'/?b=/a'
    """
    if (origin := _ORIGIN.match(target)) is None:
        return target
    rest = target[origin.end() :]
    return rest if rest[:1] == b"/" else b"/" + rest
