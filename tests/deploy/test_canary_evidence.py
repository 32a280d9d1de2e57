"""The evidence: fair bets, once each, in any company, over any restart, whatever the numbers."""

import math
import random
from itertools import product

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from upswing.deploy.core.complaints import ComplaintEvidence
from upswing.deploy.core.error_rate import ErrorEvidence, RequestCounts
from upswing.deploy.core.evidence import begin_evidence, decode, encode
from upswing.deploy.core.health import canary_figures, judge_health
from upswing.deploy.core.limits import RolloutLimits
from upswing.deploy.core.rewards import RewardEvidence
from upswing.deploy.core.sequential_test import MOST, SequentialTest, fresh_wealth

LIMITS = RolloutLimits()
ODD = st.floats() | st.none() | st.sampled_from([0.0, 1.0, -5.0, 40.0, 1e308])
rewards = st.lists(st.tuples(ODD, st.booleans()), max_size=120)
tallies = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.integers(0, 9),
        st.integers(0, 9),
        st.integers(0, 40),
        st.integers(0, 9),
    ),
    max_size=30,
)
complaints = st.lists(st.tuples(st.booleans(), st.floats()), max_size=40)


def feed_rewards(evidence, stream, start=0):
    for seq, (reward, candidate) in enumerate(stream, start + 1):
        evidence.rewards.observe(seq, reward, candidate=candidate)


def cumulative(stream):
    """The tallies of two gateways as they tell them: growing counts."""
    totals = {name: [0, 0, 0, 0] for name in "ab"}
    for name, *more in stream:
        n, e, m, f = more[0], min(more[0], more[1]), more[2], min(more[2], more[3])
        totals[name] = [x + y for x, y in zip(totals[name], (n, e, m, f), strict=True)]
        n, e, m, f = totals[name]
        yield name, RequestCounts(n, e), RequestCounts(m, f)


def feed_tallies(evidence, stream):
    for name, candidate, baseline in stream:
        evidence.errors.count(name, candidate, baseline)


def feed_complaints(evidence, stream, start=0):
    for seq, (candidate, share) in enumerate(stream, start + 1):
        evidence.complaints.observe(seq, candidate=candidate, share=share)


def fed(some_rewards, some_tallies, some_complaints):
    evidence = begin_evidence(LIMITS)
    feed_rewards(evidence, some_rewards)
    feed_tallies(evidence, cumulative(some_tallies))
    feed_complaints(evidence, some_complaints)
    return evidence


# --- the bets are fair ---------------------------------------------------------------------------


def put_in(suspicion):
    """What was put in so far: a fair bettor has no more than that, on average."""
    return (fresh_wealth(0, suspicion.turns) if suspicion.turns else 0.0) + 1e-12


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.booleans(), min_size=2, max_size=10),
    st.floats(0.02, 0.98),
    st.sampled_from([0.0, 0.0, 0.1, 0.5]),
)
@example([False] * 4 + [True] + [False] * 3 + [True, False], 0.5, 0.0)
@example([True, True, False, False, True, False, False, True, False, False], 0.3, 0.0)
def test_against_an_equal_or_better_candidate_no_reward_bet_wins_on_average(arms, mean, more):
    """Every possible sequence of rewards, weighed by its probability."""
    better = min(1.0, mean + more)
    expected = 0.0
    for outcome in product((0.0, 1.0), repeat=len(arms)):
        evidence, weight = RewardEvidence(), 1.0
        for seq, (y, candidate) in enumerate(zip(outcome, arms, strict=True), 1):
            chance = better if candidate else mean
            weight *= chance if y else 1 - chance
            evidence.observe(seq, y, candidate=candidate)
        expected += weight * evidence.worse.wealth
    assert expected <= put_in(evidence.worse)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.booleans(), min_size=2, max_size=10), st.floats(0, 1), st.floats(0, 1))
@example([False] * 4 + [True] + [False] * 3 + [True, False], 0.5, 0.2)
@example([True, True, False, False, True, False, False, True, False, False], 0.3, 0.3)
def test_both_ends_of_the_interval_rest_on_fair_bets(arms, mean, beside):
    """Each end is where a bettor on the true difference would have won 1/α; on average none wins."""
    below = above = 0.0
    for outcome in product((0.0, 1.0), repeat=len(arms)):
        evidence, weight = RewardEvidence(), 1.0
        for seq, (y, candidate) in enumerate(zip(outcome, arms, strict=True), 1):
            chance = mean if candidate else beside
            weight *= chance if y else 1 - chance
            evidence.observe(seq, y, candidate=candidate)
        off = evidence.centre - evidence.size * (mean - beside)
        below += weight * math.exp(off - evidence.width)
        above += weight * math.exp(-off - evidence.width)
    assert below <= 1 + 1e-9
    assert above <= 1 + 1e-9


def errors_on_average(shape, share, beside):
    """Expected wealth of both bets; 0: the candidate's request, 1: the baseline's, 2: one of each."""
    above_limit = above_baseline = 0.0
    arms = [arm for told in shape for arm in ((0, 1) if told == 2 else (told,))]
    for outcome in product((0, 1), repeat=len(arms)):
        evidence, weight, failures = ErrorEvidence(), 1.0, iter(outcome)
        for told in shape:
            sides = [RequestCounts(), RequestCounts()]
            for arm in (0, 1) if told == 2 else (told,):
                failed = next(failures)
                chance = beside if arm else share
                weight *= chance if failed else 1 - chance
                sides[arm] = RequestCounts(1, failed)
            evidence.add(*sides)
        above_limit += weight * evidence.above_limit.wealth
        above_baseline += weight * evidence.above_baseline.wealth
    return above_limit, above_baseline, evidence


shapes = st.lists(st.integers(0, 2), min_size=2, max_size=6)


@settings(max_examples=25, deadline=None)
@given(shapes, st.sampled_from([0.05, 0.05, 0.02, 0.0]), st.floats(0, 1))
def test_against_a_candidate_within_the_limit_no_error_bet_wins_on_average(shape, share, beside):
    above_limit, _, evidence = errors_on_average(shape, share, beside)
    assert above_limit <= put_in(evidence.above_limit)


@settings(max_examples=25, deadline=None)
@given(shapes, st.floats(0.01, 0.9), st.sampled_from([1.0, 1.0, 0.5, 0.0]))
@example([1, 1, 1, 0, 1, 1, 1, 0], 0.2, 1.0)
@example([0, 0, 1, 1, 1, 1, 0, 2], 0.5, 1.0)
def test_against_a_candidate_that_fails_no_more_no_error_bet_wins_on_average(shape, beside, part):
    _, above_baseline, evidence = errors_on_average(shape, part * beside, beside)
    assert above_baseline <= put_in(evidence.above_baseline)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(0.01, 0.99), min_size=1, max_size=9), st.sampled_from([1.0, 0.7, 0.0]))
def test_while_users_complain_no_more_no_complaint_bet_wins_on_average(shares, ratio):
    expected = 0.0
    for outcome in product((False, True), repeat=len(shares)):
        evidence, weight = ComplaintEvidence(), 1.0
        for seq, (candidate, share) in enumerate(zip(outcome, shares, strict=True), 1):
            chance = ratio * share / (1 - share + ratio * share)
            weight *= chance if candidate else 1 - chance
            evidence.observe(seq, candidate=candidate, share=share)
        expected += weight * evidence.more.wealth
    assert expected <= put_in(evidence.more)


@given(st.lists(st.integers(1, 10**6), max_size=50))
def test_no_more_than_one_is_ever_put_in(turns):
    done = put = 0
    for more in turns:
        put += fresh_wealth(done, more)
        done += more
    assert put <= 1 + 1e-9


@given(st.lists(st.floats(-1e6, 1e6), max_size=50))
def test_wealth_stays_a_number(growths):
    suspicion = SequentialTest()
    for growth in growths:
        suspicion.bet(growth)
        assert 0 <= suspicion.wealth <= MOST
        assert 0 <= suspicion.run <= MOST


# --- laws of the whole ---------------------------------------------------------------------------


@given(rewards, tallies, complaints, st.data())
def test_a_restart_at_any_moment_changes_nothing_later(
    some_rewards, some_tallies, some_complaints, data
):
    straight = fed(some_rewards, some_tallies, some_complaints)
    told = list(cumulative(some_tallies))
    cuts = [data.draw(st.integers(0, len(each))) for each in (some_rewards, told, some_complaints)]
    stopped = begin_evidence(LIMITS)
    feed_rewards(stopped, some_rewards[: cuts[0]])
    feed_tallies(stopped, told[: cuts[1]])
    feed_complaints(stopped, some_complaints[: cuts[2]])
    stopped = decode(encode(stopped))
    feed_rewards(stopped, some_rewards[cuts[0] :], cuts[0])
    feed_tallies(stopped, told[cuts[1] :])
    feed_complaints(stopped, some_complaints[cuts[2] :], cuts[2])
    assert stopped == straight
    assert judge_health(stopped, LIMITS) == judge_health(straight, LIMITS)


@given(rewards, tallies, complaints, st.randoms())
def test_the_order_of_unrelated_updates_does_not_matter(
    some_rewards, some_tallies, some_complaints, rng
):
    mixed = begin_evidence(LIMITS)
    updates = {
        "r": iter([(seq, *told) for seq, told in enumerate(some_rewards, 1)]),
        "t": iter(list(cumulative(some_tallies))),
        "c": iter([(seq, *told) for seq, told in enumerate(some_complaints, 1)]),
    }
    order = ["r"] * len(some_rewards) + ["t"] * len(some_tallies) + ["c"] * len(some_complaints)
    rng.shuffle(order)
    for kind in order:
        a, b, c = next(updates[kind])
        if kind == "r":
            mixed.rewards.observe(a, b, candidate=c)
        elif kind == "t":
            mixed.errors.count(a, b, c)
        else:
            mixed.complaints.observe(a, candidate=b, share=c)
    assert mixed == fed(some_rewards, some_tallies, some_complaints)


@given(rewards, tallies, complaints)
def test_everything_told_twice_counts_once(some_rewards, some_tallies, some_complaints):
    once = fed(some_rewards, some_tallies, some_complaints)
    twice = decode(encode(once))
    feed_rewards(twice, some_rewards)
    feed_tallies(twice, cumulative(some_tallies))
    feed_complaints(twice, some_complaints)
    assert twice == once


@given(rewards, tallies, complaints)
def test_every_number_stays_finite_whatever_comes(some_rewards, some_tallies, some_complaints):
    evidence = fed(some_rewards, some_tallies, some_complaints)

    def walk(value):
        if isinstance(value, dict):
            return all(map(walk, value.values()))
        if isinstance(value, list):
            return all(map(walk, value))
        return isinstance(value, str) or math.isfinite(value)

    assert walk(msgspec.to_builtins(evidence))
    assert canary_figures(evidence, LIMITS).lower <= canary_figures(evidence, LIMITS).upper


# --- single rules --------------------------------------------------------------------------------


def test_only_the_first_revision_of_a_trajectory_counts():
    evidence = RewardEvidence()
    assert evidence.observe(7, 0.5, candidate=True)
    assert not evidence.observe(8, 0.9, candidate=True, revision=2)
    assert not evidence.observe(7, 0.9, candidate=True)
    assert (evidence.candidates, evidence.seq) == (1, 8)


def test_what_came_before_the_rollout_does_not_count():
    evidence = begin_evidence(LIMITS, reward_seq=100, complaint_seq=50)
    assert not evidence.rewards.observe(100, 0.5, candidate=True)
    assert not evidence.complaints.observe(50, candidate=True, share=0.1)
    assert evidence.rewards.observe(101, 0.5, candidate=True)


def test_a_reward_outside_its_range_counts_as_the_nearest_end():
    inside, outside = RewardEvidence(), RewardEvidence()
    for seq in range(1, 100):
        low = seq % 3 == 0
        inside.observe(seq, 0.0 if low else 1.0, candidate=seq % 4 == 0)
        outside.observe(seq, -5.0 if low else 1e9, candidate=seq % 4 == 0)
    assert inside == outside


@pytest.mark.parametrize("tally", [RequestCounts(5, 6), RequestCounts(-1, 0), RequestCounts(3, -1)])
def test_a_tally_that_cannot_be_is_passed_over(tally):
    evidence = ErrorEvidence()
    assert not evidence.count("g", tally, RequestCounts(10, 1))
    assert not evidence.count("g", RequestCounts(10, 1), tally)
    assert evidence == ErrorEvidence()


def test_an_older_tally_after_a_newer_changes_nothing():
    evidence = ErrorEvidence()
    assert evidence.count("g", RequestCounts(10, 1), RequestCounts(90, 2))
    assert not evidence.count("g", RequestCounts(8, 0), RequestCounts(80, 2))
    assert (evidence.candidate, evidence.baseline) == (RequestCounts(10, 1), RequestCounts(90, 2))


def test_a_changing_share_in_a_changing_world_does_not_look_like_a_difference():
    """The world gets worse while the canary grows: plain means blame the candidate for it."""
    rng, evidence = random.Random(3), RewardEvidence()
    plain = {True: [], False: []}
    for seq in range(1, 12_001):
        share = (0.05, 0.10, 0.25, 0.50)[(seq - 1) // 3000]
        candidate, y = rng.random() < share, rng.gauss(0.8 - 0.5 * seq / 12_000, 0.15)
        plain[candidate].append(min(1, max(0, y)))
        evidence.observe(seq, y, candidate=candidate)
    means = {arm: sum(told) / len(told) for arm, told in plain.items()}
    assert means[True] - means[False] < -0.08
    assert abs(evidence.difference) < 0.02
    assert not evidence.worse.rejects_null(LIMITS.reward_chance)
    assert evidence.lower(0.05) < 0 < evidence.upper(0.05)


@pytest.mark.parametrize("shares", [(0.05, 0.5), (0.1, 0.5), (0.5, 0.05), (0.02, 0.9), (0.9, 0.02)])
@pytest.mark.parametrize("mean", [0.1, 0.5, 0.95])
def test_however_the_share_jumps_comparing_goes_on(shares, mean):
    rng, evidence = random.Random(6), RewardEvidence()
    for seq in range(1, 4001):
        if seq == 2001:
            before = evidence.candidates, evidence.settled
        candidate = rng.random() < shares[seq > 2000]
        evidence.observe(seq, rng.gauss(mean, 0.05), candidate=candidate)
    candidates, settled = evidence.candidates - before[0], evidence.settled - before[1]
    baselines = 2000 - candidates
    assert settled >= 0.75 * min(candidates, baselines)


def test_a_fall_after_a_long_good_time_is_found():
    rng, evidence, seq, told = random.Random(4), begin_evidence(LIMITS), 0, None
    while told is None and seq < 30_000:
        seq += 1
        candidate = rng.random() < 0.25
        worse = 0.2 if candidate and seq > 8000 else 0.0
        evidence.rewards.observe(seq, rng.gauss(0.6 - worse, 0.25), candidate=candidate)
        if evidence.rewards.worse.rejects_null(LIMITS.reward_chance):
            told = evidence.rewards
    assert (seq - 8000) / 4 <= 300
    assert told.run_difference <= -0.05 < told.difference


def test_without_baseline_rewards_nothing_is_compared():
    evidence = RewardEvidence()
    for seq in range(1, 1000):
        evidence.observe(seq, 0.0, candidate=True)
    assert evidence.difference is None
    assert (evidence.worse.wealth, evidence.lower(0.05), evidence.upper(0.05)) == (0, -1, 1)


def test_a_complaint_that_waited_counts_once_and_holds_up_no_other():
    waited, straight = ComplaintEvidence(), ComplaintEvidence()
    for seq in (1, 2, 3):
        assert straight.observe(seq, candidate=True, share=0.5)
    assert waited.observe(2, candidate=True, share=0.5)
    waited.pending = [1]
    assert waited.observe(3, candidate=True, share=0.5)
    assert [waited.observe(1, candidate=True, share=0.5) for _ in range(2)] == [True, False]
    assert waited == straight
