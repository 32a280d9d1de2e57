"""Is everything stored exactly once, however often it is sent and however many acks are lost?"""

import random

import msgspec
import pytest
from tests.conftest import running_loop
from tests.storms import sized
from tests.storms.load import while_it_gets_less
from tests.support import on_bus, raw, small

from upswing.contracts import canonical
from upswing.contracts.topics import TRAJECTORIES, TRAJECTORY
from upswing.infra.nats import bus

pytestmark = pytest.mark.live


def lose_acks(monkeypatch, share, seed):
    """The acknowledgements of the collector vanish on their way, as they do in a real network."""
    chance, real, lost = random.Random(seed), bus.Delivery.ack, []

    async def ack(delivery):
        if chance.random() < share:
            lost.append(delivery.message.seq)
        else:
            await real(delivery)

    monkeypatch.setattr(bus.Delivery, "ack", ack)
    return lost


@pytest.mark.long
@sized("how_many", 1_500, 10_000)
async def test_sent_three_times_with_a_fifth_of_the_acks_lost_everything_is_one_row(
    data, monkeypatch, trials, how_many
):
    lost = lose_acks(monkeypatch, 0.2, seed=7)
    sent = [small(f"number {number}") for number in range(how_many)]
    copies = [raw(each) for each in sent]  # no Nats-Msg-Id: JetStream's own window is no help
    copies += [canonical(each) for each in sent] * 2
    random.Random(11).shuffle(copies)
    async with (
        running_loop(data, workers=True, ack_wait_seconds=2.0) as loop,
        on_bus(loop.running.nats_urls["agent"]) as agent,
    ):
        for place, copy in enumerate(copies):
            await agent.publish(TRAJECTORY, copy)
            if place % 1000 == 999:
                await agent.flush()
        await agent.flush()

        async def unsettled():
            info = await loop.bus.js.consumer_info(TRAJECTORIES, "collector")
            return info.num_pending + info.num_ack_pending

        await while_it_gets_less(unsettled, "the collector did not settle every delivery", 300)
        counts = await loop.store.counts()
        stored = await loop.store.trajectories_after(0, 2 * how_many)

    assert len(lost) > 0.15 * len(copies)
    assert counts["trajectories"] == how_many
    assert counts["dead"] == 0
    ids = [row.admitted.trajectory_id for row in stored]
    assert sorted(ids) == sorted(each["trajectory_id"] for each in sent)
    assert all(
        msgspec.json.decode(row.admitted.body)["metadata"] == {"model": "m"} for row in stored
    )
    trials.add(len(copies))
