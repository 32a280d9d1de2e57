"""One request to a model's server, one answer. No redirect is followed, and a key goes to this address only.

| what comes                          | becomes                                            |
|-------------------------------------|----------------------------------------------------|
| an answer, whatever its status      | that                                               |
| nothing, half an answer, or too late | `Transient`                                       |
| an address that is none             | `Rejected`                                         |
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from upswing import __version__
from upswing.contracts.typed import from_json
from upswing.errors import Reason, Rejected, Transient

_LIMIT = 4_000_000


class _Error(msgspec.Struct):
    message: str = ""


class _Problem(msgspec.Struct):
    error: _Error | str | None = None
    detail: Any = None
    message: str = ""


def v1(url: str) -> str:
    """An address without a path means `/v1`.

    >>> v1("http://127.0.0.1:8000"), v1("http://h/openai/v1/")
    ('http://127.0.0.1:8000/v1', 'http://h/openai/v1')
    """
    url = url.rstrip("/")
    return url if urlsplit(url).path else f"{url}/v1"


def sentence(body: bytes) -> str:
    """What an error answer says, in any of the usual shapes."""
    with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        told = from_json(body, _Problem)
        error = told.error.message if isinstance(told.error, _Error) else told.error
        found = error or told.message or told.detail
        if isinstance(found, str):
            return found[:500]
    return "it does not say why."


async def exchanged(
    method: str, url: str, body: Mapping[str, Any] | None, key: str | None, seconds: float
) -> tuple[int, bytes]:
    """The answer's status and body."""
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise Rejected(Reason.SCHEMA, f"{url} is no address such as http://127.0.0.1:8000/v1.")
    headers = {"User-Agent": f"upswing/{__version__}", "Accept": "application/json"}
    headers |= {"Authorization": f"Bearer {key}"} if key else {}
    headers |= {"Content-Type": "application/json"} if body is not None else {}
    raw = msgspec.json.encode(body) if body is not None else None

    def exchange() -> tuple[int, bytes]:
        line.request(method, parts.path, raw, headers)
        answer = line.getresponse()
        return answer.status, answer.read(_LIMIT)

    try:
        port = parts.port
    except ValueError:
        raise Rejected(Reason.SCHEMA, f"{url} has no port that could be.") from None
    line = kind(parts.hostname, port, timeout=seconds)
    try:
        async with asyncio.timeout(seconds):
            return await asyncio.to_thread(exchange)
    except TimeoutError:
        raise Transient(f"{parts.netloc} did not answer in {seconds:g} s.") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise Transient(f"{parts.netloc} cannot be reached: {type(error).__name__}.") from None
    finally:
        _hang_up(line)


def _hang_up(line: http.client.HTTPConnection) -> None:
    """Ends the exchange also for the thread that may still be reading."""
    if line.sock is not None:
        with contextlib.suppress(OSError):
            line.sock.shutdown(socket.SHUT_RDWR)
    line.close()
