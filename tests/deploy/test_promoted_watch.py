"""After promotion: errors against the limit, rewards against what was frozen."""

import random

import msgspec
import pytest

from upswing.deploy.canary import RollBack
from upswing.deploy.errors import Tally
from upswing.deploy.evidence import begin
from upswing.deploy.health import Cause
from upswing.deploy.limits import Limits
from upswing.deploy.watch import (
    Degraded,
    Keep,
    Watch,
    begin_watch,
    frozen_error,
    frozen_reward,
    look,
)

LIMITS = Limits()


def watched(mean, count, *, seed=1, frozen=0.7, sd=0.2):
    rng, watch = random.Random(seed), begin_watch(LIMITS, frozen)
    for seq in range(1, count + 1):
        watch.fall.observe(seq, rng.gauss(mean, sd))
        if isinstance(look(watch, LIMITS), Degraded):
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
        rng, evidence = random.Random(seed), begin(LIMITS)
        for seq in range(1, count + 1):
            evidence.rewards.observe(seq, float(rng.random() < 0.5), candidate=True)
        watch = begin_watch(LIMITS, frozen_reward(evidence, LIMITS), error=frozen_error(evidence))
        for seq in range(count + 1, count + 800):
            watch.fall.observe(seq, float(rng.random() < 0.5))
        alarms += isinstance(look(watch, LIMITS), Degraded)
    assert alarms <= 1


def test_a_fall_is_noticed_within_some_hundred_rewards():
    assert max(watched(0.55, 1000, seed=seed) or 10**9 for seed in range(20)) <= 500


def test_a_fall_after_a_long_good_time_is_noticed_as_well():
    rng, watch = random.Random(5), begin_watch(LIMITS, 0.7)
    for seq in range(1, 5001):
        watch.fall.observe(seq, rng.gauss(0.7, 0.2))
    assert isinstance(look(watch, LIMITS), Keep)
    seq = 5000
    while isinstance(look(watch, LIMITS), Keep) and seq < 6000:
        seq += 1
        watch.fall.observe(seq, rng.gauss(0.5, 0.2))
    answer = look(watch, LIMITS)
    assert isinstance(answer, Degraded)
    assert answer.reason == Cause.REWARD
    assert seq <= 5400


def test_errors_above_the_limit_bring_the_model_before_it_back():
    watch = begin_watch(LIMITS, 0.7)
    for n in range(1, 400):
        watch.errors.count("g", Tally(n * 10, n * 10 // 25))  # 4 %
    assert isinstance(look(watch, LIMITS), Keep)
    for n in range(1, 30):
        watch.errors.count("h", Tally(n * 10, n * 10 // 5))  # 20 %
    answer = look(watch, LIMITS)
    assert isinstance(answer, RollBack)
    assert answer.reason == Cause.ERRORS
    alone = look(watch, LIMITS, standing_by=False)
    assert isinstance(alone, Degraded)
    assert "No model stands by" in alone.sentence


def test_hard_failures_do_not_wait():
    watch = begin_watch(LIMITS, None)
    watch.errors.count("g", Tally(5000, 50))
    watch.errors.count("g", Tally(5030, 80))
    assert look(watch, LIMITS).reason == Cause.HARD
    assert look(begin_watch(LIMITS, None), LIMITS, backend_alive=False).reason == Cause.BACKEND


@pytest.mark.parametrize("frozen", [None, float("nan"), float("inf"), -1.0, 2.0])
def test_without_a_frozen_value_nothing_can_fall(frozen):
    watch = begin_watch(LIMITS, frozen)
    for seq in range(1, 500):
        watch.fall.observe(seq, 0.0)
    assert isinstance(look(watch, LIMITS), Keep)


@pytest.mark.parametrize("frozen", [0.0, 0.02, 0.5, 1.0])
def test_a_watch_survives_every_reward_and_a_restart(frozen):
    watch = begin_watch(LIMITS, frozen)
    odd = (float("nan"), float("inf"), None, -3.0, 7.0, 0.0, 1.0, 0.5)
    for seq in range(1, 200):
        watch.fall.observe(seq, odd[seq % len(odd)])
        assert not watch.fall.observe(seq, 0.5)
        watch = msgspec.json.decode(msgspec.json.encode(watch), type=Watch)
    assert watch.fall.rewards == sum(seq % 8 > 2 for seq in range(1, 200))


def test_what_is_frozen_is_the_candidates_own_reward():
    evidence = begin(LIMITS)
    assert frozen_reward(evidence, LIMITS) is None
    for seq in range(1, 400):
        evidence.rewards.observe(seq, 0.8 if seq % 2 else 0.4, candidate=seq % 2 == 1)
    assert frozen_reward(evidence, LIMITS) == pytest.approx(0.8, abs=0.02)
