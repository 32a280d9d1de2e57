"""Somebody sets the machine's clock: what does the process count?"""

import logging
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import running_loop
from upswing.deploy.repository import RolloutRepository
from upswing.infra.clock import SteadyClock, monotonic_seconds, wall_time
from upswing.infra.sql.store import open_store

START = datetime(2026, 1, 5, 8, tzinfo=UTC)
DAY = timedelta(days=1)


class Machine:
    """Two clocks: one that is set at will, one that only passes."""

    def __init__(self):
        self.shows, self.passed = START, 1000.0

    def passes(self, seconds):
        self.shows += timedelta(seconds=seconds)
        self.passed += seconds

    def steady(self):
        return SteadyClock(lambda: self.shows, lambda: self.passed)


@given(st.lists(st.one_of(st.floats(0, 10_000), st.timedeltas(-400 * DAY, 400 * DAY)), max_size=30))
def test_time_is_what_has_passed_however_often_the_clock_is_set(acts):
    machine = Machine()
    clock, lived = machine.steady(), 0.0
    for act in acts:
        if isinstance(act, float):
            machine.passes(act)
            lived += act
        else:
            machine.shows += act
        assert (clock() - START).total_seconds() == pytest.approx(lived, abs=1e-3)


def test_a_clock_that_was_set_is_told_once(caplog):
    machine = Machine()
    clock = machine.steady()
    with caplog.at_level(logging.WARNING):
        for jump in (timedelta(seconds=20), DAY, timedelta(), -DAY):
            machine.shows += jump
            machine.passes(5)
            clock()
            clock()
    assert [record.action for record in caplog.records] == ["clock_set", "clock_set"]
    assert "1 day, 0:00:20 more" in caplog.messages[0]


def test_a_process_begins_with_the_time_of_the_wall():
    clock = SteadyClock()
    assert abs(clock() - wall_time()) < timedelta(seconds=5)
    assert monotonic_seconds() <= monotonic_seconds()


@pytest.mark.live
async def test_the_time_of_a_ramp_goes_on_where_it_was_after_the_clock_was_set_back(data):
    """Its last decision lies an hour before the moment until which its plan has held."""
    data.mkdir()
    store = open_store(data)
    await store.prepare()
    rollouts = RolloutRepository(store.database)
    fence, _ = await rollouts.take_over("one", START, 0)
    await rollouts.heartbeat(fence, START, START + timedelta(hours=1))
    store.close()
    async with running_loop(data, clock=lambda: START - DAY) as loop:
        assert loop.now() == START + timedelta(hours=1)
