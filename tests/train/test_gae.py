"""Advantages over turns."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from upswing.train.learn.gae import compute_gae, rewards_by_turn, standardised_advantages

UNTIMED = settings(deadline=None)

numbers = st.floats(-5, 5)
trajectories = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=12)
shares = st.floats(0, 1)


def split(trajectory):
    return [reward for reward, _ in trajectory], [value for _, value in trajectory]


@UNTIMED
@given(trajectory=trajectories, gamma=shares, lam=shares)
def test_it_is_the_discounted_sum_of_the_surprises(trajectory, gamma, lam):
    rewards, values = split(trajectory)
    after = np.array([*values[1:], 0.0])
    surprises = np.array(rewards) + gamma * after - np.array(values)
    expected = [
        sum((gamma * lam) ** n * each for n, each in enumerate(surprises[k:]))
        for k in range(len(rewards))
    ]
    advantages, returns = compute_gae(rewards, values, gamma=gamma, lam=lam)
    assert advantages == pytest.approx(expected, abs=1e-9)
    assert returns == pytest.approx([a + v for a, v in zip(expected, values, strict=True)])


@UNTIMED
@given(trajectory=trajectories, gamma=shares)
def test_with_lambda_one_the_return_is_what_really_came(trajectory, gamma):
    rewards, values = split(trajectory)
    _, returns = compute_gae(rewards, values, gamma=gamma, lam=1.0)
    to_go = [
        sum(gamma**n * each for n, each in enumerate(rewards[k:])) for k in range(len(rewards))
    ]
    assert returns == pytest.approx(to_go, abs=1e-9)


@UNTIMED
@given(trajectory=trajectories, gamma=shares)
def test_with_lambda_zero_only_the_next_turn_counts(trajectory, gamma):
    rewards, values = split(trajectory)
    advantages, _ = compute_gae(rewards, values, gamma=gamma, lam=0.0)
    assert advantages[-1] == pytest.approx(rewards[-1] - values[-1])
    if len(rewards) > 1:
        assert advantages[0] == pytest.approx(rewards[0] + gamma * values[1] - values[0])


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_nan_stays_visible(place):
    rewards = [0.0, 0.0, 1.0]
    rewards[place] = math.nan
    advantages, returns = compute_gae(rewards, [0.0] * 3, gamma=1.0, lam=0.95)
    assert math.isnan(advantages[0])
    assert math.isnan(returns[0])
    assert all(math.isnan(each) for (each,) in standardised_advantages([(a,) for a in advantages]))


def test_as_many_values_as_rewards():
    with pytest.raises(ValueError):
        compute_gae([0.0, 1.0], [0.0], gamma=1.0, lam=1.0)
    with pytest.raises(ValueError, match="2 rewards were given for 3 turns"):
        rewards_by_turn(1.0, (0.0, 0.0), 3)
    with pytest.raises(ValueError, match="at least one turn"):
        rewards_by_turn(1.0, None, 0)


@UNTIMED
@given(st.lists(st.lists(numbers, min_size=1, max_size=4), min_size=1, max_size=6))
def test_standardised_turns_have_mean_zero_and_their_order(advantages):
    found = [each for row in standardised_advantages(advantages) for each in row]
    given_ones = [each for row in advantages for each in row]
    assert sum(found) == pytest.approx(0, abs=1e-6)
    assert all(
        found[i] <= found[j]
        for i in range(len(found))
        for j in range(len(found))
        if given_ones[i] <= given_ones[j]
    )
