"""One key fills the memory for recordings: are another key's episodes recorded all the same?"""

import random

import pytest

from tests.gateway.conftest import ListRecorder, model, plan, started, user
from tests.gateway.scripted import Scripted
from tests.gateway.test_held_memory import KB, MB, heard, opened
from tests.support import until
from upswing.gateway.core.episode_table import EpisodeTable
from upswing.gateway.limits import GatewayLimits


def begun(table, key, number, metadata=b"{}"):
    episode = opened(number)
    episode.principal, episode.metadata = key, metadata
    table.open(episode)
    return episode


def record(table, episode, size):
    table.add(episode, heard([user("x" * size)], answer=b"{}"))


def test_a_key_alone_may_use_everything():
    table = EpisodeTable(max_episodes=100, max_bytes=10 * MB, idle_seconds=1000.0)
    episodes = [begun(table, "loud", number) for number in range(40)]
    for episode in episodes:
        record(table, episode, 200 * KB)
    kept = [episode for episode in episodes if not episode.has_gap]
    assert table.held_bytes > 9 * MB
    assert 0 < len(kept) < len(episodes)
    assert table.held_bytes == sum(each.held_bytes for each in table.open_episodes())


@pytest.mark.parametrize("hoard", ["answers", "metadata", "episodes"])
def test_what_one_key_hoards_gives_way_to_another(hoard):
    most = 10 * MB
    table = EpisodeTable(max_episodes=10**6, max_bytes=most, idle_seconds=1000.0)
    number = 0
    while table.held_bytes < most - 400 * KB:
        number += 1
        metadata = b'{"environment":"%s"}' % (b"x" * 200 * KB) if hoard == "metadata" else b"{}"
        episode = begun(table, "loud", number, metadata)
        if hoard == "answers":
            record(table, episode, 100 * KB)
    lost = 0
    for place in range(20):
        calm = begun(table, "calm", 10**6 + place)
        record(table, calm, 100 * KB)
        lost += calm.has_gap
        for ended, why in table.due_to_end(1.0):
            assert (ended.principal, why) == ("loud", "room")
            table.remove(ended)
    assert lost <= (4 if hoard == "episodes" else 0), "open episodes end a moment later"
    assert table.held_bytes <= most
    assert table.held_bytes == sum(each.held_bytes for each in table.open_episodes())


def test_in_any_order_no_key_loses_to_one_that_holds_less():
    chance = random.Random(11)
    most = 4 * MB
    for _ in range(20):
        table = EpisodeTable(max_episodes=1000, max_bytes=most, idle_seconds=1000.0)
        episodes = []
        for number in range(300):
            key = chance.choice(["a", "a", "a", "b", "c"])
            episode = begun(table, key, number)
            episodes.append(episode)
            record(table, episode, chance.randrange(60 * KB))
            if chance.random() < 0.2:
                table.remove(episodes.pop(chance.randrange(len(episodes))))
            assert table.held_bytes <= most + 1000 * 3 * KB
            assert table.held_bytes == sum(each.held_bytes for each in table.open_episodes())
        held = dict.fromkeys("abc", 0)
        gaps = dict.fromkeys("abc", False)
        for episode in table.open_episodes():
            held[episode.principal] += episode.held_bytes
            gaps[episode.principal] |= episode.has_gap
        share = most / 3
        assert all(held[key] > share / 2 for key in "abc" if gaps[key]), (held, gaps)


def test_where_there_are_too_many_episodes_the_key_that_has_most_ends_one():
    table = EpisodeTable(max_episodes=100, max_bytes=10 * MB, idle_seconds=1000.0)
    calm = [begun(table, "calm", number) for number in range(10)]
    for number in range(10, 300):
        begun(table, "loud", number)
        for ended, why in table.due_to_end(1.0):
            assert (ended.principal, why) == ("loud", "room")
            table.remove(ended)
    assert not any(episode.ended for episode in calm)
    assert len(table) == 100


async def test_the_backlog_of_one_key_gives_way_to_another():
    """The bus is away: what waits of the key that has most is given up, and each is answered."""
    recorder = ListRecorder()
    recorder.away = True
    limits = GatewayLimits(recording_bytes=2 * MB, close_seconds=0.05)
    keys = {"loud": "loud", "calm": "calm"}
    async with (
        Scripted() as server,
        started(
            plan(model("base", server.url)), recorder=recorder, limits=limits, client_keys=keys
        ) as gateway,
    ):

        async def ended(key, number, size):
            head = (f"X-Episode-Id: {key}{number}",)
            assert (await gateway.chat(user("x" * size), headers=head, key=key))[0] == 200
            path = f"/v1/episodes/{key}{number}/close"
            return (await gateway.client("POST", path, key=key))[0]

        for number in range(12):
            await ended("loud", number, 400 * KB)
        answers = [await ended("calm", number, 50 * KB) for number in range(5)]
        assert answers == [503] * 5, "they wait, and are not refused"
        recorder.away = False

        async def recorded():
            return (
                len(
                    {
                        e["metadata"]["episode_id"]
                        for e in recorder.trajectories
                        if e["agent_id"] == "calm"
                    }
                )
                == 5
            )

        await until(recorded)
        assert gateway.gateway.recorder.counts.lost > 0
