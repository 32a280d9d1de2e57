"""Whose is it? Every operation on one key's work, with its own key, those of other tenants, an operator's and none."""

import uuid
from itertools import count

import pytest
from tests.conftest import running_loop, served_by
from tests.gateway.conftest import model, plan, user
from tests.gateway.scripted import Scripted
from tests.support import Client, Process, close_episode, rows, small, until

from upswing.contracts.traffic import write_plan

pytestmark = pytest.mark.live

NUMBERS = count()
ACTORS = ("own", "other", "trusted", "operator", "none")
AT, USER, STEP = (
    "2026-01-05T12:00:00Z",
    "ann",
    {
        "observation": {"content": "hi"},
        "action": {"type": "response", "content": "yes"},
    },
)
TABLE = {
    #                               own  other trusted operator none
    "start, open": (202, 409, 409, 409, 401),
    "start, ended": (202, 409, 409, 202, 401),
    "step, open": (202, 404, 404, 202, 401),
    "end, open": (202, 404, 404, 202, 401),
    "end, ended": (202, 404, 404, 202, 401),
    "abandon, open": (202, 404, 404, 202, 401),
    "whole, open": (202, 403, 403, 202, 401),
    "whole, ended": (409, 409, 409, 409, 401),
    "line, open": (202, 403, 403, 202, 401),
    "feedback of the user, ended": (202, 403, 202, 202, 401),
    "feedback of nobody, ended": (202, 403, 202, 202, 401),
    "feedback of another, ended": (403, 403, 403, 202, 401),
    "read, ended": (403, 403, 403, 200, 401),
    "list, ended": (403, 403, 403, 200, 401),
    "erase, ended": (403, 403, 403, 200, 401),
}
"""What somebody does with a trajectory that the own key has begun, or ended → the answers."""


async def make_keys(client):
    """A key of each actor, and of who is asked about: `own` is an agent's like `other`."""
    made = {"operator": client.key, "none": None}
    for name in ("own", "other", "trusted"):
        wish = {"name": f"{name}-{uuid.uuid4()}", "scope": "agent", "trusted": name == "trusted"}
        status, answer = await client("POST", "/v1/keys", wish)
        assert status == 201
        made[name] = answer["key"]
    return made


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One loop for the whole table, in a process of its own."""
    process = Process.start(tmp_path_factory.mktemp("matrix") / "data")
    try:
        process.until_ready(300)
        yield process
        assert process.stop() == 0
    finally:
        process.destroy()


def head(name, user_id):
    return {
        "trajectory_id": name,
        "agent_id": "a",
        "session_id": "s",
        "start_time": AT,
        "user_id": user_id,
    }


async def begun(client, key, user_id, *, ended):
    """A trajectory of this key, open or ended; its id."""
    name = str(uuid.uuid4())
    path = f"/v1/trajectories/{name}"
    told = [("/v1/trajectories/start", head(name, user_id)), (f"{path}/steps", STEP)]
    for where, body in [*told, *([(f"{path}/end", {})] if ended else [])]:
        status, answer = await client("POST", where, body, key=key)
        assert status == 202, answer
    return name


def request_of(what, name, user_id):
    """Method, path, body and kind."""
    path = f"/v1/trajectories/{name}"
    whole = small("hers", user_id=user_id) | {"trajectory_id": name}
    said = {
        "feedback_id": str(uuid.uuid4()),
        "timestamp": AT,
        "trajectory_id": name,
        "type": "thumbs_up",
    }
    lines = "application/x-ndjson"
    return {
        "start": ("POST", "/v1/trajectories/start", head(name, user_id), None),
        "step": ("POST", f"{path}/steps", STEP, None),
        "end": ("POST", f"{path}/end", {}, None),
        "abandon": ("POST", f"{path}/end", {"final_status": "abandoned"}, None),
        "whole": ("POST", "/v1/trajectories", whole, None),
        "line": ("POST", "/v1/trajectories", whole, lines),
        "feedback of the user": ("POST", "/v1/feedback", said | {"user_id": user_id}, None),
        "feedback of nobody": ("POST", "/v1/feedback", said, None),
        "feedback of another": ("POST", "/v1/feedback", said | {"user_id": "eve"}, None),
        "read": ("GET", path, b"", None),
        "list": ("GET", "/v1/dead", b"", None),
        "erase": ("DELETE", f"/v1/users/{user_id}/data", b"", None),
    }[what]


async def asked(client, key, what, name, user_id):
    method, path, body, kind = request_of(what, name, user_id)
    status, answer = await client(method, path, body, key=key, kind=kind or "application/json")
    return answer[0]["status"] if kind and status in {202, 207} else status, answer


@pytest.mark.parametrize("case", TABLE)
async def test_what_a_key_has_told_is_its_own(case, shared):
    what, _, state = case.partition(", ")
    async with Client(shared.info["http_url"], shared.info["key"]) as client:
        keys = await make_keys(client)
        got = {}
        for actor in ACTORS:
            user_id = f"{USER}{next(NUMBERS)}"
            name = await begun(client, keys["own"], user_id, ended=state == "ended")
            got[actor], answer = await asked(client, keys[actor], what, name, user_id)
            if got[actor] in {403, 404, 409} and isinstance(answer, dict):
                assert answer["detail"].endswith((".", "one.")), "a refusal is a sentence"
            if state == "open" and got[actor] >= 400:
                assert await goes_on(client, keys["own"], name), actor
    assert got == dict(zip(ACTORS, TABLE[case], strict=True))


async def goes_on(client, key, name):
    """What its own key has begun it can still go on with, and end."""
    path = f"/v1/trajectories/{name}"
    return [
        (await client("POST", where, body, key=key))[0]
        for where, body in ((f"{path}/steps", STEP), (f"{path}/end", {}))
    ] == [202, 202]


BY_GATEWAY = {
    "own": ("stored", 200),
    "other": (403, 404),
    "trusted": ("stored", 404),
    "operator": ("stored", 404),
    "none": (401, 401),
}
"""Who → what becomes of a word on the own key's episode, and what is answered to who closes it."""


@pytest.mark.long
async def test_an_episode_at_a_gateway_is_its_keys_and_so_is_the_word_on_it(data):
    """In both shapes, at a gateway that has forgotten the episode: the store knows whose it is."""
    chat = {"model": "m", "messages": [user("hi")], "user": USER}
    async with (
        Scripted() as backend,
        running_loop(data, gateway_port=0, settings=served_by(backend.url)) as loop,
    ):
        bucket = await loop.bus.js.key_value("rl_traffic")
        await bucket.put("plan", write_plan(plan(model("base", backend.url), fence=1000)))
        async with (
            Client(loop.running.gateway_url) as gateway,
            Client(loop.running.http_url, loop.running.key) as client,
        ):
            keys = await make_keys(client)

            async def opens():
                asked = [
                    await gateway("POST", "/v1/chat/completions", chat, key=keys[each])
                    for each in ("own", "other", "trusted")
                ]
                return {status for status, _ in asked} == {200}

            await until(opens, 120)
            for actor, (fate, closes) in BY_GATEWAY.items():
                await episode_of(loop, gateway, keys, chat, actor, fate, closes)
            told = rows(data, "SELECT DISTINCT user_id FROM feedback")
    assert sorted(told) == [(USER,), ("u-21",)], "a word without a user is the episode's user's"


async def episode_of(loop, gateway, keys, chat, actor, fate, closes):
    """An episode of the own key; the actor closes it, then its key does, and the actor speaks of it."""
    name, key = f"e-{uuid.uuid4()}", keys[actor]
    header = (f"X-Episode-Id: {name}",)
    assert (await gateway("POST", "/v1/chat/completions", chat, key=keys["own"], headers=header))[
        0
    ] == 200
    assert (await close_episode(gateway, name, key=key))[0] == closes
    status, closed = await close_episode(gateway, name, key=keys["own"])
    assert status == 200
    await until(lambda: loop.store.trajectory(closed["trajectory_id"]), 120)
    theirs = {"metric_name": "solved", "value": False, "episode_id": name}
    ours = {"type": "thumbs_up", "trajectory_id": closed["trajectory_id"]}
    stranger = {**theirs, "user_id": "u-21"}
    status, answer = await gateway("POST", "/feedback", stranger, key=key)
    assert status == {"none": 401, "operator": 200}.get(actor, 403), answer
    for word in (theirs, ours):
        status, answer = await gateway("POST", "/feedback", word, key=key)
        if fate in {401, 403}:
            assert status == fate, answer
            continue
        assert status == 200, answer
        await until(lambda a=answer: became(loop, a["feedback_id"]), 120)
        assert await became(loop, answer["feedback_id"]) == fate, actor


async def became(loop, feedback_id):
    """`stored`, or the reason of its dead letter; nothing yet: None."""
    sql = "SELECT 1 FROM feedback WHERE feedback_id = ?"
    if await loop.store.database.read(lambda tx: tx.row(sql, (feedback_id,))):
        return "stored"
    letters = await loop.store.list_dead_letters()
    return next(
        (each.letter.reason for each in letters if feedback_id in str(each.letter.payload)), None
    )
