"""Held out by task: whole tasks, the share that was asked for, the same ones again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upswing.dataset.split import is_held_out, split_held_out

units = st.lists(
    st.sets(st.sampled_from([f"task-{n}" for n in range(40)]), min_size=1, max_size=3), max_size=60
)
shares = st.floats(0, 1)


def singles(count):
    return [[f"task-{n}"] for n in range(count)]


@pytest.mark.parametrize(
    ("tasks", "share", "least", "most"),
    [
        (0, 0.1, 0, 0),
        (1, 0.5, 0, 0),
        (9, 0.0, 0, 0),
        (9, 1.0, 0, 0),
        (9, 0.99, 5, 8),
        (1000, 0.1, 70, 130),
        (1000, 0.2, 150, 250),
    ],
)
def test_the_share_is_met_as_far_as_whole_tasks_allow(tasks, share, least, most):
    assert least <= len(split_held_out(singles(tasks), share).held_out) <= most


def test_one_task_is_trained_on_and_not_measured():
    split = split_held_out([["only"], ["only"]], 0.5)
    assert split.held_out == frozenset()
    assert split.sentence == "Nothing is held out: nothing would be left to train on."


def test_tasks_that_all_meet_are_one():
    split = split_held_out([["a", "b"], ["b", "c"], ["c", "d"]], 0.5)
    assert split.held_out == frozenset()
    assert "all 4 tasks meet" in split.sentence


@given(st.sets(st.text(min_size=1), min_size=2), st.sets(st.text(min_size=1)), shares)
def test_a_task_that_is_held_out_is_held_out_in_every_cycle(tasks, others, share):
    """Whatever else is there: only when all would be held out, one is trained on after all."""
    before = split_held_out([[task] for task in tasks], share).held_out
    after = split_held_out([[task] for task in tasks | others], share).held_out
    assert len(before - after) <= 1
    for task in before:
        assert is_held_out(task, share)


@given(units, shares)
def test_something_is_always_left_to_train_on(given_units, share):
    held = split_held_out(given_units, share).held_out
    assert not given_units or any(not task_set <= held for task_set in given_units)


@given(units, shares)
def test_tasks_of_one_unit_are_never_parted(given_units, share):
    held = split_held_out(given_units, share).held_out
    assert all(task_set <= held or not task_set & held for task_set in given_units)


@given(units, shares, st.randoms())
def test_the_order_of_the_units_does_not_matter(given_units, share, chance):
    shuffled = chance.sample(given_units, len(given_units))
    assert split_held_out(given_units, share) == split_held_out(shuffled, share)
