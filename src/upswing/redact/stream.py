"""How is a text redacted that is longer than memory? In blocks that end where lines end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .names import Names
from .redactor import Redacted, Redactor

_BLOCK = 1 << 20
_CARRY = 1 << 16


def filter_text(chunks: Iterable[str], redactor: Redactor) -> Iterator[Redacted[str]]:
    """Redacted blocks of a stream of chunks, however they were cut.

    A block ends after an empty line or at least at a line's end; what may go on, such as a private key
    or a wrapped block of base64, is carried into the next block.
    """
    names = Names()
    held = ""
    for chunk in chunks:
        held += chunk
        while len(held) > _BLOCK + _CARRY:
            cut = _cut(held)
            yield redactor.text(held[:cut], names)
            held = held[cut:]
    if held:
        yield redactor.text(held, names)


def _cut(held: str) -> int:
    """The best place to end a block: between paragraphs, else lines, else words."""
    for border in ("\n\n", "\n", " "):
        cut = held.rfind(border, _BLOCK - _CARRY, _BLOCK)
        if cut >= 0:
            return cut + len(border)
    return _BLOCK
