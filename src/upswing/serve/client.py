"""How does a model come to be served? Its checkpoint is verified, and its server told to load it.

| a model whose path is                  | is served                                                      |
|----------------------------------------|----------------------------------------------------------------|
| none: the base                         | by our server, under its own name                              |
| below MODEL_STORAGE_PATH               | by our server, from a verified copy on this machine            |
| a folder, or a checkpoint at `s3://…`  | the same                                                       |
| `http://…` or `https://…`              | there, under its id, or under what follows a `#`; its server   |
|                                        | is probed once, and asked for what it has                      |

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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from upswing.contracts.backend import UNASKED, Abilities, is_remote, parse_remote_path
from upswing.contracts.traffic import Model
from upswing.contracts.typed import from_json
from upswing.errors import Denied, Misuse, Reason, Rejected, Transient
from upswing.openai.errors import error_message
from upswing.records import ModelRow
from upswing.serve.http_client import send_request, with_v1
from upswing.serve.probing import ServerProbes, list_models
from upswing.train.checkpoints.checking import parse_manifest, verify
from upswing.train.checkpoints.manifest import MANIFEST
from upswing.train.checkpoints.storage import CheckpointStore

_REFUSED = {400, 404, 409, 413, 422}
_LIST_SECONDS = 5.0
_LOAD_SECONDS = 300.0
_PROBE_SECONDS = 8.0
"""For a look at a server while somebody waits who registers a model there."""
TOKEN_FIELDS: Mapping[str, Any] = {"return_token_ids": True, "logprobs": True}
"""What a request to our own server asks for besides, so that training gets exact tokens."""


class _Listed(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Listed]


@dataclass(frozen=True, slots=True)
class ServerConnection:
    """Our model server."""

    url: Callable[[], str]
    """Up to and with `/v1`, or without; it may change when the server starts anew."""
    key: str | None = field(default=None, repr=False)
    extra: Mapping[str, Any] | None = field(default_factory=lambda: TOKEN_FIELDS)
    """Fields that the gateway adds to requests for its models; None: those that a probe finds."""
    timeout_seconds: float = 60.0
    """Until the first byte of an answer."""
    platform: str = "upswing"
    foreign: bool = False
    """It is the user's own: nobody knows what it can do before it is probed."""


class ModelServingClient:
    """Models at our server, and at others' URLs."""

    def __init__(
        self,
        server: ServerConnection,
        objects: CheckpointStore,
        copies: Path,
        probes: ServerProbes | None = None,
        key_of: Callable[[str], str] = lambda _: "",
    ) -> None:
        """`copies` holds checkpoints that are kept elsewhere, `key_of` knows the key of a server's URL.

        Without `probes`, servers are asked as if they were strict.
        """
        self._server, self._objects, self._copies = server, objects, copies
        self._probes, self._key_of = probes, key_of
        self._unlisted: set[tuple[str, str]] = set()
        """URL and name of models whose server has no list, or must not be asked for it."""

    @property
    def platform(self) -> str:
        return self._server.platform

    async def ensure(self, model: ModelRow | str) -> Model:
        """Where it answers from now on."""
        if isinstance(model, ModelRow) and is_remote(model.path):
            return await self._remote_model(model)
        name = model if isinstance(model, str) else model.model_id
        url = with_v1(self._server.url())
        if not isinstance(model, str):
            await self._ensure_loaded(url, model)
        elif not self._server.foreign and name not in await self._list_models(url):
            raise Transient(f"The server at {url} does not serve {name}.")
        if self._server.foreign:
            return await self._model_at_own_server(url, name)
        seconds, extra = self._server.timeout_seconds, dict(self._server.extra or {})
        return Model(name, url, name, seconds, extra=extra)

    async def check(self, model_id: str, path: str) -> dict[str, Any]:
        """Look at the server that a path leads to; what it can do, or `Rejected` when it never will.

        A server that does not answer just now is asked again when the model is needed.
        """
        if not is_remote(path):
            return {}
        remote = parse_remote_path(path)
        name = remote.name or model_id
        result: dict[str, Any] = {"backend": remote.url, "name": name, "probed": False}
        if not remote.probe or self._probes is None:
            return result
        try:
            async with asyncio.timeout(_PROBE_SECONDS):
                found = await self._probes.abilities(remote.url, name, force=True)
        except Denied as error:
            raise Rejected(Reason.SCHEMA, str(error)) from None
        except TimeoutError:
            return result | {
                "detail": f"It did not answer in {_PROBE_SECONDS:g} s: it is asked again."
            }
        except Transient as error:
            return result | {"detail": str(error)}
        return result | {"probed": True, "abilities": msgspec.to_builtins(found)}

    def abilities(self, url: str, name: str) -> Abilities | None:
        """What is known of a model's server, where it is not ours."""
        return self._probes.cached(url, name) if self._probes else None

    async def alive(self, model: Model) -> bool:
        """Does its server list it, right now? Where there is no list: does anything answer?"""
        url = with_v1(model.backend)
        try:
            if not self._has_list(url, model.name):
                status, _ = await send_request(
                    "GET", f"{url}/models", None, self._key_for(url), _LIST_SECONDS
                )
                return status < 500
            return model.name in await self._list_models(url)
        except (Transient, Rejected):
            return False

    async def release(self, model_id: str) -> None:
        """Let our server forget it; what it does not know it has forgotten."""
        url = with_v1(self._server.url())
        if model_id in await self._list_models(url):
            await self._post_request(
                f"{url}/unload_lora_adapter", {"lora_name": model_id}, model_id
            )

    async def _remote_model(self, row: ModelRow) -> Model:
        remote = parse_remote_path(row.path)
        url, name = with_v1(remote.url), remote.name or row.model_id
        found = await self._checked_abilities(url, name) if remote.probe else UNASKED
        return self._to_model(row.model_id, url, name, found)

    async def _model_at_own_server(self, url: str, name: str) -> Model:
        """The base, or an adapter of it, at the user's own server, which may still be loading it."""
        try:
            found = self._to_model(name, url, name, await self._checked_abilities(url, name))
        except Rejected as error:
            raise Transient(str(error)) from None
        configured = self._server.extra
        return found if configured is None else replace(found, extra=dict(configured))

    async def _checked_abilities(self, url: str, name: str) -> Abilities:
        """What its server can do; `Rejected` when it lists others, and not this one."""
        try:
            found = await self._probes.abilities(url, name) if self._probes else UNASKED
            if found.listed or self._probes is None:
                names = await list_models(url, self._key_for(url), _LIST_SECONDS)
                if names is not None and name not in names:
                    raise Rejected(Reason.SCHEMA, f"The server at {url} does not serve {name}.")
        except Denied as error:
            raise Transient(str(error)) from None
        return found

    def _to_model(self, model_id: str, url: str, name: str, found: Abilities) -> Model:
        if not found.listed:
            self._unlisted.add((url, name))
        return Model(
            model_id,
            url,
            name,
            self._server.timeout_seconds,
            extra=found.extra,
            strict=found.strict,
            shapes=found.shapes,
        )

    def _has_list(self, url: str, name: str) -> bool:
        known = self.abilities(url, name)
        return known.listed if known else (url, name) not in self._unlisted

    async def _ensure_loaded(self, url: str, row: ModelRow) -> None:
        name = row.model_id
        if name in await self._list_models(url):
            return
        folder = await self._verified_folder(row.path, row.seal)
        body = {"lora_name": name, "lora_path": str(folder.absolute())}
        try:
            await self._post_request(f"{url}/load_lora_adapter", body, name)
        except Rejected:  # somebody else may have loaded it meanwhile
            if name not in await self._list_models(url):
                raise

    async def _verified_folder(self, path: str, seal: str) -> Path:
        """The checkpoint on this machine, verified byte by byte, and the one that training made."""
        folder = await self._fetch_checkpoint(path)
        if seal and parse_manifest((folder / MANIFEST).read_bytes()).seal != seal:
            message = f"{path} is whole, but it is not the checkpoint that training made."
            raise Rejected(Reason.SCHEMA, f"{message} Put that one back, or train again.")
        return folder

    async def _fetch_checkpoint(self, path: str) -> Path:
        parts = urlsplit(path)
        try:
            if parts.scheme in {"", "file"} and not self._is_in_storage(path):
                folder = Path(parts.path)
                await asyncio.to_thread(verify, folder)
                return folder
            if self._is_in_storage(path):
                return await self._objects.fetch(path, self._copies)
            storage = CheckpointStore(f"{parts.scheme}://{parts.netloc}")
            return await storage.fetch(parts.path.strip("/"), self._copies / parts.netloc)
        except Misuse as error:
            raise Rejected(Reason.SCHEMA, str(error)) from None
        except OSError as error:
            raise Transient(f"{path} cannot be read or copied: {error}.") from error

    def _is_in_storage(self, path: str) -> bool:
        """Below MODEL_STORAGE_PATH, or named as if from there."""
        plain = path.removeprefix("file://")
        return plain.startswith(self._objects.url("")) or ("://" not in path and plain[:1] != "/")

    # ── questions ────────────────────────────────────────────────────────────────────────────

    async def _list_models(self, url: str) -> set[str]:
        status, body = await send_request(
            "GET", f"{url}/models", None, self._key_for(url), _LIST_SECONDS
        )
        if status != 200:
            raise Transient(f"The server at {url} answers {status}.")
        try:
            return {each.id for each in from_json(body, _Models).data}
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise Transient(f"What answers at {url} is no model server.") from None

    def _key_for(self, url: str) -> str:
        """No server gets another one's."""
        ours = self._server.key if url == with_v1(self._server.url()) else None
        return ours or self._key_of(url)

    async def _post_request(self, url: str, request: Mapping[str, str], name: str) -> None:
        status, body = await send_request(
            "POST", url, request, self._key_for(with_v1(self._server.url())), _LOAD_SECONDS
        )
        if 200 <= status < 300:
            return
        message = error_message(body)
        if status in _REFUSED:
            raise Rejected(Reason.SCHEMA, f"The model server refuses {name}: {message}")
        raise Transient(f"The model server answers {status} for {name}: {message}")
