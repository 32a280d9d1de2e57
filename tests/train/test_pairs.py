"""Preferences from groups."""

import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from upswing.train.learn.example import Example
from upswing.train.learn.pairs import PreferencePair, mismatched_answers, preference_pairs

UNTIMED = settings(deadline=None)

batches = st.lists(
    st.tuples(st.sampled_from([0.0, 0.01, 0.5, 0.75, 1.0]), st.sampled_from("abc")), max_size=24
)


def pairs(batch, max_pairs=4, min_spread=0.02, seed=0, tasks=None):
    rewards, groups = [reward for reward, _ in batch], [group for _, group in batch]
    tasks = groups if tasks is None else tasks
    return preference_pairs(
        rewards, groups, tasks, max_pairs=max_pairs, min_spread=min_spread, seed=seed
    )


@UNTIMED
@given(
    batch=batches,
    tasks=st.lists(st.sampled_from("tu"), min_size=24, max_size=24),
    seed=st.integers(),
)
def test_both_sides_of_a_pair_did_the_same_task(batch, tasks, seed):
    for pair in pairs(batch, seed=seed, tasks=tasks):
        assert tasks[pair.chosen] == tasks[pair.rejected]


def test_a_group_of_different_tasks_makes_no_pair():
    assert pairs([(1.0, "a"), (0.0, "a")], tasks=["t", "u"]) == []
    assert pairs([(1.0, "a"), (0.0, "a")], tasks=["t", "t"]) == [PreferencePair(0, 1)]


def an_example(prompt, answer, **more):
    trained = (False,) * len(prompt) + (True,) * len(answer)
    turns = (0,) * len(trained)
    return Example("t", "g", "k", (*prompt, *answer), trained, turns, None, False, 1.0, **more)


def test_a_prompt_gets_the_answer_of_another_prompt():
    given_ = [an_example((1, 2), (3,)), an_example((1, 2), (4, 5)), an_example((6,), (7, 8, 9))]
    first, second, third = mismatched_answers(given_, 100)
    assert (first.ids, first.trained) == ((1, 2, 7, 8, 9), (False, False, True, True, True))
    assert second.ids == (1, 2, 7, 8, 9)
    assert third.ids == (6, 4, 5)
    assert mismatched_answers(given_, 4)[0].ids == (1, 2, 7, 8)
    assert mismatched_answers(given_[:2], 100) == [None, None]


def test_what_is_masked_gives_no_answer_and_gets_none():
    masked = Example("m", "g", "k", (), (), (), None, False, 0.0, masked=True)
    given_ = [an_example((1, 2), (3,)), masked, an_example((6,), (7,))]
    first, none, third = mismatched_answers(given_, 100)
    assert (first.ids, none, third.ids) == ((1, 2, 7), None, (6, 3))


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
            if group == other and good - bad >= 0.02 and PreferencePair(i, j) not in found:
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
