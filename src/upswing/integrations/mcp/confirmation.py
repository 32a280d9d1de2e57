"""Did a person confirm this very request? A code that only somebody with the operator's key can make.

    c1.<when it ends>.<a random word>.<HMAC of operation, arguments and these two>

`upswing mcp confirm` makes it at a terminal, after a person has read what it allows. It holds for one operation with exactly these
arguments, for ten minutes, once. What an assistant says as its reason is not part of it.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Callable
from hashlib import sha256
from threading import Lock
from typing import Any

import msgspec

from upswing.errors import Denied
from upswing.integrations.operations.operation import Operation

VALID_SECONDS = 600
"""For which a code holds: long enough to paste it, short enough to be forgotten safely."""
_SAYINGS = frozenset({"reason", "note"})
_PREFIX = "c1"
_CODE = re.compile(rf"{_PREFIX}\.([0-9]{{1,12}})\.([0-9A-Za-z]{{1,64}})\.([0-9a-f]{{40}})")


def make_code(key: str, operation: Operation, asked: Any, *, now: float, word: str) -> str:
    """A code for this request; `key` is the operator's, `word` is random, `now` is in seconds."""
    ends = str(int(now) + VALID_SECONDS)
    return f"{_PREFIX}.{ends}.{word}.{_mac(key, operation, asked, ends, word)}"


class ConfirmationCheck:
    """Checks codes, each once."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._used: dict[str, float] = {}
        """The HMAC of each → when it ends."""
        self._lock = Lock()

    def use(self, key: str, operation: Operation, asked: Any, code: str) -> None:
        """`Denied` unless the code was made for this request, has not ended and was not used."""
        found = _CODE.fullmatch(code.strip())
        if found is None:
            raise Denied("That is no confirmation: a person gets one from `upswing mcp confirm`.")
        ends, word, mac = found.groups()
        if not hmac.compare_digest(mac, _mac(key, operation, asked, ends, word)):
            raise Denied(
                "This confirmation is for another request: ask a person to confirm this one."
            )
        now = self._clock()
        if int(ends) < now:
            raise Denied("This confirmation has ended: ask a person for another one.")
        with self._lock:
            self._used = {each: until for each, until in self._used.items() if until >= now}
            if mac in self._used:  # and not the code, which can be written in many ways
                raise Denied("This confirmation was used: ask a person for another one.")
            self._used[mac] = float(ends)


def _mac(key: str, operation: Operation, asked: Any, ends: str, word: str) -> str:
    values: dict[str, Any] = msgspec.to_builtins(asked)
    said = {name: value for name, value in values.items() if name not in _SAYINGS}
    text = json.dumps([operation.name, said, ends, word], sort_keys=True)
    secret = sha256(b"upswing mcp confirmation " + key.encode()).digest()
    return hmac.new(secret, text.encode(), sha256).hexdigest()[:40]
