"""Which tokens did the model say this text with?

A text can be spelled in more ways than one, and a conversation goes on with a model's own words: if
they are tokenised anew, the next prompt may not be what the model has read and said before. So the
spelling of what was said lately is kept. Only a hash of the text is, and the ids.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict

TokenIds = tuple[int, ...]


class TokenCache:
    """The spelling of the conversations of late, up to the end of a reply.

    >>> cache = TokenCache(max_entries=1)
    >>> cache.put("<user>how?<model>so", (1, 2))
    >>> cache.get("<user>how?<model>so"), cache.get("<user>how?<model>s")
    ((1, 2), None)
    """

    def __init__(self, max_entries: int = 1024, max_tokens: int = 4_000_000) -> None:
        self._entries, self._tokens = max_entries, max_tokens
        self._known: OrderedDict[bytes, TokenIds] = OrderedDict()
        self._size = 0

    def put(self, text: str, ids: TokenIds) -> None:
        """The model has read and said `text` with these ids."""
        key = _cache_key(text)
        self._size += len(ids) - len(self._known.pop(key, ()))
        self._known[key] = ids
        while len(self._known) > self._entries or self._size > self._tokens:
            _, forgotten = self._known.popitem(last=False)
            self._size -= len(forgotten)

    def get(self, text: str) -> TokenIds | None:
        key = _cache_key(text)
        if key in self._known:
            self._known.move_to_end(key)
        return self._known.get(key)


def _cache_key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
