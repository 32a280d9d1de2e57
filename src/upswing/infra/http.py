"""How is a server asked over HTTP? One request, one answer, bounded in time and size.

| what comes                           | becomes                                                        |
|--------------------------------------|----------------------------------------------------------------|
| an answer, whatever its status       | `Reply`; the caller knows what a status means to it            |
| more bytes than `limit`              | `Rejected` (too_large); the rest is not read                   |
| nothing, half an answer, or too late | `Unreachable`, which is `Transient`                            |
| an address that is none              | `Misuse`                                                       |

No redirect is followed, so a key goes to this address and nowhere else; no proxy of the environment is used, and an
error never repeats a header. A connection serves one exchange: whoever gives up closes it.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from upswing import __version__
from upswing.errors import Denied, Misuse, Reason, Rejected, Transient

if TYPE_CHECKING:
    import httpx

LIMIT = 4_000_000
"""Bytes of an answer, unless the caller says otherwise."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server answered."""

    status: int
    body: bytes
    headers: Mapping[str, str]
    """Names in lower case."""


class Unreachable(Transient):
    """No whole answer came; `late`: not in time."""

    def __init__(self, sentence: str, *, late: bool = False) -> None:
        super().__init__(sentence)
        self.late = late


@cache
def _load_certificates() -> ssl.SSLContext:
    return ssl.create_default_context()


def check_url(url: str) -> None:
    """`Misuse` for an address that can never answer.

    >>> check_url("http://127.0.0.1:8000/v1")
    >>> check_url("localhost:8000")
    Traceback (most recent call last):
    upswing.errors.Misuse: localhost:8000 is no address such as http://127.0.0.1:8000/v1.
    """
    try:
        parts = urlsplit(url)
        known = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        known = False
    if not known:
        raise Misuse(f"{url} is no address such as http://127.0.0.1:8000/v1.")


async def exchange(
    method: str,
    url: str,
    *,
    body: bytes | None = None,
    key: str | None = None,
    headers: Mapping[str, str] | None = None,
    seconds: float,
    silence_seconds: float | None = None,
    limit: int = LIMIT,
) -> Reply:
    """The answer to one request; `body` is JSON, unless `headers` say otherwise.

    `seconds` bounds the whole exchange, `silence_seconds` the time in which nothing comes or goes.
    """
    import httpx  # noqa: PLC0415 - commands that ask nobody start without it

    check_url(url)
    host = urlsplit(url).netloc.rpartition("@")[2]
    sent = {
        "User-Agent": f"upswing/{__version__}",
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "Connection": "close",
        **({"Authorization": f"Bearer {key}"} if key else {}),
        **({"Content-Type": "application/json"} if body is not None else {}),
        **(headers or {}),
    }
    verify = _load_certificates() if url.startswith("https:") else False
    try:
        async with (
            asyncio.timeout(seconds),
            httpx.AsyncClient(verify=verify, trust_env=False, timeout=silence_seconds) as client,
            client.stream(method, url, content=body, headers=sent) as answer,
        ):
            return Reply(
                answer.status_code, await _read_bounded(answer, limit), dict(answer.headers)
            )
    except (TimeoutError, httpx.TimeoutException) as error:
        waited = seconds if isinstance(error, TimeoutError) else silence_seconds
        raise Unreachable(f"{host} did not answer in {waited:g} s.", late=True) from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError, ValueError) as error:
        raise Unreachable(f"{host} cannot be reached: {type(error).__name__}.") from None


async def stream_lines(
    url: str,
    *,
    key: str | None = None,
    headers: Mapping[str, str] | None = None,
    silence_seconds: float,
    limit: int = LIMIT,
) -> AsyncIterator[str]:
    """The lines of an answer that does not end, such as server-sent events, as they come.

    `silence_seconds` bounds the time in which nothing comes, `limit` the characters of a line. `Unreachable` when the
    answer breaks off or is silent for too long; `Denied` for a key that is not known, `Rejected` for another status than
    200 and for a line that is too long.
    """
    import httpx  # noqa: PLC0415 - as above

    check_url(url)
    host = urlsplit(url).netloc.rpartition("@")[2]
    sent = {
        "User-Agent": f"upswing/{__version__}",
        "Accept": "text/event-stream",
        "Accept-Encoding": "identity",
        **({"Authorization": f"Bearer {key}"} if key else {}),
        **(headers or {}),
    }
    verify = _load_certificates() if url.startswith("https:") else False
    try:
        async with (
            httpx.AsyncClient(verify=verify, trust_env=False, timeout=silence_seconds) as client,
            client.stream("GET", url, headers=sent) as answer,
        ):
            if answer.status_code == 401:
                raise Denied(f"{host} does not know this key.")
            if answer.status_code != 200:
                raise Rejected(Reason.SCHEMA, f"{host} answered {answer.status_code}.")
            rest = ""
            async for part in answer.aiter_text():
                *whole, rest = (rest + part).split("\n")
                for line in whole:
                    yield line.rstrip("\r")
                if len(rest) > limit:
                    raise Rejected(Reason.TOO_LARGE, f"A line is longer than {limit} characters.")
    except httpx.TimeoutException:
        message = f"{host} was silent for {silence_seconds:g} s."
        raise Unreachable(message, late=True) from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError, ValueError) as error:
        raise Unreachable(f"{host} cannot be reached: {type(error).__name__}.") from None


def send_request_blocking(method: str, url: str, **options: Any) -> Reply:
    """The same for whoever has no event loop: a command, or a thread of its own."""
    return asyncio.run(exchange(method, url, **options))


async def _read_bounded(answer: httpx.Response, limit: int) -> bytes:
    parts, size = [], 0
    async for part in answer.aiter_raw():
        size += len(part)
        if size > limit:
            raise Rejected(Reason.TOO_LARGE, f"The answer is larger than {limit // 1000} KB.")
        parts.append(part)
    return b"".join(parts)
