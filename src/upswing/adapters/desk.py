"""How does a gateway ask something of the loop, and what does each answer mean?

| the loop answers                       | becomes                                                 |
|----------------------------------------|---------------------------------------------------------|
| 2xx with an object                     | that                                                    |
| 2xx with something else                | `Transient`: it is not the loop that answers there      |
| 404                                    | `Misuse`: the model is not known                        |
| 400, 409, 413, 422, any other 4xx      | `Rejected`, with the loop's own reason and sentence     |
| 403 for the word itself                | `Rejected`, as above                                    |
| 401, 403                               | `Transient`: the gateway's key has to be mended         |
| 408, 425, 429, 3xx, 5xx, nothing, late | `Transient`                                             |

A wish is sent once: whoever does not hear of it looks at the traffic, and asks again.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import logging
import socket
from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import quote, urlsplit

import msgspec
from msgspec import Meta

from upswing import __version__
from upswing.contracts.typed import from_tree
from upswing.errors import Misuse, Reason, Rejected, Transient, UpswingError
from upswing.senders import Holder

log = logging.getLogger(__name__)
SECONDS = 10.0
"""For a whole exchange: registering a model reads its manifest, and no weights."""
_MOST = 4 * 1024 * 1024
_LATER = frozenset({408, 425, 429})
_LOST = (OSError, http.client.HTTPException)
_REASONS = {400: Reason.MALFORMED, 409: Reason.CONFLICT, 413: Reason.TOO_LARGE}
Json = Mapping[str, Any]


class _Key(msgspec.Struct):
    name: Annotated[str, Meta(min_length=1)]
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    key_id: str = ""
    trusted: bool = False


class HttpDesk:
    """The controller's desk and the loop's list of keys, at the loop's HTTP address."""

    def __init__(self, url: str, key: str, seconds: float = SECONDS) -> None:
        parts = urlsplit(url.rstrip("/"))
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise Misuse("AGENTGYM_RL_URL must be an address such as http://127.0.0.1:8100.")
        if not (key.isascii() and key.isprintable()):
            raise Misuse("AGENTGYM_RL_API_KEY holds characters that no HTTP header can carry.")
        self._url, self._key, self._seconds = parts, key, seconds

    def __repr__(self) -> str:
        return f"HttpDesk(at {self._url.hostname})"

    async def register(self, model_id: str, base_model: str, checkpoint_path: str) -> Json:
        wish = {"model_id": model_id, "base_model": base_model, "checkpoint_path": checkpoint_path}
        return await self._ask("POST", "/admin/models", wish)

    async def set_traffic(self, model_id: str, percentage: float) -> Json:
        wish = {"model_id": model_id, "traffic_percentage": percentage}
        return await self._ask("PUT", "/admin/traffic", wish)

    async def metrics(self, model_id: str) -> Json:
        return await self._ask("GET", f"/admin/models/{quote(model_id, safe='')}/metrics")

    async def models(self) -> Sequence[Json]:
        listed = (await self._ask("GET", "/admin/models")).get("models")
        if not isinstance(listed, list):
            raise Transient("The loop's list of models cannot be read.")
        return listed

    async def check_feedback(self, word: bytes) -> None:
        """`Rejected` when this word would not be taken."""
        await self._ask("POST", "/v1/feedback/check", msgspec.json.decode(word))

    async def keys(self) -> Mapping[bytes, str]:
        told = (await self._ask("GET", "/v1/keys/hashes")).get("keys")
        try:
            found = from_tree(told, list[_Key])
        except msgspec.ValidationError:
            raise Transient("The loop's list of keys cannot be read.") from None
        return {
            bytes.fromhex(key.sha256): Holder.of(key.name, key.key_id, many=key.trusted)
            for key in found
        }

    async def _ask(self, method: str, path: str, wish: Json | None = None) -> Json:
        status, body = await self._exchanged(method, path, wish)
        if not 200 <= status < 300:
            raise error_of(status, body)
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            told = msgspec.json.decode(body)
            if isinstance(told, dict):
                return told
        raise Transient("What answers at the loop's address does not speak as the loop does.")

    async def _exchanged(self, method: str, path: str, wish: Json | None) -> tuple[int, bytes]:
        secure = self._url.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        line = kind(self._url.hostname or "", self._url.port, timeout=self._seconds)
        try:
            async with asyncio.timeout(self._seconds):
                return await asyncio.to_thread(self._exchange, line, method, path, wish)
        except TimeoutError:
            raise Transient(f"The loop did not answer in {self._seconds:g} s.") from None
        except _LOST as error:
            raise Transient(f"The loop is not reachable: {type(error).__name__}.") from None
        finally:
            _hang_up(line)

    def _exchange(
        self, line: http.client.HTTPConnection, method: str, path: str, wish: Json | None
    ) -> tuple[int, bytes]:
        body = None if wish is None else msgspec.json.encode(wish)
        headers = {
            "Authorization": f"Bearer {self._key}",
            "Accept": "application/json",
            "User-Agent": f"upswing-gateway/{__version__}",
        }
        if body is not None:
            headers["Content-Type"] = "application/json"
        line.request(method, self._url.path + path, body, headers)
        answer = line.getresponse()
        content = answer.read(_MOST + 1)
        if len(content) > _MOST:
            raise Transient("The loop's answer is too large.")
        return answer.status, content


def error_of(status: int, body: bytes) -> UpswingError:
    """What an answer that is no success means to whoever asked; the table above.

    >>> error_of(404, b'{"error": "not_found", "detail": "No model m."}')
    Misuse('No model m.')
    >>> error_of(422, b'{"error": "schema", "detail": "Not so."}').reason
    <Reason.SCHEMA: 'schema'>
    """
    word, sentence = _said(body)
    if status in {401, 403} and word != Reason.NOT_YOURS:
        log.error(
            "the loop refuses this gateway's key: set AGENTGYM_RL_API_KEY",
            extra={"action": "desk_denied"},
        )
        return Transient("The loop refuses the gateway's key, so nothing can be changed here.")
    if status < 400 or status >= 500 or status in _LATER:
        return Transient(sentence or f"The loop answers {status}.")
    if status == 404:
        return Misuse(sentence or "The loop knows no such model.")
    reason = Reason(word) if word in set(Reason) else _REASONS.get(status, Reason.SCHEMA)
    return Rejected(reason, sentence or f"The loop answers {status}.")


def _said(body: bytes) -> tuple[str, str]:
    """The word and the sentence of the loop's error."""
    try:
        told = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "", ""
    if not isinstance(told, dict):
        return "", ""
    return str(told.get("error", "")), str(told.get("detail", ""))[:1000]


def _hang_up(line: http.client.HTTPConnection) -> None:
    """Ends the exchange also for the thread that may still be reading."""
    if line.sock is not None:
        with contextlib.suppress(OSError):
            line.sock.shutdown(socket.SHUT_RDWR)
    line.close()
