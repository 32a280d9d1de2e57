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

from upswing.adapters.exchange import exchanged, sentence, v1
from upswing.backend_keys import PREFIX
from upswing.contracts.backend import Abilities
from upswing.contracts.typed import from_json
from upswing.errors import Denied, Reason, Rejected, Transient

log = logging.getLogger(__name__)
SECONDS = 30.0
"""For one request of a probe."""
KEPT = timedelta(days=7)
"""Then it is asked anew: servers are updated."""
_LATER = frozenset({408, 425, 429, 502, 503, 504})
_NO_LIST = frozenset({400, 404, 405, 410, 415, 422, 500, 501})
_OPENAI = "api.openai.com"
_ASKED = [{"role": "user", "content": "Say hi."}]
_PLAINEST: tuple[dict[str, Any], ...] = ({"max_tokens": 1}, {"max_completion_tokens": 16}, {})
_OPTIONAL: Mapping[str, Any] = {
    "temperature": 0, "top_p": 0.9, "seed": 1, "metadata": {"session_id": "probe"},
}  # fmt: skip
"""What validation sends, and what agents say to the gateway."""
_NOTHING = {"type": "object", "properties": {}}
_TOOLS = [{"type": "function", "function": {"name": "look", "description": "Look.", "parameters": _NOTHING}}]  # fmt: skip


class _Listed(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Listed]


class Remembered(msgspec.Struct, frozen=True):
    """What a probe found, and when."""

    abilities: Abilities
    probed: datetime


class Probes:
    """The abilities of servers; the file has no key in it."""

    def __init__(
        self, file: Path, key_of: Callable[[str], str], *, clock: Callable[[], datetime],
        seconds: float = SECONDS,
    ) -> None:  # fmt: skip
        self._file, self._key_of, self._clock, self._seconds = file, key_of, clock, seconds
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._known = _read(file)

    def known(self, url: str, name: str) -> Abilities | None:
        """What is remembered of a model there."""
        found = self._known.get(_place(url, name))
        return found.abilities if found else None

    async def abilities(self, url: str, name: str, *, anew: bool = False) -> Abilities:
        """What a model's server can do; asked once, and again after a week or when somebody says so."""
        place = _place(url, name)
        async with self._turns[place]:
            found = self._known.get(place)
            old = found is None or self._clock() - found.probed >= KEPT
            if found is not None and not old and not anew:
                return found.abilities
            try:
                fresh = await probe(v1(url), name, self._key_of(url), self._seconds)
            except Transient:
                if found is None or anew:
                    raise
                return found.abilities
            await self._keep(place, Remembered(fresh, self._clock()))
            log.info("%s can: %s", place, fresh, extra={"action": "probed"})
            return fresh

    async def _keep(self, place: str, found: Remembered) -> None:
        self._known[place] = found
        await asyncio.to_thread(_write, self._file, dict(self._known))


async def listed(url: str, key: str, seconds: float = SECONDS) -> set[str] | None:
    """The models that a server lists; None: it has no list that can be read."""
    status, body = await exchanged("GET", f"{url}/models", None, key, seconds)
    if status in _NO_LIST:
        return None
    _check(url, status)
    try:
        return {each.id for each in from_json(body, _Models).data}
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


async def probe(url: str, name: str, key: str, seconds: float = SECONDS) -> Abilities:
    """The table; `url` up to and with `/v1`."""
    return await _Probe(url, name, key, seconds).run()


class _Probe:
    def __init__(self, url: str, name: str, key: str, seconds: float) -> None:
        self._url, self._name, self._key, self._seconds = url, name, key, seconds
        self._plain: dict[str, Any] = {}

    async def run(self) -> Abilities:
        names = await listed(self._url, self._key, self._seconds)
        if names is not None and self._name not in names:
            raise Rejected(Reason.SCHEMA, f"The server at {self._url} does not serve {self._name}.")
        refused = await self._answers()
        refused += await self._optional()
        spoken = await self._choice({"logprobs": True})
        tools = await self._choice({"tools": _TOOLS}) is not None
        minds, token_ids = await self._token_ids()
        strict = minds or bool(refused) or spoken is None
        return Abilities(
            listed=names is not None, logprobs=_has_logprobs(spoken), token_ids=token_ids,
            tools=tools, adapters=await self._adapters(), strict=strict, refuses=tuple(refused),
        )  # fmt: skip

    async def _answers(self) -> list[str]:
        """Find the fewest fields that it takes; which of the others it refuses."""
        refused: list[str] = []
        status, body = 0, b""
        for fields in _PLAINEST:
            self._plain = fields
            status, body = await self._ask({})
            if 200 <= status < 300:
                _choice(self._url, body)
                return refused
            refused += fields
        if status >= 500:
            raise Transient(f"The server at {self._url} answers {status}.")
        told = f"The server at {self._url} refuses {self._name} ({status}): {sentence(body)}"
        raise Rejected(Reason.SCHEMA, told)

    async def _optional(self) -> list[str]:
        if await self._choice(_OPTIONAL) is not None:
            return []
        single = [(field, await self._choice({field: value})) for field, value in _OPTIONAL.items()]
        return [field for field, choice in single if choice is None]

    async def _token_ids(self) -> tuple[bool, bool]:
        """Whether it minds a field that OpenAI's interface does not have, and whether it gives them."""
        if urlsplit(self._url).hostname == _OPENAI:
            return True, False
        status, body = await self._ask({"return_token_ids": True})
        if not 200 <= status < 300:
            return True, False
        return False, _has_ids(_choice(self._url, body).get("token_ids"))

    async def _adapters(self) -> bool:
        path = f"{self._url}/load_lora_adapter"
        status, _ = await exchanged("GET", path, None, self._key, self._seconds)
        return status == 405

    async def _choice(self, fields: Mapping[str, Any]) -> dict[str, Any] | None:
        """The answer to a request with these fields; None when it is refused because of them."""
        status, body = await self._ask(fields)
        return _choice(self._url, body) if 200 <= status < 300 else None

    async def _ask(self, fields: Mapping[str, Any]) -> tuple[int, bytes]:
        asked = {"model": self._name, "messages": _ASKED, **self._plain, **fields}
        path = f"{self._url}/chat/completions"
        status, body = await exchanged("POST", path, asked, self._key, self._seconds)
        if not 200 <= status < 300:
            _check(self._url, status)
        return status, body


def _check(url: str, status: int) -> None:
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
    if status in _LATER:
        raise Transient(f"The server at {url} answers {status}.")


def _choice(url: str, body: bytes) -> dict[str, Any]:
    try:
        choice = msgspec.json.decode(body)["choices"][0]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, LookupError, TypeError):
        choice = None
    if not isinstance(choice, dict) or not isinstance(choice.get("message"), dict):
        raise Transient(f"What answers at {url} is no model server.")
    return choice


def _has_logprobs(choice: Mapping[str, Any] | None) -> bool:
    told = (choice or {}).get("logprobs")
    content = told.get("content") if isinstance(told, dict) else None
    return isinstance(content, list) and bool(content)


def _has_ids(told: object) -> bool:
    return isinstance(told, list) and bool(told) and all(type(each) is int for each in told)


def _place(url: str, name: str) -> str:
    return f"{v1(url)}#{name}"


def _read(file: Path) -> dict[str, Remembered]:
    """What was kept; a file that is not there or damaged means that servers are asked anew."""
    try:
        return from_json(file.read_bytes(), dict[str, Remembered])
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}


def _write(file: Path, known: Mapping[str, Remembered]) -> None:
    fresh = file.with_suffix(".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as target:
        target.write(msgspec.json.encode(known))
        target.flush()
        os.fsync(descriptor)
    fresh.replace(file)
