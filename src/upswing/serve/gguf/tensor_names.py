"""What does GGUF call a layer that training knows by its Hugging Face name, and how is it stored?

| Hugging Face                       | GGUF                  | rows                                |
|------------------------------------|-----------------------|-------------------------------------|
| `model.layers.7.self_attn.q_proj`  | `blk.7.attn_q`        | of a `llama`: halves woven, by head |
| `model.layers.7.self_attn.k_proj`  | `blk.7.attn_k`        | the same, by head of the keys       |
| `model.layers.7.mlp.down_proj`     | `blk.7.ffn_down`      | as they are                         |

Hugging Face turns the first half of a head against its second, llama.cpp's `llama` each even row
against the odd one behind it: so the rows of queries and keys change places, and with them those of
the adapter's upper matrix.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from upswing.errors import Reason, Rejected
from upswing.serve.gguf.base import ARCHITECTURES, GgufBase
from upswing.train.checkpoints.safe_reading import quote_name

_LAYER = re.compile(r"(?:model\.)?layers\.(\d{1,4})\.(self_attn|mlp)\.(\w+)")
_GGUF_NAMES = {
    ("self_attn", "q_proj"): "attn_q",
    ("self_attn", "k_proj"): "attn_k",
    ("self_attn", "v_proj"): "attn_v",
    ("self_attn", "o_proj"): "attn_output",
    ("mlp", "gate_proj"): "ffn_gate",
    ("mlp", "up_proj"): "ffn_up",
    ("mlp", "down_proj"): "ffn_down",
}
_HEAD, _GGUF_HEAD = "lm_head", "output"


@dataclass(frozen=True, slots=True)
class AdapterTarget:
    """Where an adapter's pair of matrices goes."""

    tensor: str
    """Of the base, as GGUF calls it, with `.weight` at its end."""
    interleaved_heads: int | None = None
    """How many heads the rows belong to, where their order changes."""


def adapter_target(module: str, base: GgufBase) -> AdapterTarget:
    """Where the adapter of this layer goes, or `Rejected` where llama.cpp has no place for it."""
    if module == _HEAD:
        if f"{_GGUF_HEAD}.weight" not in base.tensors:
            raise _tensor_rejection(
                "The adapter changes `lm_head`, which is one with the embedding in this GGUF base: "
                "llama.cpp cannot change one and not the other."
            )
        return AdapterTarget(f"{_GGUF_HEAD}.weight")
    found = _LAYER.fullmatch(module)
    inside = _GGUF_NAMES.get((found[2], found[3])) if found else None
    if found is None or inside is None:
        raise _tensor_rejection(
            f"llama.cpp has no name for the layer {quote_name(module)} of the adapter."
        )
    tensor = f"blk.{int(found[1])}.{inside}.weight"
    if tensor not in base.tensors:
        raise _tensor_rejection(f"The GGUF base has no {tensor}, which the adapter changes.")
    return AdapterTarget(tensor, _interleaved_heads(inside, base))


def interleaved_rows(rows: int, heads: int) -> list[int]:
    """For each row in llama.cpp's order, which of Hugging Face's it is.

    >>> interleaved_rows(8, 2)
    [0, 2, 1, 3, 4, 6, 5, 7]
    """
    if rows % (2 * heads):
        raise _tensor_rejection(f"{rows} rows cannot be shared among {heads} heads.")
    size = rows // heads
    half = size // 2
    return [
        head * size + side * half + offset
        for head in range(heads)
        for offset in range(half)
        for side in range(2)
    ]


def _interleaved_heads(inside: str, base: GgufBase) -> int | None:
    if ARCHITECTURES[base.architecture] == "plain":
        return None
    return {"attn_q": base.heads, "attn_k": base.kv_heads}.get(inside)


def _tensor_rejection(sentence: str) -> Rejected:
    return Rejected(Reason.SCHEMA, sentence)
