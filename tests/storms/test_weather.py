"""What becomes of a connection to the bus when the network between is slow, resets, falls silent or parts?"""

import asyncio
import contextlib

import pytest

from tests.gateway.bus import nats
from tests.storms.weather import KINDS, Proxy, place, through
from tests.support import raw, small, until
from upswing.contracts.topics import TRAJECTORIES, TRAJECTORY
from upswing.infra.nats.bus import Bus
from upswing.infra.nats.permissions import OPERATOR
from upswing.records import OutboxEntry

pytestmark = [
    pytest.mark.live,
    # nats-py drops the socket of an attempt to connect that nobody answered.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]


@pytest.mark.long
async def test_a_bus_behind_a_line_that_fell_silent_is_found_again_and_nothing_is_doubled(
    tmp_path, trials
):
    async with (
        nats(tmp_path) as server,
        Proxy(lambda: place(server.url(OPERATOR))) as proxy,
    ):
        bus = await Bus.connect(through(server.url(OPERATOR), proxy), ping_seconds=0.5)
        try:
            for number, kind in enumerate(KINDS):
                proxy.turn(kind)
                entry = OutboxEntry(number, TRAJECTORY, f"m-{number}", raw(small()))
                links = proxy.passed

                async def sent(entry=entry):
                    with contextlib.suppress(TimeoutError):
                        return await asyncio.wait_for(bus.publish([entry]), 2)

                if kind == "partition":
                    assert not await sent()
                    proxy.turn("clear")
                await until(sent, 60, f"no answers after {kind}")
                assert kind in {"latency", "clear"} or proxy.passed > links
                trials.add()
            state = (await bus.js.stream_info(TRAJECTORIES)).state
            assert state.messages == len(KINDS)
        finally:
            await asyncio.wait_for(bus.close(), 300)
