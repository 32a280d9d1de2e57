"""What holds for every loss, whatever the step."""

import math
from dataclasses import replace
from itertools import pairwise, product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from loss_cases import LAW, LOSSES, NAMES, a_step, gradients, steps, taken

from upswing.train.core.recipe import Recipe
from upswing.train.learn.losses import loss_for
from upswing.train.learn.losses.terms import token_weights

every_loss = pytest.mark.parametrize("name", LOSSES)

READ = {
    # What a loss does not read cannot make it NaN.
    "sft": {"logps_BT", "mask_BT", "weights_BT"},
    "dpo": {"logps_BT", "mask_BT", "ref_BT", "sequence_weights_B"},
    "kto": {"logps_BT", "mask_BT", "ref_BT", "sequence_weights_B"},
    "imitation": {
        "logps_BT",
        "mask_BT",
        "weights_BT",
        "shares_BT",
        "old_BT",
        "start_BT",
        "ref_BT",
        "entropies_BT",
    },
}
TURNS = {"values_BK", "returns_BK", "turn_mask_BK", "turn_weights_BK"}
TOKENS = set(NAMES) - TURNS - {"old_values_BK"}


def read_by(name):
    if name in READ:
        return READ[name]
    per_token = TOKENS - ({"weights_BT"} if name.startswith("rloo") else {"sequence_weights_B"})
    turns = TURNS if name.startswith("ppo") else set()
    return per_token | turns | ({"old_values_BK"} if "clipped" in name else set())


def cut(sequences, places):
    """Consecutive pairs of sequences, cut at some places, so that DPO's pairs stay together."""
    edges = [0, *sorted({2 * each for each in places if 0 < 2 * each < sequences}), sequences]
    return [list(range(a, b)) for a, b in pairwise(edges)]


@every_loss
@LAW
@given(step=steps, places=st.lists(st.integers(1, 3)))
def test_micro_batches_add_up_to_the_step_however_it_is_cut(name, step, places):
    whole = LOSSES[name](step)
    parts = [LOSSES[name](taken(step, some)) for some in cut(len(step.mask_BT), places)]
    assert sum(part.loss for part in parts).item() == pytest.approx(whole.loss.item(), abs=1e-12)
    for figure, value in whole.stats.items():
        assert sum(part.stats[figure] for part in parts) == pytest.approx(value, abs=1e-12)
    at_once = gradients(step, [whole.loss])
    added = gradients(step, [part.loss for part in parts])
    for one, other in zip(at_once, added, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


@every_loss
@LAW
@given(step=steps)
def test_what_is_not_trained_gets_no_gradient(name, step):
    logps, entropies, values = gradients(step, [LOSSES[name](step).loss])
    assert (logps * (1 - step.mask_BT) == 0).all()
    assert (entropies * (1 - step.mask_BT) == 0).all()
    assert (values * (1 - step.turn_mask_BK) == 0).all()
    assert logps.isfinite().all()


@every_loss
@LAW
@given(step=steps, chance=st.randoms(use_true_random=False))
def test_the_order_of_the_sequences_changes_nothing(name, step, chance):
    pairs = list(range(0, len(step.mask_BT), 2))
    chance.shuffle(pairs)
    places = [place for first in pairs for place in (first, first + 1)]
    one, other = LOSSES[name](step), LOSSES[name](taken(step, places))
    assert one.loss.item() == pytest.approx(other.loss.item(), abs=1e-12)
    assert one.stats == pytest.approx(other.stats, abs=1e-12)
    for a, b in zip(gradients(step, [one.loss]), gradients(step, [other.loss]), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


@every_loss
def test_a_nan_anywhere_is_a_nan_in_the_loss(name):
    step = a_step()
    for field, place in product(NAMES, [(0, 0), (1, -1), (-1, 0)]):
        spoiled = getattr(step, field).detach().clone()
        spoiled[place[: spoiled.dim()]] = math.nan
        loss = LOSSES[name](replace(step, **{field: spoiled})).loss
        assert loss.isnan().item() == (field in read_by(name)), (field, place)


@every_loss
def test_a_policy_far_away_gives_finite_gradients(name):
    step = a_step()
    far = step.old_BT + torch.where(torch.arange(7) % 2 == 0, 500.0, -500.0)
    step = replace(step, logps_BT=far.requires_grad_(), ref_BT=far.detach())
    assert all(each.isfinite().all() for each in gradients(step, [LOSSES[name](step).loss]))


@pytest.mark.parametrize("name", ["reinforce", "rloo", "grpo", "gspo", "ppo"])
def test_at_the_start_every_ratio_is_one(name):
    step = a_step()
    step = replace(step, logps_BT=step.start_BT.clone().requires_grad_(), ref_BT=step.start_BT)
    if name == "reinforce":  # whose weights are to what acted
        step = replace(step, old_BT=step.start_BT)
    stats = LOSSES[name](step).stats
    assert (stats["kl"], stats["clipped"], stats["ref_kl"]) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("name", ["reinforce", "rloo", "grpo", "gspo", "ppo"])
@LAW
@given(step=steps)
def test_where_the_start_is_what_acted_nothing_is_weighed(name, step):
    same = replace(step, start_BT=step.old_BT)
    one, other = LOSSES[name](same), LOSSES[name](replace(step, start_BT=None))
    assert one.loss.item() == other.loss.item()
    assert one.stats == other.stats
    for a, b in zip(gradients(same, [one.loss]), gradients(same, [other.loss]), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("name", ["rloo", "grpo", "gspo", "ppo"])
@LAW
@given(step=steps)
def test_no_token_counts_more_than_the_cap_and_what_acted_moves_no_clip(name, step):
    stats = [LOSSES[name](replace(step, old_BT=step.old_BT + by)).stats for by in (0.0, -9.0)]
    assert stats[0]["clipped"] == stats[1]["clipped"]
    assert stats[0]["kl"] == stats[1]["kl"]
    assert stats[1]["importance"] == pytest.approx(3.0)  # every weight is cut


def test_the_reported_kl_sees_a_policy_that_blew_up_but_not_one_rare_token_that_was_learned():
    step = a_step()
    lost = LOSSES["grpo"](replace(step, logps_BT=step.old_BT - 60)).stats["kl"]
    rare_BT = step.old_BT.clone()
    rare_BT[0, 0] += 15
    learned = LOSSES["grpo"](replace(step, logps_BT=rare_BT)).stats["kl"]
    assert lost > 10
    assert 0 < learned < 1


# --- shares -----------------------------------------------------------------------------------


@LAW
@given(step=steps)
def test_shares_are_of_trained_tokens_and_sum_to_one(step):
    for reduce in ("token", "sequence"):
        weights_BT = token_weights(step.mask_BT, reduce)
        assert (weights_BT * (1 - step.mask_BT) == 0).all()
        spoke = (step.mask_BT.sum(1) > 0).double().mean().item()
        assert weights_BT.sum().item() == pytest.approx(1.0 if reduce == "token" else spoke)


@pytest.mark.parametrize("reduce", ["sequence", "token", "constant"])
@pytest.mark.parametrize("number", [0.0, math.nan])
def test_a_step_without_trained_tokens_is_refused(reduce, number):
    with pytest.raises(ValueError, match="at least one trained token"):
        token_weights(torch.full((2, 3), number), reduce, max_tokens=3)


# --- by recipe --------------------------------------------------------------------------------


NAMED = {
    "reinforce": {},
    "rloo": {},
    "grpo": {},
    "ppo": {},
    "gspo": {"algorithm": "grpo", "ratio": "sequence"},
    "imitation": {"algorithm": "sft"},
}


@pytest.mark.parametrize("name", NAMED)
def test_a_recipe_names_its_loss_and_its_knobs(name):
    knobs = {"clip_low": 0.2, "clip_high": 0.28, "kl_beta": 0.1, "entropy": 0.01}
    recipe = Recipe(**{"algorithm": name, "value_weight": 0.5, **knobs, **NAMED[name]})
    step = a_step()
    assert loss_for(recipe)(step).loss.item() == LOSSES[name](step).loss.item()


@pytest.mark.parametrize(("algorithm", "unit"), [("dpo", "pairs"), ("kto", "answers")])
def test_some_have_no_loss_over_tokens(algorithm, unit):
    with pytest.raises(ValueError, match=unit):
        loss_for(Recipe(algorithm=algorithm))


def test_every_algorithm_of_the_contract_has_a_loss_and_defaults():
    from typing import get_args

    from upswing.contracts.training import Algorithm
    from upswing.train.core.recipe import _DEFAULTS

    assert set(_DEFAULTS) == set(get_args(Algorithm))
    for algorithm in set(get_args(Algorithm)) - {"dpo", "kto"}:
        assert callable(loss_for(Recipe(algorithm=algorithm)))


@pytest.mark.parametrize("name", ["reinforce", "grpo", "ppo"])
@pytest.mark.parametrize("field", ["ref_BT", "entropies_BT"])
def test_a_term_whose_input_is_missing_is_refused(name, field):
    with pytest.raises(ValueError, match="needs the"):
        LOSSES[name](replace(a_step(), **{field: None}))


@pytest.mark.parametrize("field", [*sorted(TURNS), "old_values_BK"])
def test_ppo_without_its_turns_is_refused(field):
    with pytest.raises(ValueError, match="needs"):
        LOSSES["ppo with clipped values"](replace(a_step(), **{field: None}))
