"""Is all counted that the gateway holds of episodes, and does it stay within its bounds?

Memory is what Python's own tracer says. Whatever a request carries and however it ends, what stays of it is in
`recording_bytes`.
"""

import gc
import random
import tracemalloc

import pytest

from tests.gateway.conftest import model, plan, started, user
from tests.gateway.scripted import Misbehaving
from tests.gateway.talking import connect, request
from tests.gateway.test_episodes import heard, opened
from tests.support import until
from upswing.gateway.core.episode_table import EpisodeTable
from upswing.gateway.limits import GatewayLimits

KB, MB = 1024, 1024 * 1024
REQUESTS = 5
HOW = ("well", "refuses", "error_500", "silent")
"""Answered; refused with 400; failed; and given up by the client."""
CARRIED = {
    "metadata that is kept": lambda: {"metadata": {"environment": {"a": ["x" * 2000] * 100}}},
    "metadata that is not": lambda: {"metadata": {"anything": [["x"]] * 20_000}},
    "an outcome": lambda: {"metadata": {"outcome": {f"k{n}": 1 for n in range(5_000)}}},
    "a source": lambda: {"metadata": {"outcome": {"success": True, "source": "s" * 250_000}}},
    "a user": lambda: {"user": "u" * 900_000},
    "a session": lambda: {"metadata": {"session_id": "s" * 900_000}},
    "a task": lambda: {"metadata": {"task_id": "t" * 900_000}},
    "a message": lambda: {"messages": [user("m" * 900_000)]},
    "examples": lambda: {"messages": [user("q"), {"role": "assistant", "content": "a"}] * 400},
}


async def given_up(gateway, server, body):
    """The client asks and hangs up before there is an answer."""
    before = len(server.requests)
    _, writer = await connect(gateway)
    writer.write(request({"model": "agent", "messages": [user("hi")], **body}))
    await writer.drain()
    await until(lambda: len(server.requests) > before, 60)
    writer.close()
    await until(lambda: gateway.gateway.health()["under_way"] == server.open == 0, 60)


def close_body(draw):
    return draw.choice(
        [
            b"",
            b'{"outcome": true}',
            b'{"outcome": {"success": 1, "source": "%s"}}' % (b"s" * 100_000),
        ]
    )


async def flood(gateway, server, how, carried, draw, prefix="e"):
    for number in range(REQUESTS):
        body, named = CARRIED[carried](), ()
        if carried not in {"a user", "a session"} and draw.random() < 0.5:
            named = (f"X-Episode-Id: {prefix}{number}",)
        if how == "silent":
            await given_up(gateway, server, body)
        else:
            await gateway.chat(*body.pop("messages", ()), headers=named, **body)
        if named and draw.random() < 0.5:
            await gateway.close(f"{prefix}{number}", close_body(draw))
        for double in (server.requests, gateway.recorder.trajectories):
            double.clear()  # they are the test's, not the gateway's


@pytest.mark.parametrize("carried", CARRIED)
@pytest.mark.parametrize("how", HOW)
async def test_what_stays_of_a_request_is_counted(how, carried):
    async with Misbehaving(how) as server, started(plan(model("base", server.url))) as gateway:
        await flood(gateway, server, how, "a task", random.Random(1), prefix="warm-up-")
        recorder = gateway.gateway.recorder
        for opened_before in recorder.episode_table.open_episodes():
            recorder.end_episode(opened_before, "idle")  # what goes later was there before
        await until(lambda: recorder.backlog_bytes == 0, 60)
        gc.collect()
        before = recorder.held_bytes
        tracemalloc.start()
        try:
            await flood(gateway, server, how, carried, random.Random(how + carried))
            if how != "silent":
                await gateway.chat()  # the doubles hold the last request, too
            gc.collect()
            stays = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
        counted = recorder.held_bytes - before
        assert stays <= 1.5 * counted + MB, (stays, counted)


def test_ids_and_metadata_of_open_episodes_are_bounded_too():
    table = EpisodeTable(max_episodes=10**6, max_bytes=20 * MB, idle_seconds=1000.0)
    for number in range(400):
        episode = opened(number)
        episode.metadata = b'{"environment":"%s"}' % (b"x" * 200 * KB)
        episode.earlier_pins = ("p" * 40,) * 128
        table.open(episode)
        for ended, why in table.due_to_end(1.0):
            assert why == "room"
            table.remove(ended)
        assert table.held_bytes <= 21 * MB
    assert 50 < len(table) < 110
    assert table.held_bytes == sum(each.held_bytes for each in table.open_episodes())


async def test_what_is_remembered_of_ended_episodes_is_bounded():
    async with Misbehaving("refuses") as server:
        limits = GatewayLimits(recording_bytes=8 * MB)
        async with started(plan(model("base", server.url)), limits=limits) as gateway:
            recorder = gateway.gateway.recorder
            for number in range(300):
                episode = opened(number)
                episode.user_id = "u" * 256
                episode.metadata = b'{"outcome":{%s}}' % b",".join(
                    b'"%d":1' % each for each in range(1000)
                )
                recorder.episode_table.open(episode)
                recorder.end_episode(episode, "idle")
                assert recorder.held_bytes <= MB + 20 * KB
            assert recorder.ended_episode("me", "e299") is not None
            assert recorder.ended_episode("me", "e0") is None, "the oldest is forgotten"


def test_a_flood_of_small_exchanges_counts_what_their_objects_take():
    table = EpisodeTable(max_episodes=10, max_bytes=MB, idle_seconds=1000.0)
    episode = opened(1)
    table.open(episode)
    tracemalloc.start()
    try:
        for number in range(20_000):
            table.add(episode, heard([user(f"{number}")], answer=b"{}"))
            if episode.has_gap:
                break
            stays, counted = tracemalloc.get_traced_memory()[0], table.held_bytes
        assert episode.has_gap
        assert stays <= 1.5 * counted
    finally:
        tracemalloc.stop()
