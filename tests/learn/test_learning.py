"""Recorded trajectories go in, a better model comes out: the real loop, on a world with held-out tasks."""

import pytest
from tests.learn.school import learn

pytestmark = [pytest.mark.learn, pytest.mark.live]


@pytest.mark.slow
async def test_grpo_learns_the_rule_from_what_agents_did(data, bases):
    scores, school = await learn(data, bases, "grpo", rounds=3)
    assert scores[0] < 0.45
    assert scores[-1] > 0.85, scores
    assert all(status["metadata"]["off_policy_share"] == 0 for status in school.statuses)


async def test_a_loop_in_which_nobody_set_a_knob_learns_round_after_round(data, bases):
    scores, school = await learn(data, bases, "grpo", rounds=3, recipe={})
    assert scores[0] < 0.45
    assert scores[-1] > 0.75, scores
    assert scores[0] < scores[1] < scores[2], scores
    for status in school.statuses:
        told = status["metadata"]
        assert told["settings"]["why"]["learning_rate"]
        assert told["kl_from_parent"] > 1e-3
        assert "no_change" not in told
        assert sum(told["policy_versions"].values()) == pytest.approx(1)
    assert school.statuses[0]["metadata"]["changed_answers"] > 0.2
    newest = school.statuses[-1]["metadata"]["policy_versions"]
    assert "tiny" not in newest, "the last round trains on what its own parent did"


@pytest.mark.slow
async def test_dpo_learns_from_pairs_of_attempts_at_the_same_task(data, bases):
    scores, _ = await learn(data, bases, "dpo", rounds=2)
    assert scores[-1] >= scores[0] + 0.25, scores


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["ppo", "rloo", "reinforce"])
async def test_the_other_algorithms_learn_it_too(data, bases, algorithm):
    scores, _ = await learn(data, bases, algorithm)
    assert scores[-1] >= scores[0] + 0.25, scores


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
async def test_grpo_learns_it_from_other_seeds(data, bases, seed):
    scores, school = await learn(data, bases, "grpo", seed=seed)
    assert scores[0] < 0.45
    assert scores[-1] > 0.85, scores
    assert school.success(greedy=False) > 0.5
