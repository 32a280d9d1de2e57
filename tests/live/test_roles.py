"""May this role say and hear that? Every subject, every role, on the server that `upswing up` runs."""

import asyncio
import json
import re

import nats
import pytest
from nats.js.api import ConsumerConfig
from nats.js.errors import APIError
from tests.support import on_bus, raw, small, until

from upswing.contracts.topics import DEAD, ROLES, TOPICS, TRAINING, TRAJECTORIES, TRAJECTORY

pytestmark = pytest.mark.live

COLLECTOR, REWARDER, TRAINER, DEPLOYER, MONITOR, GATEWAY, AGENT, REQUESTER, READER = (
    "collector",
    "rewarder",
    "trainer",
    "deployer",
    "monitor",
    "gateway",
    "agent",
    "requester",
    "reader",
)
STAGES = {COLLECTOR, REWARDER, TRAINER, DEPLOYER, MONITOR}
MAY = {
    # subject: (who may publish, who may subscribe)
    "agent.rl.trajectory.v1": ({AGENT, REQUESTER, COLLECTOR}, {COLLECTOR, READER}),
    "agent.rl.gateway.trajectory.v1": ({GATEWAY}, {COLLECTOR, READER}),
    "agent.rl.reward.v1": ({REWARDER}, {TRAINER, DEPLOYER, AGENT, REQUESTER, READER}),
    "agent.rl.training.request.v1": ({REQUESTER, TRAINER}, {TRAINER, READER}),
    "agent.rl.training.status.v1": ({TRAINER}, {AGENT, REQUESTER, DEPLOYER, READER}),
    "agent.rl.model.deployed.v1": ({DEPLOYER}, {REQUESTER, TRAINER, READER}),
    "agent.rl.feedback.v1": ({AGENT, REQUESTER, COLLECTOR}, {COLLECTOR, REWARDER, READER}),
    "agent.rl.gateway.feedback.v1": ({GATEWAY}, {COLLECTOR, REWARDER, READER}),
    "agent.rl.dead.collect": (STAGES, STAGES | {READER}),
    "agent.rl.dead.gateway": (STAGES | {GATEWAY}, STAGES | {READER}),
    "agent.rl.training.status.request": ({AGENT, REQUESTER, DEPLOYER, READER}, {TRAINER}),
    "agent.rl.alert.v1": ({MONITOR}, {REQUESTER, READER}),
    "agent.rl.report.v1": ({MONITOR}, {REQUESTER, READER}),
    "agent.rl.stored": (STAGES, STAGES),
    "agent.rl.somewhere.else": (set(), set()),
    "agent.rl.gateway.trajectory.v2": (set(), set()),
    "agent.rl.gateway.>": (set(), set()),
    "agent.rl.*.v1": (set(), set()),
    "agent.rl.>": (set(), set()),
    "another.subject": (set(), set()),
    ">": (set(), set()),
    "$SYS.REQ.SERVER.PING": (set(), set()),
    "$KV.rl_traffic.plan": (set(), {GATEWAY}),
    "$KV.rl_traffic.another": (set(), set()),
    "$KV.rl_tally.one": ({GATEWAY}, set()),
    "$KV.rl_pins.one": ({GATEWAY}, {GATEWAY}),
    "$KV.rl_gateways.one": ({GATEWAY}, set()),
    "$KV.another.key": (set(), set()),
    "$JS.API.STREAM.INFO.KV_rl_traffic": ({GATEWAY}, set()),
    "$JS.API.STREAM.MSG.GET.KV_rl_traffic": ({GATEWAY}, set()),
    "$JS.API.DIRECT.GET.KV_rl_traffic.$KV.rl_traffic.plan": ({GATEWAY}, set()),
    "$JS.API.CONSUMER.CREATE.KV_rl_traffic": (set(), set()),
    "$JS.API.CONSUMER.CREATE.KV_rl_traffic.mine.$KV.rl_traffic.plan": (set(), set()),
    "$JS.API.STREAM.INFO.KV_rl_tally": ({GATEWAY}, set()),
    "$JS.API.STREAM.INFO.KV_rl_gateways": ({GATEWAY}, set()),
    "$JS.API.CONSUMER.CREATE.KV_rl_gateways": (set(), set()),
    "$JS.API.CONSUMER.CREATE.KV_rl_tally": (set(), set()),
    "$JS.API.DIRECT.GET.KV_rl_tally.$KV.rl_tally.one": (set(), set()),
    "$JS.API.CONSUMER.CREATE.KV_rl_pins": ({GATEWAY}, set()),
    "$JS.API.DIRECT.GET.RL_TRAJECTORIES": ({COLLECTOR, READER}, set()),
    "$JS.API.DIRECT.GET.RL_MODELS": ({REQUESTER, TRAINER, READER}, set()),
    "$JS.API.STREAM.MSG.GET.RL_MODELS": (set(), set()),
    "$JS.API.STREAM.MSG.GET.RL_TRAJECTORIES": (set(), set()),
    "$JS.API.STREAM.MSG.DELETE.RL_TRAJECTORIES": ({COLLECTOR}, set()),
    "$JS.API.STREAM.PURGE.RL_TRAJECTORIES": (set(), set()),
    "$JS.API.STREAM.DELETE.RL_TRAJECTORIES": (set(), set()),
    "$JS.API.STREAM.UPDATE.RL_TRAJECTORIES": (set(), set()),
    "$JS.API.STREAM.CREATE.MINE": (set(), set()),
    "$JS.API.STREAM.NAMES": (set(), set()),
    "$JS.API.CONSUMER.CREATE.RL_MODELS.agent.agent.rl.model.deployed.v1": (set(), set()),
    "$JS.API.CONSUMER.CREATE.RL_TRAJECTORIES": (set(), set()),
    "$JS.API.CONSUMER.DELETE.RL_TRAJECTORIES.collector": (set(), set()),
    "$JS.API.CONSUMER.MSG.NEXT.RL_TRAJECTORIES.collector": ({COLLECTOR}, set()),
    "$JS.API.CONSUMER.MSG.NEXT.RL_TRAJECTORIES.collector-gateway": ({COLLECTOR}, set()),
    "_INBOX.somebody": (set(), set()),
    "_INBOX_operator.somebody": (set(), set()),
}
PUBLISHED = [subject for subject in MAY if ">" not in subject and "*" not in subject]


def test_the_table_of_topics_is_the_table_of_this_test():
    topics = {topic.subject: (set(topic.publishers), set(topic.subscribers)) for topic in TOPICS}
    topics["agent.rl.dead.collect"] = topics.pop(DEAD)
    assert topics == {subject: MAY[subject] for subject in topics}
    assert set(ROLES) == STAGES | {GATEWAY, AGENT, REQUESTER, READER}


REFUSAL = re.compile(
    r'permissions violation for (publish|subscription) to "([^"]+)"', re.IGNORECASE
)


async def denied(client, errors):
    """What the server has refused so far: it complains in order, so wait for a last complaint."""
    await client.publish("the.end", b"")
    await until(lambda: any("the.end" in error for error in errors), 60, f"no answer: {errors}")
    found = [match.groups() for error in errors if (match := REFUSAL.search(error))]
    assert len(found) == len(errors), errors
    return {(kind.lower(), subject.lower()) for kind, subject in found[:-1]}


@pytest.mark.parametrize("role", ROLES)
async def test_a_role_says_and_hears_what_the_table_gives_it_and_nothing_else(loop, role):
    errors = []
    async with on_bus(loop.running.nats_urls[role], errors=errors) as client:
        for subject in PUBLISHED:
            await client.publish(subject, b"{}")
        for subject in MAY:
            await client.subscribe(subject)
        refused = await denied(client, errors)
    assert refused == {
        ("publish", subject.lower()) for subject in PUBLISHED if role not in MAY[subject][0]
    } | {("subscription", subject.lower()) for subject in MAY if role not in MAY[subject][1]}


async def test_what_is_denied_is_not_delivered(loop):
    """A refusal in words is not enough: nothing of it arrives either."""
    async with (
        on_bus(loop.running.nats_urls["operator"]) as operator,
        on_bus(loop.running.nats_urls[READER]) as reader,
        on_bus(loop.running.nats_urls[REWARDER]) as rewarder,
    ):
        heard = await operator.subscribe("agent.rl.reward.v1")
        await operator.flush()
        await reader.publish("agent.rl.reward.v1", b"forged")
        await reader.flush()
        await rewarder.publish("agent.rl.reward.v1", b"real")
        assert (await heard.next_msg(60)).data == b"real"


async def test_a_wrong_password_is_refused(loop):
    for role, good in loop.running.nats_urls.items():
        password = good.partition("://")[2].partition("@")[0].partition(":")[2]
        for bad in (good.replace(password, "guess"), good.replace(f"{role}:{password}@", "")):
            with pytest.raises((nats.errors.Error, OSError), match=r"(?i)authorization"):
                async with on_bus(bad, allow_reconnect=False):
                    pass


async def refused(client, errors, request):
    """The request gets no answer, and the server says why."""
    errors.clear()
    with pytest.raises((TimeoutError, nats.errors.Error, APIError)):
        await asyncio.wait_for(request(), 0.5)
    await until(
        lambda: any("permissions violation" in error.lower() for error in errors),
        60,
        f"the server did not complain: {errors}",
    )


async def test_an_agent_reads_no_trajectories_and_deletes_nothing(loop, client):
    assert (await client.send(small()))[0] == 202
    errors = []
    async with on_bus(loop.running.nats_urls[AGENT], errors=errors) as agent:
        js = agent.jetstream(timeout=0.3)
        for name in (AGENT, COLLECTOR, READER):
            config = ConsumerConfig(
                name=name, durable_name=name, filter_subject=TRAJECTORY, ack_policy="explicit"
            )
            await refused(agent, errors, lambda c=config: js.add_consumer(TRAJECTORIES, c))
        for request in (
            lambda: js.add_consumer(TRAJECTORIES, ConsumerConfig(filter_subject=TRAJECTORY)),
            lambda: js.delete_msg(TRAJECTORIES, 1),
            lambda: js.purge_stream(TRAJECTORIES),
            lambda: js.delete_stream(TRAJECTORIES),
            lambda: js.delete_consumer(TRAJECTORIES, COLLECTOR),
            lambda: js.get_msg(TRAJECTORIES, 1),
            lambda: js.get_msg(TRAJECTORIES, 1, direct=True),
            lambda: js.stream_info(TRAJECTORIES),
            lambda: js.delete_msg("RL_REWARDS", 1),
            lambda: agent.request(
                f"$JS.API.CONSUMER.MSG.NEXT.{TRAJECTORIES}.collector", b"", timeout=0.3
            ),
            lambda: agent.request("$JS.API.CONSUMER.MSG.NEXT.RL_REWARDS.trainer", b"", timeout=0.3),
            lambda: agent.request("$JS.API.STREAM.NAMES", b"", timeout=0.3),
        ):
            await refused(agent, errors, request)
    info = await loop.bus.js.stream_info(TRAJECTORIES)
    assert info.state.consumer_count == 2


async def test_an_agent_cannot_widen_its_own_consumer(loop):
    """The consumer bears its name and filters on a subject it may hear; anything else is refused."""
    errors = []
    async with on_bus(loop.running.nats_urls[AGENT], errors=errors) as agent:
        js = agent.jetstream(timeout=0.3)
        own = ConsumerConfig(
            name=AGENT, durable_name=AGENT, filter_subject="agent.rl.training.status.v1"
        )
        await js.add_consumer("RL_TRAINING", own)
        for wider in ("agent.rl.training.request.v1", "agent.rl.training.>", None):
            config = ConsumerConfig(name=AGENT, durable_name=AGENT, filter_subject=wider)
            await refused(agent, errors, lambda c=config: js.add_consumer("RL_TRAINING", c))
        config = ConsumerConfig(
            name=AGENT,
            durable_name=AGENT,
            filter_subjects=["agent.rl.training.status.v1", "agent.rl.training.request.v1"],
        )
        await refused(agent, errors, lambda: js.add_consumer("RL_TRAINING", config))
        # The subject of the request says one filter, its body another: the server compares them.
        body = {
            "stream_name": "RL_TRAINING",
            "config": {"name": AGENT, "durable_name": AGENT, "ack_policy": "explicit"},
        }
        answer = await agent.request(
            f"$JS.API.CONSUMER.CREATE.RL_TRAINING.{AGENT}.agent.rl.training.status.v1",
            json.dumps(body).encode(),
            timeout=2,
        )
        assert "error" in json.loads(answer.data)
    info = await loop.bus.js.consumer_info("RL_TRAINING", AGENT)
    assert info.config.filter_subject == "agent.rl.training.status.v1"


async def test_a_reader_reads_rewards_with_a_consumer_of_its_name(loop):
    async with (
        on_bus(loop.running.nats_urls[REWARDER]) as rewarder,
        on_bus(loop.running.nats_urls[READER]) as reader,
    ):
        await rewarder.publish("agent.rl.reward.v1", b"a reward")
        await rewarder.flush()
        js = reader.jetstream(timeout=5)
        config = ConsumerConfig(
            name=READER, durable_name=READER, filter_subject="agent.rl.reward.v1"
        )
        await js.add_consumer("RL_REWARDS", config)
        pull = await js.pull_subscribe_bind(READER, "RL_REWARDS")
        (message,) = await pull.fetch(1, timeout=5)
        assert message.data == b"a reward"
        await message.ack_sync(timeout=5)
        assert (await js.consumer_info("RL_REWARDS", READER)).num_ack_pending == 0


async def test_what_an_agent_publishes_is_acknowledged_to_its_own_inbox(loop):
    async with on_bus(loop.running.nats_urls[AGENT]) as agent:
        ack = await agent.jetstream(timeout=5).publish(TRAJECTORY, raw(small()))
        assert (ack.stream, ack.seq) == (TRAJECTORIES, 1)


async def test_the_trainer_answers_enquiries_and_no_stream_does(loop):
    """The loop answers as well, with a word of its own; a stream's acknowledgement would be neither."""
    async with (
        on_bus(loop.running.nats_urls[TRAINER]) as trainer,
        on_bus(loop.running.nats_urls[AGENT]) as agent,
    ):

        async def answer(message):
            await message.respond(b"running")

        await trainer.subscribe("agent.rl.training.status.request", cb=answer)
        await trainer.flush()
        heard = await agent.subscribe(f"_INBOX_{AGENT}.here.*")
        for n in range(5):  # one reply each to a subject of its own is allowed
            reply = f"_INBOX_{AGENT}.here.{n}"
            await agent.publish("agent.rl.training.status.request", b"{}", reply=reply)
        replies = [(await heard.next_msg(60)).data for _ in range(10)]
        assert replies.count(b"running") == 5
        assert sum(b"malformed" in reply for reply in replies) == 5
        assert (await loop.bus.js.stream_info("RL_TRAINING")).state.messages == 0


async def test_the_trainer_erases_raw_requests_and_nothing_else(loop, client):
    assert (await client.send(small()))[0] == 202
    errors = []
    async with on_bus(loop.running.nats_urls[TRAINER], errors=errors) as trainer:
        js = trainer.jetstream(timeout=5)
        ack = await js.publish("agent.rl.training.status.v1", b"{}")
        assert await js.delete_msg(TRAINING, ack.seq)
        assert errors == []
        hasty = trainer.jetstream(timeout=0.3)
        for stream in (TRAJECTORIES, "RL_FEEDBACK", "RL_REWARDS"):
            await refused(trainer, errors, lambda s=stream: hasty.delete_msg(s, 1))
        await refused(trainer, errors, lambda: hasty.purge_stream(TRAINING))
