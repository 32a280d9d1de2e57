"""The market's hours: what the table says, for ever, and the same from the same seed."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from upswing.worlds import market_prices
from upswing.worlds.market_prices import (
    ASSETS,
    BEGAN,
    HAVEN,
    NEWS,
    PAGE,
    expected_direction,
    market_hour,
)

seeds = st.integers(0, 2**32)
numbers = st.integers(0, 20 * PAGE)


def test_the_table_in_the_documentation_is_the_rule():
    ways = {"up": 1, "down": -1}
    for news in NEWS:
        ((most, haven),) = re.findall(
            rf"^\| {news} +\| (\w+) +\| (\w+) +\|$", market_prices.__doc__, re.MULTILINE
        )
        for asset in ASSETS:
            told = ways[haven if asset == HAVEN else most]
            assert expected_direction(asset, news, "rising", "calm") == told
            assert expected_direction(asset, news, "falling", "volatile") == told


@settings(max_examples=30)
@given(seeds, numbers)
def test_the_same_seed_has_the_same_hour_whichever_was_asked_for_first(seed, number):
    market_prices._page_of_hours.cache_clear()
    alone = market_hour(seed, number)
    market_prices._page_of_hours.cache_clear()
    in_order = [market_hour(seed, each) for each in range(number + 1)]
    assert alone == in_order[-1]


def test_another_seed_has_other_hours():
    assert [market_hour(1, n).asset for n in range(PAGE)] != [
        market_hour(2, n).asset for n in range(PAGE)
    ]


@settings(max_examples=30)
@given(seeds, numbers)
def test_an_hour_opens_where_the_one_before_closed_and_its_trend_is_that_move(seed, number):
    now, then = market_hour(seed, number), market_hour(seed, number + 1)
    for asset in ASSETS:
        assert then.moves[asset].open == now.moves[asset].close
        assert (then.moves[asset].trend == "rising") is (now.moves[asset].change > 0)


def test_the_first_hour_opens_at_the_first_prices():
    assert market_hour(9, 0).opening() == dict(BEGAN)


@settings(max_examples=30)
@given(seeds, numbers)
def test_what_is_talked_about_goes_where_the_table_sends_it_and_a_shock_turns_it(seed, number):
    now = market_hour(seed, number)
    way = expected_direction(now.asset, now.news, now.move.trend, now.regime)
    if way:
        assert (now.move.change > 0) is ((way > 0) is not now.shock)
    else:
        assert not now.shock


def test_each_asset_meets_each_piece_of_news_once_on_a_page_where_no_hour_is_quiet():
    pages = [[market_hour(seed, number) for number in range(PAGE)] for seed in range(20)]
    for page in pages:
        told = [(now.asset, now.news) for now in page if now.news is not None]
        assert len(told) == len(set(told))
        assert {now.kind == "quiet" for now in page if now.news is None} == {True}


def test_prices_stay_in_sight_of_where_they_began():
    for number in range(0, 300 * PAGE, 7):
        for asset, price in market_hour(3, number).closing().items():
            assert BEGAN[asset] / 2 < price < BEGAN[asset] * 2


def test_there_is_no_hour_before_the_first():
    with pytest.raises(ValueError, match="begins with hour 0"):
        market_hour(0, -1)
