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
from upswing.serve.asgi import (
    ClientDisconnected,
    Receive,
    Scope,
    Send,
    read_body,
    send_error,
    send_response,
)
from upswing.serve.core.engine import InferenceEngine
from upswing.serve.core.error_response import ErrorResponse, error_response

_BODY_BYTES = 64 * 1024
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,199}\Z")]
OnAdaptersChanged = Callable[[Mapping[str, str]], None]
"""Hears which adapters are served, and from where."""


class _Load(msgspec.Struct):
    lora_name: Name
    lora_path: Annotated[str, Meta(min_length=1, max_length=4096)]


class _Unload(msgspec.Struct):
    lora_name: Name


class AdapterAdmin:
    """The doors of an operator."""

    def __init__(
        self,
        engine: InferenceEngine,
        *,
        key: str | None,
        public: bool,
        on_change: OnAdaptersChanged | None = None,
    ) -> None:
        """`public`: the address can be reached from other machines."""
        self._engine, self._key, self._public = engine, key, public
        self._on_change = on_change or (lambda _: None)
        self.adapters: dict[str, str] = {}
        """Name → path of those that were loaded here."""

    async def load(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._handle_request(scope, receive, send, _Load, self._load_adapter)

    async def unload(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._handle_request(scope, receive, send, _Unload, self._unload_adapter)

    async def add_adapter(self, name: str, path: Path) -> None:
        """Serve an adapter; `Rejected` if it cannot be."""
        await self._engine.load(name, path)
        self.adapters[name] = str(path)
        self._on_change(self.adapters)

    async def _load_adapter(self, request: Any) -> str:
        path = Path(request.lora_path)
        if "\0" in request.lora_path or not path.is_absolute():
            raise Rejected(Reason.SCHEMA, "`lora_path` is no absolute path.")
        await self.add_adapter(request.lora_name, path)
        return "loaded"

    async def _unload_adapter(self, request: Any) -> str:
        # Forgotten first: should we die while requests under way end, it does not come back.
        if self.adapters.pop(request.lora_name, None) is not None:
            self._on_change(self.adapters)
        await self._engine.unload(request.lora_name)
        return "unloaded"

    async def _handle_request(
        self, scope: Scope, receive: Receive, send: Send, request_type: Any, work: Any
    ) -> None:
        if (error_reply := self._access_error(dict(scope["headers"]))) is not None:
            await send_error(send, error_reply)
            return
        try:
            body = await read_body(scope, receive, _BODY_BYTES)
            request = from_json(body or b"", request_type)
            status = await work(request)
        except ClientDisconnected:
            return
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            await send_error(send, ErrorResponse(400, f"{error}."))
        except UpswingError as error:
            await send_error(send, _adapter_error(error))
        else:
            reply = {"id": request.lora_name, "object": "model", "status": status}
            await send_response(send, 200, msgspec.json.encode(reply))

    def _access_error(self, headers: Mapping[bytes, bytes]) -> ErrorResponse | None:
        """Why this caller may not; None if it may."""
        if headers.get(b"content-type", b"").partition(b";")[0].strip() != b"application/json":
            return ErrorResponse(415, "Send application/json.", code="media_type")
        if self._key is None:
            if self._public or not _is_local_header(headers.get(b"host", b"")):
                message = (
                    "Adapters are loaded from this machine, or with UPSWING_MODEL_SERVER_KEY set."
                )
                return ErrorResponse(403, message, "permission_error", "forbidden")
            return None
        kind, _, key = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() == b"bearer" and hmac.compare_digest(key.strip(), self._key.encode()):
            return None
        message = "Send this server's key: `Authorization: Bearer …`."
        return ErrorResponse(401, message, "authentication_error", "key")


def _adapter_error(error: UpswingError) -> ErrorResponse:
    """A checkpoint that is not taken is no fault of the request's form."""
    if isinstance(error, Rejected) and not isinstance(error, Conflict):
        return ErrorResponse(422, str(error), code=error.reason, param="lora_path")
    return error_response(error)


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


def _is_local_header(header: bytes) -> bool:
    """A web page that gave its own name this machine's address still says its name here.

    >>> _is_local_header(b"127.0.0.1:80"), _is_local_header(b"[::1]:80"), _is_local_header(b"evil.example:80")
    (True, True, False)
    """
    text = header.decode("latin-1")
    host = text[1:].partition("]")[0] if text.startswith("[") else text.rpartition(":")[0] or text
    return is_local(host)
