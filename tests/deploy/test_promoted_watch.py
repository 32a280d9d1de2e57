"""After promotion: errors against the limit, rewards against what was frozen."""

import random

import msgspec
import pytest

from upswing.deploy.core.canary import RollBack
from upswing.deploy.core.error_rate import RequestCounts
from upswing.deploy.core.evidence import begin_evidence
from upswing.deploy.core.health import FailureCause
from upswing.deploy.core.limits import RolloutLimits
from upswing.deploy.core.watch import (
    KeepModel,
    ModelDegraded,
    PromotionWatch,
    begin_watch,
    frozen_error,
    frozen_reward,
    judge_watch,
)

LIMITS = RolloutLimits()


def watched(mean, count, *, seed=1, frozen=0.7, sd=0.2):
    rng, watch = random.Random(seed), begin_watch(LIMITS, frozen)
    for seq in range(1, count + 1):
        watch.fall.observe(seq, rng.gauss(mean, sd))
        if isinstance(judge_watch(watch, LIMITS), ModelDegraded):
            return seq
    return None


def test_a_model_that_stays_what_it_was_is_kept():
    assert [watched(0.7, 3000, seed=seed) for seed in range(20)] == [None] * 20


def test_a_small_fall_is_no_degradation():
    assert [watched(0.67, 3000, seed=seed) for seed in range(20)] == [None] * 20


@pytest.mark.parametrize("count", [25, 50, 100, 400])
def test_a_lucky_canary_raises_no_alarm_later(count):
    """It earns 0 or 1 as often as ever; what was frozen is the mean of so many."""
    alarms = 0
    for seed in range(60):
        rng, evidence = random.Random(seed), begin_evidence(LIMITS)
        for seq in range(1, count + 1):
            evidence.rewards.observe(seq, float(rng.random() < 0.5), candidate=True)
        watch = begin_watch(LIMITS, frozen_reward(evidence, LIMITS), error=frozen_error(evidence))
        for seq in range(count + 1, count + 800):
            watch.fall.observe(seq, float(rng.random() < 0.5))
        alarms += isinstance(judge_watch(watch, LIMITS), ModelDegraded)
    assert alarms <= 1


def test_a_fall_is_noticed_within_some_hundred_rewards():
    assert max(watched(0.55, 1000, seed=seed) or 10**9 for seed in range(20)) <= 500


def test_a_fall_after_a_long_good_time_is_noticed_as_well():
    rng, watch = random.Random(5), begin_watch(LIMITS, 0.7)
    for seq in range(1, 5001):
        watch.fall.observe(seq, rng.gauss(0.7, 0.2))
    assert isinstance(judge_watch(watch, LIMITS), KeepModel)
    seq = 5000
    while isinstance(judge_watch(watch, LIMITS), KeepModel) and seq < 6000:
        seq += 1
        watch.fall.observe(seq, rng.gauss(0.5, 0.2))
    answer = judge_watch(watch, LIMITS)
    assert isinstance(answer, ModelDegraded)
    assert answer.reason == FailureCause.REWARD
    assert seq <= 5400


def test_errors_above_the_limit_bring_the_model_before_it_back():
    watch = begin_watch(LIMITS, 0.7)
    for n in range(1, 400):
        watch.errors.count("g", RequestCounts(n * 10, n * 10 // 25))  # 4 %
    assert isinstance(judge_watch(watch, LIMITS), KeepModel)
    for n in range(1, 30):
        watch.errors.count("h", RequestCounts(n * 10, n * 10 // 5))  # 20 %
    answer = judge_watch(watch, LIMITS)
    assert isinstance(answer, RollBack)
    assert answer.reason == FailureCause.ERRORS
    alone = judge_watch(watch, LIMITS, standby=False)
    assert isinstance(alone, ModelDegraded)
    assert "No model stands by" in alone.sentence


def test_hard_failures_do_not_wait():
    watch = begin_watch(LIMITS, None)
    watch.errors.count("g", RequestCounts(5000, 50))
    watch.errors.count("g", RequestCounts(5030, 80))
    assert judge_watch(watch, LIMITS).reason == FailureCause.HARD
    assert (
        judge_watch(begin_watch(LIMITS, None), LIMITS, backend_alive=False).reason
        == FailureCause.BACKEND
    )


@pytest.mark.parametrize("frozen", [None, float("nan"), float("inf"), -1.0, 2.0])
def test_without_a_frozen_value_nothing_can_fall(frozen):
    watch = begin_watch(LIMITS, frozen)
    for seq in range(1, 500):
        watch.fall.observe(seq, 0.0)
    assert isinstance(judge_watch(watch, LIMITS), KeepModel)


@pytest.mark.parametrize("frozen", [0.0, 0.02, 0.5, 1.0])
def test_a_watch_survives_every_reward_and_a_restart(frozen):
    watch = begin_watch(LIMITS, frozen)
    odd = (float("nan"), float("inf"), None, -3.0, 7.0, 0.0, 1.0, 0.5)
    for seq in range(1, 200):
        watch.fall.observe(seq, odd[seq % len(odd)])
        assert not watch.fall.observe(seq, 0.5)
        watch = msgspec.json.decode(msgspec.json.encode(watch), type=PromotionWatch)
    assert watch.fall.rewards == sum(seq % 8 > 2 for seq in range(1, 200))


def test_what_is_frozen_is_the_candidates_own_reward():
    evidence = begin_evidence(LIMITS)
    assert frozen_reward(evidence, LIMITS) is None
    for seq in range(1, 400):
        evidence.rewards.observe(seq, 0.8 if seq % 2 else 0.4, candidate=seq % 2 == 1)
    assert frozen_reward(evidence, LIMITS) == pytest.approx(0.8, abs=0.02)
