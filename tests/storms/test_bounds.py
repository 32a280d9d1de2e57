"""Is each storm found by its name, and does one that hangs end?"""

import asyncio
import signal
from pathlib import Path

import pytest

from tests.storms import MINUTES, STORMS, bounded, storm_of

TESTS = Path(__file__).parents[1]


def test_every_storm_has_its_files_and_each_file_one_storm():
    paths = [str(path) for path in TESTS.rglob("test_*.py")]
    for name, parts in STORMS.items():
        for part in parts:
            assert any(part in path and storm_of(path) == name for path in paths), (name, part)
    assert MINUTES.keys() <= STORMS.keys()


def test_a_storm_that_hangs_ends_in_its_time(monkeypatch):
    monkeypatch.setitem(MINUTES, "a calm", 0.1 / 60)
    before = signal.getsignal(signal.SIGALRM)

    async def hang():
        await asyncio.Event().wait()

    with pytest.raises(TimeoutError, match="a calm: its time is over"), bounded("a calm"):
        asyncio.run(hang())
    assert signal.getsignal(signal.SIGALRM) is before
