"""The promised figures, on thousands of simulated canaries with a look after every request.

A healthy candidate is taken back in at most 2 % of rollouts, all tests together; a worse one is caught in
at least 95 % of them, within the promised number of its requests.
"""

import numpy as np
import pytest
from crowd import WORLDS, beta, clipped_normal, simulate, zero_one

from upswing.deploy.core.error_rate import RequestCounts
from upswing.deploy.core.evidence import begin_evidence
from upswing.deploy.core.limits import RolloutLimits

LIMITS = RolloutLimits()


# --- the crowd is the package ----------------------------------------------------------------


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_the_crowd_computes_what_the_package_computes(share):
    rng, runs, requests = np.random.default_rng(8), 6, 400
    from crowd import Complaints, Errors, Rewards

    crowd = Rewards(runs, 0.05), Errors(runs, 0.05), Complaints(runs, 2.0)
    ours = [begin_evidence(LIMITS) for _ in range(runs)]
    drop = np.linspace(0, 0.3, runs)
    for t in range(1, requests + 1):
        arm = rng.random(runs) < share
        y = np.clip(rng.normal(0.6, 0.2, runs) - drop * arm, 0, 1)
        failed, unhappy = rng.random(runs) < 0.1 + drop * arm, rng.random(runs) < 0.1 + drop * arm
        for test, told in zip(crowd, ((y, arm), (failed, arm), (unhappy, arm, share)), strict=True):
            test.observe(*told)
        for i, one in enumerate(ours):
            one.rewards.observe(t, float(y[i]), candidate=bool(arm[i]))
            more = RequestCounts(1, int(failed[i]))
            one.errors.add(*((more, RequestCounts()) if arm[i] else (RequestCounts(), more)))
            if unhappy[i]:
                one.complaints.observe(t, candidate=bool(arm[i]), share=share)
    rewards, errors, complaints = crowd
    for name in ("settled", "difference_sum", "run_sum", "centre", "size", "width", "variance"):
        found = [getattr(one.rewards, name) for one in ours]
        np.testing.assert_allclose(getattr(rewards, name), found, rtol=1e-9, atol=1e-12)
    for theirs, of in (
        (rewards.worse, lambda one: one.rewards.worse),
        (errors.above_limit, lambda one: one.errors.above_limit),
        (errors.above_baseline, lambda one: one.errors.above_baseline),
        (complaints.more, lambda one: one.complaints.more),
    ):
        np.testing.assert_allclose(theirs.wealth, [of(one).wealth for one in ours], rtol=1e-7)
        np.testing.assert_allclose(theirs.run, [of(one).run for one in ours], rtol=1e-7)
    recent = [one.errors.recent_candidate.error_rate for one in ours]
    np.testing.assert_allclose(errors.recent[1] / np.maximum(errors.recent[0], 1e-9), recent)


# --- healthy ones stay -----------------------------------------------------------------------


def lost(result):
    return float(np.isfinite(result.alarm).mean())


@pytest.mark.parametrize("share", [0.05, 0.10, 0.50])
def test_of_two_thousand_equal_candidates_at_most_two_percent_go_back(share):
    worlds = list(WORLDS.values())
    result = simulate(worlds, share, 2000, runs=334, errors=0.05, beside=0.05)
    print(f"\n{share:.0%}: {lost(result):.2%} of {len(result.alarm)} healthy canaries go back")
    assert len(result.alarm) >= 2000
    assert lost(result) <= 0.02


def ramping(t):
    return (0.05, 0.10, 0.25, 0.50)[min(3, t // 400)]


def test_growing_through_all_steps_at_most_two_percent_go_back():
    result = simulate(list(WORLDS.values()), ramping, 2600, runs=334, errors=0.05, beside=0.05)
    print(f"\ngrowing: {lost(result):.2%}, proven {np.isfinite(result.first['proof']).mean():.0%}")
    assert lost(result) <= 0.02
    assert np.isfinite(result.first["proof"]).mean() >= 0.7  # comparing goes on at every step


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("share", [0.05, 0.10, 0.25, 0.50])
def test_of_two_thousand_equal_candidates_in_each_world_at_most_two_percent_go_back(world, share):
    result = simulate([WORLDS[world]], share, 7000, errors=0.05, beside=0.05, seed=2)
    print(f"\n{world}, {share:.0%}: {lost(result):.2%}")
    assert lost(result) <= 0.02


@pytest.mark.slow
@pytest.mark.parametrize(
    "shares", [(0.0, 0.0), (0.03, 0.01), (0.09, 0.09), (0.15, 0.15), (0.4, 0.4)]
)
def test_errors_within_the_limit_or_common_to_both_take_nobody_back(shares):
    errors, beside = shares
    result = simulate([zero_one], 0.25, 4000, errors=errors, beside=beside, seed=3)
    alarms = np.isfinite(result.first["errors"]).mean()
    print(f"\n{errors:.0%} beside {beside:.0%}: {alarms:.2%}, all tests {lost(result):.2%}")
    assert alarms <= 2 * LIMITS.error_chance  # hard failures come on top of the test's own
    assert lost(result) <= 0.02


# --- worse ones are caught -------------------------------------------------------------------


def caught(result, kind, within):
    return float((result.first[kind] <= within).mean())


@pytest.mark.parametrize(
    ("world", "within"),
    [(beta(0.3), 300), (clipped_normal, 300), (zero_one, 800)],
    ids=["beta, sd 0.3", "normal, sd 0.3, clipped", "0/1"],
)
def test_a_tenth_less_reward_is_caught_in_time_at_ten_percent(world, within):
    result = simulate(
        [world], 0.10, within * 15, runs=600, drop=0.10, seed=4, until=within, only="reward"
    )
    share = caught(result, "reward", within)
    print(f"\ncaught within {within}: {share:.1%}, median {np.median(result.first['reward']):g}")
    assert share >= 0.95


def test_fifteen_percent_errors_are_caught_in_time():
    for share in (0.10, 0.50):
        result = simulate([zero_one], share, int(400 / share), runs=600, errors=0.15, until=250)
        found = caught(result, "errors", 250)
        print(f"\n{share:.0%}: {found:.1%}, median {np.median(result.first['errors']):g}")
        assert found >= 0.95


@pytest.mark.parametrize(("world", "within"), [(beta(0.3), 700), (zero_one, 1900)])
def test_at_half_the_traffic_the_baseline_is_smaller_and_it_takes_more_of_the_canarys(
    world, within
):
    result = simulate(
        [world], 0.50, within * 3, runs=600, drop=0.10, seed=5, until=within, only="reward"
    )
    first = result.first["reward"]
    told = ", ".join(
        f"{caught(result, 'reward', n):.1%} within {n}"
        for n in (300, 500, 700, 800, 1900)
        if n <= within
    )
    print(f"\nat 50 %: {told}, median {np.median(first):g}")
    assert caught(result, "reward", within) >= 0.95


def test_three_times_the_complaints_are_caught():
    result = simulate([zero_one], 0.10, 8000, runs=300, complaints=0.15, seed=6, until=400)
    print(f"\n{caught(result, 'complaints', 400):.1%} within 400")
    assert caught(result, "complaints", 400) >= 0.9


# --- proof -----------------------------------------------------------------------------------


def test_a_candidate_at_the_limit_is_rarely_taken_for_proven():
    for share in (0.10, 0.50):
        result = simulate(
            [zero_one, beta(0.3)], share, 3000, runs=500, drop=0.05, seed=7, only="reward"
        )
        assert np.isfinite(result.first["proof"]).mean() <= LIMITS.promotion_chance


def test_the_interval_holds_at_every_look():
    from crowd import Rewards

    rng, runs = np.random.default_rng(9), 1500
    crowd, outside = Rewards(runs, 0.05), np.zeros(runs, bool)
    for t in range(2000):
        arm = rng.random(runs) < (0.1 if t < 1000 else 0.5)
        crowd.observe(rng.random(runs) * (1 - 0.2 * arm), arm)  # the difference is −0.1
        outside |= (crowd.size > 0) & ((crowd.lower(0.05) > -0.1) | (crowd.upper(0.05) < -0.1))
    assert outside.mean() <= 0.10


def test_an_equal_candidate_is_proven_before_a_week_is_over():
    """A thousand requests a day, half of them the canary's."""
    result = simulate(
        [zero_one, beta(0.3), beta(0.15)], 0.50, 5000, runs=300, seed=10, only="reward"
    )
    worlds = result.first["proof"].reshape(3, -1)
    print(f"\nproven: {np.isfinite(worlds).mean(1)}, median {np.median(worlds, axis=1)}")
    assert np.isfinite(worlds).mean() >= 0.85
