"""Everything at once, by a fixed seed: is anything left behind when it is over?"""

import asyncio
import contextlib
import random

import pytest

from tests.gateway.conftest import model, on_both_loops, plan, started, user
from tests.gateway.scripted import Misbehaving
from tests.gateway.talking import connect, request
from tests.support import until
from upswing.gateway.limits import GatewayLimits

pytestmark = pytest.mark.live
MODES = [
    "well",
    "well",
    "well",
    "garbage",
    "html",
    "garbage_stream",
    "garbage_later",
    "half",
    "half_stream",
    "undone_stream",
    "error_in_200",
    "error_in_stream",
    "error_500",
    "refuses",
    "silent",
    "stalls",
    "header_injection",
    "closes_kept",
]


class Moody(Misbehaving):
    """Each request finds it in another mood."""

    def __init__(self, seed):
        super().__init__("well")
        self._chance = random.Random(seed)

    async def answer(self, request, reader, writer):
        return await getattr(self, self._chance.choice(MODES))(request, reader, writer)


async def rude_client(gateway, chance):
    """Asks, and may hang up at any moment, or send half of it, or two at once."""
    body = {"model": "m", "messages": [user("hi")], "stream": chance.random() < 0.5}
    message = request(body, f"X-Episode-Id: e{chance.randrange(20)}", close=chance.random() < 0.5)
    reader, writer = await connect(gateway)
    with contextlib.suppress(ConnectionError, TimeoutError):
        match chance.randrange(5):
            case 0:
                writer.write(message[: chance.randrange(len(message))])
            case 1:
                writer.write(message + message)
                await asyncio.wait_for(reader.read(chance.randrange(1, 300)), 3)
            case 2:
                writer.write(message)
            case _:
                writer.write(message)
                await asyncio.wait_for(reader.read(chance.randrange(1, 3000)), 3)
    if chance.random() < 0.3:
        writer.transport.abort()
    else:
        writer.close()


@on_both_loops
async def test_nothing_is_left_behind():
    limits = GatewayLimits(stall_seconds=0.2, client_seconds=1.0, backend_connections=20)
    chance = random.Random(7)
    async with Moody(1) as bad, Moody(2) as other:
        made = plan(
            model("base", bad.url, timeout_seconds=0.2),
            (model("new", other.url, timeout_seconds=0.2), 0.5),
        )
        async with started(made, limits=limits) as gateway:
            own = gateway.gateway
            for _ in range(15):
                clients = [rude_client(gateway, random.Random(chance.random())) for _ in range(20)]
                await asyncio.gather(*clients)
            await until(lambda: own.health()["under_way"] == 0, 60, "requests are left")
            await until(lambda: len(own.port.connections) <= 1, 60, "clients are left")
            await until(lambda: own.port.uploads.reserved == 0, 60, "bytes are left reserved")
            assert all(
                episode.in_flight == 0 for episode in own.recorder.episode_table.open_episodes()
            )
            for pool in own._upstreams._pools.values():

                def counted(pool=pool):
                    return pool.connection_count == len(pool._free) and not pool._waiting

                await until(counted, 60, "lost count")
            assert own.counters.outcomes["answered"] > 20
            assert sum(own.counters.faults.values()) > 50
            bad.answer = other.answer = bad.well
            assert (await gateway.chat(user("after all that")))[0] == 200
