"""Verdicts: every row of the table, what is monotone, and that doubt is never health."""

import copy
import math
import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from upswing.deploy.core.error_rate import RequestCounts
from upswing.deploy.core.evidence import begin_evidence
from upswing.deploy.core.health import (
    CanaryFigures,
    FailureCause,
    HealthStatus,
    HealthVerdict,
    canary_figures,
    judge_health,
)
from upswing.deploy.core.limits import RolloutLimits

LIMITS = RolloutLimits()
WORSE = [HealthStatus.HEALTHY, HealthStatus.INCONCLUSIVE, HealthStatus.FAILING]


def seen(count=400, *, share=0.25, drop=0.0, errors=0.0, beside=0.0, unhappy=1.0, seed=1):
    """A canary after so many requests of both, each with a reward."""
    rng, evidence = random.Random(seed), begin_evidence(LIMITS)
    sides = {True: [0, 0], False: [0, 0]}
    for seq in range(1, count + 1):
        candidate = rng.random() < share
        sides[candidate][0] += 1
        sides[candidate][1] += rng.random() < (errors if candidate else beside)
        evidence.rewards.observe(seq, rng.gauss(0.6 - drop * candidate, 0.15), candidate=candidate)
        if rng.random() < 0.05 * (unhappy if candidate else 1):
            evidence.complaints.observe(seq, candidate=candidate, share=share)
        evidence.errors.count("g", RequestCounts(*sides[True]), RequestCounts(*sides[False]))
    return evidence


@pytest.mark.parametrize(
    ("changes", "health", "cause"),
    [
        ({}, HealthStatus.HEALTHY, None),
        ({"count": 60}, HealthStatus.INCONCLUSIVE, None),
        ({"errors": 0.7}, HealthStatus.FAILING, FailureCause.HARD),
        ({"errors": 0.25, "seed": 2}, HealthStatus.FAILING, FailureCause.ERRORS),
        ({"errors": 0.25, "beside": 0.25}, HealthStatus.INCONCLUSIVE, None),
        ({"errors": 0.9, "beside": 0.9}, HealthStatus.INCONCLUSIVE, None),
        ({"drop": 0.2}, HealthStatus.FAILING, FailureCause.REWARD),
        ({"unhappy": 10}, HealthStatus.FAILING, FailureCause.COMPLAINTS),
    ],
)
def test_the_rows_of_the_table(changes, health, cause):
    told = judge_health(seen(**changes), LIMITS)
    assert (told.health, told.cause) == (health, cause)
    assert told.sentence.endswith(".")


def test_a_dead_backend_is_failing_at_once():
    told = judge_health(begin_evidence(LIMITS), LIMITS, backend_alive=False)
    assert (told.health, told.cause) == (HealthStatus.FAILING, FailureCause.BACKEND)


def test_a_row_of_failures_waits_for_no_sample():
    evidence, found = begin_evidence(LIMITS), []
    for n in range(1, 11):
        evidence.errors.count("g", RequestCounts(n, n), RequestCounts(9 * n, 0))
        found.append(judge_health(evidence, LIMITS).health)
    assert found[:3] == [HealthStatus.INCONCLUSIVE] * 3
    assert found[-1] is HealthStatus.FAILING
    assert judge_health(evidence, LIMITS).cause is FailureCause.HARD


def test_a_hard_failure_after_a_long_good_time_does_not_wait_either():
    evidence = seen(4000)
    known = evidence.errors.seen["g"]
    assert judge_health(evidence, LIMITS).health is HealthStatus.HEALTHY
    n, e = known.candidate.requests, known.candidate.errors
    evidence.errors.count("g", RequestCounts(n + 15, e + 15), known.baseline)
    assert judge_health(evidence, LIMITS).cause is FailureCause.HARD


def test_an_outage_that_hits_both_is_nobodys_fault():
    evidence = seen(2000, errors=0.01, beside=0.01)
    known = evidence.errors.seen["g"]
    n, m = known.candidate, known.baseline
    for k in range(1, 200):
        told = (
            RequestCounts(n.requests + k, n.errors + k),
            RequestCounts(m.requests + 3 * k, m.errors + 3 * k),
        )
        evidence.errors.count("g", *told)
        assert judge_health(evidence, LIMITS).health is not HealthStatus.FAILING
    told = judge_health(evidence, LIMITS)
    assert told.health is HealthStatus.INCONCLUSIVE
    assert "that may not be its fault" in told.sentence


def test_healthy_is_not_yet_proven():
    few, many = judge_health(seen(150), LIMITS), judge_health(seen(3000), LIMITS)
    assert (few.health, few.proven) == (HealthStatus.HEALTHY, False)
    assert (many.health, many.proven) == (HealthStatus.HEALTHY, True)


def test_a_candidate_whose_rewards_are_often_missing_is_not_called_healthy():
    evidence = seen(400)
    for seq in range(401, 440):
        evidence.rewards.observe(seq, math.nan, candidate=True)
    told = judge_health(evidence, LIMITS)
    assert told.health is HealthStatus.INCONCLUSIVE
    assert "39 of its rewards are missing" in told.sentence


@given(
    st.lists(
        st.tuples(st.sampled_from([math.nan, math.inf, -math.inf, None]), st.booleans()),
        max_size=200,
    )
)
def test_nothing_but_bad_numbers_is_never_healthy(stream):
    evidence = begin_evidence(LIMITS)
    evidence.errors.count("g", RequestCounts(500, 0), RequestCounts(5000, 0))
    for seq, (reward, candidate) in enumerate(stream, 1):
        evidence.rewards.observe(seq, reward, candidate=candidate)
    assert judge_health(evidence, LIMITS).health is HealthStatus.INCONCLUSIVE


evidences = st.builds(
    seen,
    st.integers(0, 300),
    share=st.sampled_from([0.05, 0.1, 0.25, 0.5]),
    drop=st.sampled_from([0.0, 0.1, 0.2]),
    errors=st.sampled_from([0.0, 0.05, 0.2]),
    beside=st.sampled_from([0.0, 0.05]),
    unhappy=st.sampled_from([1, 3]),
    seed=st.integers(0, 99),
)


@given(evidences, st.floats(0, 1), st.floats(0, 1))
def test_a_lower_reward_never_makes_a_better_verdict(evidence, a, b):
    verdicts = []
    for reward in sorted((a, b)):
        one = copy.deepcopy(evidence)
        one.rewards.observe(10_000, reward, candidate=True)
        verdicts.append((judge_health(one, LIMITS), one.rewards.lower(0.05)))
    (low, below), (high, above) = verdicts
    assert WORSE.index(low.health) >= WORSE.index(high.health)
    assert below <= above + 1e-12


@given(evidences, st.integers(1, 60), st.data())
def test_more_errors_never_make_a_better_verdict(evidence, requests, data):
    few, many = sorted(data.draw(st.tuples(*[st.integers(0, requests)] * 2)))
    found = []
    for errors in (few, many):
        one = copy.deepcopy(evidence)
        one.errors.count("other", RequestCounts(requests, errors), RequestCounts(100, 0))
        found.append(WORSE.index(judge_health(one, LIMITS).health))
    assert found == sorted(found)


@given(evidences, st.sampled_from([0.1, 0.5]))
def test_a_complaint_about_the_candidate_never_makes_a_better_verdict(evidence, share):
    found = []
    for candidate in (False, True):
        one = copy.deepcopy(evidence)
        one.complaints.observe(10_000, candidate=candidate, share=share)
        found.append(WORSE.index(judge_health(one, LIMITS).health))
    assert found == sorted(found)


@given(evidences)
def test_figures_and_verdict_go_through_a_journal(evidence):
    told, numbers = judge_health(evidence, LIMITS), canary_figures(evidence, LIMITS)
    assert msgspec.json.decode(msgspec.json.encode(told), type=HealthVerdict) == told
    assert msgspec.json.decode(msgspec.json.encode(numbers), type=CanaryFigures) == numbers
    again = msgspec.json.decode(msgspec.json.encode(LIMITS), type=RolloutLimits)
    assert judge_health(evidence, again) == told
