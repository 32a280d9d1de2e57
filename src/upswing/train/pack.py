"""Which examples pass through the model together, so that little is computed twice?

A pack is one forward pass. Its examples are merged into a tree of tokens (`train/tree.py`), so a
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

from upswing.train.example import Example
from upswing.train.tree import Block, Ids, Tree, common, grow

PASS_COST = 64
"""One more pass costs about as much as so many tokens; when sharing is cut, this is weighed in."""


@dataclass(frozen=True, slots=True)
class Pack:
    """One forward pass.

    N nodes   M nodes that predict   E predictions   B examples   T trained tokens   K turns
    """

    examples: tuple[int, ...]
    """Which of the given examples the rows are, ascending."""
    blocks: tuple[Block, ...]
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

    def to(self, device: torch.device | str) -> Pack:
        """The same pack on another device."""
        held: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        moved = {name: x.to(device) for name, x in held.items() if isinstance(x, Tensor)}
        return Pack(**held | moved)


def packs(
    examples: Sequence[Example],
    *,
    micro_tokens: int,
    together: Iterable[Sequence[int]] = (),
) -> list[Pack]:
    """Every example in one pack, of at most `micro_tokens` nodes unless one alone is longer.

    Those that begin alike stand together; where they do not fit, each of their packs computes the
    beginning once. The indices of each cluster in `together` share a pack whatever its size. A
    cluster may not name what another one names: list such an example twice, its tokens still count
    once.
    """
    needed = [_needed(index, example) for index, example in enumerate(examples)]
    units = sorted(_units(len(examples), together), key=lambda unit: min(needed[i] for i in unit))
    found: list[Pack] = []
    while units:
        count = _fitting(units, needed, micro_tokens)
        rows = sorted(index for unit in units[:count] for index in unit)
        found.append(_pack(rows, examples, grow([needed[index] for index in rows])))
        units = units[count:]
    return found


def _needed(index: int, example: Example) -> Ids:
    """The tokens whose states some prediction needs."""
    if not len(example.ids) == len(example.trained) == len(example.turns):
        raise ValueError(f"Example {index}: ids, trained and turns differ in length.")
    if any(example.trained[:1]):
        raise ValueError(f"Example {index} trains its first token, which nothing predicts.")
    last = max((at for at, trained in enumerate(example.trained) if trained), default=0)
    return example.ids[:last]


def _units(count: int, together: Iterable[Sequence[int]]) -> list[tuple[int, ...]]:
    clusters = [tuple(cluster) for cluster in together if cluster]
    named = [index for cluster in clusters for index in cluster]
    if len(set(named)) < len(named):
        raise ValueError("An example is named by two clusters.")
    if any(not 0 <= index < count for index in named):
        raise ValueError(f"A cluster names an example outside 0 to {count - 1}.")
    taken = set(named)
    return clusters + [(index,) for index in range(count) if index not in taken]


def _fitting(units: Sequence[Sequence[int]], needed: Sequence[Ids], micro_tokens: int) -> int:
    """How many units, from the first on, make the next pack.

    When not all fit, the cut lies where the least is computed twice for what is got done.
    """
    held: list[Ids] = []
    size, best, lowest = 0, 1, float("inf")
    for count, unit in enumerate(units):
        apart = _added([], unit, needed)
        more = _added(held, unit, needed)
        if count:
            waste = (PASS_COST + apart - more) / max(size, 1)
            best, lowest = (count, waste) if waste <= lowest else (best, lowest)
            if more and size + more > micro_tokens:
                return best
        size += more
    return len(units)


def _added(held: list[Ids], unit: Sequence[int], needed: Sequence[Ids]) -> int:
    """How many nodes a unit adds to those of the sorted sequences, which then hold it."""
    nodes = 0
    for index in unit:
        ids = needed[index]
        place = bisect_left(held, ids)
        shared = max((common(ids, near) for near in held[max(place - 1, 0) : place + 1]), default=0)
        held.insert(place, ids)
        nodes += len(ids) - shared
    return nodes


def _pack(rows: Sequence[int], examples: Sequence[Example], tree: Tree) -> Pack:
    members = [examples[index] for index in rows]
    predictions = [_predictions(m, path) for m, path in zip(members, tree.paths, strict=True)]
    entries = sorted({entry for row in predictions for entry in row})
    nodes = sorted({(node, heat) for node, heat, _ in entries})
    entry_at = {entry: at for at, entry in enumerate(entries)}
    node_at = {node: at for at, node in enumerate(nodes)}
    heated = any(heat != 1.0 for _, heat in nodes)
    turns = [_turns(m, path) for m, path in zip(members, tree.paths, strict=True)]
    return Pack(
        examples=tuple(rows),
        blocks=tree.blocks,
        ids_N=_long(tree.ids),
        positions_N=_long(tree.depths),
        ends_N=_long(tree.ends),
        nodes_M=_long([node for node, _ in nodes]),
        at_E=_long([node_at[node, heat] for node, heat, _ in entries]),
        tokens_E=_long([token for _, _, token in entries]),
        temperatures_M=torch.tensor([heat for _, heat in nodes]) if heated else None,
        entry_BT=_rectangle([[entry_at[entry] for entry in row] for row in predictions]),
        mask_BT=_rectangle([[1] * len(row) for row in predictions]).float(),
        turn_BT=_rectangle([columns for columns, _ in turns]),
        turn_nodes_BK=_rectangle([first for _, first in turns]),
        turn_mask_BK=_rectangle([[1] * len(first) for _, first in turns]).float(),
    )


def _predictions(example: Example, path: Sequence[int]) -> list[tuple[int, float, int]]:
    """For each trained token the node before it, the temperature, and the token."""
    return [
        (path[at - 1], example.temperature, token)
        for at, (token, trained) in enumerate(zip(example.ids, example.trained, strict=True))
        if trained
    ]


def _turns(example: Example, path: Sequence[int]) -> tuple[list[int], list[int]]:
    """The turn of each trained token, counted among those that train, and the node before each."""
    first: dict[int, int] = {}
    columns: dict[int, int] = {}
    found: list[int] = []
    for at, (turn, trained) in enumerate(zip(example.turns, example.trained, strict=True)):
        if trained:
            first.setdefault(turn, path[at - 1])
            found.append(columns.setdefault(turn, len(columns)))
    return found, list(first.values())


def _long(values: Sequence[int] | Sequence[Sequence[int]]) -> Tensor:
    return torch.tensor(values, dtype=torch.long)


def _rectangle(rows: Sequence[Sequence[int]]) -> Tensor:
    width = max(map(len, rows), default=0)
    return _long([[*row, *[0] * (width - len(row))] for row in rows]).view(len(rows), width)
