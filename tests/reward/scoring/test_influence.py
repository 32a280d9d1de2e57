"""One voice moves a mean by its share and no more."""

import random

from hypothesis import given
from hypothesis import strategies as st

from upswing.principals import CAP, Voice
from upswing.reward.core.influence import cap_weights, fair_mean


def raw_total(feedback):
    """A reward whose other components are middling."""
    return 0.75 * 0.6 + 0.25 * feedback


def test_five_percent_colluders_among_ten_thousand_move_a_mean_by_at_most_two_hundredths():
    chance = random.Random(5)
    honest = [(f"user-{n}", raw_total(chance.choice((0.5, 0.75, 1.0)))) for n in range(9_500)]
    liars = [(f"liar-{n}", 0.0) for n in range(500)]
    before = fair_mean(honest + [(name, raw_total(0.75)) for name, _ in liars])
    for eagerness in (1, 10, 200):
        lies = [(name, raw_total(0.0)) for name, _ in liars for _ in range(eagerness)]
        assert abs(fair_mean(honest + lies) - before) <= 0.02


def test_without_the_cap_the_eager_ones_would_own_the_mean():
    crowd = [(f"user-{n}", 0.8) for n in range(99)] + [("troll", 0.0)] * 10_000
    plain = sum(value for _, value in crowd) / len(crowd)
    assert plain < 0.01
    assert fair_mean(crowd) > 0.78


@given(st.dictionaries(st.text(max_size=3), st.integers(1, 10_000), min_size=1, max_size=30))
def test_nobody_weighs_more_than_the_cap(counts):
    weights = cap_weights(counts)
    whole = sum(weights.values())
    most = CAP / len(weights) if len(weights) > 1 else 1
    assert all(weight <= most * whole * 1.000001 for weight in weights.values())
    assert all(weight > 0 for weight in weights.values())


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 1)), min_size=1))
def test_the_mean_lies_among_the_values(values):
    low, high = min(v for _, v in values), max(v for _, v in values)
    assert low - 1e-9 <= fair_mean(values) <= high + 1e-9


@given(st.integers(1, 500), st.integers(1, 5000), st.integers(1, 3))
def test_one_key_counts_for_no_more_than_all_others_together(honest, lies, users):
    """Also beside one named user of a trusted key."""
    told = [(f"ann-{n % users}", 0.8) for n in range(honest)]
    told += [(Voice(f"u{n}", "key"), 0.0) for n in range(lies)]
    assert fair_mean(told) >= 0.8 / 2 - 1e-9
