"""Whose request is this? Keys are known by their hash, so that looking one up tells nothing of it."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from upswing.principals import OPERATOR, Holder, Sender

ANONYMOUS = ""
"""Everybody's name where no keys are set."""


def sender_of(owner: str) -> Sender:
    """Whose key a request came with; unknown where no keys are set."""
    if owner == ANONYMOUS:
        return Sender()
    holder = owner if isinstance(owner, Holder) else Holder.of(owner)
    return Sender(holder.key_id, many=holder.many, operator=holder.key_id == OPERATOR)


def key_metadata(sender: Sender) -> dict[str, Any]:
    """The sender, as the metadata of messages carries it."""
    if not sender.key_id:
        return {}
    return {"key": sender.key_id, **({"many": True} if sender.many else {})}


class ClientKeys:
    """The clients' keys: those that the gateway was started with, and those that the loop sends."""

    def __init__(self, owners: Mapping[str, str], *, from_loop: bool = False) -> None:
        """`owners`: key → whose it is; `from_loop`: the loop will tell of more.

        Without either, everybody who reaches the port may ask.
        """
        self._open = not owners and not from_loop
        self._owners = {
            sha256(key.encode()).digest(): Holder.of(name) for key, name in owners.items()
        }
        self._loop_owners: Mapping[bytes, str] = {}

    def replace_loop_keys(self, owners: Mapping[bytes, str]) -> None:
        """`owners`: sha256 of a key → whose it is; what was learnt before and is not among them is over.

        >>> keys = ClientKeys({"sk-1": "ann"})
        >>> keys.replace_loop_keys({sha256(b"sk-2").digest(): "bob"})
        >>> keys.owner_of(b"Bearer sk-1"), keys.owner_of(b"Bearer sk-2")
        ('ann', 'bob')
        >>> keys.replace_loop_keys({})
        >>> keys.owner_of(b"Bearer sk-1"), keys.owner_of(b"Bearer sk-2")
        ('ann', None)
        """
        self._loop_owners = {
            hashed: name if isinstance(name, Holder) else Holder.of(name)
            for hashed, name in owners.items()
        }

    def owner_of_request(self, headers: Mapping[bytes, bytes]) -> str | None:
        """Whose key a request shows, as a bearer's token or as `x-api-key`; None when it shows none.

        >>> keys = ClientKeys({"sk-1": "ann"})
        >>> keys.owner_of_request({b"x-api-key": b"sk-1"}), keys.owner_of_request({b"x-api-key": b"sk-2"})
        ('ann', None)
        """
        owner = self.owner_of(headers.get(b"authorization"))
        if owner is None and (given := headers.get(b"x-api-key", b"").strip()):
            return self._owner_of_key(given)
        return owner

    def owner_of(self, authorization: bytes | None) -> str | None:
        """The name behind an `Authorization` header; None when it has none.

        >>> keys = ClientKeys({"sk-1": "ann"})
        >>> keys.owner_of(b"Bearer sk-1"), keys.owner_of(b"Bearer sk-2"), keys.owner_of(None)
        ('ann', None, None)
        >>> ClientKeys({}).owner_of(None), ClientKeys({}, from_loop=True).owner_of(None)
        ('', None)
        """
        if self._open:
            return ANONYMOUS
        if not (given := bearer_token(authorization)):
            return None
        return self._owner_of_key(given)

    def _owner_of_key(self, key: bytes) -> str | None:
        hashed = sha256(key).digest()
        return self._owners.get(hashed) or self._loop_owners.get(hashed)


def bearer_token(authorization: bytes | None) -> bytes:
    """The token in an `Authorization` header.

    >>> bearer_token(b"bearer  abc "), bearer_token(b"Basic abc"), bearer_token(None)
    (b'abc', b'', b'')
    """
    if authorization is None or authorization[:7].lower() != b"bearer ":
        return b""
    return authorization[7:].strip()


def token_matches(given: bytes, token: bytes) -> bool:
    """Is this the token? Takes as long for one that is nearly right; without a token nobody's is."""
    return hmac.compare_digest(given, token) and bool(token)
