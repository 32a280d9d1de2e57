"""Episodes that came back and cannot be compared: can one arm win, or lose, by what it loses?"""

import random
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upswing.deploy.core.error_rate import RequestCounts
from upswing.deploy.core.evidence import begin_evidence
from upswing.deploy.core.health import HealthStatus, judge_health
from upswing.deploy.core.holdback import begin_holdback
from upswing.deploy.core.limits import RolloutLimits
from upswing.deploy.core.missing_episodes import LostEpisodes
from upswing.deploy.core.record import RolloutRecord, add_rewards
from upswing.deploy.core.rewards import RewardEvidence
from upswing.deploy.core.rows import ObservedReward, RewardBatch

LIMITS = RolloutLimits()
CANARY = SimpleNamespace(model_id="candidate", rollout_id="r1")


def record_of(seed, *, drop=0.0, loses=None, worst=0.0, both=0.0, episodes=4000, share=0.5):
    """A canary of which one arm loses the `worst` share of its episodes, and each arm `both` by chance."""
    chance, record = random.Random(seed), RolloutRecord()
    record.evidence, record.sources = begin_evidence(LIMITS), ["r1"]
    rows = []
    for seq in range(1, episodes + 1):
        candidate = chance.random() < share
        reward = float(chance.random() < 0.6 - drop * candidate)
        model = "candidate" if candidate else "base"
        hit = loses == model and not reward and chance.random() < worst / (0.4 + drop * candidate)
        lost = hit or chance.random() < both
        rows.append(ObservedReward(seq, model, "r1", reward, f"{share:g}", lost=lost))
    add_rewards(record, CANARY, RewardBatch(tuple(rows), len(rows)))
    record.evidence.errors.count("g", RequestCounts(2000, 0), RequestCounts(2000, 0))
    return record.evidence


@pytest.mark.parametrize("worst", [0.08, 0.12])
def test_a_worse_candidate_is_not_proven_by_losing_its_worst_episodes(worst):
    """It loses a tenth, and looks equal by what is left."""
    told = [
        judge_health(record_of(seed, drop=0.10, loses="candidate", worst=worst), LIMITS)
        for seed in range(8)
    ]
    assert not any(each.proven for each in told)


def test_what_both_lose_alike_keeps_nobody_from_a_proof():
    told = [judge_health(record_of(seed, both=0.03, drop=-0.05), LIMITS) for seed in range(8)]
    assert sum(each.proven for each in told) >= 7


@pytest.mark.parametrize("worst", [0.05, 0.10])
def test_an_equal_candidate_does_not_fail_by_what_the_baseline_loses(worst):
    told = [judge_health(record_of(seed, loses="base", worst=worst), LIMITS) for seed in range(8)]
    assert not any(each.health is HealthStatus.FAILING for each in told)


def test_a_candidate_that_is_much_worse_fails_whatever_is_lost():
    told = [
        judge_health(record_of(s, drop=0.3, loses="base", worst=0.05), LIMITS) for s in range(4)
    ]
    assert all(each.health is HealthStatus.FAILING for each in told)


def test_a_holdback_that_loses_its_worst_takes_no_equal_model_back():
    chance, held = random.Random(5), begin_holdback("before", LIMITS)
    for seq in range(1, 8001):
        side, reward = chance.random() < 0.1, float(chance.random() < 0.6)
        if side and not reward and chance.random() < 0.3:
            held.lost.observe(candidate=True)
        else:
            held.observe(seq, reward, held=side, step="holdback:0.1")
    assert held.failing(LIMITS) is None


counts = st.integers(0, 1000)
means = st.floats(0, 1)


@given(counts, counts, counts, counts, means, means)
def test_only_what_one_arm_loses_beyond_the_other_counts(c, b, cs, bs, mean_c, mean_b):
    rewards = RewardEvidence(
        candidates=cs, baselines=bs, mean_candidate=mean_c, mean_baseline=mean_b
    )
    lost = LostEpisodes(c, b)
    upward_bias, downward_bias = lost.upward_bias(rewards), lost.downward_bias(rewards)
    assert 0 <= upward_bias <= 1
    assert 0 <= downward_bias <= 1
    if not c and not b:
        assert upward_bias == downward_bias == 0
    turned = RewardEvidence(
        candidates=bs, baselines=cs, mean_candidate=mean_b, mean_baseline=mean_c
    )
    assert LostEpisodes(b, c).downward_bias(turned) == pytest.approx(upward_bias), (
        "what flatters one blames the other"
    )
