"""An adapter is to be served, or no more: may this caller say so, and what comes of it?

As vLLM has it: `POST /v1/load_lora_adapter {"lora_name", "lora_path"}` and
`POST /v1/unload_lora_adapter {"lora_name"}`. A path is taken only from somebody with the key, or,
where there is none, from this machine; on a public address without a key these doors are closed.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from upswing.contracts.typed import from_json
from upswing.errors import Conflict, Reason, Rejected, UpswingError
from upswing.serve.door_service import Gone, Receive, Scope, Send, body_of, refuse, reply
from upswing.serve.ports import Engine
from upswing.serve.problems import Problem, problem_of

_BODY_BYTES = 64 * 1024
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,199}\Z")]
Changed = Callable[[Mapping[str, str]], None]
"""Hears which adapters are served, and from where."""


class _Load(msgspec.Struct):
    lora_name: Name
    lora_path: Annotated[str, Meta(min_length=1, max_length=4096)]


class _Unload(msgspec.Struct):
    lora_name: Name


class Admin:
    """The doors of an operator."""

    def __init__(
        self, engine: Engine, *, key: str | None, public: bool, changed: Changed | None = None
    ) -> None:
        """`public`: the address can be reached from other machines."""
        self._engine, self._key, self._public = engine, key, public
        self._changed = changed or (lambda _: None)
        self.adapters: dict[str, str] = {}
        """Name → path of those that were loaded here."""

    async def load(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._carry_out(scope, receive, send, _Load, self._load)

    async def unload(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._carry_out(scope, receive, send, _Unload, self._unload)

    async def add(self, name: str, path: Path) -> None:
        """Serve an adapter; `Rejected` if it cannot be."""
        await self._engine.load(name, path)
        self.adapters[name] = str(path)
        self._changed(self.adapters)

    async def _load(self, asked: Any) -> str:
        path = Path(asked.lora_path)
        if "\0" in asked.lora_path or not path.is_absolute():
            raise Rejected(Reason.SCHEMA, "`lora_path` is no absolute path.")
        await self.add(asked.lora_name, path)
        return "loaded"

    async def _unload(self, asked: Any) -> str:
        # Forgotten first: should we die while requests under way end, it does not come back.
        if self.adapters.pop(asked.lora_name, None) is not None:
            self._changed(self.adapters)
        await self._engine.unload(asked.lora_name)
        return "unloaded"

    async def _carry_out(
        self, scope: Scope, receive: Receive, send: Send, kind: Any, work: Any
    ) -> None:
        if (closed := self._closed(dict(scope["headers"]))) is not None:
            await refuse(send, closed)
            return
        try:
            body = await body_of(scope, receive, _BODY_BYTES)
            asked = from_json(body or b"", kind)
            word = await work(asked)
        except Gone:
            return
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            await refuse(send, Problem(400, f"{error}."))
        except UpswingError as error:
            await refuse(send, _problem(error))
        else:
            told = {"id": asked.lora_name, "object": "model", "status": word}
            await reply(send, 200, msgspec.json.encode(told))

    def _closed(self, headers: Mapping[bytes, bytes]) -> Problem | None:
        """Why this caller may not; None if it may."""
        if headers.get(b"content-type", b"").partition(b";")[0].strip() != b"application/json":
            return Problem(415, "Send application/json.", code="media_type")
        if self._key is None:
            if self._public or not _local(headers.get(b"host", b"")):
                said = (
                    "Adapters are loaded from this machine, or with UPSWING_MODEL_SERVER_KEY set."
                )
                return Problem(403, said, "permission_error", "forbidden")
            return None
        kind, _, key = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() == b"bearer" and hmac.compare_digest(key.strip(), self._key.encode()):
            return None
        said = "Send this server's key: `Authorization: Bearer …`."
        return Problem(401, said, "authentication_error", "key")


def _problem(error: UpswingError) -> Problem:
    """A checkpoint that is not taken is no fault of the request's form."""
    if isinstance(error, Rejected) and not isinstance(error, Conflict):
        return Problem(422, str(error), code=error.reason, param="lora_path")
    return problem_of(error)


def is_local(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_local("127.0.0.1"), is_local("::1"), is_local("0.0.0.0"), is_local("example.org")
    (True, True, False, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _local(header: bytes) -> bool:
    """A web page that gave its own name this machine's address still says its name here.

    >>> _local(b"127.0.0.1:80"), _local(b"[::1]:80"), _local(b"evil.example:80")
    (True, True, False)
    """
    text = header.decode("latin-1")
    host = text[1:].partition("]")[0] if text.startswith("[") else text.rpartition(":")[0] or text
    return is_local(host)
