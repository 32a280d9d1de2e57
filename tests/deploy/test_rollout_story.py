"""Whole rollouts, from the first share to their end, on simulated traffic and a clock that is handed in."""

import random
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from upswing.deploy.core.canary import Hold, next_action
from upswing.deploy.core.error_rate import RequestCounts
from upswing.deploy.core.events import ActionDecided, BeginRollout
from upswing.deploy.core.evidence import begin_evidence, decode, encode
from upswing.deploy.core.health import judge_health
from upswing.deploy.core.limits import RolloutLimits
from upswing.deploy.core.rollout import Rollout, apply_event, new_rollout
from upswing.deploy.core.states import ACTIVE, RolloutState
from upswing.deploy.core.strategy import choose_strategy

START = datetime(2026, 1, 5, 12, tzinfo=UTC)
LIMITS = RolloutLimits()
LOOK = timedelta(minutes=5)


def play(
    *, improvement=0.08, drop=0.0, errors=0.01, per_day=20_000, sd=0.2, seed=1, restarts=False
):
    """What becomes of a candidate; each change of traffic with its time and share."""
    rng, evidence, now = random.Random(seed), begin_evidence(LIMITS), START
    rollout = new_rollout("r-1", "agent-v7", "agent-v6", "val-1", choose_strategy(improvement), now)
    rollout, told, seq = apply_event(rollout, BeginRollout(), now), [], 0
    sides = {True: [0, 0], False: [0, 0]}
    while rollout.state in ACTIVE:
        now += LOOK
        for _ in range(round(per_day * (LOOK / timedelta(days=1)) + rng.random() - 0.5)):
            seq += 1
            candidate = rng.random() < rollout.share
            sides[candidate][0] += 1
            sides[candidate][1] += rng.random() < (errors if candidate else 0.01)
            evidence.rewards.observe(
                seq, rng.gauss(0.6 - drop * candidate, sd), candidate=candidate
            )
        evidence.errors.count("g", RequestCounts(*sides[True]), RequestCounts(*sides[False]))
        if restarts:
            evidence = decode(encode(evidence))
            rollout = msgspec.json.decode(msgspec.json.encode(rollout), type=Rollout)
        action = next_action(rollout.canary, judge_health(evidence, LIMITS), now)
        rollout = apply_event(rollout, ActionDecided(action, evidence.rewards.candidates), now)
        if not isinstance(action, Hold):
            told.append((now - START, rollout.share))
    return rollout, told


def test_an_equal_candidate_with_much_traffic_is_promoted_after_four_hours():
    rollout, told = play()
    assert rollout.state is RolloutState.PROMOTED
    assert [share for _, share in told] == [0.25, 0.5, 1.0]
    assert timedelta(hours=4) <= told[-1][0] <= timedelta(hours=6)


def test_a_candidate_that_is_hardly_better_starts_from_five_percent():
    rollout, told = play(improvement=0.01)
    assert rollout.state is RolloutState.PROMOTED
    assert [share for _, share in told] == [0.1, 0.25, 0.5, 1.0]


def test_with_little_traffic_the_samples_take_longer_than_the_hours():
    rollout, told = play(per_day=1000)
    assert rollout.state is RolloutState.PROMOTED
    assert told[0][0] >= timedelta(hours=10)
    assert told[-1][0] <= timedelta(days=5)


@pytest.mark.parametrize(
    ("worse", "reason"),
    [
        ({"drop": 0.15}, "performance_degradation"),
        ({"errors": 0.2}, "high_error_rate"),
        ({"errors": 0.8}, "hard_failure"),
    ],
)
def test_a_worse_candidate_comes_back_by_itself(worse, reason):
    rollout, told = play(**worse)
    assert (rollout.state, rollout.reason) == (RolloutState.ROLLED_BACK, reason)
    assert rollout.weights == {"agent-v6": 1.0, "agent-v7": 0.0}
    assert told[-1][0] <= timedelta(hours=4)
    assert rollout.sentence


def test_a_candidate_that_nobody_can_decide_comes_back_after_a_week():
    rollout, told = play(per_day=100)
    assert (rollout.state, rollout.reason) == (RolloutState.ROLLED_BACK, "undecided")
    assert told[-1][0] == timedelta(days=7)


@pytest.mark.parametrize("worse", [{}, {"drop": 0.1}, {"errors": 0.12}])
def test_a_restart_at_every_look_leaves_the_same_trace(worse):
    assert play(**worse, per_day=3000) == play(**worse, per_day=3000, restarts=True)
