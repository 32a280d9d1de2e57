"""A complaint comes before its episode: does a controller wait for it, and for nothing else?"""

import msgspec
import pytest
from tests.deploy.controlling import Ground

from upswing.deploy.core.record import RolloutRecord
from upswing.deploy.core.rows import ObservedComplaint


@pytest.fixture
async def canary():
    """A ground with a canary, its controller, and what is known of complaints about it."""
    ground = Ground()
    name = ground.trained(1)
    controller = await ground.started()
    assert await controller.admit()
    rollout = ground.rollout(name).rollout_id

    def complain(seq):
        started = ground.wall
        ground.store.complaints.append(ObservedComplaint(seq, name, ground.plan.rollout, started))

    def known():
        record = msgspec.json.decode(ground.store.records[rollout].body, type=RolloutRecord)
        complaints = record.evidence.complaints
        return complaints.candidate, complaints.seq, complaints.pending

    return ground, controller, complain, known


async def test_it_counts_when_its_episode_comes_also_for_the_next_controller(canary):
    ground, controller, complain, known = canary
    ground.store.unknown = {1}
    for seq in (1, 2):
        complain(seq)
    await controller.tick()
    assert known() == (1, 2, [1])
    ground.store.unknown = set()
    successor = await ground.started(holder="two")
    for _ in range(2):
        await successor.tick()
    assert known() == (2, 2, [])
