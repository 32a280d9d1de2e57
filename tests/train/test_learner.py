"""A policy learns from logged examples, and says how it goes."""

import math
from dataclasses import replace

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from upswing.train.credit import signal_of
from upswing.train.example import Example
from upswing.train.learner import Diverged, Learner
from upswing.train.recipe import Recipe
from upswing.train.tracks import Track, logprobs, recorded, turn_index, unsound

VOCABULARY = 32


@pytest.fixture
def model():
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=64,
    )  # fmt: skip
    return LlamaForCausalLM(config)


def examples(groups=4, members=4):
    """In every group the same prompt; the action that equals the prompt's first token is right."""
    found = []
    for group in range(groups):
        for member in range(members):
            prompt, action = (group + 1, 9, 10), (member + 1, 11)
            found.append(
                Example(
                    f"t{group}.{member}", f"g{group}", f"k{group}", (*prompt, *action),
                    (False,) * 3 + (True,) * 2, (0,) * 5, None, False,
                    reward=1.0 if group == member else 0.0, agent_id=f"a{member}",
                )
            )  # fmt: skip
    return found


def tracks(model, given):
    olds = logprobs(model, given, micro_tokens=1000)
    return [
        Track(old, turn_index(example), ref_T=old) for example, old in zip(given, olds, strict=True)
    ]


def value_head(recipe):
    if recipe.algorithm != "ppo":
        return None
    head = torch.nn.Linear(32, 1)
    torch.nn.init.zeros_(head.weight)
    torch.nn.init.constant_(head.bias, 0.25)
    return head


def learner(model, given, recipe):
    return Learner(
        model, given, signal_of(given, tracks(model, given), recipe), recipe, value_head=value_head(recipe)
    )  # fmt: skip


def right(model, given):
    """How likely the right action is, on the mean."""
    good = [example for example in given if example.reward == 1.0]
    found = logprobs(model, good, micro_tokens=1000)
    return sum(math.exp(float(logps[0])) for logps in found) / len(good)


@pytest.mark.parametrize("algorithm", ["grpo", "rloo", "reinforce", "ppo", "dpo"])
def test_every_algorithm_makes_the_better_action_likelier(model, algorithm):
    given = examples()
    before = right(model, given)
    recipe = Recipe(algorithm=algorithm, learning_rate=3e-3, batch_size=16, epochs=12, holdout=0)
    steps = list(learner(model, given, recipe).run())
    assert [step.step for step in steps] == list(range(1, len(steps) + 1))
    assert all(math.isfinite(step.loss) for step in steps)
    assert right(model, given) > 1.2 * before


@pytest.mark.parametrize("algorithm", ["grpo", "rloo", "reinforce", "ppo", "dpo"])
def test_smaller_passes_make_the_same_step(model, algorithm):
    given = examples()
    ends = []
    for micro_tokens in (16, 4096):
        torch.manual_seed(0)
        copy = LlamaForCausalLM(model.config)
        copy.load_state_dict(model.state_dict())
        recipe = Recipe(algorithm=algorithm, learning_rate=1e-2, batch_size=16, epochs=1, micro_tokens=micro_tokens)  # fmt: skip
        work = learner(copy, given, recipe)
        first = work.take(work.steps[0], 1e-2) if algorithm != "ppo" else next(work.run())
        ends.append((first, [p.detach().clone() for p in copy.parameters()]))
    for one, other in zip(ends[0][1], ends[1][1], strict=True):
        assert torch.allclose(one, other, atol=2e-4)


def test_an_absurd_learning_rate_is_noticed(model):
    given = examples()
    recipe = Recipe(algorithm="grpo", learning_rate=1e30, max_grad_norm=0, batch_size=16, epochs=20)
    with pytest.raises(Diverged):
        list(learner(model, given, recipe).run())


def test_a_policy_that_leaves_the_one_that_acted_is_stopped(model):
    given = examples()
    recipe = Recipe(learning_rate=0.05, kl_limit=0.01, batch_size=16, epochs=20)
    with pytest.raises(Diverged, match="nats a token"):
        list(learner(model, given, recipe).run())


def test_a_collapse_is_noticed(model):
    given = examples()
    recipe = Recipe(algorithm="reinforce", learning_rate=0.05, entropy=0.0, entropy_floor=0.2, kl_limit=1e9, batch_size=16, epochs=60)  # fmt: skip
    with pytest.raises(Diverged, match="collapsed"):
        list(learner(model, given, recipe).run())


def test_groups_without_variance_give_nothing_to_learn(model):
    given = [replace(example, reward=0.5) for example in examples()]
    for algorithm in ("grpo", "rloo", "dpo"):
        signal = signal_of(given, tracks(model, given), Recipe(algorithm=algorithm))
        assert not signal.clusters
        assert signal.flat_groups == 4


def test_numbers_that_cannot_be_are_named(model):
    given = examples(1)
    good = tracks(model, given)
    bad = [replace(good[0], old_T=torch.tensor([-1e30, 0.0])), *good[1:]]
    assert unsound(given, good) == []
    assert unsound(given, bad) == ["t0.0"]


def test_turns_are_credited_where_they_were_rewarded(model):
    two = Example(
        "t", "g", "k", (1, 2, 3, 4), (False, True, False, True), (0, 0, 1, 1), None, False, 1.0,
        turn_rewards=(0.0, 0.0), agent_id="a",
    )  # fmt: skip
    given = [two, replace(two, trajectory_id="u", ids=(1, 5, 3, 6), turn_rewards=(1.0, 0.0))]
    for credit, different in (("turn", True), ("trajectory", False)):
        recipe = Recipe(credit=credit, scale_rewards="none", min_spread=0.0)
        rewarded = signal_of(given, tracks(model, given), recipe)
        first = rewarded.tracks[1].advantages_T
        assert (float(first[0]) != float(first[1])) == different


def test_a_run_from_the_middle_takes_the_remaining_steps(model):
    given = examples()
    recipe = Recipe(batch_size=4, epochs=2, learning_rate=1e-3)
    work = learner(model, given, recipe)
    assert [step.step for step in work.run(5)] == list(range(6, len(work.steps) + 1))


def test_recorded_logprobs_are_those_of_the_trained_tokens():
    example = examples(1)[0]
    known = replace(example, logps=(0.0, 0.0, 0.0, -1.0, -2.0))
    assert recorded(known).tolist() == [-1.0, -2.0]
    assert recorded(example) is None
