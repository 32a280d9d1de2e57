"""How is a model asked over HTTP, in the shape of chat completions, with tools and a seed?

| answer                                          | becomes                                        |
|-------------------------------------------------|------------------------------------------------|
| 200 with a chat completion                      | `Answer`                                       |
| 200 with an error or something else, cut short  | `Transient`: the server is at fault            |
| 400, 422 that names an optional parameter       | asked again without it, from then on           |
| 400, 413, 422 that speaks of the context        | asked again for fewer tokens, then `Rejected`, |
|                                                 | too_large: the model cannot take it            |
| 401, 403                                        | `Denied`                                       |
| 408, 425, 429, 5xx, no connection, slow         | `Transient`                                    |
| 404, 405, 3xx                                   | `Misuse`: the address or the model is wrong    |
| any other 4xx                                   | `Rejected`                                     |
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import re
import socket
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from threading import Event
from typing import Any
from urllib.parse import urlsplit

import msgspec

from upswing import __version__
from upswing.contracts.typed import from_json
from upswing.contracts.validation import Answer, ToolCall
from upswing.errors import Denied, Misuse, Reason, Rejected, Transient, UpswingError

LIMIT = 4_000_000
"""Bytes of an answer."""
_OPTIONAL = ("seed", "temperature", "top_p", "max_tokens")
_LATER = frozenset({408, 425, 429})
_LINES = ThreadPoolExecutor(256, "chat")
"""Threads of our own: those that asyncio shares out are few, and the store needs them."""
_FEWEST = 16
"""Tokens of an answer below which a request that is too long is not tried again."""
_CONTEXT = re.compile(r"context[_ ](length|size|window)", re.IGNORECASE)
"""How servers say that prompt and answer together are longer than the model can take."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a model answers."""

    base_url: str
    """Up to and with `/v1`."""
    name: str
    """What the server calls it."""
    key: str = field(default="", repr=False)
    unusable: frozenset[str] = frozenset()
    """Optional fields that its server is known not to take."""


class _Function(msgspec.Struct):
    name: str
    arguments: str | dict[str, Any] = "{}"


class _Call(msgspec.Struct):
    function: _Function
    id: str | None = None


class _Said(msgspec.Struct):
    content: str | list[dict[str, Any]] | None = None
    tool_calls: list[_Call] | None = None


class _Choice(msgspec.Struct):
    message: _Said


class _Completion(msgspec.Struct):
    choices: list[_Choice]


class Chat:
    """Models behind OpenAI-shaped endpoints."""

    def __init__(
        self,
        place_of: Callable[[str], Place],
        *,
        timeout: timedelta = timedelta(seconds=120),
        temperature: float = 0.0,
        top_p: float = 1.0,
    ) -> None:
        self._place_of = place_of
        self._timeout = timeout.total_seconds()
        self._temperature, self._top_p = temperature, top_p
        self._refused: dict[str, set[str]] = {}

    async def __call__(
        self,
        model: str,
        messages: Sequence[Mapping[str, Any]],
        *,
        seed: int,
        max_tokens: int,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> Answer:
        """One answer."""
        place = self._place_of(model)
        refused = self._refused.setdefault(model, set())
        refused |= place.unusable
        while True:
            optional = {"seed": seed, "temperature": self._temperature, "max_tokens": max_tokens}
            if self._top_p < 1:
                optional["top_p"] = self._top_p
            wanted = {name: value for name, value in optional.items() if name not in refused}
            if "max_tokens" in refused and "max_completion_tokens" not in refused:
                wanted["max_completion_tokens"] = max_tokens
            offered = {"tools": tools} if tools and "tools" not in refused else {}
            body = {"model": place.name, "messages": messages, **wanted}
            status, raw = await self._post(place, body | offered)
            if status == 200:
                return read(raw)
            told = raw[:2000].decode(errors="replace")
            if status in {400, 413, 422} and _CONTEXT.search(told):
                if max_tokens < _FEWEST:
                    raise Rejected(Reason.TOO_LARGE, f"This is too long for {place.name}.")
                max_tokens //= 4
                continue
            culprit = next((name for name in _OPTIONAL if name in wanted and name in told), None)
            if status not in {400, 422} or culprit is None:
                raise _error(place, status)
            refused.add(culprit)

    async def _post(self, place: Place, body: Mapping[str, Any]) -> tuple[int, bytes]:
        url = urlsplit(place.base_url.rstrip("/"))
        if url.scheme not in {"http", "https"} or not url.hostname:
            raise Misuse(f"{place.base_url} is no address such as http://127.0.0.1:8000/v1.")
        kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
        line = kind(url.hostname, url.port, timeout=self._timeout)
        path, raw, gone = f"{url.path}/chat/completions", msgspec.json.encode(body), Event()
        talk = partial(_exchange, line, path, raw, place.key, gone)
        try:
            async with asyncio.timeout(self._timeout):
                return await asyncio.get_running_loop().run_in_executor(_LINES, talk)
        except TimeoutError:
            raise Transient(f"{url.netloc} did not answer in {self._timeout:g} s.") from None
        except (OSError, http.client.HTTPException) as error:
            raise Transient(f"{url.netloc} is not reachable: {type(error).__name__}.") from None
        finally:
            gone.set()
            _hang_up(line)


def read(raw: bytes) -> Answer:
    """The answer in a chat completion.

    >>> read(b'{"choices": [{"message": {"content": "Hi."}}]}')
    Answer(text='Hi.', tool_calls=())
    >>> read(b'{"error": {"message": "overloaded"}}')
    Traceback (most recent call last):
    upswing.errors.Transient: The server's answer is no chat completion.
    """
    try:
        said = from_json(raw, _Completion).choices[0].message
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, IndexError):
        raise Transient("The server's answer is no chat completion.") from None
    parts = said.content if isinstance(said.content, list) else []
    text = said.content if isinstance(said.content, str) else ""
    calls = [
        ToolCall(call.function.name, _arguments(call.function.arguments), call.id or "")
        for call in said.tool_calls or ()
    ]
    return Answer(text or "".join(str(part.get("text") or "") for part in parts), tuple(calls))


def _arguments(given: str | dict[str, Any]) -> str:
    """Some servers send the object and not its text."""
    return given if isinstance(given, str) else msgspec.json.encode(given).decode()


def _exchange(
    line: http.client.HTTPConnection, path: str, raw: bytes, key: str, gone: Event
) -> tuple[int, bytes]:
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "User-Agent": f"upswing/{__version__}",
    }
    if key:
        headers["Authorization"] = f"Bearer {key}"
    line.connect()
    line.auto_open = 0  # a line that is cut stays cut
    if gone.is_set():  # whoever asked hung up before there was a line to cut
        line.close()
        raise ConnectionAbortedError
    line.request("POST", path, raw, headers)
    answer = line.getresponse()
    content = answer.read(LIMIT + 1)
    if len(content) > LIMIT:
        raise Transient(f"The server's answer is larger than {LIMIT // 1_000_000} MB.")
    return answer.status, content


def _error(place: Place, status: int) -> UpswingError:
    host = urlsplit(place.base_url).netloc
    if status in {401, 403}:
        return Denied(f"{host} refuses the key for {place.name}.")
    if status in _LATER or status >= 500:
        return Transient(f"{host} answers {status}.")
    if status in {404, 405} or 300 <= status < 400:
        return Misuse(f"{host} answers {status}: check its address and the model {place.name}.")
    return Rejected(Reason.SCHEMA, f"{host} answers {status} to {place.name}.")


def _hang_up(line: http.client.HTTPConnection) -> None:
    """Ends the exchange also for the thread that may still be reading."""
    if line.sock is not None:
        with contextlib.suppress(OSError):
            line.sock.shutdown(socket.SHUT_RDWR)
    line.close()
