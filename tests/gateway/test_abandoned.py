"""Somebody gives up waiting: is it told in the trajectory, only where no request followed, and never as idle time?"""

import asyncio

import pytest

from tests.gateway.conftest import assistant, model, plan, started, user
from tests.gateway.scripted import Misbehaving
from tests.gateway.talking import streamed
from tests.support import until
from upswing.contracts import Trajectory, from_builtins
from upswing.reward.core.implicit import implicit_signals
from upswing.reward.core.implicit_text import SignalKind

pytestmark = pytest.mark.live
HEADERS = ("X-Episode-Id: e1",)
TALK = [user("hi"), assistant("ok"), user("And then?")]


async def hang_up(gateway, server):
    """Ask, and be gone before anything is answered."""
    server.how = "silent"
    before = len(server.requests)
    asked = {"model": "m", "messages": TALK, "metadata": {"episode_id": "e1"}}
    asking = asyncio.create_task(streamed(gateway, asked))
    await until(lambda: len(server.requests) > before, 60)
    asking.cancel()
    await until(lambda: gateway.gateway.health()["under_way"] == 0, 60)
    server.how = "well"


def told(gateway):
    (made,) = gateway.recorder.trajectories
    kinds = [each.kind for each in implicit_signals(from_builtins(Trajectory, made)).found]
    return made["metadata"], kinds


@pytest.mark.parametrize("follows", [False, True])
async def test_a_request_that_its_client_gave_up_is_told_unless_another_follows(follows):
    async with Misbehaving("well") as server, started(plan(model("base", server.url))) as gateway:
        assert (await gateway.chat(user("hi"), headers=HEADERS))[0] == 200
        await hang_up(gateway, server)
        if follows:
            assert (await gateway.chat(*TALK, headers=HEADERS))[0] == 200
        assert (await gateway.close("e1"))[0] == 200
        about, kinds = told(gateway)
        assert about["gateway"].get("cancelled", False) is not follows
        assert kinds == ([] if follows else [SignalKind.ABANDONED])
        assert "infra_error" not in about


async def test_a_gateway_that_stops_takes_nobody_for_gone_and_blames_no_server():
    async with Misbehaving("well") as server:
        async with started(plan(model("base", server.url))) as gateway:
            await gateway.chat(user("hi"), headers=HEADERS)
            await hang_up(gateway, server)
        about, kinds = told(gateway)
        assert (about["gateway"]["ended_by"], kinds) == ("stop", [])
        assert "infra_error" not in about


@pytest.mark.parametrize("said", [{}, {"metadata": {"reset": True}}])
async def test_a_reset_is_told_by_its_client(said):
    async with Misbehaving("well") as server, started(plan(model("base", server.url))) as gateway:
        await gateway.chat(user("hi"), headers=HEADERS)
        assert (await gateway.close("e1", said))[0] == 200
        assert told(gateway)[1] == ([SignalKind.ABANDONED] if said else [])
