"""How does a model come to be served? Its checkpoint is verified, and its server told to load it.

| a model whose path is                  | is served                                                      |
|----------------------------------------|----------------------------------------------------------------|
| none: the base                         | by our server, under its own name                              |
| below MODEL_STORAGE_PATH               | by our server, from a verified copy on this machine            |
| a folder, or a checkpoint at `s3://…`  | the same                                                       |
| `http://…` or `https://…`              | there, under its id, or under what follows a `#`               |

Our server is asked as vLLM is: `/v1/load_lora_adapter`, `/v1/unload_lora_adapter`, `/v1/models`.

| it answers                             | becomes                                                        |
|----------------------------------------|----------------------------------------------------------------|
| 2xx                                    | done                                                           |
| 400, 404, 409, 413, 422                | `Rejected`: this checkpoint cannot be served here              |
| 401, 403                               | `Transient`: the key has to be mended                          |
| anything else, nothing, or too late    | `Transient`                                                    |
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from upswing import __version__
from upswing.adapters.checkpoints.checking import verify
from upswing.adapters.objects import Objects
from upswing.contracts.traffic import Model
from upswing.contracts.typed import from_json
from upswing.errors import Misuse, Reason, Rejected, Transient
from upswing.ports import ModelRow

_LIMIT = 4_000_000
_REFUSED = {400, 404, 409, 413, 422}
_LOOK_SECONDS = 5.0
_LOAD_SECONDS = 300.0
TOKENS: Mapping[str, Any] = {"return_token_ids": True, "logprobs": True}
"""What a request to our own server asks for besides, so that training gets exact tokens."""


class _Listed(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Listed]


class _Error(msgspec.Struct):
    message: str = ""


class _Problem(msgspec.Struct):
    error: _Error | str | None = None
    detail: Any = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Server:
    """Our model server."""

    url: Callable[[], str]
    """Up to and with `/v1`, or without; it may change when the server starts anew."""
    key: str | None = field(default=None, repr=False)
    extra: Mapping[str, Any] = field(default_factory=lambda: TOKENS)
    """Fields that the gateway adds to requests for its models."""
    timeout_seconds: float = 60.0
    """Until the first byte of an answer."""
    platform: str = "upswing"


class HttpServing:
    """Models at our server, and at others' URLs."""

    def __init__(self, server: Server, objects: Objects, copies: Path) -> None:
        """`copies` holds checkpoints that are kept elsewhere."""
        self._server, self._objects, self._copies = server, objects, copies

    @property
    def platform(self) -> str:
        return self._server.platform

    async def ensure(self, model: ModelRow | str) -> Model:
        """Where it answers from now on."""
        if isinstance(model, ModelRow) and is_url(model.path):
            return await self._elsewhere(model)
        name = model if isinstance(model, str) else model.model_id
        url = _v1(self._server.url())
        if name not in await self._listed(url):
            if isinstance(model, str):
                raise Transient(f"The server at {url} does not serve {name}.")
            folder = await self._folder(model.path)
            told = {"lora_name": name, "lora_path": str(folder.absolute())}
            try:
                await self._ask(f"{url}/load_lora_adapter", told, name)
            except Rejected:  # somebody else may have loaded it meanwhile
                if name not in await self._listed(url):
                    raise
        return Model(name, url, name, self._server.timeout_seconds, extra=dict(self._server.extra))

    async def alive(self, model: Model) -> bool:
        """Does its server list it, right now?"""
        try:
            return model.name in await self._listed(_v1(model.backend))
        except (Transient, Rejected):
            return False

    async def release(self, model_id: str) -> None:
        """Let our server forget it; what it does not know it has forgotten."""
        url = _v1(self._server.url())
        if model_id in await self._listed(url):
            await self._ask(f"{url}/unload_lora_adapter", {"lora_name": model_id}, model_id)

    async def _elsewhere(self, row: ModelRow) -> Model:
        address, _, name = row.path.partition("#")
        url, name = _v1(address), name or row.model_id
        if name not in await self._listed(url):
            raise Rejected(Reason.SCHEMA, f"The server at {url} does not serve {name}.")
        return Model(row.model_id, url, name, self._server.timeout_seconds)

    async def _folder(self, path: str) -> Path:
        """The checkpoint on this machine, verified byte by byte."""
        parts = urlsplit(path)
        try:
            if parts.scheme in {"", "file"} and not self._ours(path):
                folder = Path(parts.path)
                await asyncio.to_thread(verify, folder)
                return folder
            if self._ours(path):
                return await self._objects.fetch(path, self._copies)
            place = Objects(f"{parts.scheme}://{parts.netloc}")
            return await place.fetch(parts.path.strip("/"), self._copies / parts.netloc)
        except Misuse as error:
            raise Rejected(Reason.SCHEMA, str(error)) from None
        except OSError as error:
            raise Transient(f"{path} cannot be read or copied: {error}.") from error

    def _ours(self, path: str) -> bool:
        """Below MODEL_STORAGE_PATH, or named as if from there."""
        plain = path.removeprefix("file://")
        return plain.startswith(self._objects.url("")) or ("://" not in path and plain[:1] != "/")

    # ── questions ────────────────────────────────────────────────────────────────────────────

    async def _listed(self, url: str) -> set[str]:
        key = self._server.key if url == _v1(self._server.url()) else None
        status, body = await _exchanged("GET", f"{url}/models", None, key, _LOOK_SECONDS)
        if status != 200:
            raise Transient(f"The server at {url} answers {status}.")
        try:
            return {each.id for each in from_json(body, _Models).data}
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise Transient(f"What answers at {url} is no model server.") from None

    async def _ask(self, url: str, told: Mapping[str, str], name: str) -> None:
        status, body = await _exchanged("POST", url, told, self._server.key, _LOAD_SECONDS)
        if 200 <= status < 300:
            return
        said = _sentence(body)
        if status in _REFUSED:
            raise Rejected(Reason.SCHEMA, f"The model server refuses {name}: {said}")
        raise Transient(f"The model server answers {status} for {name}: {said}")


def is_url(path: str) -> bool:
    return path.startswith(("http://", "https://"))


def _v1(url: str) -> str:
    """An address without a path means `/v1`.

    >>> _v1("http://127.0.0.1:8000"), _v1("http://h/openai/v1/")
    ('http://127.0.0.1:8000/v1', 'http://h/openai/v1')
    """
    url = url.rstrip("/")
    return url if urlsplit(url).path else f"{url}/v1"


def _sentence(body: bytes) -> str:
    """What an error answer says, in any of the usual shapes."""
    with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
        told = from_json(body, _Problem)
        error = told.error.message if isinstance(told.error, _Error) else told.error
        found = error or told.message or told.detail
        if isinstance(found, str):
            return found[:500]
    return "it does not say why."


async def _exchanged(
    method: str, url: str, told: Mapping[str, str] | None, key: str | None, seconds: float
) -> tuple[int, bytes]:
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise Rejected(Reason.SCHEMA, f"{url} is no address such as http://127.0.0.1:8000/v1.")
    headers = {"User-Agent": f"upswing/{__version__}", "Accept": "application/json"}
    headers |= {"Authorization": f"Bearer {key}"} if key else {}
    headers |= {"Content-Type": "application/json"} if told is not None else {}
    body = msgspec.json.encode(told) if told is not None else None

    def exchange() -> tuple[int, bytes]:
        line.request(method, parts.path, body, headers)
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
