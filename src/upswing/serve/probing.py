"""What can a server do that is not ours? It is asked once, with a few one-token requests, and remembered.

| question          | request                                           | yes                              |
|-------------------|---------------------------------------------------|----------------------------------|
| has it the model? | `GET /models`, where there is such a list         | it is listed                     |
| does it answer?   | the fewest fields that it takes                   | a chat completion                |
| optional fields   | all that we use, then one by one                  | 2xx                              |
| logprobs          | `logprobs`                                        | they come                        |
| tools             | `tools`                                           | 2xx                              |
| token ids         | `return_token_ids`, unless it is OpenAI's own     | they come                        |
| strict?           | all of these                                      | it refuses one, tools aside      |
| counted streams   | `stream_options`                                  | 2xx                              |
| other shapes      | `POST /responses`, `POST /messages`               | an answer in that shape; all else is a no |
| adapters          | `GET /load_lora_adapter`                          | 405: the path is there           |

| it answers                             | becomes                                                     |
|----------------------------------------|-------------------------------------------------------------|
| 3xx                                    | `Rejected`: no redirect is followed                         |
| 401, 403                               | `Denied`: it wants a key                                    |
| a list without the model               | `Rejected`                                                  |
| 400, 404, 422 to the plainest request  | `Rejected`, with what it says                               |
| 408, 425, 429, 502 to 504, no or half an answer, something else than a completion | `Transient`      |

An answer that is no clear yes or no is not remembered: the server is asked again the next time.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from upswing.contracts.backend import Abilities
from upswing.contracts.backend_keys import PREFIX
from upswing.contracts.typed import from_json
from upswing.errors import Denied, Reason, Rejected, Transient
from upswing.openai.errors import error_message
from upswing.serve.http_client import send_request, with_v1

log = logging.getLogger(__name__)
PROBE_SECONDS = 30.0
"""For one request of a probe."""
PROBE_LIFETIME = timedelta(days=7)
"""Then it is asked anew: servers are updated."""
_RETRY_STATUSES = frozenset({408, 425, 429, 502, 503, 504})
_NO_LIST = frozenset({400, 404, 405, 410, 415, 422, 500, 501})
_OPENAI = "api.openai.com"
_PROBE_MESSAGES = [{"role": "user", "content": "Say hi."}]
_MINIMAL_FIELDS: tuple[dict[str, Any], ...] = ({"max_tokens": 1}, {"max_completion_tokens": 16}, {})
_OPTIONAL: Mapping[str, Any] = {
    "temperature": 0,
    "top_p": 0.9,
    "seed": 1,
    "metadata": {"session_id": "probe"},
}
"""What validation sends, and what agents say to the gateway."""
_COUNTED = {"stream": True, "stream_options": {"include_usage": True}}
_SHAPES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "responses": ("output", {"input": "Say hi.", "max_output_tokens": 16, "store": False}),
    "messages": ("content", {"messages": _PROBE_MESSAGES, "max_tokens": 1}),
}
"""Shape → the field of an answer, and what is asked."""
_EMPTY_SCHEMA = {"type": "object", "properties": {}}
_TOOLS = [
    {
        "type": "function",
        "function": {"name": "look", "description": "Look.", "parameters": _EMPTY_SCHEMA},
    }
]


class _Listed(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Listed]


class ProbeRecord(msgspec.Struct, frozen=True):
    """What a probe found, and when."""

    abilities: Abilities
    probed: datetime


class ServerProbes:
    """The abilities of servers; the file has no key in it."""

    def __init__(
        self,
        file: Path,
        key_of: Callable[[str], str],
        *,
        clock: Callable[[], datetime],
        seconds: float = PROBE_SECONDS,
    ) -> None:
        self._file, self._key_of, self._clock, self._seconds = file, key_of, clock, seconds
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._known = _read_cache(file)

    def cached(self, url: str, name: str) -> Abilities | None:
        """What is remembered of a model there."""
        found = self._known.get(_cache_key(url, name))
        return found.abilities if found else None

    async def abilities(self, url: str, name: str, *, force: bool = False) -> Abilities:
        """What a model's server can do; asked once, and again after a week or when somebody says so."""
        key = _cache_key(url, name)
        async with self._locks[key]:
            found = self._known.get(key)
            old = found is None or self._clock() - found.probed >= PROBE_LIFETIME
            if found is not None and not old and not force:
                return found.abilities
            try:
                fresh = await probe(with_v1(url), name, self._key_of(url), self._seconds)
            except Transient:
                if found is None or force:
                    raise
                return found.abilities
            await self._store(key, ProbeRecord(fresh, self._clock()))
            log.info("%s can: %s", key, fresh, extra={"action": "probed"})
            return fresh

    async def _store(self, key: str, record: ProbeRecord) -> None:
        self._known[key] = record
        await asyncio.to_thread(_write_cache, self._file, dict(self._known))


async def list_models(url: str, key: str, seconds: float = PROBE_SECONDS) -> set[str] | None:
    """The models that a server lists; None: it has no list that can be read."""
    status, body = await send_request("GET", f"{url}/models", None, key, seconds)
    if status in _NO_LIST:
        return None
    _raise_for_status(url, status)
    try:
        return {each.id for each in from_json(body, _Models).data}
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


async def probe(url: str, name: str, key: str, seconds: float = PROBE_SECONDS) -> Abilities:
    """The table; `url` up to and with `/v1`."""
    return await _Probe(url, name, key, seconds).run()


class _Probe:
    def __init__(self, url: str, name: str, key: str, seconds: float) -> None:
        self._url, self._name, self._key, self._seconds = url, name, key, seconds
        self._minimal_fields: dict[str, Any] = {}

    async def run(self) -> Abilities:
        names = await list_models(self._url, self._key, self._seconds)
        if names is not None and self._name not in names:
            raise Rejected(Reason.SCHEMA, f"The server at {self._url} does not serve {self._name}.")
        refused = await self._probe_minimal()
        refused += await self._probe_optional()
        with_logprobs = await self._try_fields({"logprobs": True})
        tools = await self._try_fields({"tools": _TOOLS}) is not None
        rejects_unknown, token_ids = await self._probe_token_ids()
        strict = rejects_unknown or bool(refused) or with_logprobs is None
        status, _ = await self._send_request(_COUNTED)
        refused += [] if 200 <= status < 300 else ["stream_options"]
        return Abilities(
            listed=names is not None,
            logprobs=_has_logprobs(with_logprobs),
            token_ids=token_ids,
            tools=tools,
            adapters=await self._probe_adapters(),
            strict=strict,
            refuses=tuple(refused),
            shapes=tuple([shape for shape in _SHAPES if await self._probe_shape(shape)]),
        )

    async def _probe_minimal(self) -> list[str]:
        """Find the fewest fields that it takes; which of the others it refuses."""
        refused: list[str] = []
        status, body = 0, b""
        for fields in _MINIMAL_FIELDS:
            self._minimal_fields = fields
            status, body = await self._send_request({})
            if 200 <= status < 300:
                _first_choice(self._url, body)
                return refused
            refused += fields
        if status >= 500:
            raise Transient(f"The server at {self._url} answers {status}.")
        message = (
            f"The server at {self._url} refuses {self._name} ({status}): {error_message(body)}"
        )
        raise Rejected(Reason.SCHEMA, message)

    async def _probe_optional(self) -> list[str]:
        if await self._try_fields(_OPTIONAL) is not None:
            return []
        single = [
            (field, await self._try_fields({field: value})) for field, value in _OPTIONAL.items()
        ]
        return [field for field, choice in single if choice is None]

    async def _probe_token_ids(self) -> tuple[bool, bool]:
        """Whether it minds a field that OpenAI's interface does not have, and whether it gives them."""
        if urlsplit(self._url).hostname == _OPENAI:
            return True, False
        status, body = await self._send_request({"return_token_ids": True})
        if not 200 <= status < 300:
            return True, False
        return False, _has_token_ids(_first_choice(self._url, body).get("token_ids"))

    async def _probe_shape(self, shape: str) -> bool:
        """Does it answer a request of this shape in that shape?

        It has answered chat by now, into which every shape can be translated: anything but a clear yes is a no.
        """
        known_by, fields = _SHAPES[shape]
        request = {"model": self._name, **fields}
        path, headers = f"{self._url}/{shape}", {}
        if shape == "messages":
            headers = {"anthropic-version": "2023-06-01", "x-api-key": self._key}
        try:
            status, body = await send_request(
                "POST", path, request, self._key, self._seconds, headers
            )
        except Transient:
            return False
        return 200 <= status < 300 and _is_answer(body, known_by)

    async def _probe_adapters(self) -> bool:
        path = f"{self._url}/load_lora_adapter"
        status, _ = await send_request("GET", path, None, self._key, self._seconds)
        return status == 405

    async def _try_fields(self, fields: Mapping[str, Any]) -> dict[str, Any] | None:
        """The answer to a request with these fields; None when it is refused because of them."""
        status, body = await self._send_request(fields)
        return _first_choice(self._url, body) if 200 <= status < 300 else None

    async def _send_request(self, fields: Mapping[str, Any]) -> tuple[int, bytes]:
        request = {
            "model": self._name,
            "messages": _PROBE_MESSAGES,
            **self._minimal_fields,
            **fields,
        }
        path = f"{self._url}/chat/completions"
        status, body = await send_request("POST", path, request, self._key, self._seconds)
        if not 200 <= status < 300:
            _raise_for_status(self._url, status)
        return status, body


def _raise_for_status(url: str, status: int) -> None:
    """Raise where a status says something of the server and not of what was asked."""
    if 300 <= status < 400:
        raise Rejected(
            Reason.SCHEMA,
            f"The server at {url} answers {status}, and no redirect is followed: name the address that it leads to.",
        )
    if status in {401, 403}:
        raise Denied(
            f"The server at {url} answers {status}: set {PREFIX}NAME={url}=<its key>, and start again."
        )
    if status in _RETRY_STATUSES:
        raise Transient(f"The server at {url} answers {status}.")


def _first_choice(url: str, body: bytes) -> dict[str, Any]:
    try:
        choice = msgspec.json.decode(body)["choices"][0]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, LookupError, TypeError):
        choice = None
    if not isinstance(choice, dict) or not isinstance(choice.get("message"), dict):
        raise Transient(f"What answers at {url} is no model server.")
    return choice


def _is_answer(body: bytes, known_by: str) -> bool:
    """Is this an answer whose words are in a list of this name?

    >>> _is_answer(b'{"output": []}', "output"), _is_answer(b'{"detail": "No."}', "output"), _is_answer(b"[]", "output")
    (True, False, False)
    """
    try:
        tree = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(tree, dict) and isinstance(tree.get(known_by), list)


def _has_logprobs(choice: Mapping[str, Any] | None) -> bool:
    logprobs = (choice or {}).get("logprobs")
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    return isinstance(content, list) and bool(content)


def _has_token_ids(token_ids: object) -> bool:
    return (
        isinstance(token_ids, list)
        and bool(token_ids)
        and all(type(each) is int for each in token_ids)
    )


def _cache_key(url: str, name: str) -> str:
    return f"{with_v1(url)}#{name}"


def _read_cache(file: Path) -> dict[str, ProbeRecord]:
    """What was kept; a file that is not there or damaged means that servers are asked anew."""
    try:
        return from_json(file.read_bytes(), dict[str, ProbeRecord])
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}


def _write_cache(file: Path, known: Mapping[str, ProbeRecord]) -> None:
    fresh = file.with_suffix(".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as target:
        target.write(msgspec.json.encode(known))
        target.flush()
        os.fsync(descriptor)
    fresh.replace(file)
