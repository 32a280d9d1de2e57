"""How do the tokens of a tree see their ancestors and nobody else, without an N × N mask?

Block by block: each block's queries look at their ancestors' keys and at their own block, in one
call of PyTorch's attention. Two sequences that share nothing never meet, and a long beginning is
looked at but not looked from again. Transformers calls `tree_attention` because the model's
configuration names it; without a tree it is the usual `sdpa`, so generating goes on as before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import repeat_kv, sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from upswing.train.learn.packing import TokenPack
from upswing.train.learn.tree import AttentionBlock

ATTENTION_NAME = "upswing_tree"


@dataclass(frozen=True, slots=True)
class TreeAttentionPlan:
    """Who sees whom in one pass: the blocks, and a mask for each that is no plain chain."""

    blocks: tuple[AttentionBlock, ...]
    sizes: list[int]
    masks: tuple[Tensor | None, ...]


def plan_tree_attention(pack: TokenPack) -> TreeAttentionPlan:
    """Made once for all layers."""
    masks = tuple(None if block.chain else _block_mask(pack, block) for block in pack.blocks)
    return TreeAttentionPlan(
        pack.blocks, [block.stop - block.start for block in pack.blocks], masks
    )


def _block_mask(pack: TokenPack, block: AttentionBlock) -> Tensor:
    """Ancestor or self: the numbering of the tree makes it two comparisons."""
    nodes_N = torch.arange(len(pack.ids_N), device=pack.ids_N.device)
    starts = [(pack.blocks[number].start, low, high) for number, low, high in block.before]
    own_Q = nodes_N[block.start : block.stop]
    keys_K = torch.cat([*(nodes_N[at + low : at + high] for at, low, high in starts), own_Q])
    mask_QK = (keys_K <= own_Q[:, None]) & (own_Q[:, None] < pack.ends_N[keys_K])
    return mask_QK[None, None]


def use_tree_attention(model: PreTrainedModel) -> None:
    """Let a model's layers call `tree_attention`, now and when gradients recompute them."""
    if model.config._attn_implementation != ATTENTION_NAME:  # noqa: SLF001 - it has no public reader
        model.set_attn_implementation(ATTENTION_NAME)


def tree_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    dropout: float = 0.0,
    scaling: float | None = None,
    tree: TreeAttentionPlan | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Transformers' attention function: heads × tokens × width in, tokens × heads × width out."""
    if tree is None:
        plain: tuple[Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **kwargs
        )
        return plain
    share = key.shape[1] != query.shape[1]
    if share and query.device.type != "cpu":  # only the CPU's fast kernel takes a mask with it
        key, value = (repeat_kv(x, query.shape[1] // key.shape[1]) for x in (key, value))
        share = False
    queries, keys, values = (torch.split(x, tree.sizes, dim=2) for x in (query, key, value))
    seen = [
        scaled_dot_product_attention(
            queries[number],
            _with_ancestor_blocks(keys, number, block),
            _with_ancestor_blocks(values, number, block),
            attn_mask=tree.masks[number],
            dropout_p=dropout,
            is_causal=block.chain,
            scale=scaling,
            enable_gqa=share,
        ).transpose(1, 2)
        for number, block in enumerate(tree.blocks)
    ]
    return torch.cat(seen, dim=1), None


def _with_ancestor_blocks(parts: Sequence[Tensor], number: int, block: AttentionBlock) -> Tensor:
    if not block.before:
        return parts[number]
    ancestors = (parts[at][:, :, low:high] for at, low, high in block.before)
    return torch.cat([*ancestors, parts[number]], dim=2)


AttentionInterface.register(ATTENTION_NAME, tree_attention)
AttentionMaskInterface.register(ATTENTION_NAME, sdpa_mask)
