"""Can this model run in a shared batch? It is tried before the model serves a request.

Most causal language models of Hugging Face can; one whose state is not keys and values (a recurrent one, say) cannot, and is refused instead of answering wrongly.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from upswing.errors import Misuse
from upswing.serve.engines.kv_cache import KVCache

_TOLERANCE = 1e-3
_DEFAULT_CONTEXT = 4096
"""Tokens of context, where a model does not say."""


def context_length(model: Any) -> int:
    """Tokens that a conversation may have; within a window that slides, only what is always seen."""
    config = model.config.get_text_config()
    declared = int(getattr(config, "max_position_embeddings", None) or _DEFAULT_CONTEXT)
    window = getattr(config, "sliding_window", None)
    if not window or getattr(config, "use_sliding_window", True) is False:
        return declared
    return min(declared, int(window))


def eos_token_ids(model: Any, tokenizer: Any) -> frozenset[int]:
    """The tokens that end a reply, as model and tokenizer declare them."""
    declared = model.generation_config.eos_token_id
    declared_ids = declared if isinstance(declared, list) else [declared]
    return frozenset(
        token for token in (*declared_ids, tokenizer.eos_token_id) if token is not None
    )


def layer_count(model: Any) -> int:
    return int(model.config.get_text_config().num_hidden_layers)


def check_batching(model: Any, num_layers: int, name: str) -> int:
    """`Misuse`, unless two sequences in one batch come out as each does alone.

    Returns the bytes that a token takes in the KV cache.
    """
    kv_cache = KVCache(num_layers)
    try:
        with torch.inference_mode():
            difference = _max_logit_difference(model, kv_cache)
    except Exception as error:  # whatever it is: it does not run so
        raise Misuse(f"{name} cannot run in a shared batch: {error}") from error
    if not difference <= _TOLERANCE:
        raise Misuse(f"{name} computes something else in a shared batch: it cannot be served here.")
    return kv_cache.bytes_per_token


def _max_logit_difference(model: Any, kv_cache: KVCache) -> float:
    size = model.get_input_embeddings().num_embeddings
    rows = [[(7 * index + 3) % size for index in range(count)] for count in (9, 5)]
    for row, ids in enumerate(rows):
        _forward_pass(model, kv_cache, [ids[:2]], kv_cache.begin_prefill(row, 0, 2))
        _forward_pass(model, kv_cache, [ids[2:-1]], kv_cache.begin_prefill(row, 2, len(ids) - 3))
    inputs = kv_cache.begin_decode([len(ids) - 1 for ids in rows])
    batched_BV = _forward_pass(model, kv_cache, [ids[-1:] for ids in rows], inputs)
    alone = [model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1] for ids in rows]
    return max(
        float((batched_V - alone_V).abs().max())
        for batched_V, alone_V in zip(batched_BV, alone, strict=True)
    )


def _forward_pass(
    model: Any, kv_cache: KVCache, ids: list[list[int]], inputs: dict[str, Tensor]
) -> Tensor:
    tokens_BT = torch.tensor(ids, dtype=torch.long)
    out = model(
        input_ids=tokens_BT,
        past_key_values=kv_cache.hf_cache,
        use_cache=True,
        logits_to_keep=1,
        **inputs,
    )
    logits_BV: Tensor = out.logits[:, -1]
    return logits_BV
