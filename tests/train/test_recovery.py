"""A job failed: what is tried next, and when does a person have to look?"""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upswing.train.core.recipe import Recipe
from upswing.train.core.recovery import (
    Cause,
    Failure,
    GiveUp,
    Retry,
    consecutive_failures,
    decide_recovery,
)

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
WAIT = timedelta(minutes=10)
RECIPE = Recipe(learning_rate=1e-4, micro_tokens=1024)
CAUSES: list[Cause] = ["OOM", "CONVERGENCE", "DATA", "INFRA", "TIMEOUT", "LOST", "UNKNOWN"]


def failures(*causes: Cause, bad=(), saved=0):
    return [Failure(cause, "so it was", NOW, saved, list(bad)) for cause in causes]


def test_out_of_memory_halves_the_pass_and_keeps_the_step():
    word = decide_recovery(RECIPE, failures("OOM"), NOW, WAIT)
    assert isinstance(word, Retry)
    assert (word.recipe.micro_tokens, word.recipe.batch_size) == (512, RECIPE.batch_size)
    assert word.not_before == NOW


def test_memory_that_never_suffices_is_given_up():
    word = decide_recovery(Recipe(micro_tokens=100), failures("OOM"), NOW, WAIT)
    assert isinstance(word, GiveUp)
    assert word.alert


def test_divergence_halves_the_learning_rate_from_the_last_good_checkpoint():
    word = decide_recovery(RECIPE, failures("CONVERGENCE", saved=40), NOW, WAIT)
    assert isinstance(word, Retry)
    assert (word.recipe.learning_rate, word.last_good_step) == (5e-5, 40)


def test_bad_data_is_left_out_and_nothing_to_train_on_is_the_end():
    assert isinstance(decide_recovery(RECIPE, failures("DATA", bad=["t1"]), NOW, WAIT), Retry)
    assert isinstance(decide_recovery(RECIPE, failures("DATA"), NOW, WAIT), GiveUp)


def test_infrastructure_is_waited_for_as_long_as_it_takes():
    for count in (1, 3, 50):
        word = decide_recovery(RECIPE, failures(*["INFRA"] * count), NOW, WAIT)
        assert isinstance(word, Retry)
        assert word.not_before == NOW + WAIT
        assert word.alert == (count >= 3)


def test_a_timeout_goes_behind_the_others():
    word = decide_recovery(RECIPE, failures("TIMEOUT"), NOW, WAIT)
    assert isinstance(word, Retry)
    assert word.not_before > NOW


def test_a_killed_child_goes_on_at_once():
    word = decide_recovery(RECIPE, failures("LOST", saved=30), NOW, WAIT)
    assert isinstance(word, Retry)
    assert (word.not_before, word.recipe) == (NOW, RECIPE)
    assert "step 30" in word.sentence


def test_what_nobody_knows_is_a_persons():
    word = decide_recovery(RECIPE, failures("UNKNOWN"), NOW, WAIT)
    assert word == GiveUp("Nobody knows what to change: so it was")


@pytest.mark.parametrize("cause", ["CONVERGENCE", "TIMEOUT", "LOST"])
def test_the_third_in_a_row_is_the_last(cause):
    assert isinstance(decide_recovery(RECIPE, failures(cause, cause), NOW, WAIT), Retry)
    assert isinstance(decide_recovery(RECIPE, failures(cause, cause, cause), NOW, WAIT), GiveUp)


def test_a_checkpoint_between_two_failures_starts_the_count_anew():
    history = [Failure("LOST", "", NOW, step) for step in (0, 0, 10)]
    assert consecutive_failures(history) == 1
    assert isinstance(decide_recovery(RECIPE, history, NOW, WAIT), Retry)


@given(st.lists(st.sampled_from(CAUSES), min_size=3, max_size=6))
def test_three_in_a_row_always_alert(causes):
    word = decide_recovery(RECIPE, failures(*causes, bad=["t"]), NOW, WAIT)
    assert word.alert


@given(st.lists(st.tuples(st.sampled_from(CAUSES), st.integers(0, 3)), min_size=1, max_size=8))
def test_every_answer_has_a_sentence_and_never_looks_back(history):
    found = [Failure(cause, "why", NOW, saved) for cause, saved in history]
    word = decide_recovery(RECIPE, found, NOW, WAIT)
    assert "why" in word.sentence or "Memory" in word.sentence
    if isinstance(word, Retry):
        assert word.not_before >= NOW
        assert word.recipe.learning_rate <= RECIPE.learning_rate
