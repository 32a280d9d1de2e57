"""A loop whose gateway is gone knows it, and calls a person after a while."""

import os
import signal
from pathlib import Path

import pytest
from tests.conftest import running_loop, served_by
from tests.gateway.scripted import Scripted
from tests.support import family, until

pytestmark = pytest.mark.live


def gateway_of_this_process():
    """The process of the gateway that a loop of this process has started; None: there is none."""
    for pid in family(os.getpid()):
        if b"upswing.gateway.main" in Path(f"/proc/{pid}/cmdline").read_bytes():
            return pid
    return None


async def test_a_gateway_that_does_not_answer_is_a_condition_of_the_loop(data):
    async with (
        Scripted() as backend,
        running_loop(data, gateway_port=0, settings=served_by(backend.url)) as loop,
    ):
        assert (await loop.conditions.read()).gateway_answers is True
        os.kill(gateway_of_this_process(), signal.SIGSTOP)

        async def is_away():
            return (await loop.conditions.read()).gateway_answers is False

        await until(is_away, 60, "nobody noticed")

        async def is_back():  # another was started in its place
            return (await loop.conditions.read()).gateway_answers is True

        await until(is_back, 120, "it did not come back")


async def test_a_loop_without_a_gateway_says_nothing_of_it(loop):
    assert (await loop.conditions.read()).gateway_answers is None
