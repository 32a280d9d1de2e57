"""Whose word is it that comes to a gateway, and who may say it?"""

import json

import pytest

from tests.gateway.conftest import model, plan, started
from tests.gateway.scripted import Scripted
from tests.gateway.test_admin import AdminClientTwin
from tests.infra.sql.test_senders import bus_intake
from tests.support import raw
from upswing.contracts.topics import GATEWAY_FEEDBACK, GATEWAY_TRAJECTORY
from upswing.errors import Reason, Rejected, Transient
from upswing.infra.sql.rewards import Rewards
from upswing.records import StreamMessage

KEYS = {"sk-op": "operator", "sk-own": "agent", "sk-ann": "ann", "sk-bob": "bob"}
"""`agent` is the installation's own, which speaks for many; `ann` and `bob` for themselves."""
SHAPES = {
    "theirs": {"metric_name": "solved", "value": False},
    "ours": {"type": "thumbs_down"},
}
NAMED = {
    "user_id": lambda who: ({"user_id": who}, ()),
    "user": lambda who: ({"user": who}, ()),
    "header": lambda who: ({}, (f"X-User-Id: {who}",)),
}
MAY = {
    # key:     names u-20, nobody, u-21
    "sk-own": (200, 200, 403),
    "sk-ann": (200, 200, 403),
    "sk-op": (200, 200, 200),
}


def gateway_of(server, **options):
    return started(plan(model("base", server.url)), client_keys=KEYS, **options)


async def record_feedback(gateway, feedback, key, headers=()):
    return await gateway.client("POST", "/feedback", feedback, key=key, headers=headers)


@pytest.mark.parametrize("ended", [False, True], ids=["open", "ended"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("named", NAMED)
async def test_a_word_names_its_user_or_is_refused_at_once(named, shape, ended):
    async with Scripted() as server, gateway_of(server) as gateway:
        for key, wanted in MAY.items():
            await gateway.chat(headers=("X-Episode-Id: e1",), key=key, user="u-20")
            if ended:
                await gateway.client("POST", "/v1/episodes/e1/close", b"", key=key)
            got = []
            for who in ("u-20", None, "u-21"):
                more, headers = NAMED[named](who) if who else ({}, ())
                feedback = {**SHAPES[shape], **more, "episode_id": "e1"}
                before = len(gateway.recorder.feedback)
                status, answer = await record_feedback(gateway, feedback, key, headers)
                got.append(status)
                kept = [each["user_id"] for each in gateway.recorder.feedback[before:]]
                assert kept == ([who or "u-20"] if status == 200 else []), (key, who)
                if status == 403:
                    assert "whose episode it recorded" in answer["error"]["message"]
            assert tuple(got) == wanted, key


async def test_users_of_an_episode_without_one_are_a_voice_each():
    async with Scripted() as server, gateway_of(server) as gateway:
        await gateway.chat(headers=("X-Episode-Id: e1",), key="sk-own")
        for who in ("ann", "bob", "cid"):
            feedback = {**SHAPES["theirs"], "episode_id": "e1", "user_id": who}
            assert (await record_feedback(gateway, feedback, "sk-own"))[0] == 200
        assert [each["user_id"] for each in gateway.recorder.feedback] == ["ann", "bob", "cid"]


async def test_another_key_is_refused_while_the_episode_is_open():
    async with Scripted() as server, gateway_of(server) as gateway:
        await gateway.chat(headers=("X-Episode-Id: e1",), key="sk-ann", user="u-20")
        (episode,) = gateway.gateway.recorder.episode_table.open_episodes()
        feedback = {**SHAPES["theirs"], "inference_id": f"{episode.trajectory_id}.1"}
        assert (await record_feedback(gateway, feedback, "sk-bob"))[0] == 403
        assert gateway.recorder.feedback == []


@pytest.mark.parametrize(
    ("trouble", "status"),
    [(None, 200), (Rejected(Reason.NOT_YOURS, "Not yours."), 403), (Transient("Away."), 503)],
)
async def test_of_an_episode_that_it_does_not_know_the_loop_is_asked(trouble, status):
    admin_client = AdminClientTwin()
    admin_client.problem = trouble
    async with Scripted() as server, gateway_of(server, admin_client=admin_client) as gateway:
        feedback = {**SHAPES["theirs"], "episode_id": "long-ago", "user_id": "u-21"}
        assert (await record_feedback(gateway, feedback, "sk-own"))[0] == status
        assert len(gateway.recorder.feedback) == (status == 200)
        nobody = {**SHAPES["theirs"], "episode_id": "long-ago"}
        assert (await record_feedback(gateway, nobody, "sk-own"))[0] == 200, (
            "it is the owner's in any case"
        )
        assert (await record_feedback(gateway, nobody, "sk-bob"))[0] == status


async def test_a_dry_run_is_answered_and_keeps_nothing():
    async with Scripted() as server, gateway_of(server) as gateway:
        for shape in SHAPES.values():
            status, answer = await record_feedback(
                gateway, {**shape, "episode_id": "e1", "dryrun": True}, "sk-own"
            )
            assert (status, bool(answer["feedback_id"])) == (200, True)
        assert gateway.recorder.feedback == []
        feedback = {**SHAPES["theirs"], "episode_id": "e1", "dryrun": False}
        assert (await record_feedback(gateway, feedback, "sk-own"))[0] == 200
        assert len(gateway.recorder.feedback) == 1


async def test_whoever_says_nothing_hears_what_feedback_looks_like():
    async with Scripted() as server, gateway_of(server) as gateway:
        status, answer = await record_feedback(gateway, {}, "sk-own")
        said = answer["error"]["message"]
        assert status == 422
        for field in ("metric_name", "value", "episode_id", "inference_id", "type", "thumbs_up"):
            assert field in said, said


async def test_two_names_for_one_word_are_refused():
    async with Scripted() as server, gateway_of(server) as gateway:
        feedback = {**SHAPES["theirs"], "episode_id": "e1", "user_id": "ann"}
        status, answer = await record_feedback(gateway, feedback, "sk-own", ("X-User-Id: bob",))
        assert (status, "different users" in json.dumps(answer)) == (422, True)
        assert (await record_feedback(gateway, feedback, "sk-own", ("X-User-Id: ann",)))[0] == 200


@pytest.mark.parametrize("first", ["trajectory", "word"])
@pytest.mark.parametrize("key", ["sk-own", "sk-ann"])
@pytest.mark.parametrize("by", ["episode_id", "inference_id"])
async def test_a_word_given_at_another_gateway_is_the_users_of_the_episode(store, first, key, by):
    """Also while that one is open, so that neither the other gateway nor the loop knows it."""
    async with Scripted() as server, gateway_of(server) as here, gateway_of(server) as there:
        await here.chat(headers=("X-Episode-Id: e1",), key=key, user="u-20")
        (episode,) = here.gateway.recorder.episode_table.open_episodes()
        aim = "e1" if by == "episode_id" else f"{episode.trajectory_id}.1"
        for who in (key, "sk-bob"):
            assert (await record_feedback(there, {**SHAPES["theirs"], by: aim}, who))[0] == 200
        await here.client("POST", "/v1/episodes/e1/close", b"", key=key)
        (told,), words = here.recorder.trajectories, there.recorder.feedback
    taking = bus_intake(store)

    async def tell(number):
        carried = StreamMessage("S", GATEWAY_TRAJECTORY, number, 1, raw(told))
        assert (await taking.take_trajectory(carried)).rejected is None

    if first == "trajectory":
        await tell(1)
    for number, each in enumerate(words, 2):
        await taking.take_feedback(StreamMessage("F", GATEWAY_FEEDBACK, number, 1, raw(each)))
    if first == "word":
        await tell(9)
    heard = await Rewards(store.database).feedback_for([(told["trajectory_id"], "e1", "u-20")])
    assert [each.user_id for each in heard[told["trajectory_id"]]] == ["u-20"], "and not bob's"
