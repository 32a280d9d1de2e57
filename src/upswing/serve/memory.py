"""Which tokens did the model say this text with?

A text can be spelled in more ways than one, and a conversation goes on with a model's own words: if
they are tokenised anew, the next prompt may not be what the model has read and said before. So the
spelling of what was said lately is kept. Only a hash of the text is, and the ids.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict

Ids = tuple[int, ...]


class Memory:
    """The spelling of the conversations of late, up to the end of a reply.

    >>> memory = Memory(entries=1)
    >>> memory.note("<user>how?<model>so", (1, 2))
    >>> memory.find("<user>how?<model>so"), memory.find("<user>how?<model>s")
    ((1, 2), None)
    """

    def __init__(self, entries: int = 1024, tokens: int = 4_000_000) -> None:
        self._entries, self._tokens = entries, tokens
        self._known: OrderedDict[bytes, Ids] = OrderedDict()
        self._size = 0

    def note(self, text: str, ids: Ids) -> None:
        """The model has read and said `text` with these ids."""
        key = _key(text)
        self._size += len(ids) - len(self._known.pop(key, ()))
        self._known[key] = ids
        while len(self._known) > self._entries or self._size > self._tokens:
            _, forgotten = self._known.popitem(last=False)
            self._size -= len(forgotten)

    def find(self, text: str) -> Ids | None:
        key = _key(text)
        if key in self._known:
            self._known.move_to_end(key)
        return self._known.get(key)


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
