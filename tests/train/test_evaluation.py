"""When does a job stop by itself, which of its checkpoints ships, and when has nothing come of it?"""

import math

import pytest

from upswing.train.core.recipe import Recipe
from upswing.train.learn.evaluation import (
    PolicyEvaluation,
    best_evaluation,
    early_stop,
    is_unchanged,
    kl_budget,
    no_change_advice,
)

BUDGET = 1.5


def measured(*rows, **common):
    """The start, then one evaluation for each (kl, value)."""
    start = PolicyEvaluation(0, 0.0, 4.0, 0.3, 100.0, **common)
    told = [
        PolicyEvaluation(10 * (n + 1), kl, 4.0, value, 100.0, **common)
        for n, (kl, value) in enumerate(rows)
    ]
    return [start, *told]


def test_a_job_within_its_budget_goes_on():
    assert early_stop(measured((0.1, 0.3), (0.2, 0.4)), BUDGET) is None
    assert early_stop(measured(), BUDGET) is None


@pytest.mark.parametrize("kl", [1.6, math.nan, math.inf])
def test_it_stops_beyond_the_budget_and_when_nobody_knows_how_far_it_is(kl):
    assert early_stop(measured((0.1, 0.3), (kl, 0.9)), BUDGET) == "kl_budget"


def test_it_stops_when_every_prompt_gets_the_same_reply():
    history = [PolicyEvaluation(0, 0.0, 4.0), PolicyEvaluation(10, 0.5, 1.02)]
    assert early_stop(history, BUDGET) == "diversity"


def test_one_reply_is_no_collapse_where_there_was_only_one_before():
    history = [PolicyEvaluation(0, 0.0, 1.0), PolicyEvaluation(10, 0.5, 1.0)]
    assert early_stop(history, BUDGET) is None


def test_it_stops_when_three_evaluations_in_a_row_were_worse_than_the_best():
    history = measured((0.1, 0.5), (0.2, 0.4), (0.3, 0.44), (0.4, 0.3))
    assert early_stop(history[:-1], BUDGET) is None
    assert early_stop(history, BUDGET) == "no_gain"


def test_an_estimate_that_rests_on_little_stops_nothing_and_chooses_nothing():
    history = [
        PolicyEvaluation(step, step / 100, 4.0, 0.9 - step / 100, 20.0)
        for step in (0, 10, 20, 30, 40)
    ]
    assert early_stop(history, BUDGET) is None
    assert best_evaluation(history, BUDGET).step == 40


def test_what_chance_explains_neither_stops_nor_chooses():
    history = measured((0.1, 0.5), (0.2, 0.46), (0.3, 0.46), (0.4, 0.46))
    assert early_stop(history, BUDGET) is None
    assert best_evaluation(history, BUDGET).step == 40


def test_the_best_by_value_ships_and_not_the_last():
    assert best_evaluation(measured((0.1, 0.4), (0.2, 0.7), (0.3, 0.6)), BUDGET).step == 20


def test_what_is_beyond_the_budget_does_not_ship_however_good_it_looks():
    assert best_evaluation(measured((0.1, 0.4), (2.0, 0.9), source="fresh"), BUDGET).step == 10


def test_what_collapsed_does_not_ship():
    history = [
        PolicyEvaluation(0, 0.0, 4.0),
        PolicyEvaluation(10, 0.4, 3.0),
        PolicyEvaluation(20, 0.5, 1.0),
    ]
    assert best_evaluation(history, BUDGET).step == 10


def test_where_even_the_first_is_beyond_the_budget_the_nearest_ships():
    assert best_evaluation(measured((3.0, 0.4), (4.0, 0.9)), BUDGET).step == 10


def test_the_last_ships_when_the_estimate_no_longer_reaches_that_far():
    history = [*measured((0.1, 0.5)), PolicyEvaluation(20, 0.9, 4.0, 0.2, 3.0)]
    assert best_evaluation(history, BUDGET).step == 20


def test_the_budget_grows_with_long_replies_and_never_falls_below_that_of_a_word():
    assert [kl_budget(Recipe(), tokens) for tokens in (1, 30, 100)] == [3.0, 3.0, 10.0]


@pytest.mark.parametrize(
    ("kl", "changed", "nothing"),
    [
        (0.0, 0.0, True),
        (9e-4, None, True),
        (9e-4, 0.02, False),
        (0.01, 0.0, False),
        (None, 0.0, False),
    ],
)
def test_nothing_came_of_it_only_when_neither_number_moved(kl, changed, nothing):
    assert is_unchanged(kl, changed) is nothing


@pytest.mark.parametrize(
    ("groups", "steps", "word"),
    [(3, 50, "more attempts"), (40, 4, "batch_size"), (40, 200, "learning rate")],
)
def test_what_to_try_next_depends_on_what_was_missing(groups, steps, word):
    assert word in no_change_advice(Recipe(), usable_groups=groups, steps=steps)
