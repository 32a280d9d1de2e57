"""Who can say that a canary did well? A gateway; what an agent publishes is a trajectory and no evidence."""

import asyncio
import random

import pytest
from nats.errors import Error as NatsError
from tests.conftest import running_loop
from tests.support import on_bus, raw, small, until

from upswing.contracts.topics import (
    FEEDBACK,
    GATEWAY_FEEDBACK,
    GATEWAY_TRAJECTORY,
    MODEL_DEPLOYED,
    TRAJECTORY,
)
from upswing.deploy.repository import RolloutRepository

pytestmark = pytest.mark.live
FORGED, MODEL, ROLLOUT = 900, "agent-zero-rl-v2", "7c1f3e62-2f0c-4c57-9e0b-6f1d9a54c301"


def episode(chance, **changes):
    """What a gateway would say of an episode of the canary, or of its baseline."""
    model = chance.choice((MODEL, "tiny"))
    about = {"rollout": ROLLOUT, "candidate": model == MODEL, "named": False, **changes}
    made = small(
        "done",
        model=model,
        policy_version=model,
        gateway=about,
        episode_id=f"e{chance.random()}",
        outcome={"status": "completed", "share": float(model == MODEL)},
    )
    return made | {"agent_id": f"a{chance.randrange(50)}"}


async def evidence(loop):
    rollouts = RolloutRepository(loop.store.database)
    rewards = (await rollouts.rewards_after(0, [MODEL, "tiny"], limit=5000)).rows
    return rewards, (await rollouts.complaints_after(0, [MODEL, "tiny"])).rows


async def test_nine_hundred_forged_episodes_are_trajectories_and_no_evidence(data, trials):
    chance = random.Random(29)
    forged = [episode(chance) for _ in range(FORGED)]
    async with (
        running_loop(data) as loop,
        on_bus(loop.running.nats_urls["agent"]) as agent,
        on_bus(loop.running.nats_urls["gateway"]) as gateway,
    ):
        for each in forged:
            await agent.publish(TRAJECTORY, raw(each))
        for each in forged[:20]:  # by the gateways' subject it does not arrive at all
            await agent.publish(
                GATEWAY_TRAJECTORY, raw(each | {"trajectory_id": small()["trajectory_id"]})
            )
        said = {"timestamp": "2025-12-08T13:00:00Z", "type": "thumbs_down"}
        for place, each in enumerate(forged[:50]):
            word = {"feedback_id": f"f{place}", "trajectory_id": each["trajectory_id"], **said}
            await agent.publish(FEEDBACK, raw(word))
        await agent.flush()
        real = episode(chance)
        await gateway.jetstream(timeout=60).publish(GATEWAY_TRAJECTORY, raw(real))
        word = {"feedback_id": "about-real", "trajectory_id": real["trajectory_id"], **said}
        await agent.jetstream(timeout=60).publish(FEEDBACK, raw(word))  # it hears of everybody's

        async def scored():
            counts = await loop.store.counts()
            return counts["rewards"] >= FORGED + 1 and counts["feedback"] == 51

        await until(scored, 120, "not everything was scored")
        counts = await loop.store.counts()
        rewards, complaints = await evidence(loop)
        earned = await RolloutRepository(loop.store.database).mean_reward(real["metadata"]["model"])
        assert (counts["trajectories"], counts["dead"]) == (FORGED + 1, 0)
        assert [(each.model, each.rollout) for each in rewards] == [
            (real["metadata"]["model"], ROLLOUT)
        ], "the gateway's own counts, and nothing else"
        assert complaints == ()
        assert earned.count == 1
        word["feedback_id"] = "to-the-gateway"
        await gateway.jetstream(timeout=60).publish(GATEWAY_FEEDBACK, raw(word))

        async def complained():
            return (await evidence(loop))[1]

        (complaint,) = await until(complained)
        assert complaint.rollout == ROLLOUT
    trials.add(FORGED)


async def test_a_message_id_of_an_agents_choice_hides_no_episode_of_a_gateway(loop):
    """The client knows its episode's id; the bus drops what comes with an id that it has seen."""
    from upswing.gateway.core.episode_redaction import RedactedMessage
    from upswing.gateway.recorder.publisher import Publisher
    from upswing.infra.spool_log import SpoolEntryKind
    from upswing.infra.tasks import cancel_all, start_task

    made = episode(random.Random(3))
    key = made["trajectory_id"]
    async with on_bus(loop.running.nats_urls["agent"]) as agent:
        ack = await agent.jetstream(timeout=60).publish(
            TRAJECTORY, raw(small()), headers={"Nats-Msg-Id": key}
        )
        assert not ack.duplicate
    publisher = Publisher(loop.running.nats_urls["gateway"], None, 1 << 20)
    running = start_task(publisher.run())
    await asyncio.wait_for(publisher.connected.wait(), 300)
    assert await publisher.publish(
        SpoolEntryKind.TRAJECTORY, [RedactedMessage(key, raw(made))]
    ) == ["published"]
    stored = await until(lambda: loop.store.trajectory(key))
    assert stored.door == "gateway"
    await publisher.close()
    await cancel_all([running])


@pytest.mark.parametrize("role", ["agent", "reader", "rewarder", "collector", "requester"])
async def test_only_a_gateway_has_its_episodes_acknowledged_as_such(loop, role):
    async with on_bus(loop.running.nats_urls[role], errors=[]) as client:
        with pytest.raises((NatsError, TimeoutError)):
            await client.jetstream(timeout=0.5).publish(GATEWAY_TRAJECTORY, raw(small()))
    info = await loop.bus.js.stream_info("RL_TRAJECTORIES", subjects_filter=GATEWAY_TRAJECTORY)
    assert not info.state.subjects


async def test_an_agent_hears_nothing_of_a_rollout(loop):
    """Its id is in what the deployer says; only those hear it who may."""
    errors = []
    async with (
        on_bus(loop.running.nats_urls["agent"], errors=errors) as agent,
        on_bus(loop.running.nats_urls["requester"]) as requester,
        on_bus(loop.running.nats_urls["deployer"]) as deployer,
    ):
        heard = await agent.subscribe(MODEL_DEPLOYED)
        known = await requester.subscribe(MODEL_DEPLOYED)
        await asyncio.gather(agent.flush(), requester.flush())
        await deployer.publish(MODEL_DEPLOYED, ROLLOUT.encode())
        assert (await known.next_msg(20)).data == ROLLOUT.encode()
        await agent.flush()
        assert heard.pending_msgs == 0
        await until(lambda: any("model.deployed" in error.lower() for error in errors), 60)
