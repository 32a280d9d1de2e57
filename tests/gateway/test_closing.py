"""What a client says at the end: understood, refused while it can be said again, or told that it was not."""

import asyncio

import pytest

from tests.gateway.conftest import model, plan, started, user
from tests.gateway.scripted import Scripted
from tests.outcomes import REFUSED, UNDERSTOOD
from upswing.dataset.outcome import trajectory_outcome
from upswing.gateway.limits import GatewayLimits

EPISODE = ("X-Episode-Id: e1",)


def value_of(gateway):
    (made,) = gateway.recorder.trajectories
    return trajectory_outcome(made["metadata"]).value


@pytest.fixture
async def gateway():
    async with Scripted() as server, started(plan(model("base", server.url))) as made:
        yield made


async def test_every_outcome_of_the_table_is_recorded_as_what_it_counts(gateway):
    for place, (outcome, value) in enumerate(UNDERSTOOD):
        await gateway.chat(user("hi"), headers=(f"X-Episode-Id: e{place}",))
        status, answer = await gateway.close(f"e{place}", {"outcome": outcome})
        assert (status, answer["detail"]) == (200, ""), (outcome, answer)
        assert trajectory_outcome(gateway.recorder.trajectories[-1]["metadata"]).value == value


@pytest.mark.parametrize("where", ["outcome", "metadata"])
async def test_an_outcome_that_is_not_understood_ends_nothing(gateway, where):
    await gateway.chat(user("hi"), headers=EPISODE)
    for outcome in REFUSED:
        body = {"outcome": outcome} if where == "outcome" else {"metadata": {"outcome": outcome}}
        status, answer = await gateway.close("e1", body)
        assert status == 422, outcome
        assert "not understood" in answer["error"]["message"]
    assert gateway.recorder.trajectories == []
    assert (await gateway.close("e1", {"outcome": 0.7}))[0] == 200
    assert value_of(gateway) == 0.7


@pytest.mark.parametrize(
    "body",
    [
        {"outcom": "completed"},
        {"reward": 0.7},
        {"status": "completed"},
        {"outcome": True, "metadata": {"outcome": False}},
        {"outcome": True, "metadata": {"ground_truth": {"kind": "nope"}}},
        b'{"outcome": NaN}',
    ],
)
async def test_a_close_that_says_something_else_is_refused_and_the_episode_stays_open(
    gateway, body
):
    await gateway.chat(user("hi"), headers=EPISODE)
    assert (await gateway.close("e1", body))[0] in {400, 422}
    assert (await gateway.close("e1", {"outcome": True}))[0] == 200
    assert value_of(gateway) == 1


@pytest.mark.parametrize(
    "first", [None, True, 0.3, {"status": "partial", "source": "tests"}], ids=repr
)
@pytest.mark.parametrize(
    "second", [False, 1.0, {"score": 0.3}, {"status": "partial", "source": "tests"}], ids=repr
)
async def test_a_second_close_says_the_same_or_hears_what_holds(gateway, first, second):
    await gateway.chat(user("hi"), headers=EPISODE)
    told = await gateway.close("e1", {"outcome": first})
    assert told[0] == 200
    same = first is not None and trajectory_outcome({"outcome": first}) == trajectory_outcome(
        {"outcome": second}
    )
    status, answer = await gateway.close("e1", {"outcome": second})
    if same:
        assert (status, answer) == told
    else:
        assert status == 409
        assert ("without an outcome" if first is None else "with the outcome") in answer["error"][
            "message"
        ]
        assert "which holds" in answer["error"]["message"]
    assert await gateway.close("e1") == told, "one that says nothing says the same"
    assert await gateway.close("e1", {"outcome": first}) == told


async def test_a_ground_truth_after_the_end_is_said_to_come_too_late(gateway):
    await gateway.chat(user("hi"), headers=EPISODE)
    body = {"outcome": True, "metadata": {"ground_truth": "Paris"}}
    assert (await gateway.close("e1", body))[0] == 200
    assert (await gateway.close("e1", body))[0] == 200
    status, answer = await gateway.close("e1", {"metadata": {"ground_truth": "Rome"}})
    assert (status, "`ground_truth`" in answer["error"]["message"]) == (409, True)


async def test_an_outcome_for_an_episode_that_has_ended_by_itself_is_not_dropped_without_a_word():
    limits = GatewayLimits(episode_seconds=0.05)
    async with (
        Scripted() as server,
        started(plan(model("base", server.url)), limits=limits) as gateway,
    ):
        await gateway.chat(user("hi"), headers=EPISODE)
        for _ in range(200):
            await asyncio.sleep(0.02)
            gateway.gateway.recorder.end_due_episodes()
            if gateway.recorder.trajectories:
                break
        status, answer = await gateway.close("e1", {"outcome": True})
        assert status == 409
        assert "without an outcome because no request came for long" in answer["error"]["message"]
        assert (await gateway.close("e1"))[0] == 200


async def test_an_outcome_in_a_requests_metadata_that_is_not_understood_is_said_at_the_close(
    gateway,
):
    await gateway.chat(user("hi"), headers=EPISODE, metadata={"outcome": "0.7"})
    status, answer = await gateway.close("e1")
    assert status == 200
    assert "not understood" in answer["detail"]
    assert "nobody states" in answer["detail"]
    assert value_of(gateway) is None
    assert (await gateway.close("e1"))[1] == answer


async def test_a_ground_truth_for_nobody_but_the_judge_is_said_to_be_one(gateway):
    await gateway.chat(user("hi"), headers=EPISODE)
    status, answer = await gateway.close(
        "e1", {"outcome": True, "metadata": {"ground_truth": {"right": "a"}}}
    )
    assert status == 200
    assert "No answer can be checked against this ground truth" in answer["detail"]
    assert gateway.recorder.trajectories[0]["metadata"]["ground_truth"] == {"right": "a"}


async def test_two_closes_at_once_end_an_episode_once():
    class Slow(Scripted):
        def reply(self, asked):
            return {"content": "slow"}, "stop"

    async with Slow() as server, started(plan(model("base", server.url))) as gateway:
        await gateway.chat(user("hi"), headers=EPISODE)
        episode = gateway.gateway.recorder.episode_table.open_episodes()[0]
        episode.in_flight += 1
        closes = [
            asyncio.create_task(gateway.close("e1", {"outcome": value}))
            for value in (True, True, False)
        ]
        await asyncio.sleep(0.05)
        episode.in_flight -= 1
        statuses = [status for status, _ in await asyncio.gather(*closes)]
        assert len(gateway.recorder.trajectories) == 1
        assert sorted(statuses) in ([200, 200, 409], [200, 409, 409])


@pytest.mark.parametrize("ended", [False, True], ids=["open", "ended"])
@pytest.mark.parametrize("named_by", ["episode_id", "inference_id"])
async def test_a_word_that_names_no_user_is_the_episodes_users(ended, named_by):
    async with Scripted() as server, started(plan(model("base", server.url))) as gateway:
        await gateway.chat(user("hi"), headers=("X-Episode-Id: e1",), user="ann")
        (episode,) = gateway.gateway.recorder.episode_table.open_episodes()
        target = {"episode_id": "e1", "inference_id": f"{episode.trajectory_id}.1"}[named_by]
        if ended:
            await gateway.close("e1")
        said = {"metric_name": "helpful", "value": True, named_by: target}
        status, _ = await gateway.client("POST", "/feedback", said)
        assert status == 200
        await gateway.client(
            "POST", "/feedback", {**said, named_by: "00000000-0000-4000-8000-000000000000.1"}
        )
        own, strange = gateway.recorder.feedback
    assert own["user_id"] == "ann"
    assert "user_id" not in strange
