"""Where in the original does a position of a decoded text lie?

A layer is many pieces of text, joined so that one pass can scan them all. Each piece is made
of chunks, and a chunk knows its source in the layer below: copied character by character,
decoded from escapes of fixed width, or decoded as a whole. Layer 0 holds the leaves themselves.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from .fold import fold

GAP = "\0"
"""Between pieces. A match never leaves its piece, so a leaf that holds this character is safe."""

WHOLE = 0
"""Stride of a chunk that can only be replaced as a whole."""
VOID = -1
"""Stride of a chunk that has no source, such as the key that gives a leaf its context."""

Span = tuple[int, int]


@dataclass(slots=True)
class Chunk:
    text: str
    start: int
    end: int
    stride: int = 1


@dataclass(slots=True)
class Layer:
    raw: str
    parent: Layer | None = None
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    forms: list[str] = field(default_factory=list)
    split: list[bool] = field(default_factory=list)
    chunks: list[Chunk] = field(default_factory=list)
    at: list[int] = field(default_factory=list)
    """Where each chunk begins in this layer."""
    text: str = ""
    """`raw` with look-alikes folded: what is scanned. Positions are the same."""

    def piece(self, position: int) -> int:
        return bisect_right(self.starts, position) - 1

    def sources(self, start: int, end: int) -> tuple[list[Span], bool]:
        """The spans of the layer below, one per piece there; and did decoding change anything?"""
        assert self.parent is not None  # noqa: S101 - layer 0 is never asked
        spans: dict[int, Span] = {}
        i = bisect_right(self.at, start) - 1
        first, decoded = i, False
        while i < len(self.at) and self.at[i] < end:
            found = _within(self.chunks[i], start - self.at[i], end - self.at[i])
            chunk = self.chunks[i]
            same = chunk.stride == 1 and self.parent.text.startswith(chunk.text, chunk.start)
            decoded = decoded or i > first or not same
            if found is not None:
                piece = self.parent.piece(found[0])
                low, high = spans.get(piece, found)
                spans[piece] = (min(low, found[0]), max(high, found[1]))
            i += 1
        return list(spans.values()), decoded


def _within(chunk: Chunk, start: int, end: int) -> Span | None:
    low, high = max(start, 0), min(end, len(chunk.text))
    if chunk.stride == VOID or low >= high:
        return None
    if chunk.stride == WHOLE:
        return chunk.start, chunk.end
    return chunk.start + low * chunk.stride, min(chunk.start + high * chunk.stride, chunk.end)


class Builder:
    """Collects the pieces of the next layer."""

    def __init__(self, parent: Layer) -> None:
        self._layer = Layer("", parent)
        self._texts: list[str] = []
        self.size = 0

    def add(self, chunks: list[Chunk], form: str, *, split: bool = False) -> None:
        layer = self._layer
        layer.starts.append(self.size)
        for chunk in chunks:
            layer.at.append(self.size)
            layer.chunks.append(chunk)
            self._texts.append(chunk.text)
            self.size += len(chunk.text)
        layer.ends.append(self.size)
        layer.forms.append(form)
        layer.split.append(split)
        self._texts.append(GAP)
        self.size += 1

    def done(self) -> Layer | None:
        if not self._texts:
            return None
        self._layer.raw = "".join(self._texts)
        self._layer.text = fold(self._layer.raw)
        return self._layer


def ground_layer(leaves: list[str]) -> Layer:
    r"""Layer 0.

    >>> ground_layer(["ab", "c"]).raw
    'ab\x00c'
    """
    raw = leaves[0] if len(leaves) == 1 else GAP.join(leaves)
    starts, ends, position = [], [], 0
    for leaf in leaves:
        starts.append(position)
        position += len(leaf)
        ends.append(position)
        position += 1
    blank = [""] * len(leaves)
    return Layer(raw, None, starts, ends, blank, [False] * len(leaves), text=fold(raw))
