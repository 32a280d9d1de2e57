"""Windows slice the market without gap or overlap, and their truth is what the prices did."""

from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upswing.contracts.codec import decode, encode
from upswing.contracts.outcome import Outcome
from upswing.contracts.steps import window_id_at
from upswing.reward.outcomes import ground_truth_text
from upswing.worlds.market import Market
from upswing.worlds.market_prices import ASSETS
from upswing.worlds.market_windows import (
    hour_of_window_id,
    start_of_hour,
    true_outcome_of_hour,
    window_id_of_hour,
)


@given(st.integers(0, 100_000), st.integers(0, 3599))
def test_every_moment_lies_in_exactly_one_window(number, second):
    moment = start_of_hour(number) + timedelta(seconds=second)
    assert start_of_hour(number) <= moment < start_of_hour(number + 1)
    assert window_id_at(moment) == window_id_of_hour(number)
    assert hour_of_window_id(window_id_at(moment)) == number


def test_a_window_from_before_the_market_is_refused():
    with pytest.raises(ValueError, match="the market opened with window 2026-01-05T00:00"):
        hour_of_window_id("2026-01-04T23:00")


def test_the_truth_of_windows_in_a_row_is_one_unbroken_path_of_prices():
    market = Market(4)
    told = [market.outcomes(window_id_of_hour(number))[0] for number in range(60)]
    for before, after in pairwise(told):
        for asset in ASSETS:
            assert before.assets[asset].close == after.assets[asset].open


def test_the_truth_is_an_outcome_that_the_loop_takes():
    (told,) = Market(4).outcomes("2026-01-06T10:00")
    assert told.window_id == "2026-01-06T10:00"
    assert decode(Outcome, encode(told)) == told


def test_a_hidden_shock_is_told_to_the_judge():
    market = Market(0)
    shocked = next(now for n in range(500) if (now := market.window(n)).shock)
    calm = next(now for n in range(500) if not (now := market.window(n)).shock)
    assert "hidden shock" in ground_truth_text(true_outcome_of_hour(shocked))
    assert "hidden shock" not in ground_truth_text(true_outcome_of_hour(calm))


def test_an_hour_that_is_played_again_is_told_under_that_window_and_scenario():
    now = next(each for n in range(50) if (each := Market(0).window(n)).news is not None)
    told = true_outcome_of_hour(now, "2027-05-01T07:00", "again")
    assert (told.window_id, told.scenario_id) == ("2027-05-01T07:00", "again")
    assert {window_id_at(event.time) for event in told.events} == {"2027-05-01T07:00"}
