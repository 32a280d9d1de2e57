"""A policy learns from logged examples, and says how it goes."""

import math
from dataclasses import replace
from typing import get_args

import msgspec
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from upswing.contracts.training import Algorithm
from upswing.train.core.recipe import Recipe
from upswing.train.learn.credit import learning_signal, no_signal_reason
from upswing.train.learn.example import Example
from upswing.train.learn.example_tensors import (
    ExampleTensors,
    ImportanceStats,
    compute_logprobs,
    implausible_examples,
    importance_stats,
    recorded_logprobs,
    turn_index,
)
from upswing.train.learn.learner import Diverged, Learner
from upswing.train.learn.pairs import mismatched_answers

VOCABULARY = 32


@pytest.fixture
def model():
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=64,
    )
    return LlamaForCausalLM(config)


def examples(groups=4, members=4):
    """In every group the same prompt; the action that equals the prompt's first token is right."""
    found = []
    for group in range(groups):
        for member in range(members):
            prompt, action = (group + 1, 9, 10), (member + 1, 11)
            found.append(
                Example(
                    f"t{group}.{member}",
                    f"g{group}",
                    f"k{group}",
                    (*prompt, *action),
                    (False,) * 3 + (True,) * 2,
                    (0,) * 5,
                    None,
                    False,
                    reward=1.0 if group == member else 0.0,
                    agent_id=f"a{member}",
                )
            )
    return found


def tracks(model, given):
    olds = compute_logprobs(model, given, micro_tokens=1000)
    others = mismatched_answers(given, 100)
    known = iter(
        compute_logprobs(model, [each for each in others if each is not None], micro_tokens=1000)
    )
    return [
        ExampleTensors(
            old,
            turn_index(example),
            ref_T=old,
            start_T=old,
            other=other,
            other_ref=0.0 if other is None else float(next(known).sum()),
        )
        for example, old, other in zip(given, olds, others, strict=True)
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
        model,
        given,
        learning_signal(given, tracks(model, given), recipe),
        recipe,
        value_head=value_head(recipe),
    )


def right(model, given):
    """How likely the right action is, on the mean."""
    good = [example for example in given if example.reward == 1.0]
    found = compute_logprobs(model, good, micro_tokens=1000)
    return sum(math.exp(float(logps[0])) for logps in found) / len(good)


ALGORITHMS = get_args(Algorithm)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_makes_the_better_action_likelier(model, algorithm):
    given = examples()
    if algorithm == "sft":  # imitates whatever it is given
        given = [example for example in given if example.reward == 1.0]
    before = right(model, given)
    recipe = Recipe(algorithm=algorithm, learning_rate=3e-3, batch_size=16, epochs=12, holdout=0)
    steps = list(learner(model, given, recipe).run())
    assert [step.step for step in steps] == list(range(1, len(steps) + 1))
    assert all(math.isfinite(step.loss) for step in steps)
    assert right(model, given) > 1.2 * before


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_smaller_passes_make_the_same_step(model, algorithm):
    given = examples()
    ends = []
    for micro_tokens in (16, 4096):
        torch.manual_seed(0)
        copy = LlamaForCausalLM(model.config)
        copy.load_state_dict(model.state_dict())
        recipe = Recipe(
            algorithm=algorithm,
            learning_rate=1e-2,
            batch_size=16,
            epochs=1,
            micro_tokens=micro_tokens,
        )
        work = learner(copy, given, recipe)
        first = work.take_step(work.steps[0], 1e-2) if algorithm != "ppo" else next(work.run())
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
    recipe = Recipe(
        algorithm="reinforce",
        learning_rate=0.05,
        entropy=0.0,
        entropy_floor=0.2,
        kl_limit=1e9,
        batch_size=16,
        epochs=60,
    )
    with pytest.raises(Diverged, match="collapsed"):
        list(learner(model, given, recipe).run())


def test_groups_without_variance_give_nothing_to_learn(model):
    given = [replace(example, reward=0.5) for example in examples()]
    for algorithm in ("grpo", "rloo", "dpo"):
        signal = learning_signal(given, tracks(model, given), Recipe(algorithm=algorithm))
        assert not signal.clusters
        assert signal.flat_groups == 4


def test_a_masked_trajectory_moves_its_groups_baseline_and_gets_no_gradient(model):
    given = examples(1)  # rewards 1, 0, 0, 0
    long = replace(given[3], ids=(), trained=(), turns=(), reward=1.0, masked=True)
    given = [*given[:3], long]
    recipe = Recipe(scale_rewards="none", batch_size=16)
    for algorithm in ALGORITHMS:
        signal = learning_signal(
            given, tracks(model, given), msgspec.structs.replace(recipe, algorithm=algorithm)
        )
        assert 3 not in {member for cluster in signal.clusters for member in cluster}
    signal = learning_signal(given, tracks(model, given), recipe)
    assert [float(track.advantages_T[0]) for track in signal.tracks[:3]] == [0.5, -0.5, -0.5]
    assert all(math.isfinite(step.loss) for step in learner(model, given, recipe).run())


def test_rft_imitates_successes_and_says_when_there_are_none(model):
    given = examples()
    recipe = Recipe(algorithm="rft")
    signal = learning_signal(given, tracks(model, given), recipe)
    assert {given[i].reward for cluster in signal.clusters for i in cluster} == {1.0}
    assert len(signal.clusters) == 4
    failed = [replace(example, reward=0.4) for example in given]
    nothing = learning_signal(failed, tracks(model, failed), recipe)
    assert (nothing.clusters, nothing.flat_groups) == ((), 4)
    assert "reach a reward of 0.5" in no_signal_reason(nothing, recipe)


def test_preferences_are_of_one_task_and_single_attempts_at_a_task_find_each_other(model):
    given = examples(2, 2)
    mixed = [replace(e, task=f"k{n}") for n, e in enumerate(given)]
    recipe = Recipe(algorithm="dpo")
    signal = learning_signal(mixed, tracks(model, mixed), recipe)
    assert signal.clusters == ()
    assert "at the same task" in no_signal_reason(signal, recipe)
    apart = [replace(e, group=f"w{n}") for n, e in enumerate(given)]
    assert set(learning_signal(apart, tracks(model, apart), recipe).clusters) == {(0, 1), (3, 2)}


def test_stale_data_trains_around_the_start(model):
    """What was recorded by a policy far away is weighed, not clipped away: as much of it is learned
    in one step as the weights say, and the KL is that from the start: 0 before the first step."""
    given = examples()
    recipe = Recipe(batch_size=16, epochs=1, learning_rate=1e-3)
    fresh = tracks(model, given)
    stale = [replace(track, old_T=track.old_T - 0.5) for track in fresh]
    figures = []
    for some in (fresh, stale):
        work = Learner(model, given, learning_signal(given, some, recipe), recipe)
        figures.append(work._accumulate_gradients(work.steps[0]))
    assert figures[0]["kl"] == figures[1]["kl"] == pytest.approx(0, abs=1e-6)
    assert figures[1]["clipped"] == 0
    assert figures[0]["importance"] == pytest.approx(1)
    assert figures[1]["importance"] == pytest.approx(math.exp(0.5))
    assert importance_stats(stale, 1.2) == ImportanceStats(pytest.approx(1.2), 1.0, 1.0)


def test_numbers_that_cannot_be_are_named(model):
    given = examples(1)
    good = tracks(model, given)
    bad = [replace(good[0], old_T=torch.tensor([-1e30, 0.0])), *good[1:]]
    assert implausible_examples(given, good) == []
    assert implausible_examples(given, bad) == ["t0.0"]


def test_the_value_head_knows_tasks_before_the_first_step_and_has_its_own_rate(model):
    """Eight tasks, four attempts each; those of odd tasks always succeed."""
    given = [replace(e, reward=float(int(e.task[1:]) % 2)) for e in examples(8, 4)]
    recipe = Recipe(algorithm="ppo", batch_size=32, epochs=1, learning_rate=1e-3, value_rate=5e-3)
    work = learner(model, given, recipe)
    before = [track.turns for track in work._tracks]
    next(work.run())
    assert before == [1] * 32
    assert work.explained_variance is not None
    assert [group["lr"] for group in work.optimizer.param_groups] == pytest.approx([1e-3, 5e-3])
    expected = {e.task: float(t.old_values_K[0]) for e, t in zip(given, work._tracks, strict=True)}
    odd = [value for task, value in expected.items() if int(task[1:]) % 2]
    even = [value for task, value in expected.items() if not int(task[1:]) % 2]
    assert sum(odd) / len(odd) >= sum(even) / len(even)


def test_a_job_that_goes_on_keeps_the_head_it_was_given(model):
    given = examples()
    recipe = Recipe(algorithm="ppo", batch_size=4, epochs=1)
    work = learner(model, given, recipe)
    work.value_head.bias.data.fill_(0.75)
    next(work.run(1))
    assert work.explained_variance is None
    assert abs(float(work.value_head.bias.detach()) - 0.75) < 0.01


def test_turns_are_credited_where_they_were_rewarded(model):
    two = Example(
        "t",
        "g",
        "k",
        (1, 2, 3, 4),
        (False, True, False, True),
        (0, 0, 1, 1),
        None,
        False,
        1.0,
        turn_rewards=(0.0, 0.0),
        agent_id="a",
    )
    given = [two, replace(two, trajectory_id="u", ids=(1, 5, 3, 6), turn_rewards=(1.0, 0.0))]
    for credit, different in (("turn", True), ("trajectory", False)):
        recipe = Recipe(credit=credit, scale_rewards="none", min_spread=0.0)
        rewarded = learning_signal(given, tracks(model, given), recipe)
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
    assert recorded_logprobs(known).tolist() == [-1.0, -2.0]
    assert recorded_logprobs(example) is None
