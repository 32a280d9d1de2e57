"""Is each storm found by its name, and does one that hangs end?"""

import asyncio
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.storms import MINUTES, STORMS, bounded, lines, storm_of

TESTS = Path(__file__).parents[1]


def test_every_storm_has_its_files_and_each_file_one_storm():
    paths = [str(path) for path in TESTS.rglob("test_*.py")]
    for name, parts in STORMS.items():
        for part in parts:
            assert any(part in path and storm_of(path) == name for path in paths), (name, part)
    assert MINUTES.keys() <= STORMS.keys()


def test_a_storm_is_one_line_also_where_some_of_its_tests_were_left_out():
    told = [("storm", "poison"), ("tried", 30), ("lost", 0)]
    report = SimpleNamespace(user_properties=told, when="call", skipped=False, failed=False)
    left_out = SimpleNamespace(user_properties=[("storm", "poison")])
    assert [*lines([left_out, report])] == ["poison: 30 tried, 30 held, 0 lost"]


def test_a_storm_that_hangs_ends_in_its_time(monkeypatch):
    monkeypatch.setitem(MINUTES, "a calm", 30)
    before = signal.getsignal(signal.SIGALRM)

    async def hang():
        assert 1200 < signal.getitimer(signal.ITIMER_REAL)[0] <= 1800
        signal.setitimer(signal.ITIMER_REAL, 0.01)  # its time passes once it hangs
        await asyncio.Event().wait()

    with pytest.raises(TimeoutError, match="a calm: its time is over"), bounded("a calm"):
        asyncio.run(hang())
    assert signal.getsignal(signal.SIGALRM) is before
