"""How is a question put to any OpenAI-compatible endpoint, and what does each answer mean?

| answer                                    | becomes                                              |
|-------------------------------------------|------------------------------------------------------|
| 200 with a chat completion                | `Completion`                                         |
| 200 with something else                   | `Rejected` (malformed)                               |
| more than 200 KB                          | cut off, `Rejected` (too_large)                      |
| 400, 422 that a plainer question may mend | asked again without the parameter                    |
| 401, 403, 429 with `insufficient_quota`   | `Denied`                                             |
| 408, 425, 429, 5xx, no connection, slow   | `Transient`                                          |
| 3xx, 404, 405                             | `Misuse`: the address or the model is wrong          |
| any other 4xx                             | `Rejected`                                           |

`openai/gpt-4o-mini` is `gpt-4o-mini` at api.openai.com. Everywhere else the name goes out as it is,
because vLLM (`Qwen/Qwen3-14B`) and routers need what stands before the slash. Redirects are not
followed, and the key appears in no error: it goes to the address it was given for, nowhere else.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import msgspec

from upswing import __version__
from upswing.errors import Denied, Misuse, Reason, Rejected, Transient, UpswingError

DEFAULT_URL = "https://api.openai.com/v1"
LIMIT = 200_000
"""Bytes of an answer; a larger one is cut off and refused."""
_OPENAI = "api.openai.com"
_LATER = frozenset({408, 425, 429})
_MENDABLE = frozenset({400, 422})
_OPTIONAL = ("response_format", "temperature", "max_tokens")
_LOST = (OSError, http.client.HTTPException)
_LINES = ThreadPoolExecutor(8, "judge")
"""Threads of our own: a slow judge takes none of the few that asyncio shares out to everybody."""


@dataclass(frozen=True, slots=True)
class Completion:
    """The model's answer and what it took."""

    text: str
    prompt_tokens: int | None
    completion_tokens: int | None


@dataclass(frozen=True, slots=True)
class _Reply:
    status: int
    body: bytes


class OpenAI:
    """One model at one endpoint."""

    def __init__(
        self,
        model: str,
        *,
        key: str | None = None,
        base_url: str | None = None,
        timeout: timedelta = timedelta(seconds=100),
        temperature: float = 0.0,
        max_tokens: int = 2_000,
    ) -> None:
        self._url = urlsplit((base_url or DEFAULT_URL).rstrip("/"))
        _check(self._url.scheme, self._url.hostname, self._url.username, key)
        self.model = model_at(model, self._url.hostname or "")
        self._key = (key or "").strip()
        self._timeout = timeout.total_seconds()
        self._optional: dict[str, Any] = {"temperature": temperature, "max_tokens": max_tokens}
        self._refused: set[str] = set()

    def __repr__(self) -> str:
        return f"OpenAI({self.model!r} at {self._url.hostname})"

    async def __call__(
        self,
        messages: Sequence[Mapping[str, str]],
        response_format: Mapping[str, Any] | None = None,
    ) -> Completion:
        """One answer. What the endpoint refuses of the optional parameters is left out from then on."""
        form = {"response_format": response_format} if response_format else {}
        wanted = {**self._optional, **form}
        dropped: set[str] = set()
        while True:
            left_out = self._refused | dropped
            reply = await self._post(_question(self.model, messages, wanted, left_out))
            if reply.status == 200:
                self._refused |= dropped
                return _completion(reply.body)
            culprit = _culprit(reply, wanted.keys() - left_out)
            if culprit is None:
                raise self._error(reply)
            dropped.add(culprit)

    async def _post(self, body: bytes) -> _Reply:
        secure = self._url.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(self._url.hostname or "", self._url.port, timeout=self._timeout)
        try:
            async with asyncio.timeout(self._timeout):
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(_LINES, self._exchange, connection, body)
        except TimeoutError:
            raise Transient(f"The judge did not answer in {self._timeout:g} s.") from None
        except _LOST as error:
            raise Transient(f"The judge is not reachable: {type(error).__name__}.") from None
        finally:
            _hang_up(connection)

    def _exchange(self, connection: http.client.HTTPConnection, body: bytes) -> _Reply:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": f"upswing/{__version__}",
        }
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        connection.request("POST", f"{self._url.path}/chat/completions", body, headers)
        answer = connection.getresponse()
        content = answer.read(LIMIT + 1)
        if len(content) > LIMIT:
            raise Rejected(Reason.TOO_LARGE, f"The answer is larger than {LIMIT // 1000} KB.")
        return _Reply(answer.status, content)

    def _error(self, reply: _Reply) -> UpswingError:
        said = self._clean(_detail(reply.body))
        match reply.status:
            case 401 | 403:
                return Denied("The judge's endpoint refuses the key in OPENAI_API_KEY.")
            case 429 if "insufficient_quota" in said:
                return Denied("The account behind OPENAI_API_KEY has no quota left.")
            case status if status in _LATER or status >= 500:
                return Transient(f"The judge's endpoint answers {status}.")
            case 404 | 405 | 301 | 302 | 303 | 307 | 308 as status:
                return Misuse(
                    f"{self._url.hostname} answers {status}: check OPENAI_BASE_URL and JUDGE_MODEL "
                    f"({self.model}). {said}".strip()
                )
            case 413:
                return Rejected(Reason.TOO_LARGE, "The question is too large for the judge.")
            case status:
                return Rejected(Reason.SCHEMA, f"The judge's endpoint answers {status}. {said}")

    def _clean(self, said: str) -> str:
        """Some endpoints repeat the key they refuse."""
        return said.replace(self._key, "…") if self._key else said


def model_at(model: str, host: str) -> str:
    """The name that this host knows the model by.

    >>> model_at("openai/gpt-4o-mini", "api.openai.com")
    'gpt-4o-mini'
    >>> model_at("openai/gpt-4o-mini", "openrouter.ai")
    'openai/gpt-4o-mini'
    """
    return model.removeprefix("openai/") if host == _OPENAI else model


def _check(scheme: str, host: str | None, user: str | None, key: str | None) -> None:
    if scheme not in {"http", "https"} or not host:
        raise Misuse("OPENAI_BASE_URL must be an address such as http://127.0.0.1:8000/v1.")
    if user:
        raise Misuse("OPENAI_BASE_URL must not hold a password; put the key into OPENAI_API_KEY.")
    if key and not (key.strip().isascii() and key.strip().isprintable()):
        raise Misuse("OPENAI_API_KEY holds characters that no HTTP header can carry.")


def _question(
    model: str,
    messages: Sequence[Mapping[str, str]],
    wanted: Mapping[str, Any],
    left_out: Collection[str],
) -> bytes:
    sent = {name: value for name, value in wanted.items() if name not in left_out}
    if "max_tokens" in left_out:
        sent["max_completion_tokens"] = wanted["max_tokens"]
    return msgspec.json.encode({"model": model, "messages": messages, **sent})


def _culprit(reply: _Reply, sent: Collection[str]) -> str | None:
    """The parameter to leave out next: the one the refusal names, else the answer's form."""
    if reply.status not in _MENDABLE:
        return None
    said = reply.body.decode(errors="replace")
    named = next((name for name in _OPTIONAL if name in sent and name in said), None)
    return named or ("response_format" if "response_format" in sent else None)


def _completion(body: bytes) -> Completion:
    try:
        tree = msgspec.json.decode(body)
        content = tree["choices"][0]["message"]["content"]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, LookupError, TypeError):
        raise Rejected(Reason.MALFORMED, "The judge's answer is no chat completion.") from None
    usage = tree.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    return Completion(
        content if isinstance(content, str) else "",
        _tokens(counts.get("prompt_tokens")),
        _tokens(counts.get("completion_tokens")),
    )


def _tokens(count: Any) -> int | None:
    return count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else None


def _detail(body: bytes) -> str:
    """The sentence and the code of an error answer, if it has them."""
    try:
        error = msgspec.json.decode(body)["error"]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, LookupError, TypeError):
        return ""
    if not isinstance(error, dict):
        return str(error)[:300]
    return " ".join(str(error[word])[:300] for word in ("message", "code") if error.get(word))


def _hang_up(connection: http.client.HTTPConnection) -> None:
    """Ends the exchange also for the thread that may still be reading."""
    line = connection.sock
    if line is not None:
        with contextlib.suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)
    connection.close()
