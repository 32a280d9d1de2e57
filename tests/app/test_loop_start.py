"""A loop that is told to stop while it starts is down again at once, and leaves nothing behind."""

import asyncio

import pytest
from tests.conftest import running_loop

from upswing.app.loop import ListenAddress, Loop
from upswing.config import Settings, Surroundings
from upswing.infra.instance import no_loop_sentence
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
    stop, told = asyncio.Event(), []

    async def at_that_step():
        while loop.waiting_for() != step:  # noqa: ASYNC110 - its steps are no events
            await asyncio.sleep(0)
        told.append(no_loop_sentence(tmp_path / "data"))
        stop.set()

    watching = asyncio.create_task(at_that_step())
    assert await loop.start_unless_stopped(stop) is None
    await watching
    assert ["is starting" in each for each in told] == [True]
    assert "No loop is running" in no_loop_sentence(tmp_path / "data")
    assert not (tmp_path / "data" / "running.json").exists()
    assert not is_locked(tmp_path / "data")


@pytest.mark.live
async def test_a_model_server_that_starts_for_the_first_time_is_not_away(data):
    """Nobody knows yet whether it will answer, so no alert may say that it does not."""
    async with running_loop(data, gateway_port=0) as loop:
        assert loop.delivery.process is not None
        assert loop.delivery.waiting_for().startswith("the model server to load")
        assert await loop.delivery.server_answers() is None
