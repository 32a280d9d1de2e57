"""Held out by task: whole tasks, the share that was asked for, the same ones again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upswing.dataset.split import hold_out

units = st.lists(
    st.sets(st.sampled_from([f"task-{n}" for n in range(40)]), min_size=1, max_size=3), max_size=60
)
shares = st.floats(0, 1)
seeds = st.integers(0, 9)


def singles(count):
    return [[f"task-{n}"] for n in range(count)]


@pytest.mark.parametrize(
    ("tasks", "share", "least", "most"),
    [(0, 0.1, 0, 0), (1, 0.5, 0, 0), (4, 0.1, 0, 0), (5, 0.1, 1, 1), (2, 0.5, 1, 1), (9, 0.0, 0, 0),
     (9, 1.0, 0, 0), (9, 0.99, 5, 8), (100, 0.1, 5, 15), (1000, 0.2, 150, 250)],
)  # fmt: skip
def test_the_share_is_met_as_far_as_whole_tasks_allow(tasks, share, least, most):
    for seed in range(20):
        assert least <= len(hold_out(singles(tasks), share, seed).held_out) <= most


def test_one_task_is_trained_on_and_not_measured():
    split = hold_out([["only"], ["only"]], 0.5, seed=1)
    assert split.held_out == frozenset()
    assert split.sentence == "Nothing is held out: nothing would be left to train on."


def test_tasks_that_all_meet_are_one():
    split = hold_out([["a", "b"], ["b", "c"], ["c", "d"]], 0.5, seed=1)
    assert split.held_out == frozenset()
    assert "all 4 tasks meet" in split.sentence


def test_a_task_that_was_held_out_is_held_out_again_when_others_come():
    before = hold_out(singles(300), 0.1, seed=7).held_out
    after = hold_out(singles(600), 0.1, seed=7).held_out
    assert before
    assert before <= after


@given(units, shares, seeds)
def test_something_is_always_left_to_train_on(given_units, share, seed):
    held = hold_out(given_units, share, seed).held_out
    assert not given_units or any(not task_set <= held for task_set in given_units)


@given(units, shares, seeds)
def test_tasks_of_one_unit_are_never_parted(given_units, share, seed):
    held = hold_out(given_units, share, seed).held_out
    assert all(task_set <= held or not task_set & held for task_set in given_units)


@given(units, shares, seeds, st.randoms())
def test_the_order_of_the_units_does_not_matter(given_units, share, seed, chance):
    shuffled = chance.sample(given_units, len(given_units))
    assert hold_out(given_units, share, seed) == hold_out(shuffled, share, seed)
