"""The canary's promise under traffic as it is: at most 2 % of equal candidates fail, whoever asks and however.

And of those that are worse by as much as matters, at most 5 % are ever proven to be no worse.
"""

import itertools

import numpy as np
import pytest
from tests.support import sized
from traffic import MODES, SDS, SHAPES, USERS, Cell, tried, worse

from upswing.deploy.core.error_rate import RequestCounts
from upswing.deploy.core.evidence import begin_evidence
from upswing.deploy.core.health import FailureCause, HealthStatus, judge_health
from upswing.deploy.core.limits import RolloutLimits
from upswing.deploy.core.rows import ObservedReward

LIMITS = RolloutLimits()
CELLS = [
    Cell(users, sd, mode, shape)
    for users, sd, mode, shape in itertools.product(USERS, SDS, MODES, SHAPES)
]
SMALL = [Cell(5, 0.15, shape=shape) for shape in SHAPES] + [
    Cell(500, 0.15, "user"),
    Cell(20, 0.3, "user"),
]


def holds(cell, runs):
    equal, bad = tried(cell, runs), tried(worse(cell), runs)
    print(
        f"\n{cell}: {equal.failing:.1%} of equal ones fail, {equal.proven:.0%} are proven after {equal.median:g}; {bad.proven:.1%} of those worse by 0.05 are"
    )
    most = 3 * np.sqrt(0.02 * 0.98 / runs)  # what chance adds to a share of 2 % in so many
    assert equal.failing <= 0.02 + most, (str(cell), equal)
    assert bad.proven <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / runs), (str(cell), bad)


@sized("runs", 5, 16)
@pytest.mark.parametrize("cell", SMALL, ids=str)
def test_the_promise_holds(cell, runs):
    holds(cell, runs)


@pytest.mark.slow
@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_the_promise_holds_in_every_cell(cell):
    holds(cell, 100)


# ── parts of the traffic ─────────────────────────────────────────────────────────────────────────


def canary(
    loss_of, *, episodes=3000, seed=0, kinds=(("coding", 0.2), ("writing", 0.8)), share=0.25
):
    """What a canary comes to whose reward changes so in each domain: (word, after how many, verdict)."""
    chance = np.random.default_rng(seed)
    evidence, names = begin_evidence(LIMITS), [name for name, _ in kinds]
    evidence.errors.add(RequestCounts(1000, 0), RequestCounts(1000, 0))
    weights = [weight for _, weight in kinds]
    for seq in range(1, episodes + 1):
        domain = names[chance.choice(len(names), p=weights)]
        candidate = bool(chance.random() < share)
        reward = float(np.clip(chance.normal(0.6, 0.2) + candidate * loss_of(domain), 0, 1))
        row = ObservedReward(seq, "m", "r", reward, str(share), reward, (f"domain {domain}",))
        evidence.rewards.observe(seq, reward, candidate=candidate, step=row.step)
        evidence.guards.observe(row, candidate=candidate, limit=LIMITS.reward)
        verdict = judge_health(evidence, LIMITS)
        if verdict.health is HealthStatus.FAILING:
            return "failing", seq, verdict
        if verdict.proven:
            return "proven", seq, verdict
    return "undecided", episodes, verdict


def test_a_domain_that_loses_takes_the_model_back_though_the_mean_gains():
    ends = [canary(lambda d: -0.4 if d == "coding" else 0.1, seed=seed) for seed in range(20)]
    assert [word for word, _, _ in ends].count("failing") >= 19
    assert {each.cause for _, _, each in ends if each.cause} == {FailureCause.SEGMENT}
    assert all("domain coding" in each.sentence for _, _, each in ends if each.cause)


@sized("canaries", 10, 30)
def test_equal_models_are_not_taken_back_by_their_guards(canaries):
    many = [(f"d{n}", 1 / 30) for n in range(30)]
    ends = [canary(lambda d: 0.0, seed=seed, kinds=many, episodes=1500) for seed in range(canaries)]
    assert [word for word, _, _ in ends].count("failing") <= 2 * canaries // 30


def test_few_users_hold_and_are_not_taken_back():
    from datetime import UTC, datetime, timedelta

    from upswing.deploy.core.canary import Hold, first_canary_step, next_action
    from upswing.deploy.core.ramp import CanaryStep

    evidence, start = begin_evidence(LIMITS), datetime(2026, 1, 5, tzinfo=UTC)
    evidence.by_user = True
    evidence.errors.add(RequestCounts(1000, 0), RequestCounts(1000, 0))
    for seq in range(1, LIMITS.min_users):
        evidence.rewards.observe(seq, 0.5, candidate=seq % 2 == 0, step="0.5")
    verdict = judge_health(evidence, LIMITS)
    assert verdict.sentence.startswith(
        f"inconclusive: {LIMITS.min_users - 1} users cannot decide it"
    )
    one = first_canary_step((CanaryStep(0.5, timedelta(0), 1),), start)
    assert isinstance(next_action(one, verdict, start + timedelta(days=30)), Hold)
    evidence.rewards.observe(LIMITS.min_users, 0.5, candidate=True, step="0.5")
    enough = judge_health(evidence, LIMITS)
    assert "cannot decide it" not in enough.sentence
    assert isinstance(next_action(one, enough, start + timedelta(days=30)), Hold)


def test_a_guard_whose_part_of_the_traffic_comes_no_more_holds_nobody():
    evidence = begin_evidence(LIMITS)
    for seq in range(1, 200):
        row = ObservedReward(seq, "m", "r", 0.0 if seq % 2 else 1.0, "0.5", None, ("segment old",))
        evidence.guards.observe(row, candidate=bool(seq % 2), limit=LIMITS.reward)
    assert evidence.guards.losing_guard()
    for later in range(200, 800):
        row = ObservedReward(later, "m", "r", 0.5, "0.5", 0.5, ("segment new",))
        evidence.guards.observe(row, candidate=later % 3 == 0, limit=LIMITS.reward)
    found = evidence.guards.losing_guard()
    assert found is None or "old" not in found[0]
