"""Which tokens of some sequences are the same computation, and who looks at whom?

A token's hidden state depends on the tokens before it and on nothing else, so sequences that begin
alike share the states of their common beginning. Merged token by token they form a tree: one node
for each distinct prefix. Nodes are numbered in the order in which the sorted sequences reach them,
so that everything below a node follows it without a gap: `j` is an ancestor of `i`, or `i` itself,
exactly when `j <= i < ends[j]`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Ids = tuple[int, ...]
Span = tuple[int, int]
BlockSpan = tuple[int, int, int]
"""A block's number, and from where to where, counted from that block's start."""

CALL_COST_PAIRS = 2048
"""One more call of the attention kernel costs about as much as so many query-key pairs."""


@dataclass(frozen=True, slots=True)
class AttentionBlock:
    """Queries `start` to `stop`, and the keys they look at: ancestors before them, and themselves."""

    start: int
    stop: int
    before: tuple[BlockSpan, ...]
    """Ancestors that earlier blocks hold."""
    chain: bool
    """Nothing is before and nothing branches: each query sees all keys up to itself."""


@dataclass(frozen=True, slots=True)
class PrefixTree:
    """Distinct prefixes of some sequences."""

    ids: tuple[int, ...]
    depths: tuple[int, ...]
    """How many tokens stand before a node: its position."""
    ends: tuple[int, ...]
    """The first node that is no longer below."""
    paths: tuple[tuple[int, ...], ...]
    """For each sequence the nodes of its tokens."""
    blocks: tuple[AttentionBlock, ...]


@dataclass(frozen=True, slots=True)
class _TokenRun:
    """What one sequence adds to those before it."""

    start: int
    size: int
    path: Sequence[int]
    """The nodes it shares with them."""


def common_prefix_length(first: Ids, second: Ids) -> int:
    """How many tokens both begin with.

    >>> common_prefix_length((1, 2, 3, 4), (1, 2, 4)), common_prefix_length((1,), (2,)), common_prefix_length((5, 6), (5, 6))
    (2, 0, 2)
    """
    low, high = 0, min(len(first), len(second))
    if first[:high] == second[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle
    return low


def build_prefix_tree(
    sequences: Sequence[Ids], *, call_cost_pairs: int = CALL_COST_PAIRS
) -> PrefixTree:
    """The tree of these sequences; `call_cost_pairs` decides which runs share an attention call.

    >>> tree = build_prefix_tree([(7, 8, 9), (7, 8), (7, 5)])
    >>> tree.ids, tree.depths, tree.ends
    ((7, 5, 8, 9), (0, 1, 1, 2), (4, 2, 4, 4))
    >>> tree.paths
    ((0, 2, 3), (0, 2), (0, 1))
    """
    ids: list[int] = []
    depths: list[int] = []
    ends: list[int] = []
    paths: list[tuple[int, ...]] = [()] * len(sequences)
    runs: list[_TokenRun] = []
    before: Ids = ()
    path: tuple[int, ...] = ()
    for index in sorted(range(len(sequences)), key=lambda index: sequences[index]):
        sequence, start = sequences[index], len(ids)
        shared = common_prefix_length(before, sequence)
        for node in path[shared:]:
            ends[node] = start
        ids += sequence[shared:]
        depths += range(shared, len(sequence))
        ends += [0] * (len(sequence) - shared)
        if len(ids) > start:
            runs.append(_TokenRun(start, len(ids) - start, path[:shared]))
        before, path = sequence, (*path[:shared], *range(start, len(ids)))
        paths[index] = path
    for node in path:
        ends[node] = len(ids)
    return PrefixTree(
        tuple(ids),
        tuple(depths),
        tuple(ends),
        tuple(paths),
        tuple(_attention_blocks(runs, call_cost_pairs)),
    )


def _attention_blocks(runs: Sequence[_TokenRun], call_cost_pairs: int) -> list[AttentionBlock]:
    """Runs side by side share a call when that costs less than a call of their own."""
    blocks: list[AttentionBlock] = []
    for bundle in _merge_runs(runs, call_cost_pairs):
        first, last = bundle[0], bundle[-1]
        before = tuple(_ancestor_ranges(blocks, first.path))
        chain = len(bundle) == 1 and not before
        blocks.append(AttentionBlock(first.start, last.start + last.size, before, chain))
    return blocks


def _merge_runs(runs: Sequence[_TokenRun], call_cost_pairs: int) -> Iterator[list[_TokenRun]]:
    bundle: list[_TokenRun] = []
    size, cost = 0, 0
    for run in runs:
        alone = _cost_alone(run)
        joined = _attention_pairs(size + run.size, len(bundle[0].path)) if bundle else 0
        if bundle and joined <= cost + alone + call_cost_pairs:
            bundle.append(run)
            size, cost = size + run.size, joined
            continue
        if bundle:
            yield bundle
        bundle, size, cost = [run], run.size, alone
    if bundle:
        yield bundle


def _attention_pairs(queries: int, before: int) -> int:
    return queries * (before + queries)


def _cost_alone(run: _TokenRun) -> int:
    """A chain with nothing before it needs only half: the kernel skips what comes later."""
    pairs = _attention_pairs(run.size, len(run.path))
    return pairs if run.path else pairs // 2


def _ancestor_ranges(blocks: Sequence[AttentionBlock], path: Sequence[int]) -> Iterator[BlockSpan]:
    """The path's nodes as stretches of the blocks that hold them."""
    for start, stop in _contiguous_spans(path):
        low = start
        while low < stop:
            number = bisect_right(blocks, low, key=_block_start) - 1
            block = blocks[number]
            high = min(stop, block.stop)
            yield number, low - block.start, high - block.start
            low = high


def _block_start(block: AttentionBlock) -> int:
    return block.start


def _contiguous_spans(path: Sequence[int]) -> Iterator[Span]:
    """From where to where a path runs without a gap.

    >>> list(_contiguous_spans([0, 1, 2, 7, 8, 11]))
    [(0, 3), (7, 9), (11, 12)]
    """
    start = 0
    for index in range(1, len(path) + 1):
        if index == len(path) or path[index] != path[index - 1] + 1:
            yield path[start], path[index - 1] + 1
            start = index
