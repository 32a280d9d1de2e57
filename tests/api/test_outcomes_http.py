"""What an agent says of its success over HTTP and the bus: understood, refused, or taken with a word."""

import json

import pytest
from tests.outcomes import REFUSED, UNDERSTOOD
from tests.support import on_bus, raw, small, until

from upswing.contracts.topics import TRAJECTORY
from upswing.dataset.outcome import trajectory_outcome

pytestmark = pytest.mark.live
LINES = "application/x-ndjson"


async def test_a_trajectory_by_http(client, loop):
    for outcome, value in UNDERSTOOD:
        status, answer = await client.send(small("done", outcome=outcome))
        assert (status, answer.get("detail")) == (202, None), outcome
        kept = json.loads((await loop.store.trajectory(answer["id"])).admitted.body)
        assert trajectory_outcome(kept["metadata"]).value == value
    for outcome in REFUSED:
        status, answer = await client.send(made := small("done", outcome=outcome))
        assert (status, answer["error"]) == (422, "schema"), outcome
        assert "not understood" in answer["detail"]
        made["metadata"]["outcome"] = 0.7
        assert (await client.send(made))[0] == 202, "it can be sent again"


async def test_a_line_that_is_not_understood_is_refused_alone(client):
    body = b"\n".join(raw(small("done", outcome=outcome)) for outcome in (True, "great", 0.5))
    status, lines = await client("POST", "/v1/trajectories", body, kind=LINES)
    assert (status, [line["status"] for line in lines]) == (207, [202, 422, 202])


async def test_a_check_that_is_none_is_refused(client):
    assert (await client.send(small("done", ground_truth={"kind": "nope"})))[0] == 422
    assert (await client.send(small("done", ground_truth={"right": "a"})))[0] == 202


async def opened(client):
    _, told = await client("POST", "/v1/trajectories/start", {"agentId": "a"})
    path = f"/v1/trajectories/{told['id']}"
    await client("POST", f"{path}/steps", {"action": {"type": "wait"}})
    return path


@pytest.mark.parametrize("name", ["outcome", "final_status"])
async def test_the_end_of_a_step_wise_one(client, name):
    for outcome, value in UNDERSTOOD:
        path = await opened(client)
        status, answer = await client("POST", f"{path}/end", {name: outcome})
        assert (status, answer.get("detail")) == (202, None), (outcome, answer)
        assert trajectory_outcome((await client("GET", path))[1]["metadata"]).value == value
    path = await opened(client)
    for outcome in REFUSED:
        if (name, outcome) != ("final_status", ""):  # says nothing
            assert (await client("POST", f"{path}/end", {name: outcome}))[0] == 422, outcome
    assert (await client("POST", f"{path}/end", {name: 0.7}))[0] == 202, "it is still open"
    status, answer = await client("POST", f"{path}/end", {name: 0.7})
    assert (status, answer["result"]) == (202, "known")
    status, answer = await client("POST", f"{path}/end", {name: False})
    assert status == 409
    assert "with the outcome 0.7, which holds" in answer["detail"]


async def test_a_field_of_an_end_that_nobody_reads_is_named(client):
    path = await opened(client)
    status, answer = await client("POST", f"{path}/end", {"outcom": 0.7})
    assert status == 202
    assert "`outcom` of the end is not read" in answer["detail"]


async def test_over_the_bus_and_from_an_old_recorder_it_is_taken_without_an_outcome(client, loop):
    made = small("done", outcome="great")
    async with on_bus(loop.running.nats_urls["agent"]) as agent:
        await agent.publish(TRAJECTORY, raw(made))

        async def stored():
            return await loop.store.trajectory(made["trajectory_id"])

        await until(stored)
    status, answer = await client(
        "POST",
        "/v1/trajectories",
        raw(small("done", outcome="great")),
        headers=("User-Agent: upswing-sdk/0",),
    )
    assert status == 202
    assert "nobody states" in answer["detail"]
