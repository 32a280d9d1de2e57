"""Agents that ask at temperature 0 all say the same; a configured share of their episodes does not."""

import pytest

from tests.gateway.conftest import model, plan, started
from tests.gateway.scripted import Scripted
from upswing.config import ExploreConfig
from upswing.gateway.core.exploration import exploration_temperature


@pytest.mark.parametrize(
    ("asked", "sent", "explored"),
    [
        ({"temperature": 0}, 0.9, True),
        ({"temperature": 0.2}, 0.9, True),
        ({}, None, False),
        ({"temperature": 1.3}, 1.3, False),
        ({"temperature": None}, None, False),
    ],
)
async def test_an_exploring_episode_is_asked_for_warmer_and_says_so(asked, sent, explored):
    async with Scripted() as server:
        made = plan(model("base", server.url))
        async with started(made, explore=ExploreConfig(share=1.0, temperature=0.9)) as gateway:
            await gateway.chat(headers=["x-episode-id: e"], **asked)
            await gateway.close("e")
            (kept,) = gateway.recorder.trajectories
        assert server.requests[-1]["body"].get("temperature") == sent
        assert kept["metadata"].get("explored", False) is explored
        if explored:
            assert kept["metadata"]["temperature"] == sent


async def test_without_a_word_in_the_config_nobody_explores():
    async with Scripted() as server:
        async with started(plan(model("base", server.url))) as gateway:
            await gateway.chat(headers=["x-episode-id: e"], temperature=0)
            await gateway.close("e")
            (kept,) = gateway.recorder.trajectories
        assert server.requests[-1]["body"]["temperature"] == 0
        assert "explored" not in kept["metadata"]


def test_the_share_is_drawn_by_id_and_stays_with_the_episode():
    explore = ExploreConfig(share=0.2)
    drawn = [exploration_temperature(f"episode-{n}", explore) for n in range(2000)]
    assert drawn == [exploration_temperature(f"episode-{n}", explore) for n in range(2000)]
    assert 0.17 < sum(t is not None for t in drawn) / 2000 < 0.23
