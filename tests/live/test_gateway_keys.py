"""Does a key that `upswing keys` makes open the gateway, and does a revoked one close it?"""

import asyncio
import contextlib
from hashlib import sha256
from uuid import uuid4

import pytest
from tests.conftest import running_loop, served_by
from tests.gateway.bus import GATEWAY, nats
from tests.gateway.conftest import gateway_options, model, now, plan, user
from tests.gateway.scripted import Scripted
from tests.support import Client, close_episode, files_with, until

from upswing.contracts.traffic import write_plan
from upswing.errors import Transient
from upswing.gateway.admin_client import AdminClient
from upswing.gateway.wiring import GatewayIntervals, GatewayProcess

pytestmark = pytest.mark.live
CHAT = "/v1/chat/completions"
ASKED = {"model": "m", "messages": [user("hi")]}


async def made(loop, name, scope):
    """A new key and its id."""
    async with Client(loop.running.http_url, loop.running.key) as ask:
        _, key = await ask("POST", "/v1/keys", {"name": name, "scope": scope})
        return key["key"], key["key_id"]


async def revoked(loop, key_id):
    async with Client(loop.running.http_url, loop.running.key) as ask:
        assert (await ask("DELETE", f"/v1/keys/{key_id}"))[0] == 204


async def opens(gateway, key, status=200):
    """Wait until the gateway answers so to this key."""

    async def told():
        return (await gateway("POST", CHAT, ASKED, key=key))[0] == status

    await until(told, 60, f"it never answers {status}")


@pytest.mark.long
async def test_keys_of_agents_and_operators_open_the_gateway_until_they_are_revoked(data):
    async with (
        Scripted() as backend,
        running_loop(data, gateway_port=0, settings=served_by(backend.url)) as loop,
    ):
        bucket = await loop.bus.js.key_value("rl_traffic")
        await bucket.put("plan", write_plan(plan(model("base", backend.url), fence=1000)))
        agent, agent_id = await made(loop, "ann's agent", "agent")
        operator, _ = await made(loop, "bob", "operator")
        reader, _ = await made(loop, "carl", "reader")
        async with Client(loop.running.gateway_url) as gateway:
            await opens(gateway, agent)
            await opens(gateway, operator)
            for key in (reader, "guess", None):
                assert (await gateway("POST", CHAT, ASKED, key=key))[0] == 401
            await gateway("POST", CHAT, ASKED, key=agent, headers=("X-Episode-Id: e1",))
            for key, status in ((operator, 404), (agent, 200)):
                got, closed = await close_episode(gateway, "e1", key=key)
                assert got == status, "an episode is its owner's"
            stored = await until(lambda: loop.store.trajectory(closed["trajectory_id"]), 60)
            assert b'"agent_id":"ann\'s agent"' in stored.admitted.body
            await revoked(loop, agent_id)
            await opens(gateway, agent, 401)
            assert (await gateway("POST", CHAT, ASKED, key=operator))[0] == 200
            assert (await gateway("POST", CHAT, ASKED, key=loop.running.gateway_key))[0] == 200
    assert files_with(data, agent, operator, reader) == []


class Ring:
    """A labelled double of the loop's list."""

    def __init__(self, **keys):
        self.known = {sha256(key.encode()).digest(): name for key, name in keys.items()}
        self.away, self.asked = False, 0

    async def fetch_keys(self):
        self.asked += 1
        if self.away:
            raise Transient("The loop is away.")
        return self.known


@contextlib.asynccontextmanager
async def gateway_with(tmp_path, ring, *, believed=3600.0):
    async with nats(tmp_path) as server, Scripted() as backend:
        process = GatewayProcess(
            nats_url=server.url(GATEWAY),
            instance="one",
            clock=now,
            new_id=uuid4,
            options=gateway_options(
                plan(model("base", backend.url)),
                admin_client=ring,
                keys_from_loop=True,
                client_keys={"mine": "me"},
            ),
            intervals=GatewayIntervals(keys=0.02, keys_expire=believed),
        )
        url = await process.start(port=0)
        try:
            async with Client(url) as client:
                yield client
        finally:
            await process.stop()


async def test_while_the_loop_is_away_keys_work_on(tmp_path, caplog):
    ring = Ring(ann="ann")
    async with gateway_with(tmp_path, ring) as gateway:
        await opens(gateway, "ann")
        ring.away, before = True, ring.asked
        await until(lambda: ring.asked > before + 5)
        assert (await gateway("POST", CHAT, ASKED, key="ann"))[0] == 200
        assert caplog.text.count("keys: The loop is away.") == 1
        ring.away, ring.known = False, {}
        await opens(gateway, "ann", 401)


async def test_keys_that_nobody_vouches_for_any_more_are_not_believed_for_ever(tmp_path):
    ring = Ring(ann="ann")
    async with gateway_with(tmp_path, ring, believed=0.2) as gateway:
        await opens(gateway, "ann")
        ring.away = True
        await opens(gateway, "ann", 401)
        assert (await gateway("POST", CHAT, ASKED, key="mine"))[0] == 200


async def test_a_revocation_by_another_process_is_heard_of(data):
    async with running_loop(data) as loop:
        key, key_id = await made(loop, "ann", "agent")
        admin_client, hashed = (
            AdminClient(loop.running.http_url, loop.running.key),
            sha256(key.encode()),
        )
        assert (await admin_client.fetch_keys())[hashed.digest()].name == "ann"
        sql = "UPDATE api_keys SET revoked_us = 1 WHERE key_id = ?"
        await loop.store.database.write(lambda tx: tx.execute(sql, (key_id,)))
        assert hashed.digest() not in await admin_client.fetch_keys()
        for other in (key, "guess"):
            with pytest.raises(Transient, match="refuses the gateway's key"):
                await asyncio.wait_for(AdminClient(loop.running.http_url, other).fetch_keys(), 300)
