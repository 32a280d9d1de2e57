"""A server of the user's own behind a real loop: a key, a toml, `upswing up`, and it answers."""

import asyncio
import json

import pytest
from tests.gateway.profiles import Profile, Profiled
from tests.support import Client, Process, until

pytestmark = pytest.mark.live
KEY = "sk-theirs"
BASE = "org/theirs"
FEW = Profile(listing=False, logprobs=False, token_ids=False, tools=False, key=KEY, strict=True)
"""A strict server with a key and without a list, which has nothing but chats."""
ASKED = {
    "model": "agent",
    "messages": [{"role": "user", "content": "hi"}],
    "metadata": {"session_id": "s"},
    "top_k": 3,
}


@pytest.mark.long
async def test_two_steps_and_agents_are_answered_by_a_strict_server_without_a_list(tmp_path):
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    async with Profiled(FEW, BASE) as server, Profiled(FEW, "other") as other:
        config = f'[serve]\nurl = "{server.url}"\n\n[train]\nbase_model = "{BASE}"\n'
        (data / "upswing.toml").write_text(config)
        keys = {"A": f"{server.url}={KEY}", "B": f"{other.url}={KEY}"}
        env = {f"UPSWING_BACKEND_KEY_{name}": value for name, value in keys.items()}
        process = Process.start(data, env=env, gateway=True)
        try:
            info = await asyncio.to_thread(process.until_ready, 200)
            await answered(info, server)
            await registered(info, data, other)
            await untrained(info)
        finally:
            process.destroy()
    kept = (data / "backends.json").read_text()
    assert {place.rpartition("#")[2] for place in json.loads(kept)} == {BASE, "other"}
    assert KEY not in kept


async def answered(info, server):
    """Once there is a plan, every answer is the server's, and it hears nothing that it does not know."""
    async with Client(info["gateway_url"], info["gateway_key"]) as gateway:

        async def answers():
            return (await gateway("POST", "/v1/chat/completions", ASKED))[0] == 200

        await until(answers, 200, "the gateway did not answer")
        server.minded = []
        status, answer = await gateway("POST", "/v1/chat/completions", ASKED)
    assert (status, answer["choices"][0]["message"]["content"]) == (200, "hi")
    assert server.minded == []
    assert {each["headers"]["authorization"] for each in server.chats()} == {f"Bearer {KEY}"}


async def registered(info, data, other):
    token = json.loads((data / "secrets.json").read_text())["admin_token"]
    wish = {"model_id": "hosted", "backend": other.url, "name": "other"}
    async with Client(info["gateway_url"], token) as admin:
        status, made = await admin("POST", "/admin/models", wish)
        assert (status, made["server"]["probed"], made["base_model"]) == (201, True, "other"), made
        assert made["server"]["abilities"]["strict"]
        status, told = await admin(
            "POST", "/admin/models", wish | {"model_id": "no", "name": "no-such"}
        )
        assert (status, "There is no no-such" in str(told)) == (422, True)
        unasked = wish | {"model_id": "unasked", "backend": "http://127.0.0.1:9/v1", "probe": False}
        assert (await admin("POST", "/admin/models", unasked))[0] == 201


async def untrained(info):
    async with Client(info["http_url"], info["key"]) as loop:
        for base in ({}, {"base_model": "hosted"}):
            status, told = await loop("POST", "/training/start", {"algorithm": "grpo", **base})
            assert (status, "upswing export --layout sft" in str(told)) == (422, True), told
