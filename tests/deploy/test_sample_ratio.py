"""What is lost on one side before it is scored proves nothing: a sample ratio mismatch is seen, and waited for."""

import random
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upswing.deploy.core.error_rate import RequestCounts
from upswing.deploy.core.evidence import begin_evidence
from upswing.deploy.core.health import HealthStatus, judge_health
from upswing.deploy.core.limits import RolloutLimits
from upswing.deploy.core.record import RolloutRecord, add_rewards
from upswing.deploy.core.rows import ObservedReward, RewardBatch
from upswing.deploy.core.sample_ratio import SampleRatio

LIMITS = RolloutLimits()
CANARY = SimpleNamespace(model_id="candidate", rollout_id="r1")


def drawn(rng, count, share, keeps_candidate=1.0, keeps_baseline=1.0):
    """Episodes as they come back: (the candidate's?, its share when it was drawn)."""
    for _ in range(count):
        candidate = rng.random() < share
        if rng.random() < (keeps_candidate if candidate else keeps_baseline):
            yield candidate, share


def ratio_of(episodes):
    ratio = SampleRatio()
    for candidate, share in episodes:
        ratio.observe(candidate=candidate, share=share)
    return ratio


@given(
    seed=st.integers(0, 10**6),
    share=st.sampled_from([0.02, 0.05, 0.1, 0.25, 0.5, 0.9]),
    kept=st.sampled_from([1.0, 0.6, 0.2]),
)
def test_a_loss_that_both_sides_share_is_none(seed, share, kept):
    ratio = ratio_of(drawn(random.Random(seed), 2000, share, kept, kept))
    assert ratio.mismatch() is None


@pytest.mark.parametrize("share", [0.05, 0.1, 0.25, 0.5])
@pytest.mark.parametrize("whose", ["candidate", "baseline"])
def test_every_third_that_one_side_loses_is_found(share, whose):
    keeps = {f"keeps_{whose}": 0.66}
    for seed in range(20):
        found = ratio_of(drawn(random.Random(seed), int(900 / share), share, **keeps)).mismatch()
        assert found is not None
        assert found[0] == whose
        assert found[1] < found[2]


def test_shares_that_grow_are_no_mismatch():
    rng = random.Random(4)
    steps = [each for share in (0.05, 0.1, 0.25, 0.5) for each in drawn(rng, 800, share)]
    assert ratio_of(steps).mismatch() is None


def record_of(keeps_candidate):
    """A canary whose bad episodes vanish before anybody scores them."""
    rng, record, rows, counts = random.Random(1), RolloutRecord(), [], {True: 0, False: 0}
    record.evidence, record.sources = begin_evidence(LIMITS), ["r1"]
    for seq, (candidate, share) in enumerate(drawn(rng, 3000, 0.25, keeps_candidate), 1):
        counts[candidate] += 1
        model = "candidate" if candidate else "base"
        rows.append(ObservedReward(seq, model, "r1", rng.gauss(0.6, 0.1), step=f"{share:g}"))
    add_rewards(record, CANARY, RewardBatch(tuple(rows), len(rows)))
    record.evidence.errors.count(
        "g", RequestCounts(counts[True], 0), RequestCounts(counts[False], 0)
    )
    return record


@pytest.mark.parametrize(
    ("kept", "health"), [(1.0, HealthStatus.HEALTHY), (0.7, HealthStatus.INCONCLUSIVE)]
)
def test_a_candidate_whose_episodes_vanish_is_not_proven(kept, health):
    told = judge_health(record_of(kept).evidence, LIMITS)
    assert told.health is health
    assert told.proven is (health is HealthStatus.HEALTHY)
    assert ("Sample ratio mismatch" in told.sentence) is (health is not HealthStatus.HEALTHY)


@pytest.mark.parametrize("late", [20, 200, 2000])
def test_what_another_rollout_drew_is_no_mismatch(late):
    """A model that is held beside one that ramps: what was drawn before it came has that one's share."""
    rng, record = random.Random(late), RolloutRecord()
    record.evidence, record.sources = begin_evidence(LIMITS), ["r1", "leads"]
    rows = [ObservedReward(seq, "base", "leads", rng.random(), "0.5") for seq in range(1, late + 1)]
    for seq in range(late + 1, late + 3000):
        model = rng.choices(["leader", "candidate", "base"], [0.5, 0.2, 0.3])[0]
        if model != "leader":
            rows.append(ObservedReward(seq, model, "leads", rng.random(), "0.5+0.2"))
    add_rewards(record, CANARY, RewardBatch(tuple(rows), rows[-1].seq))
    assert record.evidence.rewards.candidates > 500
    assert (record.evidence.ratio.episodes, record.evidence.ratio.mismatch()) == (0, None)
