"""How does a message reach the loop over HTTP, and what does each answer mean?

| answer                             | the entry                                                 |
|------------------------------------|-----------------------------------------------------------|
| 2xx                                | is taken: remove it                                       |
| 403 `not_yours`                    | is refused: the key is right, and this is another's       |
| 401, other 403                     | waits: an operator may mend the key                       |
| 404, 405 for trajectories, 3xx     | waits: the address is wrong, not the entry                |
| 408, 425, 429, 5xx, no connection  | waits: try again later                                    |
| any other 4xx                      | is refused: counted, never sent again                     |
"""

from __future__ import annotations

import contextlib
import http.client
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import SplitResult, urlsplit

import msgspec

from upswing import __version__
from upswing.errors import Denied, Misuse, Reason, Transient, UpswingError
from upswing.infra.spool_log import SpoolEntryKind

TIMEOUT = 5.0
"""Seconds for a connection and for an answer; longer means the loop is away."""

_PATHS = {SpoolEntryKind.TRAJECTORY: "/v1/trajectories", SpoolEntryKind.FEEDBACK: "/v1/feedback"}
_LATER = frozenset({408, 425, 429})
_DECODER = msgspec.json.Decoder()
_LOST = (OSError, http.client.HTTPException)


@dataclass(frozen=True, slots=True)
class EntryAccepted:
    """The loop has it, durably."""


@dataclass(frozen=True, slots=True)
class EntryRefused:
    """The loop will never take it."""

    why: str


@dataclass(frozen=True, slots=True)
class EntryDeferred:
    """The loop did not take it now."""

    why: UpswingError


Answer = EntryAccepted | EntryRefused | EntryDeferred


class Transport(Protocol):
    """A way to the loop.

    `send` gives one answer per body, in order, or raises for all of them: `Transient` when the
    loop is away, `Denied` when it does not let us in.
    """

    def send(self, kind: SpoolEntryKind, bodies: Sequence[bytes]) -> list[Answer]: ...
    def close(self) -> None: ...


def checked(url: str, schemes: Sequence[str] = ("http", "https", "nats", "tls")) -> SplitResult:
    """The parts of an address, or `Misuse` with a sentence."""
    try:
        parts = urlsplit(url)
        if parts.scheme in schemes and parts.hostname and parts.port != 0:
            return parts
    except ValueError:
        pass
    raise Misuse("The loop's address is a URL such as http://127.0.0.1:8100 or nats://host:4222.")


def answer_of(kind: SpoolEntryKind, status: int, detail: str, code: str = "") -> Answer:
    """The table above; `code` is the word that the answer gives as its reason."""
    why = f"The loop answered {status}{f': {detail}' if detail else ''}."
    if 200 <= status < 300:
        return EntryAccepted()
    if status == 403 and code == Reason.NOT_YOURS:
        return EntryRefused(why)
    if status in (401, 403):
        return EntryDeferred(Denied(f"{why} Entries wait in the spool until the key is right."))
    if status < 400 or (status in (404, 405) and kind is SpoolEntryKind.TRAJECTORY):
        return EntryDeferred(Denied(f"{why} Entries wait in the spool until the address is right."))
    if status in _LATER or status >= 500:
        return EntryDeferred(Transient(why))
    return EntryRefused(why)


class HttpTransport:
    """One keep-alive connection to the loop's HTTP address."""

    def __init__(self, url: str, key: str | None = None, timeout: float = TIMEOUT) -> None:
        self._url = checked(url, ("http", "https"))
        self._key, self._timeout = key, timeout
        self._connection: http.client.HTTPConnection | None = None

    def send(self, kind: SpoolEntryKind, bodies: Sequence[bytes]) -> list[Answer]:
        if kind is SpoolEntryKind.FEEDBACK or len(bodies) == 1:
            return [self._send_entry(kind, body) for body in bodies]
        status, body = self._post_entries(kind, "application/x-ndjson", b"\n".join(bodies))
        if status in (202, 207):
            return _per_line(kind, status, body, len(bodies))
        if isinstance(answer_of(kind, status, ""), EntryRefused):
            return [self._send_entry(kind, body) for body in bodies]
        return [answer_of(kind, status, *_reason_of_error(body))] * len(bodies)

    def _send_entry(self, kind: SpoolEntryKind, body: bytes) -> Answer:
        status, answer = self._post_entries(kind, "application/json", body)
        return answer_of(kind, status, *_reason_of_error(answer))

    def _post_entries(
        self, kind: SpoolEntryKind, content_type: str, body: bytes
    ) -> tuple[int, bytes]:
        headers = {
            "Content-Type": content_type,
            "Accept": "application/json",
            "User-Agent": f"upswing-sdk/{__version__}",
        }
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        reused = self._connection is not None
        try:
            return self._send_request(_PATHS[kind], body, headers)
        except _LOST as error:
            self.close()
            if not reused or isinstance(error, TimeoutError):
                raise Transient(f"The loop is not reachable: {type(error).__name__}.") from error
        # A kept connection may have been closed meanwhile. The loop knows a message it has
        # already taken by its id, so asking once more is safe.
        try:
            return self._send_request(_PATHS[kind], body, headers)
        except _LOST as error:
            self.close()
            raise Transient(f"The loop is not reachable: {type(error).__name__}.") from error

    def _send_request(self, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        if self._connection is None:
            self._connection = self._open_connection()
        self._connection.request("POST", self._url.path.rstrip("/") + path, body, headers)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.will_close:
            self.close()
        return answer.status, content

    def _open_connection(self) -> http.client.HTTPConnection:
        secure = self._url.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        return kind(self._url.hostname or "", self._url.port, timeout=self._timeout)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _reason_of_error(body: bytes) -> tuple[str, str]:
    """The sentence of an error answer and its fixed word, if it has them."""
    try:
        problem = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return "", ""
    if not isinstance(problem, dict):
        return "", ""
    parts = [problem[key] for key in ("reason", "detail") if key in problem]
    return ": ".join(str(part) for part in parts)[:300], str(problem.get("error", ""))


def _per_line(kind: SpoolEntryKind, status: int, body: bytes, count: int) -> list[Answer]:
    """One answer per line sent. A line that a 207 says nothing of was not taken."""
    silent: Answer = (
        EntryAccepted() if status == 202 else EntryDeferred(Transient("The loop left out a line."))
    )
    answers = [silent] * count
    for result in _result_objects(body):
        line, each = result.get("line"), result.get("status")
        if isinstance(line, int) and isinstance(each, int) and 1 <= line <= count:
            detail = str(result.get("detail", result.get("reason", "")))
            answers[line - 1] = answer_of(kind, each, detail, str(result.get("result", "")))
    return answers


def _result_objects(body: bytes) -> list[dict[str, Any]]:
    """The results in a JSON array, an object with `results`, or lines of JSON."""
    read: Any = None
    for decode in (_DECODER.decode, _DECODER.decode_lines):
        with contextlib.suppress(msgspec.DecodeError, UnicodeError, RecursionError):
            read = decode(body)
            break
    if isinstance(read, dict):
        read = read.get("results", [read])
    return [each for each in read if isinstance(each, dict)] if isinstance(read, list) else []
