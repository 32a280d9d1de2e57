"""The market as a world: what its documentation says, computed, and what a trader's portfolio keeps."""

import re
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from upswing.worlds import market as documentation
from upswing.worlds import market_players as players
from upswing.worlds.market import Market
from upswing.worlds.market_portfolio import order_fee
from upswing.worlds.market_prices import NEWS, expected_direction
from upswing.worlds.market_shift import (
    ORDERS,
    TEMPERAMENTS,
    TOOLS,
    TRADER_STYLES,
    portfolio_after,
    profit_of_shift,
)

PLAYERS = {
    "at random among the six replies": players.random_player,
    "always `hold`": players.holding_player,
    "conservative: checks, then holds": players.conservative_player,
    "aggressive: always buys": players.aggressive_player,
    "contrarian: trades against the trend": players.contrarian_player,
    "momentum: trades with the trend": players.momentum_player,
    "balanced: reads, as if gold were like the rest": players.balanced_player,
    "optimal: reads, and knows the table": players.optimal_player,
    "a seer: knows the hidden shocks too": players.clairvoyant_player,
}
replies = st.lists(st.sampled_from((*ORDERS, *TOOLS, "banana")), min_size=1, max_size=30)


def first(kind, seed=0):
    """The first training task of a kind, without a shock."""
    return next(
        one for one in Market(seed).training if one.hour.kind == kind and not one.hour.shock
    )


def ended(task, *said):
    market = Market()
    state = market.reset(task)
    for reply in said:
        state = market.step(state, reply)
    return state


def test_players_score_what_the_documentation_says():
    rows = re.findall(r"^\| (.+?) +\| (\d\.\d\d) +\|$", documentation.__doc__, re.MULTILINE)
    said = {name: float(value) for name, value in rows}
    found = {
        name: sum(players.held_out_score(Market(seed), player, seed) for seed in range(5)) / 5
        for name, player in PLAYERS.items()
    }
    assert {name: round(value, 2) for name, value in found.items()} == said


def test_a_task_is_played_as_its_temperament_does():
    for task in Market(0).held_out[:20]:
        own = players.SCRIPTED[task.temperament](task, "you are long oil", Random(0))
        assert players.scripted_player(task, "you are long oil", Random(0)) == own


def test_held_out_hours_are_none_to_learn_from():
    market = Market(0)
    learned = {one.hour.number for one in market.training}
    measured = {one.hour.number for one in market.held_out}
    assert (len(learned), len(measured)) == market.sizes
    assert not learned & measured


def test_a_longer_list_changes_no_task():
    short, long = Market(0, (96, 50)), Market(0, (500, 176))
    assert short.training == long.training[:96]
    assert short.held_out == long.held_out[:50]


def test_every_temperament_has_its_turn_with_its_own_words_and_size():
    seen = Market(0).training[: len(TEMPERAMENTS)]
    assert {one.temperament for one in seen} == set(TEMPERAMENTS)
    assert all(
        one.instructions.endswith(TRADER_STYLES[one.temperament].instructions) for one in seen
    )
    assert len({style.instructions for style in TRADER_STYLES.values()}) == len(TRADER_STYLES)


@pytest.mark.parametrize("kind", ["headline", "rumour", "quiet"])
def test_who_knows_the_table_and_what_the_prompt_shows_gains_all_there_is(kind):
    task = first(kind)
    way = expected_direction(
        task.hour.asset, task.hour.news, task.hour.move.trend, task.hour.regime
    )
    right = {1: "buy", -1: "sell", 0: "hold"}[way]
    scores = {word: Market().outcome(ended(task, word)).score for word in ORDERS}
    assert scores == {word: float(word == right) for word in ORDERS}


def test_a_rumour_is_shown_to_who_reads_and_to_nobody_else():
    task = first("rumour")
    market = Market()
    assert not set(market.observe(market.reset(task)).text.replace(",", " ").split()) & set(NEWS)
    shown = market.observe(ended(task, "read"))
    assert (shown.kind, shown.text) == ("tool_result", f"news {task.hour.news}")
    assert market.outcome(ended(task, "read")) is None


def test_the_portfolio_is_shown_to_who_checks():
    task = first("quiet")
    shown = Market().observe(ended(task, "check"))
    assert shown.text == f"you are {task.side} {task.hour.asset}"


def test_a_post_tells_what_the_trader_knows_and_shows_what_others_said():
    market, task = Market(), first("rumour")
    assert ended(task, "report").post == f"{task.hour.asset} {task.hour.move.trend}"
    informed = ended(task, "read", "report")
    assert informed.post == f"{task.hour.asset} {task.hour.news}"
    assert market.observe(informed).text == f"posted. others say {task.chatter}"
    after = market.next_shift(ended(task, "read", "report", "buy"), chatter=informed.post)
    assert market.observe(market.step(market.reset(after), "report")).text.endswith(informed.post)


@pytest.mark.parametrize("reply", ["", "buy buy", "banana", "sell."])
def test_what_nobody_understands_has_no_score_and_leaves_the_book_alone(reply):
    task = first("quiet")
    outcome = Market().outcome(ended(task, reply))
    assert (outcome.success, outcome.score) == (False, 0.0)
    assert portfolio_after(ended(task, reply)) == task.portfolio
    assert Market().observe(ended(task, reply)).text == "That is no order."


def test_case_and_blanks_do_not_matter():
    assert ended(first("quiet"), "  Hold\n").order == "hold"


@settings(max_examples=60)
@given(st.integers(0, 1000), st.integers(0, 300), st.sampled_from(TEMPERAMENTS), replies)
def test_a_book_carries_on_and_all_it_gains_is_its_profits(seed, number, temperament, said):
    market = Market(seed)
    task = market.shift(number, temperament)
    began = task.portfolio.worth(task.hour.opening())
    gained = 0
    for reply in said:
        state = market.step(market.reset(task), reply)
        gained += profit_of_shift(state)
        worth = portfolio_after(state).worth(task.hour.closing())
        task = market.next_shift(state)
        assert task.portfolio.worth(task.hour.opening()) == worth == began + gained
    assert task.hour.number == number + len(said)


@settings(max_examples=60)
@given(st.integers(0, 1000), st.integers(0, 300), st.sampled_from(TEMPERAMENTS))
def test_an_order_costs_its_fee_and_moves_nothing_else_but_cash_and_units(seed, number, temper):
    task = Market(seed).shift(number, temper)
    price = task.hour.move.open
    for word in ("buy", "sell"):
        portfolio = portfolio_after(ended(task, word))
        paid = task.portfolio.worth(task.hour.opening()) - portfolio.worth(task.hour.opening())
        assert paid == order_fee(task.size, price) > 0
        moved = {
            asset
            for asset in portfolio.units
            if portfolio.units[asset] != task.portfolio.units[asset]
        }
        assert moved == {task.hour.asset}


def test_what_is_right_hangs_on_the_hour_and_not_on_the_book_or_the_temperament():
    market = Market(0)
    for number in range(40):
        for word in ORDERS:
            tasks = [market.shift(number, each) for each in TEMPERAMENTS]
            other = market.next_shift(ended(market.shift(number, "balanced"), "sell"))
            again = market.shift(number + 1, "balanced")
            assert len({market.outcome(ended(task, word)).score for task in tasks}) == 1
            scores = {market.outcome(ended(task, word)).score for task in (other, again)}
            assert len(scores) == 1


def test_every_order_is_offered_in_every_hour():
    for task in Market(0).held_out:
        assert set(ORDERS) <= set(re.findall(r"\w+", task.instructions))


def test_nothing_that_is_shown_changes_when_the_future_does():
    market = Market(0)
    for task in market.held_out:
        moves = {
            asset: replace(move, close=2 * move.open - move.close)
            for asset, move in task.hour.moves.items()
        }
        turned = replace(task, hour=replace(task.hour, shock=not task.hour.shock, moves=moves))
        for said in ((), ("read",), ("check",), ("report",)):
            assert market.observe(ended(task, *said)) == market.observe(ended(turned, *said))


def test_every_word_is_one_token_of_the_small_model():
    from upswing.train.bases.tiny.tokenizer import build_tokenizer

    market, shown = Market(0), set()
    for task in (*market.held_out, *market.training[:200]):
        states = [ended(task), *(ended(task, tool) for tool in TOOLS)]
        for text in (task.instructions, *(market.observe(state).text for state in states)):
            shown |= set(re.findall(r"\w+", text))
    spelled = build_tokenizer()([f" {word}" for word in sorted({*shown, *ORDERS, *TOOLS})])
    assert {len(ids) for ids in spelled["input_ids"]} == {1}


def test_a_prompt_is_short():
    market = Market(0)
    for task in market.held_out:
        text = f"{task.instructions} {market.observe(market.reset(task)).text}"
        assert len(text.split()) <= 20
