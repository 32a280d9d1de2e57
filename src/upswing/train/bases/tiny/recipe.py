"""How large is `tiny`, and how much does it read before its first task?"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModelShape:
    """The sizes of the network: together a little less than a million weights."""

    hidden: int = 128
    inner: int = 256
    layers: int = 2
    """One to see which words are offered, one to choose among them."""
    heads: int = 4
    reach: int = 2048
    """Tokens of the longest conversation."""
    small: float = 0.02
    """Deviation of a matrix's numbers, where nothing better is known."""
    length: float = 2.0
    """Of an embedding: long enough that a word which is looked at stands out among all others."""


@dataclass(frozen=True, slots=True)
class PretrainingSettings:
    """How much is read, and how fast it is learned."""

    steps: int = 240
    batch: int = 48
    learning_rate: float = 5e-3
    easy: float = 0.2
    """Share of the steps that read only the choice itself; then it gets harder."""
    hardest: float = 0.7
    """Share of the steps after which it gets no harder."""
    shelf: int = 8
    """Batches that are drawn at once and sorted by length, so that little is padded."""


SHAPE, PRETRAINING = ModelShape(), PretrainingSettings()
