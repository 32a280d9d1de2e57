"""Strategy by improvement: the table, and what never ships."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from upswing.deploy.core import strategy as module
from upswing.deploy.core.strategy import (
    AbortStrategy,
    BlueGreenStrategy,
    CanaryStrategy,
    ImmediateStrategy,
    Strategy,
    StrategyPolicy,
    choose_strategy,
)

numbers = st.none() | st.floats() | st.integers(-3, 3)
policies = st.builds(
    StrategyPolicy,
    st.sampled_from(["auto", "canary", "blue_green", "immediate"]),
    st.floats(0.001, 0.5),
    st.booleans(),
    st.booleans(),
)


@pytest.mark.parametrize(
    ("improvement", "expected", "share"),
    [
        (1.0, BlueGreenStrategy, None),
        (0.15, BlueGreenStrategy, None),
        (math.nextafter(0.15, 0), CanaryStrategy, 0.10),
        (0.05, CanaryStrategy, 0.10),
        (math.nextafter(0.05, 0), CanaryStrategy, 0.05),
        (0.0, CanaryStrategy, 0.05),
        (-0.0, CanaryStrategy, 0.05),
        (-5e-324, AbortStrategy, None),
        (-0.2, AbortStrategy, None),
        (math.nan, AbortStrategy, None),
        (math.inf, AbortStrategy, None),
        (-math.inf, AbortStrategy, None),
        (15, AbortStrategy, None),
        (None, AbortStrategy, None),
    ],
)
def test_the_table(improvement, expected, share):
    chosen = choose_strategy(improvement)
    assert type(chosen) is expected
    assert getattr(chosen, "share", None) == share


def test_the_docstring_has_a_row_for_each_answer():
    rows = [line for line in module.__doc__.splitlines() if line.startswith("|")]
    assert [row.split("|")[2].split()[0].rstrip(",:") for row in rows[2:]] == [
        "blue-green",
        "canary",
        "canary",
        "canary",
        "canary",
        "abort",
        "abort",
    ]


@given(numbers, policies, st.booleans())
def test_nothing_worse_or_unmeasured_ships_under_any_policy(improvement, policy, passed):
    chosen = choose_strategy(improvement, policy, passed=passed)
    fine = passed and improvement is not None and 0 <= improvement <= 1
    assert isinstance(chosen, AbortStrategy) is not fine
    assert chosen.sentence
    if fine:
        assert chosen.approval is policy.approval


@given(st.floats(0, 1), st.floats(0, 1), policies)
def test_a_better_model_never_goes_out_more_timidly(a, b, policy):
    low, high = (_boldness(choose_strategy(x, policy)) for x in sorted((a, b)))
    assert low <= high


def _boldness(chosen):
    return chosen.share if isinstance(chosen, CanaryStrategy) else 1.0


@given(numbers, policies)
def test_what_may_be_chance_never_ships_by_itself_whatever_the_policy(improvement, policy):
    chosen = choose_strategy(improvement, policy, shown=False)
    assert isinstance(chosen, AbortStrategy | CanaryStrategy)
    if isinstance(chosen, CanaryStrategy):
        assert chosen.approval
        assert chosen.share <= 0.05


@given(numbers, policies)
def test_what_training_did_not_change_does_not_ship(improvement, policy):
    assert isinstance(choose_strategy(improvement, policy, changed=False), AbortStrategy)


def test_a_policy_may_forbid_or_name_a_strategy():
    assert isinstance(choose_strategy(0.3, StrategyPolicy(blue_green=False)), CanaryStrategy)
    assert isinstance(choose_strategy(0.3, StrategyPolicy(strategy="canary")), CanaryStrategy)
    assert isinstance(
        choose_strategy(0.01, StrategyPolicy(strategy="blue_green")), BlueGreenStrategy
    )
    assert isinstance(
        choose_strategy(0.01, StrategyPolicy(strategy="immediate")), ImmediateStrategy
    )
    assert choose_strategy(0.06, StrategyPolicy(initial=0.2)).share == 0.2
    assert choose_strategy(0.04, StrategyPolicy(initial=0.2)).share == 0.05
    assert choose_strategy(0.04, StrategyPolicy(initial=0.02)).share == 0.02


@given(numbers, policies)
def test_a_strategy_goes_through_a_journal(improvement, policy):
    chosen = choose_strategy(improvement, policy)
    assert msgspec.json.decode(msgspec.json.encode(chosen), type=Strategy) == chosen
