"""Whose request is this? Keys are known by their hash, so that looking one up tells nothing of it."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from upswing.senders import OPERATOR, Holder, Sender

NOBODY = ""
"""Everybody's name where no keys are set."""


def sender_of(owner: str) -> Sender:
    """What is told of whoever asks; where no keys are set, nobody knows."""
    if owner == NOBODY:
        return Sender()
    holder = owner if isinstance(owner, Holder) else Holder.of(owner)
    return Sender(holder.key_id, many=holder.many, operator=holder.key_id == OPERATOR)


def key_told(sender: Sender) -> dict[str, Any]:
    """The same, as messages carry it."""
    if not sender.key_id:
        return {}
    return {"key": sender.key_id, **({"many": True} if sender.many else {})}


class Keys:
    """The clients' keys: those that the gateway was started with, and those that the loop tells of."""

    def __init__(self, names: Mapping[str, str], *, learns: bool = False) -> None:
        """`names`: key → whose it is; `learns`: the loop will tell of more.

        Without either, everybody who reaches the port may ask.
        """
        self._open = not names and not learns
        self._names = {
            sha256(key.encode()).digest(): Holder.of(name) for key, name in names.items()
        }
        self._learnt: Mapping[bytes, str] = {}

    def learn(self, names: Mapping[bytes, str]) -> None:
        """`names`: sha256 of a key → whose it is; what was learnt before and is not among them is over.

        >>> keys = Keys({"sk-1": "ann"})
        >>> keys.learn({sha256(b"sk-2").digest(): "bob"})
        >>> keys.owner(b"Bearer sk-1"), keys.owner(b"Bearer sk-2")
        ('ann', 'bob')
        >>> keys.learn({})
        >>> keys.owner(b"Bearer sk-1"), keys.owner(b"Bearer sk-2")
        ('ann', None)
        """
        self._learnt = {
            hashed: name if isinstance(name, Holder) else Holder.of(name)
            for hashed, name in names.items()
        }

    def owner(self, authorization: bytes | None) -> str | None:
        """The name behind an `Authorization` header; None when it has none.

        >>> keys = Keys({"sk-1": "ann"})
        >>> keys.owner(b"Bearer sk-1"), keys.owner(b"Bearer sk-2"), keys.owner(None)
        ('ann', None, None)
        >>> Keys({}).owner(None), Keys({}, learns=True).owner(None)
        ('', None)
        """
        if self._open:
            return NOBODY
        if not (given := bearer(authorization)):
            return None
        hashed = sha256(given).digest()
        return self._names.get(hashed) or self._learnt.get(hashed)


def bearer(authorization: bytes | None) -> bytes:
    """The token in an `Authorization` header.

    >>> bearer(b"bearer  abc "), bearer(b"Basic abc"), bearer(None)
    (b'abc', b'', b'')
    """
    if authorization is None or authorization[:7].lower() != b"bearer ":
        return b""
    return authorization[7:].strip()


def same(given: bytes, token: bytes) -> bool:
    """Is this the token? Takes as long for one that is nearly right; without a token nobody's is."""
    return hmac.compare_digest(given, token) and bool(token)
