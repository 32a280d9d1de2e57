"""What each of the smaller losses does, and where it stops."""

import math

import pytest
import torch

from upswing.train.losses.dpo import dpo
from upswing.train.losses.grpo import grpo
from upswing.train.losses.reinforce import reinforce
from upswing.train.losses.rloo import rloo
from upswing.train.losses.sft import sft
from upswing.train.losses.terms import Tokens, token_weights


def tokens(ratios, advantages, old=-1.0):
    """One sequence per row, every token trained."""
    ratios = torch.tensor(ratios, dtype=torch.float64)
    mask_BT = torch.ones_like(ratios)
    old_BT = torch.full_like(ratios, old)
    return Tokens(
        logps_BT=(old_BT + ratios.log()).requires_grad_(),
        old_BT=old_BT,
        mask_BT=mask_BT,
        advantages_BT=torch.tensor(advantages, dtype=torch.float64),
        weights_BT=token_weights(mask_BT, "token"),
        sequence_weights_B=torch.full((len(ratios),), 1 / len(ratios), dtype=torch.float64),
    )


def pull(step, terms):
    """By how much a gradient step raises each logprob."""
    (found,) = torch.autograd.grad(terms.loss, [step.logps_BT])
    return [[round(-each, 9) for each in row] for row in found.tolist()]


def test_grpo_stops_a_gain_above_and_a_loss_below_but_not_the_way_back():
    step = tokens([[1.27, 1.29], [0.79, 0.81], [2.0, 0.5]], [[1, 1], [-1, -1], [-1, 1]])
    terms = grpo(step, clip_low=0.2, clip_high=0.28)
    assert pull(step, terms) == [
        [round(1.27 / 6, 9), 0.0],
        [0.0, round(-0.81 / 6, 9)],
        [round(-2 / 6, 9), round(0.5 / 6, 9)],
    ]
    assert terms.stats["clipped"] == pytest.approx(2 / 6)


def test_rloo_clips_the_whole_sequence():
    step = tokens([[1.2, 1.2], [1.1, 1.1], [0.5, 2.0]], [[1, 1], [1, 1], [1, 1]])
    terms = rloo(step, clip_low=0.2, clip_high=0.28)
    third = [round(1 / 3, 9)] * 2  # its ratios cancel out
    assert pull(step, terms) == [[0.0, 0.0], [round(1.21 / 3, 9)] * 2, third]
    assert terms.loss.item() == pytest.approx(-(1.28 + 1.21 + 1) / 3)
    assert terms.stats["clipped"] == pytest.approx(1 / 3)


def test_rloo_takes_the_mean_where_turns_have_their_own_advantages():
    by_turn = rloo(tokens([[1.0, 1.1]], [[2.0, 0.0]]), clip_low=0.2, clip_high=0.2)
    whole = rloo(tokens([[1.0, 1.1]], [[1.0, 1.0]]), clip_low=0.2, clip_high=0.2)
    assert by_turn.loss.item() == whole.loss.item()


def test_reinforce_weighs_what_was_pushed_down_less_and_less():
    step = tokens([[1.0, 0.5, 0.01], [1.0, 1.2, 9.0]], [[-1, -1, -1], [1, 1, 1]])
    sixth = 1 / 6
    truncated = reinforce(step, truncate=1.28)
    assert pull(step, truncated) == [
        [round(-sixth * each, 9) for each in (1.0, 0.5, 0.01)],
        [round(sixth * each, 9) for each in (1.0, 1.2, 1.28)],
    ]
    assert truncated.stats["clipped"] == pytest.approx(sixth)
    textbook = reinforce(step, truncate=None)
    assert pull(step, textbook) == [[round(-sixth, 9)] * 3, [round(sixth, 9)] * 3]
    assert textbook.stats["clipped"] == 0.0


def test_reinforce_on_the_first_pass_is_the_textbooks():
    step = tokens([[1.0, 1.0]], [[0.3, -0.7]])
    assert pull(step, reinforce(step, truncate=1.28)) == pull(step, reinforce(step, truncate=None))


@pytest.mark.parametrize("truncate", [1.28, None])
def test_only_truncated_weights_survive_many_passes_over_a_fixed_batch(truncate):
    """Three actions, tried equally often; the third is bad. What becomes of the other two?"""
    policy = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    old_BT = torch.full((1, 3), math.log(1 / 3), dtype=torch.float64)
    mask_BT = torch.ones(1, 3, dtype=torch.float64)
    for _ in range(300):
        step = Tokens(
            logps_BT=policy.log_softmax(0)[None],
            old_BT=old_BT,
            mask_BT=mask_BT,
            advantages_BT=torch.tensor([[0.0, 0.0, -1.0]], dtype=torch.float64),
            weights_BT=token_weights(mask_BT, "token"),
            sequence_weights_B=torch.ones(1, dtype=torch.float64),
        )
        (pull_A,) = torch.autograd.grad(reinforce(step, truncate=truncate).loss, [policy])
        with torch.no_grad():
            policy -= 1.0 * pull_A
    bad = policy.log_softmax(0)[2].item()
    assert bad < -4 if truncate else bad < -50


def test_dpo_by_hand():
    """beta 0.5, margin 0.5 · ((−2 + 3) − (−4 + 3)) = 1: the loss is −log σ(1)."""
    sides = [torch.tensor([each], requires_grad=True) for each in (-2.0, -4.0, -3.0, -3.0)]
    terms = dpo(*sides, torch.ones(1), beta=0.5)
    assert terms.loss.item() == pytest.approx(math.log(1 + math.exp(-1)))
    assert terms.stats == {
        "accuracy": 1.0, "margin": 1.0, "chosen_shift": 1.0, "rejected_shift": -1.0
    }  # fmt: skip
    towards = [each.item() for each in torch.autograd.grad(terms.loss, sides[:2])]
    slope = 0.5 / (1 + math.exp(1))
    assert towards == pytest.approx([-slope, slope])


def test_dpo_imitates_the_chosen_side_when_asked_to():
    sides = [torch.tensor([each]) for each in (-2.0, -4.0, -3.0, -3.0)]
    plain = dpo(*sides, torch.ones(1), beta=0.5)
    both = dpo(*sides, torch.ones(1), beta=0.5, sft_weight=0.2, chosen_mean_P=torch.tensor([-0.5]))
    assert both.loss.item() == pytest.approx(plain.loss.item() + 0.2 * 0.5)
    assert both.stats["nll"] == 0.5
    with pytest.raises(ValueError, match="logprob per token"):
        dpo(*sides, torch.ones(1), beta=0.5, sft_weight=0.2)


def test_sft_is_the_mean_negative_log_likelihood():
    mask_BT = torch.tensor([[1.0, 0.0], [1.0, 1.0]])
    logps_BT = torch.tensor([[-1.0, -9.0], [-2.0, -3.0]])
    terms = sft(logps_BT, mask_BT, token_weights(mask_BT, "token"))
    assert terms.loss.item() == terms.stats["nll"] == 2.0
