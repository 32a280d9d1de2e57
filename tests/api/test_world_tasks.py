"""What does it cost the others when somebody asks for ever new worlds? One world at a time."""

import asyncio
import threading

import pytest

from upswing.api.curriculum import TrainingTaskCache
from upswing.errors import Transient


class Maker:
    """Makes a world when it is let, and knows how many are being made."""

    def __init__(self):
        self.now, self.most, self.made = 0, 0, []
        self.let, self.begun = threading.Event(), threading.Event()

    def __call__(self, place, seed):
        self.now += 1
        self.most = max(self.most, self.now)
        self.begun.set()
        self.let.wait(300)
        self.now -= 1
        self.made.append(seed)
        return (f"{place}-{seed}",)


async def test_worlds_are_made_one_at_a_time_and_known_ones_do_not_wait():
    maker = Maker()
    maker.let.set()
    worlds = TrainingTaskCache(maker)
    await worlds.task_ids("desk", 0)
    maker.let.clear()
    maker.begun.clear()
    asked = [asyncio.ensure_future(worlds.task_ids("market", seed)) for seed in range(16)]
    await asyncio.to_thread(maker.begun.wait)
    assert await worlds.task_ids("desk", 0) == ("desk-0",), "while another is being made"
    maker.let.set()
    answers = await asyncio.gather(*asked, return_exceptions=True)
    refused = [each for each in answers if isinstance(each, Transient)]
    assert len(refused) == 8
    assert len(maker.made) == 1 + 8
    assert maker.most == 1


async def test_who_asks_alike_has_it_made_once():
    maker = Maker()
    worlds = TrainingTaskCache(maker)
    asked = [asyncio.ensure_future(worlds.task_ids("market", 7)) for _ in range(5)]
    await asyncio.to_thread(maker.begun.wait)
    maker.let.set()
    assert await asyncio.gather(*asked) == [("market-7",)] * 5
    assert maker.made == [7]


async def test_a_world_that_cannot_be_made_holds_up_no_other():
    def make(place, seed):
        if seed:
            raise KeyError(seed)
        return (place,)

    worlds = TrainingTaskCache(make)
    for seed in range(1, 20):
        with pytest.raises(KeyError):
            await worlds.task_ids("desk", seed)
    assert await worlds.task_ids("desk", 0) == ("desk",)
