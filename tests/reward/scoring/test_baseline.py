"""The window against a recomputation, and normalising."""

import math
import random
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upswing.reward.core.baseline import MIN_HISTORY, STD_FLOOR, TrailingWindow, normalise

numbers = st.lists(st.floats(-1e6, 1e6), max_size=80)
scores = st.floats(0, 1)


def recomputed(held):
    mean = math.fsum(held) / len(held)
    return mean, math.sqrt(math.fsum((x - mean) ** 2 for x in held) / len(held))


@given(numbers, st.integers(1, 20), st.data())
def test_a_window_is_what_a_recomputation_says(pushed, size, data):
    window, held = TrailingWindow(size), deque(maxlen=size)
    for x in pushed:
        window.push(x)
        held.append(x)
        if data.draw(st.booleans()):  # extremes are found lazily: ask now and then
            assert window.min == pytest.approx(min(held), abs=1e-9)
            assert window.max == pytest.approx(max(held), abs=1e-9)
    assert window.count == len(held)
    if held:
        mean, std = recomputed(held)
        assert window.mean == pytest.approx(mean, abs=1e-9)
        assert window.std == pytest.approx(std, rel=1e-9, abs=1e-9)


@given(numbers, st.integers(1, 20))
def test_replicas_agree_to_the_last_bit(pushed, size):
    grown = TrailingWindow(size, pushed)
    late = TrailingWindow(size, pushed[-size:])
    for one in (late, grown.copy()):
        assert one == grown
        assert (one.mean, one.std, one.min, one.max) == (
            grown.mean,
            grown.std,
            grown.min,
            grown.max,
        )
        one.push(3)
        assert grown == TrailingWindow(size, pushed)


def drift(updates):
    rng = random.Random(7)
    window, held = TrailingWindow(1000), deque(maxlen=1000)
    for _ in range(updates):
        x = rng.random()
        window.push(x)
        held.append(x)
    mean, std = recomputed(held)
    return max(
        abs(window.mean - mean),
        abs(window.std - std),
        abs(window.min - min(held)),
        abs(window.max - max(held)),
        abs(window.z(0.9) - (0.9 - mean) / std),
    )


def test_a_million_updates_leave_no_drift():
    assert drift(1_000_000) <= 1e-9


@pytest.mark.slow
def test_ten_million_updates_leave_no_drift():
    assert drift(10_000_000) <= 1e-9


def test_a_constant_history_has_no_deviation_at_all():
    window = TrailingWindow(numbers=[0.1] * 5000)
    assert (window.std, window.z(0.1), window.z(0.2), window.z(0)) == (0, 0, math.inf, -math.inf)


def test_an_empty_window_says_nothing():
    window = TrailingWindow()
    assert (window.count, window.mean, window.std, window.z(3)) == (0, 0, 0, 0)


@pytest.mark.parametrize("x", [math.nan, math.inf, -math.inf, 10**400])
def test_what_is_not_finite_is_refused_and_changes_nothing(x):
    window = TrailingWindow(numbers=[1, 2])
    with pytest.raises(ValueError, match="finite"):
        window.push(x)
    assert window == TrailingWindow(numbers=[1, 2])


def test_huge_numbers_are_slow_but_right():
    window = TrailingWindow(numbers=[1e200, 3e200])
    assert (window.mean, window.std) == (pytest.approx(2e200), pytest.approx(1e200))
    assert window.z(3e200) == pytest.approx(1)


@pytest.mark.parametrize(
    ("history", "method", "score", "value", "used"),
    [
        ([], "z-score", 0.7, 0.7, "none"),
        ([0.2] * (MIN_HISTORY - 1), "z-score", 0.7, 0.7, "none"),
        ([0.4, 0.6] * 50, "z-score", 0.5, 0.5, "z-score"),
        ([0.4, 0.6] * 50, "z-score", 0.6, 0.75, "z-score"),
        ([0.4, 0.6] * 50, "z-score", 0.95, 1.0, "z-score"),
        ([0.4, 0.6] * 50, "z-score", 0.0, 0.0, "z-score"),
        ([0.5] * 50, "z-score", 0.5, 0.5, "z-score"),
        ([0.5] * 50, "z-score", 0.51, 0.55, "z-score"),
        ([0.2, 0.7] * 50, "min-max", 0.7, 1.0, "min-max"),
        ([0.2, 0.7] * 50, "min-max", 0.45, 0.5, "min-max"),
        ([0.2, 0.7] * 50, "min-max", 0.1, 0.0, "min-max"),
        ([0.5] * 50, "min-max", 0.6, 0.6, "none"),
        ([0.2, 0.7], "min-max", 0.6, 0.6, "none"),
    ],
)
def test_the_table_of_normalising(history, method, score, value, used):
    found = normalise(score, TrailingWindow(numbers=history), method)
    assert (found.value, found.method) == (pytest.approx(value, abs=1e-9), used)


def test_noise_around_a_constant_history_stays_small():
    history = TrailingWindow(numbers=[0.8] * 999 + [0.81])
    assert abs(normalise(0.8 + STD_FLOOR / 10, history).value - 0.5) < 0.03


@given(st.lists(scores, max_size=60), scores, scores, st.sampled_from(["z-score", "min-max"]))
def test_a_better_score_never_normalises_to_less(history, a, b, method):
    window = TrailingWindow(numbers=history)
    low, high = (normalise(x, window, method).value for x in sorted((a, b)))
    assert 0 <= low <= high <= 1
