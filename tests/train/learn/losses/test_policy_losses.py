"""What each of the smaller losses does, and where it stops."""

import math
from dataclasses import replace

import pytest
import torch

from upswing.train.learn.losses.dpo import dpo_loss
from upswing.train.learn.losses.grpo import grpo_loss
from upswing.train.learn.losses.kto import kto_loss
from upswing.train.learn.losses.reinforce import reinforce_loss
from upswing.train.learn.losses.rloo import rloo_loss
from upswing.train.learn.losses.sft import sft_loss
from upswing.train.learn.losses.terms import LossInputs, token_weights


def tokens(ratios, advantages, old=-1.0):
    """One sequence per row, every token trained."""
    ratios = torch.tensor(ratios, dtype=torch.float64)
    mask_BT = torch.ones_like(ratios)
    old_BT = torch.full_like(ratios, old)
    return LossInputs(
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
    terms = grpo_loss(step, clip_low=0.2, clip_high=0.28)
    assert pull(step, terms) == [
        [round(1.27 / 6, 9), 0.0],
        [0.0, round(-0.81 / 6, 9)],
        [round(-2 / 6, 9), round(0.5 / 6, 9)],
    ]
    assert terms.stats["clipped"] == pytest.approx(2 / 6)


def test_rloo_clips_the_whole_sequence():
    step = tokens([[1.2, 1.2], [1.1, 1.1], [0.5, 2.0]], [[1, 1], [1, 1], [1, 1]])
    terms = rloo_loss(step, clip_low=0.2, clip_high=0.28, normalise=False)
    third = [round(1 / 3, 9)] * 2  # its ratios cancel out
    assert pull(step, terms) == [[0.0, 0.0], [round(1.21 / 3, 9)] * 2, third]
    assert terms.loss.item() == pytest.approx(-(1.28 + 1.21 + 1) / 3)
    assert terms.stats["clipped"] == pytest.approx(1 / 3)


def test_rloo_clips_long_sequences_no_sooner_than_short_ones():
    """Eight tokens of 1.1 each: the product is 2.14 and stops, the geometric mean is 1.1."""
    step = tokens([[1.1] * 8], [[1] * 8])
    plain = rloo_loss(step, clip_low=0.2, clip_high=0.28, normalise=False)
    terms = rloo_loss(step, clip_low=0.2, clip_high=0.28)
    assert (plain.stats["clipped"], terms.stats["clipped"]) == (1.0, 0.0)
    assert terms.loss.item() == pytest.approx(-1.1)
    assert pull(step, terms) == [[round(1.1 / 8, 9)] * 8]


def test_gspo_gives_all_tokens_of_a_sequence_one_ratio():
    """Ratios 0.5 and 2 make 1; 1.5 and 1.5 make 1.5, which is clipped although A is shared."""
    step = tokens([[0.5, 2.0], [1.5, 1.5]], [[1, 1], [1, 1]])
    terms = grpo_loss(step, clip_low=0.2, clip_high=0.28, ratio="sequence")
    assert terms.loss.item() == pytest.approx(-(1 + 1.28) / 2)
    assert pull(step, terms) == [[0.25, 0.25], [0.0, 0.0]]
    assert terms.stats["clipped"] == 0.5


def test_a_bad_action_that_became_much_likelier_is_pushed_down_no_harder_beyond_the_dual_clip():
    step = tokens([[2.0, 4.0]], [[-1, -1]])
    free = grpo_loss(step, clip_low=0.2, clip_high=0.28)
    dual = grpo_loss(step, clip_low=0.2, clip_high=0.28, dual_clip=3.0)
    assert free.loss.item() == pytest.approx((2 + 4) / 2)
    assert dual.loss.item() == pytest.approx((2 + 3) / 2)
    assert pull(step, dual) == [[-1.0, 0.0]]
    assert (free.stats["clipped"], dual.stats["clipped"]) == (0.0, 0.5)


def test_what_another_policy_recorded_is_weighed_but_clipped_around_the_start():
    """Start / recorded is 0.5, 2 and 8, the last cut to 3; new / start is 1.5, beyond the clip, in
    the second sequence: 1.28 counts, whatever was recorded."""
    step = tokens([[1.0, 1.0, 1.0], [1.5, 1.5, 1.5]], [[1, 1, 1], [1, 1, 1]])
    by = torch.tensor([0.5, 2.0, 8.0], dtype=torch.float64).log()
    step = replace(step, start_BT=step.old_BT, old_BT=step.old_BT - by)
    terms = grpo_loss(step, clip_low=0.2, clip_high=0.28, cap=3.0)
    weight = 0.5 + 2 + 3
    assert terms.loss.item() == pytest.approx(-(weight + 1.28 * weight) / 6)
    assert pull(step, terms) == [[round(each / 6, 9) for each in (0.5, 2, 3)], [0.0] * 3]
    assert terms.stats["importance"] == pytest.approx(weight / 3)
    assert terms.stats["clipped"] == 0.5


def test_the_clip_around_the_start_lets_old_data_train():
    """Today's policy finds a stale good answer 1.5 times likelier than the one that gave it did:
    around what acted, its gradient would be gone before the first step."""
    stale = tokens([[1.5, 1.5]], [[1, 1]])
    around_start = replace(stale, start_BT=stale.logps_BT.detach())
    assert pull(stale, grpo_loss(stale, clip_low=0.2, clip_high=0.28)) == [[0.0, 0.0]]
    assert pull(around_start, grpo_loss(around_start, clip_low=0.2, clip_high=0.28, cap=3.0)) == [
        [0.75, 0.75]
    ]


@pytest.mark.parametrize("reduce", ["sequence", "token", "constant"])
@pytest.mark.parametrize("loss", [grpo_loss, rloo_loss, reinforce_loss])
def test_the_entropy_bonus_keeps_its_size_beside_the_loss_however_that_is_reduced(loss, reduce):
    """Bandits of eight arms, two good ones: with 0.05 nats of bonus the good ones still win, also
    when the loss is divided by 4,096 tokens; a bonus of its own size would keep all arms alive."""
    policy = torch.zeros(8, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([policy], lr=0.05)
    good_BT = torch.tensor([[1.0]] * 2 + [[-1 / 3]] * 6, dtype=torch.float64)
    mask_BT = torch.ones(8, 1, dtype=torch.float64)
    old_BT = torch.full((8, 1), math.log(1 / 8), dtype=torch.float64)
    knobs = {"truncate": None} if loss is reinforce_loss else {"clip_low": 1.0, "clip_high": 9.0}
    for _ in range(200):
        every_A = policy.log_softmax(0)
        step = LossInputs(
            logps_BT=every_A[:, None],
            old_BT=old_BT,
            mask_BT=mask_BT,
            advantages_BT=good_BT,
            weights_BT=token_weights(mask_BT, reduce, max_tokens=4096),
            sequence_weights_B=torch.full((8,), 1 / 8, dtype=torch.float64),
            entropies_BT=(-(every_A.exp() * every_A).sum()).expand(8, 1),
            shares_BT=token_weights(mask_BT, "token"),
        )
        optimizer.zero_grad()
        loss(step, entropy=0.05, **knobs).loss.backward()
        optimizer.step()
    assert policy.softmax(0)[:2].sum().item() > 0.9


def test_rloo_takes_the_mean_where_turns_have_their_own_advantages():
    by_turn = rloo_loss(tokens([[1.0, 1.1]], [[2.0, 0.0]]), clip_low=0.2, clip_high=0.2)
    whole = rloo_loss(tokens([[1.0, 1.1]], [[1.0, 1.0]]), clip_low=0.2, clip_high=0.2)
    assert by_turn.loss.item() == whole.loss.item()


def test_reinforce_weighs_what_was_pushed_down_less_and_less():
    step = tokens([[1.0, 0.5, 0.01], [1.0, 1.2, 9.0]], [[-1, -1, -1], [1, 1, 1]])
    sixth = 1 / 6
    truncated = reinforce_loss(step, truncate=1.28)
    assert pull(step, truncated) == [
        [round(-sixth * each, 9) for each in (1.0, 0.5, 0.01)],
        [round(sixth * each, 9) for each in (1.0, 1.2, 1.28)],
    ]
    assert truncated.stats["clipped"] == pytest.approx(sixth)
    textbook = reinforce_loss(step, truncate=None)
    assert pull(step, textbook) == [[round(-sixth, 9)] * 3, [round(sixth, 9)] * 3]
    assert textbook.stats["clipped"] == 0.0


def test_reinforce_on_the_first_pass_is_the_textbooks():
    step = tokens([[1.0, 1.0]], [[0.3, -0.7]])
    assert pull(step, reinforce_loss(step, truncate=1.28)) == pull(
        step, reinforce_loss(step, truncate=None)
    )


@pytest.mark.parametrize("truncate", [1.28, None])
def test_only_truncated_weights_survive_many_passes_over_a_fixed_batch(truncate):
    """Three actions, tried equally often; the third is bad. What becomes of the other two?"""
    policy = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    old_BT = torch.full((1, 3), math.log(1 / 3), dtype=torch.float64)
    mask_BT = torch.ones(1, 3, dtype=torch.float64)
    for _ in range(300):
        step = LossInputs(
            logps_BT=policy.log_softmax(0)[None],
            old_BT=old_BT,
            mask_BT=mask_BT,
            advantages_BT=torch.tensor([[0.0, 0.0, -1.0]], dtype=torch.float64),
            weights_BT=token_weights(mask_BT, "token"),
            sequence_weights_B=torch.ones(1, dtype=torch.float64),
        )
        (pull_A,) = torch.autograd.grad(reinforce_loss(step, truncate=truncate).loss, [policy])
        with torch.no_grad():
            policy -= 1.0 * pull_A
    bad = policy.log_softmax(0)[2].item()
    assert bad < -4 if truncate else bad < -50


def test_kto_by_hand():
    """beta 0.5, KL 1. Liked: gained 3, σ(0.5 · 2); disliked: gained −1, σ(0.5 · 2): both lose
    1 − σ(1), the second weighs 1.5; their gradients are −β σ' and +1.5 β σ'."""
    sums = torch.tensor([-2.0, -6.0], requires_grad=True)
    weights = torch.full((2,), 0.5)
    liked = torch.tensor([True, False])
    terms = kto_loss(
        sums, torch.tensor([-5.0, -5.0]), liked, weights, kl=1.0, beta=0.5, undesirable_weight=1.5
    )
    lost = 1 - 1 / (1 + math.exp(-1))
    assert terms.loss.item() == pytest.approx(0.5 * lost + 0.5 * 1.5 * lost)
    assert terms.stats == pytest.approx({"accuracy": 1.0, "margin": 0.5 * 0.5 * (3 + 1)})
    (found,) = torch.autograd.grad(terms.loss, [sums])
    slope = 0.5 * lost * (1 - lost)
    assert found.tolist() == pytest.approx([-0.5 * slope, 0.5 * 1.5 * slope])


def test_dpo_by_hand():
    """beta 0.5, margin 0.5 · ((−2 + 3) − (−4 + 3)) = 1: the loss is −log σ(1)."""
    sides = [torch.tensor([each], requires_grad=True) for each in (-2.0, -4.0, -3.0, -3.0)]
    terms = dpo_loss(*sides, torch.ones(1), beta=0.5)
    assert terms.loss.item() == pytest.approx(math.log(1 + math.exp(-1)))
    assert terms.stats == {
        "accuracy": 1.0,
        "margin": 1.0,
        "chosen_shift": 1.0,
        "rejected_shift": -1.0,
    }
    towards = [each.item() for each in torch.autograd.grad(terms.loss, sides[:2])]
    slope = 0.5 / (1 + math.exp(1))
    assert towards == pytest.approx([-slope, slope])


def test_dpo_imitates_the_chosen_side_when_asked_to():
    sides = [torch.tensor([each]) for each in (-2.0, -4.0, -3.0, -3.0)]
    plain = dpo_loss(*sides, torch.ones(1), beta=0.5)
    both = dpo_loss(
        *sides, torch.ones(1), beta=0.5, sft_weight=0.2, chosen_mean_P=torch.tensor([-0.5])
    )
    assert both.loss.item() == pytest.approx(plain.loss.item() + 0.2 * 0.5)
    assert both.stats["nll"] == 0.5
    with pytest.raises(ValueError, match="logprob per token"):
        dpo_loss(*sides, torch.ones(1), beta=0.5, sft_weight=0.2)


def test_sft_is_the_mean_negative_log_likelihood():
    mask_BT = torch.tensor([[1.0, 0.0], [1.0, 1.0]])
    logps_BT = torch.tensor([[-1.0, -9.0], [-2.0, -3.0]])
    terms = sft_loss(logps_BT, mask_BT, token_weights(mask_BT, "token"))
    assert terms.loss.item() == terms.stats["nll"] == 2.0
