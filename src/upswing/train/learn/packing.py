"""Which examples pass through the model together, so that little is computed twice?

A pack is one forward pass. Its examples are merged into a tree of tokens (`train/learn/tree.py`), so a
beginning that they share is computed once, and nothing is padded. Of an example only the tokens up
to its last prediction count: what comes after the last trained token predicts nothing, and that
token itself only has to be predicted.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from upswing.train.learn.example import Example
from upswing.train.learn.tree import (
    CALL_COST_PAIRS,
    AttentionBlock,
    Ids,
    PrefixTree,
    build_prefix_tree,
    common_prefix_length,
)

PASS_COST_TOKENS = 64
"""One more pass costs about as much as so many tokens; when sharing is cut, this is weighed in."""


@dataclass(frozen=True, slots=True)
class TokenPack:
    """One forward pass.

    N nodes   M nodes that predict   E predictions   B examples   T trained tokens   K turns
    """

    examples: tuple[int, ...]
    """Which of the given examples the rows are, ascending."""
    blocks: tuple[AttentionBlock, ...]
    """Who looks at whom, call by call."""
    ids_N: Tensor
    positions_N: Tensor
    ends_N: Tensor
    """The first node that is no longer below a node."""
    nodes_M: Tensor
    """The nodes after which a trained token comes, ascending."""
    at_E: Tensor
    """Which of the M nodes makes a prediction, ascending."""
    tokens_E: Tensor
    """The token it is about; several may follow one node."""
    temperatures_M: Tensor | None
    """What each node's logits are divided by; None: nothing. A node that examples of different
    temperatures share is among the M once for each."""
    entry_BT: Tensor
    """Which prediction each trained token is; 0 where there is none."""
    mask_BT: Tensor
    """1.0 where a row has a trained token. Columns are the row's trained tokens in order."""
    turn_BT: Tensor
    """The column of `turn_nodes_BK` whose turn a trained token belongs to."""
    turn_nodes_BK: Tensor
    """The node just before a turn's first trained token. Columns are the row's turns that train."""
    turn_mask_BK: Tensor

    @property
    def mask_NN(self) -> Tensor:
        """Whether a node (row) sees another (column): itself and its ancestors."""
        nodes_N = torch.arange(len(self.ids_N), device=self.ids_N.device)
        return (nodes_N <= nodes_N[:, None]) & (nodes_N[:, None] < self.ends_N)

    def to(self, device: torch.device | str) -> TokenPack:
        """The same pack on another device."""
        held: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        moved = {name: x.to(device) for name, x in held.items() if isinstance(x, Tensor)}
        return TokenPack(**held | moved)


def build_packs(
    examples: Sequence[Example],
    *,
    micro_tokens: int,
    keep_together: Iterable[Sequence[int]] = (),
    call_cost_pairs: int = CALL_COST_PAIRS,
) -> list[TokenPack]:
    """Every example in one pack, of at most `micro_tokens` nodes unless one alone is longer.

    Those that begin alike stand together; where they do not fit, each of their packs computes the
    beginning once. The indices of each cluster in `keep_together` share a pack whatever its size. A
    cluster may not name what another one names: list such an example twice, its tokens still count
    once.
    """
    needed = [_required_ids(index, example) for index, example in enumerate(examples)]
    units = sorted(
        _packing_units(len(examples), keep_together), key=lambda unit: min(needed[i] for i in unit)
    )
    found: list[TokenPack] = []
    while units:
        count = _count_fitting(units, needed, micro_tokens)
        rows = sorted(index for unit in units[:count] for index in unit)
        found.append(
            _build_pack(
                rows,
                examples,
                build_prefix_tree(
                    [needed[index] for index in rows], call_cost_pairs=call_cost_pairs
                ),
            )
        )
        units = units[count:]
    return found


def _required_ids(index: int, example: Example) -> Ids:
    """The tokens whose states some prediction needs."""
    if not len(example.ids) == len(example.trained) == len(example.turns):
        raise ValueError(f"Example {index}: ids, trained and turns differ in length.")
    if any(example.trained[:1]):
        raise ValueError(f"Example {index} trains its first token, which nothing predicts.")
    last = max((at for at, trained in enumerate(example.trained) if trained), default=0)
    return example.ids[:last]


def _packing_units(count: int, keep_together: Iterable[Sequence[int]]) -> list[tuple[int, ...]]:
    clusters = [tuple(cluster) for cluster in keep_together if cluster]
    named = [index for cluster in clusters for index in cluster]
    if len(set(named)) < len(named):
        raise ValueError("An example is named by two clusters.")
    if any(not 0 <= index < count for index in named):
        raise ValueError(f"A cluster names an example outside 0 to {count - 1}.")
    taken = set(named)
    return clusters + [(index,) for index in range(count) if index not in taken]


def _count_fitting(units: Sequence[Sequence[int]], needed: Sequence[Ids], micro_tokens: int) -> int:
    """How many units, from the first on, make the next pack.

    When not all fit, the cut lies where the least is computed twice for what is got done.
    """
    held: list[Ids] = []
    size, best, lowest = 0, 1, float("inf")
    for count, unit in enumerate(units):
        apart = _added_tokens([], unit, needed)
        more = _added_tokens(held, unit, needed)
        if count:
            waste = (PASS_COST_TOKENS + apart - more) / max(size, 1)
            best, lowest = (count, waste) if waste <= lowest else (best, lowest)
            if more and size + more > micro_tokens:
                return best
        size += more
    return len(units)


def _added_tokens(held: list[Ids], unit: Sequence[int], needed: Sequence[Ids]) -> int:
    """How many nodes a unit adds to those of the sorted sequences, which then hold it."""
    nodes = 0
    for index in unit:
        ids = needed[index]
        place = bisect_left(held, ids)
        shared = max(
            (common_prefix_length(ids, near) for near in held[max(place - 1, 0) : place + 1]),
            default=0,
        )
        held.insert(place, ids)
        nodes += len(ids) - shared
    return nodes


def _build_pack(rows: Sequence[int], examples: Sequence[Example], tree: PrefixTree) -> TokenPack:
    members = [examples[index] for index in rows]
    predictions = [_predicted_tokens(m, path) for m, path in zip(members, tree.paths, strict=True)]
    entries = sorted({entry for row in predictions for entry in row})
    nodes = sorted({(node, heat) for node, heat, _ in entries})
    entry_at = {entry: at for at, entry in enumerate(entries)}
    node_at = {node: at for at, node in enumerate(nodes)}
    heated = any(heat != 1.0 for _, heat in nodes)
    turns = [_turn_nodes(m, path) for m, path in zip(members, tree.paths, strict=True)]
    return TokenPack(
        examples=tuple(rows),
        blocks=tree.blocks,
        ids_N=_long_tensor(tree.ids),
        positions_N=_long_tensor(tree.depths),
        ends_N=_long_tensor(tree.ends),
        nodes_M=_long_tensor([node for node, _ in nodes]),
        at_E=_long_tensor([node_at[node, heat] for node, heat, _ in entries]),
        tokens_E=_long_tensor([token for _, _, token in entries]),
        temperatures_M=torch.tensor([heat for _, heat in nodes]) if heated else None,
        entry_BT=_pad_rows([[entry_at[entry] for entry in row] for row in predictions]),
        mask_BT=_pad_rows([[1] * len(row) for row in predictions]).float(),
        turn_BT=_pad_rows([columns for columns, _ in turns]),
        turn_nodes_BK=_pad_rows([first for _, first in turns]),
        turn_mask_BK=_pad_rows([[1] * len(first) for _, first in turns]).float(),
    )


def _predicted_tokens(example: Example, path: Sequence[int]) -> list[tuple[int, float, int]]:
    """For each trained token the node before it, the temperature, and the token."""
    return [
        (path[at - 1], example.temperature, token)
        for at, (token, trained) in enumerate(zip(example.ids, example.trained, strict=True))
        if trained
    ]


def _turn_nodes(example: Example, path: Sequence[int]) -> tuple[list[int], list[int]]:
    """The turn of each trained token, counted among those that train, and the node before each."""
    first: dict[int, int] = {}
    columns: dict[int, int] = {}
    found: list[int] = []
    for at, (turn, trained) in enumerate(zip(example.turns, example.trained, strict=True)):
        if trained:
            first.setdefault(turn, path[at - 1])
            found.append(columns.setdefault(turn, len(columns)))
    return found, list(first.values())


def _long_tensor(values: Sequence[int] | Sequence[Sequence[int]]) -> Tensor:
    return torch.tensor(values, dtype=torch.long)


def _pad_rows(rows: Sequence[Sequence[int]]) -> Tensor:
    width = max(map(len, rows), default=0)
    return _long_tensor([[*row, *[0] * (width - len(row))] for row in rows]).view(len(rows), width)
