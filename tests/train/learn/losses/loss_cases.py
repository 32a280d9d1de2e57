"""Random steps for the losses: masks with holes, padding, clips on both sides."""

from dataclasses import fields, replace

import torch
from hypothesis import settings
from hypothesis import strategies as st

from upswing.train.learn.losses.dpo import dpo_loss
from upswing.train.learn.losses.grpo import grpo_loss
from upswing.train.learn.losses.kto import kto_loss
from upswing.train.learn.losses.ppo import ppo_loss
from upswing.train.learn.losses.reinforce import reinforce_loss
from upswing.train.learn.losses.rloo import rloo_loss
from upswing.train.learn.losses.sft import imitation_loss, sft_loss
from upswing.train.learn.losses.terms import LossInputs, token_weights

LAW = settings(deadline=None, max_examples=30)
"""The first gradient of a process takes long, and every law is tried on every loss."""
CLIP = {"clip_low": 0.2, "clip_high": 0.28}
CALM = {"kl_beta": 0.1, "entropy": 0.01}
OFF = {"dual_clip": 3.0, "cap": 3.0}
LOSSES = {
    "reinforce": lambda tokens: reinforce_loss(tokens, truncate=1.28, cap=3.0, **CALM),
    "textbook": lambda tokens: reinforce_loss(tokens, truncate=None, **CALM),
    "rloo": lambda tokens: rloo_loss(tokens, **CLIP, **OFF, entropy=0.01),
    "rloo of products": lambda tokens: rloo_loss(tokens, **CLIP, entropy=0.01, normalise=False),
    "grpo": lambda tokens: grpo_loss(tokens, **CLIP, **CALM, **OFF),
    "gspo": lambda tokens: grpo_loss(tokens, **CLIP, **CALM, **OFF, ratio="sequence"),
    "ppo": lambda tokens: ppo_loss(tokens, **CLIP, **CALM, **OFF, value_weight=0.5),
    "ppo with clipped values": lambda tokens: ppo_loss(
        tokens, **CLIP, **CALM, value_weight=0.5, value_clip=0.2
    ),
    "dpo": lambda tokens: dpo_loss(
        *sides(tokens), beta=0.3, sft_weight=0.2, chosen_mean_P=mean(tokens)
    ),
    "sft": lambda tokens: sft_loss(tokens.logps_BT, tokens.mask_BT, tokens.weights_BT),
    "imitation": lambda tokens: imitation_loss(tokens, **CALM),
    "kto": lambda tokens: kto_loss(*answers(tokens), kl=0.2, beta=0.3, undesirable_weight=1.5),
}
"""Every loss as a function of tokens; DPO pairs the sequences 0 and 1, 2 and 3, …"""


def answers(tokens):
    sums_B = (tokens.logps_BT * tokens.mask_BT).sum(1)
    reference_B = (tokens.ref_BT * tokens.mask_BT).sum(1)
    return sums_B, reference_B, tokens.advantages_BT.sum(1) > 0, tokens.sequence_weights_B


def sides(tokens):
    sums_B = (tokens.logps_BT * tokens.mask_BT).sum(1)
    reference_B = (tokens.ref_BT * tokens.mask_BT).sum(1)
    pair_weights = tokens.sequence_weights_B[::2] + tokens.sequence_weights_B[1::2]
    return sums_B[::2], sums_B[1::2], reference_B[::2], reference_B[1::2], pair_weights


def mean(tokens):
    sums_B = (tokens.logps_BT * tokens.mask_BT).sum(1)
    return (sums_B / tokens.mask_BT.sum(1).clamp(min=1.0))[::2]


def a_step(seed=0, sequences=8, length=7, turns=3, reduce="token"):
    """A whole step in double precision, so that sums in another order are the same sums."""
    chance = torch.Generator().manual_seed(seed)

    def noise(*shape, size=0.5):
        return size * torch.randn(*shape, generator=chance, dtype=torch.float64)

    mask_BT = (torch.rand(sequences, length, generator=chance) < 0.7).double()
    mask_BT[0, 0] = 1.0
    old_BT = noise(sequences, length) - 2.0
    turn_mask_BK = (torch.arange(turns) < 1 + torch.arange(sequences)[:, None] % turns).double()
    old_values_BK = noise(sequences, turns)
    return LossInputs(
        logps_BT=(old_BT + noise(sequences, length)).requires_grad_(),
        old_BT=old_BT,
        mask_BT=mask_BT,
        advantages_BT=noise(sequences, length, size=1.0) * mask_BT,
        weights_BT=token_weights(mask_BT, reduce, max_tokens=length),
        sequence_weights_B=torch.full((sequences,), 1 / sequences, dtype=torch.float64),
        start_BT=old_BT + noise(sequences, length, size=0.3),
        ref_BT=old_BT + noise(sequences, length),
        entropies_BT=(noise(sequences, length) + 2.0).requires_grad_(),
        values_BK=(old_values_BK + noise(sequences, turns)).requires_grad_(),
        old_values_BK=old_values_BK,
        returns_BK=noise(sequences, turns),
        turn_mask_BK=turn_mask_BK,
        turn_weights_BK=token_weights(turn_mask_BK, "token"),
        shares_BT=token_weights(mask_BT, "token"),
    )


steps = st.builds(
    a_step,
    seed=st.integers(0, 2**31),
    sequences=st.sampled_from([2, 4, 6, 8]),
    length=st.integers(1, 9),
    reduce=st.sampled_from(["sequence", "token", "constant"]),
)

NAMES = [each.name for each in fields(LossInputs)]


def taken(tokens, places):
    """The sequences at these places, as a micro-batch or in another order."""
    return replace(tokens, **{name: getattr(tokens, name)[places] for name in NAMES})


def gradients(tokens, losses):
    """What the leaves of a step get from the sum of some losses."""
    leaves = (tokens.logps_BT, tokens.entropies_BT, tokens.values_BK)
    found = torch.autograd.grad(sum(losses), leaves, allow_unused=True)
    return [
        torch.zeros_like(leaf) if each is None else each
        for leaf, each in zip(leaves, found, strict=True)
    ]
