"""Strategy by improvement: the table, and what never ships."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from upswing.deploy import strategy as module
from upswing.deploy.strategy import (
    Abort,
    BlueGreen,
    Boldness,
    Gradual,
    Immediate,
    Strategy,
    choose,
)

numbers = st.none() | st.floats() | st.integers(-3, 3)
policies = st.builds(
    Boldness,
    st.sampled_from(["auto", "canary", "blue_green", "immediate"]),
    st.floats(0.001, 0.5),
    st.booleans(),
    st.booleans(),
)


@pytest.mark.parametrize(
    ("improvement", "expected", "share"),
    [
        (1.0, BlueGreen, None),
        (0.15, BlueGreen, None),
        (math.nextafter(0.15, 0), Gradual, 0.10),
        (0.05, Gradual, 0.10),
        (math.nextafter(0.05, 0), Gradual, 0.05),
        (0.0, Gradual, 0.05),
        (-0.0, Gradual, 0.05),
        (-5e-324, Abort, None),
        (-0.2, Abort, None),
        (math.nan, Abort, None),
        (math.inf, Abort, None),
        (-math.inf, Abort, None),
        (15, Abort, None),
        (None, Abort, None),
    ],
)
def test_the_table(improvement, expected, share):
    chosen = choose(improvement)
    assert type(chosen) is expected
    assert getattr(chosen, "share", None) == share


def test_the_docstring_has_a_row_for_each_answer():
    rows = [line for line in module.__doc__.splitlines() if line.startswith("|")]
    assert [row.split("|")[2].split()[0].rstrip(",:") for row in rows[2:]] == [
        "blue-green", "canary", "canary", "canary", "canary", "abort", "abort",
    ]  # fmt: skip


@given(numbers, policies, st.booleans())
def test_nothing_worse_or_unmeasured_ships_under_any_policy(improvement, policy, passed):
    chosen = choose(improvement, policy, passed=passed)
    fine = passed and improvement is not None and 0 <= improvement <= 1
    assert isinstance(chosen, Abort) is not fine
    assert chosen.sentence
    if fine:
        assert chosen.approval is policy.approval


@given(st.floats(0, 1), st.floats(0, 1), policies)
def test_a_better_model_never_goes_out_more_timidly(a, b, policy):
    low, high = (_boldness(choose(x, policy)) for x in sorted((a, b)))
    assert low <= high


def _boldness(chosen):
    return chosen.share if isinstance(chosen, Gradual) else 1.0


@given(numbers, policies)
def test_what_may_be_chance_never_ships_by_itself_whatever_the_policy(improvement, policy):
    chosen = choose(improvement, policy, shown=False)
    assert isinstance(chosen, Abort | Gradual)
    if isinstance(chosen, Gradual):
        assert chosen.approval
        assert chosen.share <= 0.05


@given(numbers, policies)
def test_what_training_did_not_change_does_not_ship(improvement, policy):
    assert isinstance(choose(improvement, policy, changed=False), Abort)


def test_a_policy_may_forbid_or_name_a_strategy():
    assert isinstance(choose(0.3, Boldness(blue_green=False)), Gradual)
    assert isinstance(choose(0.3, Boldness(strategy="canary")), Gradual)
    assert isinstance(choose(0.01, Boldness(strategy="blue_green")), BlueGreen)
    assert isinstance(choose(0.01, Boldness(strategy="immediate")), Immediate)
    assert choose(0.06, Boldness(initial=0.2)).share == 0.2
    assert choose(0.04, Boldness(initial=0.2)).share == 0.05
    assert choose(0.04, Boldness(initial=0.02)).share == 0.02


@given(numbers, policies)
def test_a_strategy_goes_through_a_journal(improvement, policy):
    chosen = choose(improvement, policy)
    assert msgspec.json.decode(msgspec.json.encode(chosen), type=Strategy) == chosen
