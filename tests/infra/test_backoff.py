"""Pauses between tries double, stay within their bounds and are finite, however often something fails."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upswing.infra.backoff import Backoff

seconds = st.floats(0.001, 1e6)


@given(seconds, seconds, st.integers(1, 10**9))
def test_a_pause_grows_up_to_the_longest(first, more, failures):
    backoff = Backoff(first, first + more)
    pause, after = backoff.seconds(failures), backoff.seconds(failures + 1)
    assert first <= pause <= after <= first + more
    assert after in {2 * pause, first + more}


@given(seconds, st.integers(-(10**9), 0))
def test_who_has_not_failed_does_not_wait(first, failures):
    assert Backoff(first).seconds(failures) == 0.0


def test_without_a_longest_pause_it_is_still_a_number():
    assert math.isfinite(Backoff(1.0).seconds(10**12))


@pytest.mark.parametrize(("first", "longest"), [(-1.0, 1.0), (2.0, 1.0), (math.nan, 1.0)])
def test_bounds_that_are_none_are_refused(first, longest):
    with pytest.raises(ValueError, match="no first pause"):
        Backoff(first, longest)
