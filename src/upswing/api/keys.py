"""Who may ask? Keys are made, listed and revoked, and gateways read what they know their clients by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from upswing.api.auditing import Auditor
from upswing.api.router import JSON, Problem, Request, Response, Route, answer
from upswing.api.scopes import GATEWAY, GATEWAY_CLIENTS, OPERATOR, SCOPES
from upswing.contracts.field_errors import schema_error_sentence
from upswing.contracts.typed import from_json
from upswing.errors import Misuse, Reason, Rejected
from upswing.infra.sql.keys import OPERATOR_ID, ApiKey, Keys
from upswing.principals import CLIENT
from upswing.redact import Redactor

GATEWAY_PREFIX = "gwl_"
_ID = {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[^/]+$"}
_OWN_NAMES = (OPERATOR_ID, CLIENT)
"""What gateways call the installation's own keys."""
_NOT_FOUND = {404: ("There is no such thing.", Problem)}
_NEW_KEY: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 100},
        "scope": {"enum": list(SCOPES)},
        "trusted": {"type": "boolean"},
    },
    "required": ["name", "scope"],
    "additionalProperties": False,
}


class NewKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A key to be made."""

    name: str
    scope: str
    trusted: bool = False
    """To speak for many users."""


class MadeKey(msgspec.Struct, frozen=True):
    """A new key. It is shown once; only its hash is kept."""

    key_id: str
    name: str
    scope: str
    key: str


class KeyInfo(msgspec.Struct, frozen=True):
    """A key, without the key."""

    key_id: str
    name: str
    scope: str
    created: datetime
    revoked: datetime | None
    trusted: bool = False
    """To speak for many users."""


class KeyOwner(msgspec.Struct, frozen=True):
    """The key that asks."""

    key_id: str
    name: str
    scope: str
    trusted: bool
    """To speak for many users."""


class KeyList(msgspec.Struct, frozen=True):
    keys: list[KeyInfo]


class KeyHash(msgspec.Struct, frozen=True):
    """A key that may ask models, as a gateway knows it."""

    name: str
    """Of no other that works."""
    sha256: str
    """In hexadecimal digits."""
    key_id: str = ""
    trusted: bool = False
    """To speak for many users."""


class KeyHashes(msgspec.Struct, frozen=True):
    keys: list[KeyHash]


class KeyRoutes:
    """The handlers of keys."""

    def __init__(
        self,
        keys: Keys,
        redactor: Redactor,
        auditor: Auditor,
        *,
        clock: Callable[[], datetime],
        new_key: Callable[[], tuple[str, str]],
    ) -> None:
        """`new_key` makes an id and a key."""
        self._keys, self._redactor, self._auditor = keys, redactor, auditor
        self._clock, self._new_key = clock, new_key

    def routes(self) -> list[Route]:
        key = {"key_id": _ID}
        bad = {422: ("The request is not what it should be.", Problem), 400: ("Not JSON.", Problem)}
        return [
            Route(
                "GET",
                "/v1/whoami",
                "Whose key this is, and what it may do.",
                self.whoami,
                frozenset(SCOPES),
                answers={200: ("That.", KeyOwner), **_NOT_FOUND},
            ),
            Route(
                "GET",
                "/v1/keys",
                "All keys.",
                self.keys,
                OPERATOR,
                answers={200: ("They.", KeyList)},
            ),
            Route(
                "GET",
                "/v1/keys/hashes",
                "What gateways know their clients by.",
                self.key_hashes,
                OPERATOR | {GATEWAY},
                answers={200: ("Keys that work and may ask models.", KeyHashes)},
            ),
            Route(
                "POST",
                "/v1/keys",
                "Make a key.",
                self.add_key,
                OPERATOR,
                takes={JSON: _NEW_KEY},
                answers={201: ("Shown once.", MadeKey), **bad},
            ),
            Route(
                "DELETE",
                "/v1/keys/{key_id}",
                "Revoke a key.",
                self.revoke,
                OPERATOR,
                params=key,
                answers={204: ("It no longer works.", None), **_NOT_FOUND},
            ),
        ]

    async def whoami(self, request: Request) -> Response:
        who = request.principal
        found = [key for key in self._keys.list() if who and key.key_id == who.key_id]
        if who is None or not found:
            raise Misuse("Nobody knows this key any more.")
        return answer(200, KeyOwner(who.key_id, found[0].name, who.scope, _trusted(found[0])))

    async def keys(self, _: Request) -> Response:
        return answer(200, KeyList([key_info(key) for key in self._keys.list()]))

    async def key_hashes(self, _: Request) -> Response:
        await self._keys.load()
        clients = {
            each: key
            for each, key in self._keys.unrevoked_keys().items()
            if key.scope in GATEWAY_CLIENTS
        }
        names = Counter(key.name for key in clients.values()) + Counter(_OWN_NAMES)
        found = [
            KeyHash(_client_name(key, names), hashed.hex(), key.key_id, _trusted(key))
            for hashed, key in clients.items()
        ]
        return answer(200, KeyHashes(found))

    async def add_key(self, request: Request) -> Response:
        try:
            new = from_json(request.body, NewKey)
        except msgspec.ValidationError as error:
            raise Rejected(Reason.SCHEMA, schema_error_sentence(error, NewKey)) from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Rejected(Reason.MALFORMED, f"{error}.") from None
        if new.scope not in SCOPES or not 1 <= len(new.name) <= 100:
            raise Rejected(
                Reason.SCHEMA,
                f"`scope` is one of {', '.join(SCOPES)}, `name` has 1 to 100 characters.",
            )
        key_id, key = self._new_key()
        if new.scope == GATEWAY:  # a gateway does not take its own key for a client's
            key = GATEWAY_PREFIX + key.removeprefix("up_")
        name = self._redactor.text(new.name).value
        made = {"name": name, "scope": new.scope, "trusted": new.trusted}
        audit = self._auditor.entry(request, "add-key", key_id, after=made)
        await self._keys.add(
            key_id, name, new.scope, key, self._clock(), many=new.trusted, audit=audit
        )
        return answer(201, MadeKey(key_id, name, new.scope, key))

    async def revoke(self, request: Request) -> Response:
        key_id = request.params["key_id"]
        known = next((key_info(key) for key in self._keys.list() if key.key_id == key_id), None)
        audit = self._auditor.entry(
            request, "revoke-key", key_id, before=known, after={"revoked": self._clock()}
        )
        if not await self._keys.revoke(key_id, self._clock(), audit):
            raise Misuse("There is no working key with this id; `upswing keys list` shows them.")
        return Response(204, b"")


def key_info(key: ApiKey) -> KeyInfo:
    """A key as it is shown."""
    return KeyInfo(key.key_id, key.name, key.scope, key.created, key.revoked, _trusted(key))


def _trusted(key: ApiKey) -> bool:
    return key.many or key.scope == "operator"


def _client_name(key: ApiKey, names: Counter[str]) -> str:
    """By which gateways know it: two that are called alike have nothing in common."""
    if key.key_id == OPERATOR_ID:
        return OPERATOR_ID
    return key.name if names[key.name] == 1 else f"{key.name} ({key.key_id})"
