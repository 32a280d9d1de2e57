"""Can this model run in a shared batch? It shows it, before anybody is served by it.

Most causal language models of Hugging Face can; one that keeps its past in another way than as keys
and values (a recurrent one, say) cannot, and is refused instead of answering wrongly.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from upswing.adapters.engines.slab import Slab
from upswing.errors import Misuse

_NEAR = 1e-3
_PLAIN = 4096
"""Tokens of context, where a model does not say."""


def context_of(model: Any) -> int:
    """Tokens that a conversation may have; within a window that slides, only what is always seen."""
    config = model.config.get_text_config()
    told = int(getattr(config, "max_position_embeddings", None) or _PLAIN)
    window = getattr(config, "sliding_window", None)
    if not window or getattr(config, "use_sliding_window", True) is False:
        return told
    return min(told, int(window))


def ends_of(model: Any, tokenizer: Any) -> frozenset[int]:
    """The tokens that end a reply, by the word of model and tokenizer."""
    told = model.generation_config.eos_token_id
    listed = told if isinstance(told, list) else [told]
    return frozenset(token for token in (*listed, tokenizer.eos_token_id) if token is not None)


def layers_of(model: Any) -> int:
    return int(model.config.get_text_config().num_hidden_layers)


def prove(model: Any, layers: int, name: str) -> int:
    """`Misuse`, unless two sequences in one batch come out as each does alone.

    The bytes that a token takes in the batch.
    """
    slab = Slab(layers)
    try:
        with torch.inference_mode():
            apart = _difference(model, slab)
    except Exception as error:  # whatever it is: it does not run so
        raise Misuse(f"{name} cannot run in a shared batch: {error}") from error
    if not apart <= _NEAR:
        raise Misuse(f"{name} computes something else in a shared batch: it cannot be served here.")
    return slab.token_bytes


def _difference(model: Any, slab: Slab) -> float:
    size = model.get_input_embeddings().num_embeddings
    rows = [[(7 * at + 3) % size for at in range(count)] for count in (9, 5)]
    for row, ids in enumerate(rows):
        _run(model, slab, [ids[:2]], slab.read(row, 0, 2))
        _run(model, slab, [ids[2:-1]], slab.read(row, 2, len(ids) - 3))
    seen = slab.speak([len(ids) - 1 for ids in rows])
    together_BV = _run(model, slab, [ids[-1:] for ids in rows], seen)
    apart = [model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1] for ids in rows]
    return max(
        float((mine_V - alone_V).abs().max())
        for mine_V, alone_V in zip(together_BV, apart, strict=True)
    )


def _run(model: Any, slab: Slab, ids: list[list[int]], seen: dict[str, Tensor]) -> Tensor:
    tokens_BT = torch.tensor(ids, dtype=torch.long)
    out = model(
        input_ids=tokens_BT,
        past_key_values=slab.cache,
        use_cache=True,
        logits_to_keep=1,
        **seen,
    )
    logits_BV: Tensor = out.logits[:, -1]
    return logits_BV
