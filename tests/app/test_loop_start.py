"""A loop that is told to stop while it starts is down again at once, and leaves nothing behind."""

import asyncio

import pytest

from upswing.app.loop import ListenAddress, Loop
from upswing.config import Settings, Surroundings
from upswing.infra.sql.store import is_locked

STEPS = (
    "the message bus",
    "the workers that redact and check messages",
)


@pytest.mark.live
@pytest.mark.parametrize("step", STEPS)
async def test_a_stop_during_a_start_is_obeyed_between_its_steps(tmp_path, step):
    loop = Loop(
        tmp_path / "data", Settings(), Surroundings(), ListenAddress(port=0, gateway_port=None)
    )
    stop = asyncio.Event()

    async def at_that_step():
        while loop.waiting_for() != step:  # noqa: ASYNC110 - its steps are no events
            await asyncio.sleep(0)
        stop.set()

    watching = asyncio.create_task(at_that_step())
    assert await loop.start_unless_stopped(stop) is None
    await watching
    assert not (tmp_path / "data" / "running.json").exists()
    assert not is_locked(tmp_path / "data")
