"""What is asked of a port, and what does it answer before it reads on?"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from upswing.infra.http1.wire import JSON

if TYPE_CHECKING:
    from upswing.infra.http1.connection import Connection

Headers = dict[bytes, bytes]


class HttpRequest:
    """A request: its headers first, its body when it is whole."""

    __slots__ = (
        "admitted",
        "at",
        "body",
        "chunked",
        "headers",
        "keep_alive",
        "method",
        "path",
        "reserved",
        "size",
    )

    def __init__(
        self, method: bytes, path: bytes, headers: Headers, *, size: int | None, chunked: bool
    ) -> None:
        """`size` of the body as declared, None for one in chunks; `chunked`: the client speaks HTTP/1.1."""
        self.method, self.path, self.headers = method, path, headers
        self.size, self.chunked = size, chunked
        self.body = b""
        self.keep_alive = False
        """The connection goes on after the answer."""
        self.at = 0.0
        self.admitted = NOTHING
        self.reserved = 0


@dataclass(frozen=True, slots=True)
class AdmittedRequest:
    """The body may come."""

    body_bytes: int
    keyed: bool
    """A key was shown, and is good."""
    call: Any = None
    """What the service needs to answer."""
    owner: Hashable = None
    """Whose key: they share what a port holds of bodies; None for all who need none."""
    reword: Callable[[Refusal], Refusal] | None = None
    """How its refusals look where another standard says so."""


NOTHING = AdmittedRequest(0, keyed=False)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer for which no body is needed."""

    status: int
    body: bytes
    extra: bytes = b""
    kind: bytes = JSON


class InFlight(Protocol):
    """What a connection tells the exchange that it carries."""

    def cancel(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...


class RequestHandler(Protocol):
    """Who answers at a port."""

    def admit(self, request: HttpRequest) -> AdmittedRequest | Refusal:
        """May this be asked, by whoever asks? The body has not been read."""
        ...

    def handle(self, connection: Connection, request: HttpRequest) -> InFlight | None: ...

    def refusal_for(self, status: int, reason: str, message: str) -> Refusal:
        """How the port's own refusals are worded here; it may count them."""
        ...
