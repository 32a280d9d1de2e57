"""Short words over HTTP, trials, and words on work that nobody tells of."""

import json
import uuid
from datetime import timedelta

import pytest
from tests.support import trajectory

from upswing.app.loop import now
from upswing.contracts.topics import FEEDBACK

pytestmark = pytest.mark.live


async def stored(loop, sql="SELECT COUNT(*) FROM feedback"):
    return (await loop.store.database.read(lambda tx: tx.row(sql)))[0]


async def test_a_word_needs_no_id_and_no_time(loop, client):
    made = trajectory()
    assert (await client.send(made))[0] == 202
    said = {"trajectory_id": made["trajectory_id"], "type": "thumbs_up"}
    status, first = await client("POST", "/v1/feedback", said)
    assert (status, first["result"]) == (202, "stored"), first
    timed = {**said, "timestamp": "2026-01-01T00:00:00Z"}
    told = [(await client("POST", "/v1/feedback", timed))[1] for _ in range(2)]
    assert [each["result"] for each in told] == ["stored", "known"]
    assert told[0]["feedback_id"] == told[1]["feedback_id"] != first["feedback_id"]
    bodies = await loop.store.database.read(lambda tx: tx.rows("SELECT body FROM feedback"))
    assert all({"feedback_id", "timestamp"} <= json.loads(bytes(row[0])).keys() for row in bodies)


async def test_a_trial_stores_nothing_and_says_what_would_become_of_it(loop, client):
    made = trajectory()
    await client.send(made)
    said = {"trajectory_id": made["trajectory_id"], "type": "thumbs_up", "dryrun": True}
    status, answer = await client("POST", "/v1/feedback", said)
    assert (status, answer["result"]) == (202, "dryrun")
    for wrong, field in (({**said, "type": "cheers"}, "type"), ({"dryrun": True}, "trajectory_id")):
        status, answer = await client("POST", "/v1/feedback", wrong)
        assert (status, field in answer["detail"]) == (422, True), answer
    assert (await client("POST", "/v1/feedback", {**said, "dryrun": "yes"}))[0] == 422
    assert await stored(loop) == 0
    assert [
        each.letter.detail
        for each in await loop.store.list_dead_letters()
        if "dryrun" not in str(each)
    ] == []


@pytest.mark.parametrize("target", ["trajectory_id", "episode_id", "inference_id"])
async def test_a_word_on_work_that_nobody_tells_of_leaves_a_trace(loop, client, target):
    made = trajectory(metadata={"episode_id": "e-known"})
    await client.send(made)
    known = {"trajectory_id": made["trajectory_id"], "type": "thumbs_up"}
    lost = {target: str(uuid.uuid4()), "type": "thumbs_down", "feedback_id": "lost"}
    for word in (known, {"episode_id": "e-known", "type": "comment", "comment": "Fine."}, lost):
        assert (await client("POST", "/v1/feedback", word))[0] == 202
    while await loop.rewarder.run_once():
        pass
    moment = now()
    assert await loop.rewards.give_up_waiting(moment - timedelta(days=1), 100, now=moment) == 0
    assert await loop.rewards.give_up_waiting(moment + timedelta(days=1), 100, now=moment) == 1
    (letter,) = [each.letter for each in await loop.store.list_dead_letters()]
    assert (letter.reason, letter.subject) == ("unknown_target", FEEDBACK)
    assert json.loads(letter.payload)["feedback_id"] == "lost"
    assert await stored(loop) == 2
    assert await loop.rewards.give_up_waiting(moment + timedelta(days=1), 100, now=moment) == 0
    status, _ = await client("POST", f"/v1/dead/{letter.dead_id}/replay")
    assert (status, await stored(loop)) == (202, 3), "it waits again"
