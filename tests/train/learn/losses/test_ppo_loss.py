"""PPO against numbers worked out by hand, and against a reference in plain numpy."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from loss_cases import LAW, a_step, gradients, steps

from upswing.train.learn.gae import compute_gae, rewards_by_turn
from upswing.train.learn.losses.ppo import ppo_loss
from upswing.train.learn.losses.terms import LossInputs, token_weights


def test_a_step_worked_out_by_hand():
    """Two trajectories: two turns of one token each, and one turn of two tokens.

    gamma 1, lambda 0.5, clip 0.2 both ways, value weight 0.5, entropy 0.1.

    First: rewards 0, 1; values 0.5, 0.75.
        surprises   0 + 0.75 - 0.5 = 0.25     1 + 0 - 0.75 = 0.25
        advantages  0.25 + 0.5·0.25 = 0.375   0.25
        returns     0.375 + 0.5 = 0.875       0.25 + 0.75 = 1
    Second: reward 0, value 0.5: surprise = advantage = -0.5, return 0.

    Ratios 1.5, 1.1 | 0.5, 0.9.
        1.5 · 0.375 = 0.5625, clipped 1.2 · 0.375 = 0.45   → 0.45    stopped
        1.1 · 0.25  = 0.275                                → 0.275
        0.5 · -0.5  = -0.25,  clipped 0.8 · -0.5 = -0.4    → -0.4    stopped
        0.9 · -0.5  = -0.45                                → -0.45
        policy loss = -(0.45 + 0.275 - 0.4 - 0.45) / 4 = 0.03125
    Values now 0.625, 1.0 | 0.25: errors -0.25, 0, 0.25.
        value loss = ½ · (0.0625 + 0 + 0.0625) / 3 = 0.0208333
    Entropies 1, 2, 3, 2: mean 2.
    Loss = 0.03125 + 0.5 · 0.0208333 - 0.1 · 2 = -0.1583333

    The gradient of a token that was not stopped is -ratio · advantage / 4:
        -1.1 · 0.25 / 4 = -0.06875            0.9 · 0.5 / 4 = 0.1125
    """
    (first, second), returns = compute_gae(
        rewards_by_turn(1.0, None, 2), (0.5, 0.75), gamma=1.0, lam=0.5
    )
    assert ((first, second), returns) == ((0.375, 0.25), (0.875, 1.0))
    assert compute_gae((0.0,), (0.5,), gamma=1.0, lam=0.5) == ((-0.5,), (0.0,))

    mask_BT = torch.ones(2, 2, dtype=torch.float64)
    turn_mask_BK = torch.tensor([[1.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
    old_BT = torch.full((2, 2), -1.0, dtype=torch.float64)
    ratios = torch.tensor([[1.5, 1.1], [0.5, 0.9]], dtype=torch.float64)
    tokens = LossInputs(
        logps_BT=(old_BT + ratios.log()).requires_grad_(),
        old_BT=old_BT,
        mask_BT=mask_BT,
        advantages_BT=torch.tensor([[0.375, 0.25], [-0.5, -0.5]], dtype=torch.float64),
        weights_BT=token_weights(mask_BT, "token"),
        sequence_weights_B=torch.tensor([0.5, 0.5]),
        entropies_BT=torch.tensor([[1.0, 2.0], [3.0, 2.0]], dtype=torch.float64),
        values_BK=torch.tensor([[0.625, 1.0], [0.25, 9.0]], dtype=torch.float64),
        returns_BK=torch.tensor([[0.875, 1.0], [0.0, 0.0]], dtype=torch.float64),
        turn_mask_BK=turn_mask_BK,
        turn_weights_BK=token_weights(turn_mask_BK, "token"),
    )
    terms = ppo_loss(tokens, clip_low=0.2, clip_high=0.2, value_weight=0.5, entropy=0.1)
    assert terms.loss.item() == pytest.approx(0.03125 + 0.5 * 0.125 / 6 - 0.2)
    assert terms.stats["value_loss"] == pytest.approx(0.125 / 6)
    assert terms.stats["clipped"] == 0.5
    assert terms.stats["entropy"] == 2.0
    (found,) = torch.autograd.grad(terms.loss, [tokens.logps_BT])
    assert found.flatten().tolist() == pytest.approx([0.0, -0.06875, 0.0, 0.1125])


def reference(step, low, high, value_weight, entropy, value_clip, dual, cap):
    """The loss and the gradients, token by token and turn by turn."""
    see = {name: getattr(step, name).detach().numpy() for name in step.__slots__}
    loss, logps, values = 0.0, np.zeros_like(see["logps_BT"]), np.zeros_like(see["values_BK"])
    for at in np.argwhere(see["mask_BT"] == 1):
        b, t = at
        ratio = np.exp(see["logps_BT"][b, t] - see["start_BT"][b, t])
        trust = min(cap, np.exp(see["start_BT"][b, t] - see["old_BT"][b, t]))
        gain, weight = see["advantages_BT"][b, t], see["weights_BT"][b, t]
        free, bounded = ratio * gain, min(max(ratio, 1 - low), 1 + high) * gain
        least = dual * gain if gain < 0 else -np.inf
        loss -= weight * trust * max(min(free, bounded), least)
        loss -= entropy * weight * see["entropies_BT"][b, t]
        logps[b, t] = -weight * trust * free if least <= free <= bounded else 0.0
    for at in np.argwhere(see["turn_mask_BK"] == 1):
        b, k = at
        value, aim, was = (see[name][b, k] for name in ("values_BK", "returns_BK", "old_values_BK"))
        near = was + min(max(value - was, -value_clip), value_clip)
        far_is_worse = (value - aim) ** 2 >= (near - aim) ** 2
        share = value_weight / see["turn_mask_BK"].sum()
        loss += share * 0.5 * max((value - aim) ** 2, (near - aim) ** 2)
        moves = far_is_worse or abs(value - was) < value_clip
        values[b, k] = share * (value - aim) if moves else 0.0
    return loss, logps, values


@LAW
@given(
    step=steps,
    low=st.floats(0.0, 0.9),
    high=st.floats(0.0, 2.0),
    clip=st.floats(0.01, 2.0),
    dual=st.floats(1.5, 4.0),
    cap=st.floats(0.5, 3.0),
)
def test_ppo_equals_a_reference_in_numpy(step, low, high, clip, dual, cap):
    loss, logps, values = reference(step, low, high, 0.7, 0.02, value_clip=clip, dual=dual, cap=cap)
    knobs = {"clip_low": low, "clip_high": high, "value_weight": 0.7, "entropy": 0.02}
    knobs |= {"dual_clip": dual, "cap": cap}
    terms = ppo_loss(step, **knobs, value_clip=clip)
    assert terms.loss.item() == pytest.approx(loss, abs=1e-9)
    our_logps, _, our_values = gradients(step, [terms.loss])
    np.testing.assert_allclose(our_logps.numpy(), logps, rtol=0, atol=1e-9)
    np.testing.assert_allclose(our_values.numpy(), values, rtol=0, atol=1e-9)


@LAW
@given(step=steps)
def test_a_wide_value_clip_is_the_plain_value_loss(step):
    knobs = {"clip_low": 0.2, "clip_high": 0.2, "value_weight": 0.5}
    wide, plain = (ppo_loss(step, **knobs, value_clip=clip) for clip in (1e6, None))
    assert wide.stats["value_loss"] == pytest.approx(plain.stats["value_loss"])


def test_values_learn_nothing_from_the_policy_and_the_policy_nothing_from_values():
    step = a_step()
    knobs = {"clip_low": 0.2, "clip_high": 0.2}
    logps, _, values = gradients(step, [ppo_loss(step, **knobs, value_weight=0.0).loss])
    assert (values == 0).all()
    still = replace(step, advantages_BT=torch.zeros_like(step.advantages_BT))
    logps, _, values = gradients(still, [ppo_loss(still, **knobs, value_weight=1.0).loss])
    assert (logps == 0).all()
    assert (values != 0).any()
