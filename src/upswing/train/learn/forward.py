"""What does the model say of the tokens of a pack: how likely, how undecided, how promising?

The decoder runs once over the pack's tree; the head only where a trained token comes next, in
slices of bounded size, so that a large vocabulary does not fill the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from upswing.train.learn.attention import plan_tree_attention, use_tree_attention
from upswing.train.learn.packing import TokenPack

LOGITS_PER_SLICE = 1 << 25
"""Logits that are held at once: 128 MB in single precision. A pack with more of them computes them
again for the gradient instead of keeping them."""

_PATTERNS = {"full_attention", "sliding_attention"}


@dataclass(frozen=True, slots=True)
class PackScores:
    """One row for each example of the pack; 0 where its mask is 0."""

    logps_BT: Tensor
    """Logprobs of the trained tokens."""
    entropies_BT: Tensor | None
    """Entropy of the distribution each was drawn from, in nats."""
    values_BK: Tensor | None
    """What the value head expects where a turn's first trained token comes next."""
    states_BKH: Tensor | None = None
    """What the value head reads there."""


def score_pack(
    model: nn.Module,
    pack: TokenPack,
    *,
    entropies: bool = False,
    value_head: Callable[[Tensor], Tensor] | None = None,
    states: bool = False,
    logits_per_slice: int = LOGITS_PER_SLICE,
) -> PackScores:
    """Logprobs, and what else is asked for, of a pack's trained tokens; all can be derived.

    Logprobs and entropies are of the distribution at each example's own temperature: the one that
    was sampled from, so that new, start and recorded logprobs speak of the same thing.

    `model` is a causal LM of transformers or peft's wrapper of one, with its adapter on or off.
    It is switched to tree attention, which changes nothing else about it.
    """
    lm = _unwrap_model(model)
    _check_supported(lm, pack)
    pack = pack.to(lm.device)
    if not len(pack.nodes_M):
        nothing = pack.mask_BT.new_zeros(pack.mask_BT.shape)
        values_BK = pack.turn_mask_BK.clone() if value_head is not None else None
        return PackScores(nothing, nothing if entropies else None, values_BK)
    hidden_NH = _hidden_states(lm, pack)
    logps_E, entropies_M = _logprobs_and_entropies(
        lm,
        hidden_NH[pack.nodes_M],
        pack,
        entropies=entropies,
        logits_per_slice=logits_per_slice,
    )
    values_BK = None
    if value_head is not None:
        expected_BK = value_head(hidden_NH[pack.turn_nodes_BK]).squeeze(-1)
        values_BK = expected_BK * pack.turn_mask_BK
    entropies_BT = None
    if entropies:
        entropies_BT = entropies_M[pack.at_E[pack.entry_BT]] * pack.mask_BT
    states_BKH = hidden_NH[pack.turn_nodes_BK] if states else None
    return PackScores(logps_E[pack.entry_BT] * pack.mask_BT, entropies_BT, values_BK, states_BKH)


@torch.no_grad()
def full_distributions(model: nn.Module, pack: TokenPack) -> list[Tensor]:
    """For each example of the pack, what the model says of all tokens wherever a trained one comes.

    Log-probabilities, one row a trained token and one column a token of the vocabulary: large, so
    it is for a few examples.
    """
    lm = _unwrap_model(model)
    _check_supported(lm, pack)
    pack = pack.to(lm.device)
    head: nn.Module = lm.get_output_embeddings()  # type: ignore[no-untyped-call]
    logits_MV = _final_logits(lm, head(_hidden_states(lm, pack)[pack.nodes_M]).float())
    logps_MV = torch.log_softmax(logits_MV, dim=-1).cpu()
    rows_BT = pack.at_E[pack.entry_BT].cpu()
    mask_BT = pack.mask_BT.cpu() > 0
    return [logps_MV[rows_T[mask_T]] for rows_T, mask_T in zip(rows_BT, mask_BT, strict=True)]


def _unwrap_model(model: nn.Module) -> PreTrainedModel:
    """The causal LM inside; an adapter lives in its layers and stays as it is, on or off."""
    inner: Any = model
    if hasattr(inner, "get_base_model"):
        inner = inner.get_base_model()
    if not isinstance(inner, PreTrainedModel):
        raise TypeError(f"{type(inner).__name__} is no model of transformers.")
    return inner


def _check_supported(lm: PreTrainedModel, pack: TokenPack) -> None:
    """Only attention over all that came before can be shared; anything else would be wrong."""
    config = lm.config.get_text_config()
    name = type(lm).__name__
    patterns = set(getattr(config, "layer_types", None) or ())
    if not lm._supports_attention_backend or lm._is_stateful or patterns - _PATTERNS:  # noqa: SLF001 - no public reader
        raise ValueError(f"{name} cannot share beginnings: its layers are not plain attention.")
    window = getattr(config, "sliding_window", None)
    if window is None or not getattr(config, "use_sliding_window", True):
        return
    depth = int(pack.positions_N.max()) + 1 if len(pack.positions_N) else 0
    if depth > window:
        raise ValueError(f"{name} sees {window} tokens at a time; an example has {depth}.")


def _hidden_states(lm: PreTrainedModel, pack: TokenPack) -> Tensor:
    use_tree_attention(lm)
    unread = torch.empty(1, 1, 1, 1, device=lm.device)  # four axes: transformers makes no mask
    out = lm.base_model(
        input_ids=pack.ids_N[None],
        position_ids=pack.positions_N[None],
        attention_mask=unread,
        use_cache=False,
        tree=plan_tree_attention(pack),
    )
    hidden_NH: Tensor = out.last_hidden_state[0]
    return hidden_NH


def _logprobs_and_entropies(
    lm: PreTrainedModel,
    hidden_MH: Tensor,
    pack: TokenPack,
    *,
    entropies: bool,
    logits_per_slice: int,
) -> tuple[Tensor, Tensor]:
    """Logprobs of the predictions, and entropies of the nodes (empty when not asked for)."""
    slices = list(_logit_slices(pack, lm.config.get_text_config().vocab_size, logits_per_slice))
    found = []
    for nodes, entries in slices:
        heat_M = None if pack.temperatures_M is None else pack.temperatures_M[nodes]
        at_E, tokens_E = pack.at_E[entries] - nodes.start, pack.tokens_E[entries]
        given = (lm, hidden_MH[nodes], heat_M, at_E, tokens_E)
        if len(slices) > 1:
            again: Any = {"use_reentrant": False, "preserve_rng_state": False}
            found.append(checkpoint(_slice_logprobs, *given, entropies, **again))
        else:
            found.append(_slice_logprobs(*given, entropies))
    return torch.cat([logps for logps, _ in found]), torch.cat([each for _, each in found])


def _logit_slices(
    pack: TokenPack, vocabulary: int, logits_per_slice: int
) -> Iterator[tuple[slice, slice]]:
    """Which nodes, and the predictions they make."""
    count, size = len(pack.nodes_M), max(1, logits_per_slice // vocabulary)
    starts = list(range(0, count, size))
    borders = torch.searchsorted(pack.at_E, torch.tensor(starts, device=pack.at_E.device)).tolist()
    for start, first, after in zip(starts, borders, [*borders[1:], len(pack.at_E)], strict=True):
        yield slice(start, min(start + size, count)), slice(first, after)


def _slice_logprobs(
    lm: PreTrainedModel,
    hidden_MH: Tensor,
    heat_M: Tensor | None,
    at_E: Tensor,
    tokens_E: Tensor,
    entropies: bool,
) -> tuple[Tensor, Tensor]:
    head: nn.Module = lm.get_output_embeddings()  # type: ignore[no-untyped-call]
    logits_MV = _final_logits(lm, head(hidden_MH).float())
    if heat_M is not None:
        logits_MV = logits_MV / heat_M[:, None]
    found: tuple[Tensor, Tensor] = _TokenLogprobs.apply(logits_MV, at_E, tokens_E, entropies)  # type: ignore[no-untyped-call]
    return found


def _final_logits(lm: PreTrainedModel, logits: Tensor) -> Tensor:
    """What some families do to the logits after the head."""
    config = lm.config.get_text_config()
    scale = getattr(config, "logit_scale", None) or getattr(config, "output_multiplier", None)
    if scaling := getattr(config, "logits_scaling", None):  # one family multiplies, others divide
        scale = scaling if config.model_type == "hyperclovax" else 1 / scaling
    logits = logits if scale in (None, 1) else logits * scale
    cap = getattr(config, "final_logit_softcapping", None)
    return logits if cap is None else torch.tanh(logits / cap) * cap


class _TokenLogprobs(torch.autograd.Function):
    """Log-softmax at some places, and its entropy, with one vocabulary-wide tensor kept."""

    @staticmethod
    def forward(
        ctx: Any, logits_MV: Tensor, at_E: Tensor, tokens_E: Tensor, entropies: bool
    ) -> tuple[Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        logps_MV = torch.log_softmax(logits_MV, dim=-1)
        entropies_M = logps_MV.new_empty(0)
        if entropies:
            entropies_M = -torch.einsum("mv,mv->m", logps_MV.exp(), logps_MV)
        ctx.save_for_backward(logps_MV, at_E, tokens_E, entropies_M)
        return logps_MV[at_E, tokens_E], entropies_M

    @staticmethod
    def backward(
        ctx: Any, grad_E: Tensor | None, grad_M: Tensor | None
    ) -> tuple[Tensor, None, None, None]:
        """∂ logp = one-hot − p, and ∂ entropy = −p · (log p + entropy)."""
        logps_MV, at_E, tokens_E, entropies_M = ctx.saved_tensors
        weight_M = logps_MV.new_zeros(len(logps_MV))
        if grad_E is not None:
            weight_M.index_add_(0, at_E, grad_E)
        grad_MV = logps_MV.exp()
        if grad_M is not None and len(entropies_M):
            spread_MV = (logps_MV + entropies_M[:, None]).mul_(grad_M[:, None])
            grad_MV.mul_(spread_MV.add_(weight_M[:, None])).neg_()
        else:
            grad_MV.mul_(-weight_M[:, None])
        if grad_E is not None:
            grad_MV.index_put_((at_E, tokens_E), grad_E, accumulate=True)
        return grad_MV, None, None, None
