"""What is measured of a policy while it trains, also of one that is broken."""

import math
from types import SimpleNamespace

import msgspec
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from upswing.train.child.evaluation import Evaluator, LoggedEpisodes
from upswing.train.learn.evaluation import UNKNOWN_KL, PolicyEvaluation, best_evaluation, early_stop
from upswing.train.learn.example import Example
from upswing.train.learn.example_tensors import compute_logprobs

TOKENIZER = SimpleNamespace(eos_token_id=2)


@pytest.fixture
def model():
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=32,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=64,
    )
    return LlamaForCausalLM(config)


def logged(model, count=80):
    given = [
        Example(
            f"t{n}",
            f"g{n // 4}",
            f"k{n // 4}",
            (n % 8 + 1, 9, n % 5 + 10),
            (False, False, True),
            (0,) * 3,
            None,
            False,
            reward=float(n % 2),
        )
        for n in range(count)
    ]
    start = compute_logprobs(model, given, micro_tokens=1000)
    return LoggedEpisodes(given, start, start)


@pytest.mark.parametrize("broken", [math.nan, math.inf])
@pytest.mark.parametrize("budget", [3.0, math.inf])
def test_a_policy_whose_weights_are_no_numbers_is_far_away_and_worth_nothing(model, broken, budget):
    known = logged(model)
    evaluator = Evaluator(model, TOKENIZER, known, known, micro_tokens=1000)
    sound = evaluator.evaluate(model, 5)
    assert (round(sound.kl, 6), sound.value) == (0.0, 0.5)
    with torch.no_grad():
        model.lm_head.weight[3].fill_(broken)
    found = evaluator.evaluate(model, 10)
    assert (found.kl, found.diversity, found.value) == (UNKNOWN_KL, 0.0, None)
    assert msgspec.json.decode(msgspec.json.encode(found), type=PolicyEvaluation) == found
    history = [evaluator.start, sound, found]
    assert early_stop(history, budget) == "kl_budget"
    assert best_evaluation(history, budget).step == 5


def test_what_the_start_is_worth_is_known_without_a_pass(model):
    """Other policies acted: each token was twice as likely under them as under the start, or half as likely."""
    known = logged(model)
    acted = [each - math.log(2 if n % 3 else 0.5) for n, each in enumerate(known.start)]
    held_out = LoggedEpisodes(known.examples, acted, known.start)
    evaluator = Evaluator(model, TOKENIZER, held_out, held_out, micro_tokens=1000)
    again = evaluator.evaluate(model, 0)
    assert (evaluator.start.kl, evaluator.start.diversity) == (again.kl, again.diversity)
    assert evaluator.start.value == pytest.approx(again.value)
    assert evaluator.start.value != pytest.approx(0.5)
    assert evaluator.start_reward == pytest.approx(evaluator.train_reward(model))


def test_one_episode_is_enough_to_measure_with(model):
    known = logged(model, 1)
    evaluator = Evaluator(model, TOKENIZER, known, LoggedEpisodes([], [], []), micro_tokens=1000)
    found = evaluator.evaluate(model, 1)
    assert (found.kl, found.value, found.effective) == (0.0, None, 0.0)
    assert not found.reliable


def test_the_nearest_ships_even_beside_one_whose_distance_nobody_knows():
    history = [
        PolicyEvaluation(0, 0.0, 4.0),
        PolicyEvaluation(5, math.nan, 4.0),
        PolicyEvaluation(9, 7.0, 4.0),
    ]
    assert best_evaluation(history, 3.0).step == 9
