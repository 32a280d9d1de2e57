"""Where do the keys and values of running sequences lie? A row each, side by side, written in place.

    row 0  ████████░░░░        each sequence begins at the left and grows to the right;
    row 1  ███░░░░░░░░░        a mask hides what lies behind its end
    row 2  ██████░░░░░░

The sequences that speak are rows 0 … n-1, so a step looks at a view and copies nothing. One that
leaves gives its row to the last. Nothing depends on who else is there: what is hidden weighs exactly
nothing.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import Cache
from transformers.cache_utils import CacheLayerMixin

_ROWS, _REACH = 4, 128
"""To begin with; both double when they do not suffice."""


class _Layer(CacheLayerMixin):  # type: ignore[no-untyped-call]  # theirs has no types
    """Keys and values of one layer."""

    is_compileable = False
    is_sliding = False

    def __init__(self, slab: Slab) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # as above
        self._slab = slab
        self.keys: Tensor | None = None
        self.values: Tensor | None = None

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        self.keys = self._room(key_states)
        self.values = self._room(value_states)
        self.is_initialized = True

    def update(
        self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        if self.keys is None or self.values is None:
            self.lazy_initialization(key_states, value_states)
        return self._write(self.keys, key_states), self._write(self.values, value_states)

    def _write(self, held: Tensor | None, new_BHTD: Tensor) -> Tensor:
        assert held is not None  # noqa: S101 - made just now
        slab = self._slab
        if slab.reading is None:
            rows = len(slab.starts_B)
            held[slab.rows_B, :, slab.starts_B] = new_BHTD[:, :, 0]
            return held[:rows, :, : slab.width]
        row, start = slab.reading
        held[row, :, start : slab.width] = new_BHTD[0]
        return held[row : row + 1, :, : slab.width]

    def _room(self, like_BHTD: Tensor) -> Tensor:
        """Zeros: what is hidden must still be a number."""
        _, heads, _, width = like_BHTD.shape
        return like_BHTD.new_zeros((self._slab.rows, heads, self._slab.reach, width))

    def grow(self) -> None:
        if self.keys is not None and self.values is not None:
            self.keys, self.values = self._grown(self.keys), self._grown(self.values)

    def _grown(self, held: Tensor) -> Tensor:
        fresh = held.new_zeros((self._slab.rows, held.shape[1], self._slab.reach, held.shape[3]))
        fresh[: held.shape[0], :, : held.shape[2]] = held
        return fresh

    def get_seq_length(self) -> int:
        return self._slab.seen

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        del query_length
        return self._slab.width, 0

    def get_max_length(self) -> int:
        return -1

    def get_max_cache_shape(self) -> int:
        return -1


class Slab:
    """The rows of one model. Before a pass of the model: `speak` or `read`."""

    def __init__(self, layers: int, device: torch.device | str = "cpu") -> None:
        self.rows, self.reach = _ROWS, _REACH
        self._device = device
        self._layers = [_Layer(self) for _ in range(layers)]
        self.cache = Cache(layers=list(self._layers))
        self.reading: tuple[int, int] | None = None
        self.rows_B = self.starts_B = torch.zeros(0, dtype=torch.long)
        self.width = 0
        """Tokens that this pass can see."""
        self.seen = 0

    def speak(self, lengths: list[int]) -> dict[str, Tensor]:
        """One token more for the first rows, which have these lengths: positions and mask."""
        self.reading, self.width, self.seen = None, max(lengths) + 1, max(lengths)
        self._make_room(len(lengths), self.width)
        self.rows_B = torch.arange(len(lengths), device=self._device)
        self.starts_B = torch.tensor(lengths, dtype=torch.long, device=self._device)
        seen_W = torch.arange(self.width, device=self._device)
        mask_BW = seen_W <= self.starts_B[:, None]
        return {"position_ids": self.starts_B[:, None], "attention_mask": mask_BW[:, None, None]}

    def read(self, row: int, start: int, count: int) -> dict[str, Tensor]:
        """`count` tokens more for this row, which has `start`: positions and mask."""
        self.reading, self.width, self.seen = (row, start), start + count, start
        self._make_room(row + 1, self.width)
        at_T = torch.arange(start, self.width, device=self._device)
        seen_W = torch.arange(self.width, device=self._device)
        return {"position_ids": at_T[None], "attention_mask": (seen_W <= at_T[:, None])[None, None]}

    def move(self, source: int, target: int, length: int) -> None:
        """What stands in one row stands in another."""
        for layer in self._layers:
            for held in (layer.keys, layer.values):
                if held is not None:
                    held[target, :, :length] = held[source, :, :length]

    def clear(self, row: int) -> None:
        """A row that nobody has: whatever stood in it can spoil nothing."""
        for layer in self._layers:
            for held in (layer.keys, layer.values):
                if held is not None and row < held.shape[0]:
                    held[row].zero_()

    @property
    def token_bytes(self) -> int:
        """What one token of one row takes."""
        held = [each for layer in self._layers for each in (layer.keys, layer.values)]
        return sum(e.shape[1] * e.shape[3] * e.element_size() for e in held if e is not None)

    def _make_room(self, rows: int, reach: int) -> None:
        wanted = _doubled(self.rows, rows), _doubled(self.reach, reach)
        if wanted != (self.rows, self.reach):
            self.rows, self.reach = wanted
            for layer in self._layers:
                layer.grow()


def _doubled(size: int, wanted: int) -> int:
    """A size, doubled until it suffices.

    >>> _doubled(4, 3), _doubled(4, 9)
    (4, 16)
    """
    while size < wanted:
        size *= 2
    return size
