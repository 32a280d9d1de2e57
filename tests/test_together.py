"""Loops that run together end together, also one that does not hear the first time."""

import asyncio

import pytest

from upswing.together import end, together


class Deaf:
    """Loses its first cancellations, as a `wait_for` may."""

    def __init__(self, times=1):
        self.left, self.ended = times, False

    async def run(self):
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if not self.left:
                    self.ended = True
                    raise
                self.left -= 1


async def begun(*works):
    task = asyncio.create_task(together(*works))
    for _ in range(3):
        await asyncio.sleep(0)
    return task


async def test_who_does_not_hear_is_told_again():
    deaf = Deaf()
    task = await begun(deaf.run(), asyncio.Event().wait())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert deaf.ended


async def test_a_second_cancellation_leaves_nobody_behind():
    deaf = Deaf(2)
    task = await begun(deaf.run())
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert deaf.ended


async def test_one_that_breaks_ends_all_and_is_heard():
    deaf = Deaf()

    async def broken():
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        await together(broken(), deaf.run())
    assert deaf.ended


async def test_those_that_have_ended_are_left_alone():
    async def quick():
        return 1

    task = asyncio.create_task(quick())
    await task
    await end([task])
    assert task.result() == 1
