"""Where are the keys and values of running sequences stored? A row each, side by side, written in place.

    row 0  ████████░░░░        each sequence begins at the left and grows to the right;
    row 1  ███░░░░░░░░░        a mask hides what lies behind its end
    row 2  ██████░░░░░░

The sequences that decode are rows 0 … n-1, so a step reads a view and copies nothing. The row of one
that leaves is taken by the last. No sequence depends on its neighbours: what the mask hides weighs
exactly nothing.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import Cache
from transformers.cache_utils import CacheLayerMixin

_INITIAL_ROWS, _INITIAL_CAPACITY = 4, 128
"""To begin with; both double when they do not suffice."""


class _KVCacheLayer(CacheLayerMixin):  # type: ignore[no-untyped-call]  # theirs has no types
    """Keys and values of one layer."""

    is_compileable = False
    is_sliding = False

    def __init__(self, kv_cache: KVCache) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # as above
        self._kv_cache = kv_cache
        self.keys: Tensor | None = None
        self.values: Tensor | None = None

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        self.keys = self._zeros_like(key_states)
        self.values = self._zeros_like(value_states)
        self.is_initialized = True

    def update(
        self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        if self.keys is None or self.values is None:
            self.lazy_initialization(key_states, value_states)
        return self._write_entries(self.keys, key_states), self._write_entries(
            self.values, value_states
        )

    def _write_entries(self, stored: Tensor | None, new_BHTD: Tensor) -> Tensor:
        assert stored is not None  # noqa: S101 - made just now
        kv_cache = self._kv_cache
        if kv_cache.prefilling is None:
            rows = len(kv_cache.starts_B)
            stored[kv_cache.rows_B, :, kv_cache.starts_B] = new_BHTD[:, :, 0]
            return stored[:rows, :, : kv_cache.visible_length]
        row, start = kv_cache.prefilling
        stored[row, :, start : kv_cache.visible_length] = new_BHTD[0]
        return stored[row : row + 1, :, : kv_cache.visible_length]

    def _zeros_like(self, like_BHTD: Tensor) -> Tensor:
        """Zeros, for what the mask hides must still be a number."""
        _, heads, _, width = like_BHTD.shape
        return like_BHTD.new_zeros((self._kv_cache.rows, heads, self._kv_cache.capacity, width))

    def grow(self) -> None:
        if self.keys is not None and self.values is not None:
            self.keys, self.values = self._grow_storage(self.keys), self._grow_storage(self.values)

    def _grow_storage(self, stored: Tensor) -> Tensor:
        fresh = stored.new_zeros(
            (self._kv_cache.rows, stored.shape[1], self._kv_cache.capacity, stored.shape[3])
        )
        fresh[: stored.shape[0], :, : stored.shape[2]] = stored
        return fresh

    def get_seq_length(self) -> int:
        return self._kv_cache.past_length

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        del query_length
        return self._kv_cache.visible_length, 0

    def get_max_length(self) -> int:
        return -1

    def get_max_cache_shape(self) -> int:
        return -1


class KVCache:
    """The rows of one model. Before a forward pass: `begin_decode` or `begin_prefill`."""

    def __init__(self, num_layers: int, device: torch.device | str = "cpu") -> None:
        self.rows, self.capacity = _INITIAL_ROWS, _INITIAL_CAPACITY
        self._device = device
        self._layers = [_KVCacheLayer(self) for _ in range(num_layers)]
        self.hf_cache = Cache(layers=list(self._layers))
        self.prefilling: tuple[int, int] | None = None
        self.rows_B = self.starts_B = torch.zeros(0, dtype=torch.long)
        self.visible_length = 0
        """Tokens that this pass can see."""
        self.past_length = 0

    def begin_decode(self, lengths: list[int]) -> dict[str, Tensor]:
        """Position ids and mask for one more token in each of the first rows, which have these lengths."""
        self.prefilling, self.visible_length, self.past_length = (
            None,
            max(lengths) + 1,
            max(lengths),
        )
        self._ensure_capacity(len(lengths), self.visible_length)
        self.rows_B = torch.arange(len(lengths), device=self._device)
        self.starts_B = torch.tensor(lengths, dtype=torch.long, device=self._device)
        positions_W = torch.arange(self.visible_length, device=self._device)
        mask_BW = positions_W <= self.starts_B[:, None]
        return {"position_ids": self.starts_B[:, None], "attention_mask": mask_BW[:, None, None]}

    def begin_prefill(self, row: int, start: int, count: int) -> dict[str, Tensor]:
        """Position ids and mask for `count` more tokens in this row, which has `start`."""
        self.prefilling, self.visible_length, self.past_length = (row, start), start + count, start
        self._ensure_capacity(row + 1, self.visible_length)
        positions_T = torch.arange(start, self.visible_length, device=self._device)
        positions_W = torch.arange(self.visible_length, device=self._device)
        return {
            "position_ids": positions_T[None],
            "attention_mask": (positions_W <= positions_T[:, None])[None, None],
        }

    def copy_row(self, source_row: int, target_row: int, length: int) -> None:
        """Copy the first `length` tokens of one row to another."""
        for layer in self._layers:
            for stored in (layer.keys, layer.values):
                if stored is not None:
                    stored[target_row, :, :length] = stored[source_row, :, :length]

    def clear_row(self, row: int) -> None:
        """Zero a row that no sequence has."""
        for layer in self._layers:
            for stored in (layer.keys, layer.values):
                if stored is not None and row < stored.shape[0]:
                    stored[row].zero_()

    @property
    def bytes_per_token(self) -> int:
        """What one token of one row takes."""
        stored = [each for layer in self._layers for each in (layer.keys, layer.values)]
        return sum(e.shape[1] * e.shape[3] * e.element_size() for e in stored if e is not None)

    def _ensure_capacity(self, rows: int, capacity: int) -> None:
        wanted = _double_until(self.rows, rows), _double_until(self.capacity, capacity)
        if wanted != (self.rows, self.capacity):
            self.rows, self.capacity = wanted
            for layer in self._layers:
                layer.grow()


def _double_until(size: int, wanted: int) -> int:
    """A size, doubled until it suffices.

    >>> _double_until(4, 3), _double_until(4, 9)
    (4, 16)
    """
    while size < wanted:
        size *= 2
    return size
