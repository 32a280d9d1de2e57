"""Two keys at one gateway, in every shape: does one ever see, end or go on with what is the other's?"""

import json

import pytest

from tests.gateway.conftest import model, plan, started, user
from tests.gateway.scripted import Scripted
from tests.gateway.test_shapes import PATHS, ask

pytestmark = pytest.mark.live
KEYS = {"sk-own": "own", "sk-other": "other"}
BY = {
    "own": ("Authorization: Bearer sk-own",),
    "own, by its other header": ("x-api-key: sk-own",),
    "other": ("Authorization: Bearer sk-other",),
    "other, by its other header": ("x-api-key: sk-other",),
    "none": (),
    "a wrong one": ("Authorization: Bearer sk-own1",),
}


def said(path, *words):
    return {"input" if path == "/v1/responses" else "messages": [user(each) for each in words]}


@pytest.mark.parametrize("who", BY)
@pytest.mark.parametrize("path", PATHS)
async def test_an_episode_of_a_name_is_each_keys_own_in_every_shape(path, who):
    async with (
        Scripted() as server,
        started(plan(model("base", server.url)), client_keys=KEYS) as gateway,
    ):
        name = "X-Episode-Id: e1"
        assert (await ask(gateway, path, name, *BY["own"], **said(path, "mine")))[0] == 200
        status, _, told = await ask(gateway, path, name, *BY[who], **said(path, "theirs"))
        if who in {"none", "a wrong one"}:
            assert status == 401
            assert "mine" not in json.dumps(told)
        else:
            assert status == 200
        for key in KEYS:
            await gateway.client("POST", "/v1/episodes/e1/close", b"", key=key)
    owned = [made for made in gateway.recorder.trajectories if "mine" in json.dumps(made)]
    assert len(owned) == 1
    assert ("theirs" in json.dumps(owned)) == who.startswith("own")
    assert len(gateway.recorder.trajectories) == (2 if who.startswith("other") else 1)


@pytest.mark.parametrize(
    ("who", "expected"),
    [("own", 200), ("other", 400), ("other, by its other header", 400), ("none", 401)],
)
async def test_an_answer_is_referred_to_by_its_own_key_alone(who, expected):
    """The id of an answer is no secret: whoever hears it gets nothing for it."""
    async with (
        Scripted() as server,
        started(plan(model("base", server.url)), client_keys=KEYS) as gateway,
    ):
        _, _, first = await ask(gateway, "/v1/responses", *BY["own"], **said("/v1/responses", "hi"))
        reference = {"type": "item_reference", "id": first["output"][0]["id"]}
        more = {"input": [user("hi"), reference, user("go on")]}
        status, _, told = await ask(gateway, "/v1/responses", *BY[who], **more)
        assert status == expected, told
        assert (len(server.requests) == 2) == (expected == 200)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("who", [each for each in BY if not each.startswith("own")])
async def test_whoever_else_closes_it_ends_nothing(path, who):
    async with (
        Scripted() as server,
        started(plan(model("base", server.url)), client_keys=KEYS) as gateway,
    ):
        name = "X-Episode-Id: e1"
        assert (await ask(gateway, path, name, *BY["own"], **said(path, "one")))[0] == 200
        status, _ = await gateway.client(
            "POST", "/v1/episodes/e1/close", b"", key=None, headers=BY[who]
        )
        assert status == (404 if who.startswith("other") else 401)
        assert (await ask(gateway, path, name, *BY["own"], **said(path, "two")))[0] == 200
        closed = await gateway.client("POST", "/v1/episodes/e1/close", b"", key="sk-own")
        assert closed[0] == 200
    (made,) = gateway.recorder.trajectories
    assert len(made["turns"]) == 2
