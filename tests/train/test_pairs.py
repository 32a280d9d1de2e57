"""Preferences from groups."""

import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from upswing.train.pairs import Pair, preference_pairs

UNTIMED = settings(deadline=None)

batches = st.lists(
    st.tuples(st.sampled_from([0.0, 0.01, 0.5, 0.75, 1.0]), st.sampled_from("abc")), max_size=24
)


def pairs(batch, max_pairs=4, min_spread=0.02, seed=0):
    rewards, groups = [reward for reward, _ in batch], [group for _, group in batch]
    return preference_pairs(rewards, groups, max_pairs=max_pairs, min_spread=min_spread, seed=seed)


@UNTIMED
@given(batch=batches, max_pairs=st.integers(1, 5), seed=st.integers())
def test_a_pair_is_of_one_group_and_its_chosen_side_is_better(batch, max_pairs, seed):
    found = pairs(batch, max_pairs, seed=seed)
    for pair in found:
        assert batch[pair.chosen][1] == batch[pair.rejected][1]
        assert batch[pair.chosen][0] - batch[pair.rejected][0] >= 0.02
    used = Counter(place for pair in found for place in (pair.chosen, pair.rejected))
    assert max(used.values(), default=0) <= max_pairs
    assert len(set(found)) == len(found)


@UNTIMED
@given(batch=batches, seed=st.integers())
def test_no_possible_pair_is_left_while_both_sides_are_free(batch, seed):
    found = pairs(batch, 2, seed=seed)
    used = Counter(place for pair in found for place in (pair.chosen, pair.rejected))
    for i, (good, group) in enumerate(batch):
        for j, (bad, other) in enumerate(batch):
            if group == other and good - bad >= 0.02 and Pair(i, j) not in found:
                assert max(used[i], used[j]) == 2


@UNTIMED
@given(batch=batches)
def test_the_same_seed_gives_the_same_pairs_whatever_other_groups_there_are(batch):
    assert pairs(batch) == pairs(batch)
    assert pairs([*batch, (0.0, "z"), (1.0, "z")])[: len(pairs(batch))] == pairs(batch)


def test_another_seed_gives_other_pairs():
    batch = [(reward, "a") for reward in (0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0)]
    assert len({tuple(pairs(batch, 1, seed=seed)) for seed in range(20)}) > 10


def test_an_outlier_does_not_rule_its_group():
    batch = [(1.0, "a")] + [(0.0, "a")] * 7
    assert len(pairs(batch, max_pairs=4)) == 4


def test_equal_rewards_make_no_pair_even_if_no_difference_is_asked_for():
    assert pairs([(0.5, "a"), (0.5, "a")], min_spread=0.0) == []


def test_a_large_group_is_cut_and_still_paired():
    batch = [(place % 2, "a") for place in range(3000)]
    found = pairs(batch, max_pairs=1)
    assert len(found) > 1300


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_a_reward_that_is_no_number_is_refused(wrong):
    with pytest.raises(ValueError, match=r"not finite numbers, at \[1\]"):
        pairs([(0.0, "a"), (wrong, "a")])
