"""Who only looks gets the newest count: a small store's anew, a large one's at once."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from upswing.dataset.groups import Learnable
from upswing.errors import Transient
from upswing.trigger.learnable_cache import REFRESH, LearnableCache

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Store:
    """Counts when it is let, and how often it was asked to."""

    def __init__(self, trajectories):
        self.trajectories, self.version, self.counts, self.now = trajectories, 1, 0, NOON
        self.may_count = asyncio.Event()
        self.may_count.set()
        self.away = False
        self.cache = LearnableCache(self.count, self.read_version, clock=lambda: self.now, small=10)

    async def count(self):
        self.counts += 1
        await self.may_count.wait()
        if self.away:
            raise Transient("It is away.")
        return Learnable(trajectories=self.trajectories)

    async def read_version(self):
        return (self.version,)

    def add(self, trajectories):
        self.trajectories, self.version = self.trajectories + trajectories, self.version + 1


async def settled():
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_small_store_is_counted_whenever_it_has_changed():
    store = Store(3)
    for _ in range(3):
        assert (await store.cache.newest()).learnable.trajectories == 3
    assert store.counts == 1
    store.add(2)
    assert (await store.cache.newest()).learnable.trajectories == 5


async def test_of_a_large_store_the_last_count_is_told_and_the_next_one_made_beside():
    store = Store(100)
    first = await store.cache.newest()
    store.add(50)
    store.now += REFRESH
    store.may_count.clear()
    for _ in range(5):
        assert await store.cache.newest() is first, "nobody waits"
    await settled()
    assert store.counts == 2, "five looks are one count"
    store.may_count.set()
    await settled()
    found = await store.cache.newest()
    assert (found.learnable.trajectories, found.counted) == (150, store.now)


async def test_a_large_store_that_changes_all_the_time_is_not_counted_all_the_time():
    store = Store(100)
    await store.cache.newest()
    for _ in range(5):
        store.add(1)
        store.now += timedelta(seconds=1)
        await store.cache.newest()
        await settled()
    assert store.counts == 1


async def test_at_the_start_it_is_counted_for_whoever_looks_first():
    store = Store(100)
    await store.cache.keep_fresh()
    await settled()
    store.may_count.clear()
    assert (await store.cache.newest()).learnable.trajectories == 100
    assert store.counts == 1


async def test_it_is_kept_fresh_while_somebody_looks_and_not_longer():
    store = Store(100)
    await store.cache.newest()
    for minutes in (1, 60):
        store.add(1)
        store.now += timedelta(minutes=minutes)
        await store.cache.keep_fresh()
        await settled()
    assert store.counts == 2


async def test_a_store_that_is_away_is_told_so():
    store = Store(3)
    store.away = True
    with pytest.raises(Transient):
        await store.cache.newest()
