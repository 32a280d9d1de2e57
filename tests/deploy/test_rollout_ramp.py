"""The steps: the table of the docstring, and their laws."""

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upswing.deploy.core import ramp as module
from upswing.deploy.core.ramp import ramp_schedule, ramp_steps

START = datetime(2026, 1, 5, 12, tzinfo=UTC)


def test_the_table_is_the_ramp():
    rows = [line.strip("|").split("|") for line in module.__doc__.splitlines() if line[:1] == "|"]
    told = [[cell.strip() for cell in row] for row in rows[2:]]
    steps = ramp_steps()
    found = []
    for step, (at, share) in zip(steps, ramp_schedule(steps, START), strict=False):
        minutes = int((at - START) / timedelta(minutes=1))
        begins = f"+{minutes} min" if minutes else "0"
        lasts = f"{int(step.dwell / timedelta(minutes=1))} min"
        found.append([f"{share:g} %", begins, lasts, f"{step.sample} rewards"])
    assert told[:-1] == found
    assert told[-1][:2] == ["100 %", "+240 min"]
    assert ramp_schedule(steps, START)[-1] == (START + timedelta(hours=4), 100.0)


def test_five_percent_is_a_step_more():
    (first, *others) = ramp_steps(0.05)
    assert (first.share, first.dwell, first.sample) == (0.05, timedelta(hours=1), 25)
    assert tuple(others) == ramp_steps()


@pytest.mark.parametrize(
    ("initial", "shares"),
    [
        (0.01, [0.01, 0.1, 0.25, 0.5]),
        (0.07, [0.07, 0.1, 0.25, 0.5]),
        (0.2, [0.2, 0.25, 0.5]),
        (0.3, [0.3, 0.5]),
        (0.5, [0.5]),
    ],
)
def test_an_own_share_takes_the_place_of_a_usual_one(initial, shares):
    assert [step.share for step in ramp_steps(initial)] == shares


@given(st.floats(0.0001, 0.5), st.floats(0.001, 720), st.floats(0, 100))
def test_a_ramp_only_rises_and_its_hours_scale(initial, hours, samples):
    steps = ramp_steps(initial, hours, samples)
    shares = [step.share for step in steps]
    assert shares[0] == initial
    assert shares == sorted(set(shares))
    assert shares[-1] <= 0.5
    assert all(step.sample >= 1 and step.dwell >= timedelta() for step in steps)
    usual = ramp_steps(initial)
    for step, beside in zip(steps, usual, strict=True):
        assert step.dwell / timedelta(hours=hours) == pytest.approx(
            beside.dwell / timedelta(hours=4), abs=1e-3
        )


@pytest.mark.parametrize("bad", [0, -0.1, 0.51, 1, math.nan, math.inf])
def test_a_share_that_is_no_beginning_is_refused(bad):
    with pytest.raises(ValueError, match="no ramp"):
        ramp_steps(bad)
    with pytest.raises(ValueError, match="no ramp"):
        ramp_steps(0.1, hours=-1 if math.isfinite(bad) else bad)
