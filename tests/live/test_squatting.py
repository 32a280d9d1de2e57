"""An episode is open at a gateway, and others know its id: can they store something else under it first?"""

import asyncio

import pytest
from tests.conftest import running_loop, served_by
from tests.gateway.conftest import model, plan, user
from tests.gateway.scripted import Scripted
from tests.live.test_gateway_keys import CHAT, made, opens
from tests.support import Client, on_bus, raw, trajectory, until

from upswing import Recorder
from upswing.contracts.ids import is_gateway_id
from upswing.contracts.topics import TRAJECTORY
from upswing.contracts.traffic import write_plan

pytestmark = pytest.mark.live
STEP = {"stepNumber": 1, "environmentState": {"a": "b"}}


async def opened(gateway, key, *headers):
    """The trajectory's id of an episode that this key opens, as its answer says it."""
    body = raw({"model": "m", "messages": [user("hi")]})
    head = (
        f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
    )
    reader, writer = await asyncio.open_connection(gateway.host, gateway.port)
    writer.write("\r\n".join([head + "".join(f"{h}\r\n" for h in headers), ""]).encode() + body)
    answer = (await reader.read()).decode()
    writer.close()
    await writer.wait_closed()
    (told,) = [line for line in answer.split("\r\n") if line.startswith("x-inference-id:")]
    return told.partition(": ")[2].rpartition(".")[0]


async def closed(gateway, key, episode_id):
    """What became of it; a busy recorder says that it has to be asked again."""
    path = f"/v1/episodes/{episode_id}/close"

    async def told():
        status, answer = await gateway("POST", path, key=key)
        assert status in {200, 503}, answer
        return answer if status == 200 else None

    return await until(told, 60)


async def stored_at(loop, key):
    return await until(lambda: loop.store.trajectory(key), 60)


async def squat_by_http(loop, key, taken_id):
    async with Client(loop.running.http_url, key) as client:
        for spelled in (taken_id, taken_id.upper(), taken_id.replace("-", "")):
            told = trajectory(trajectory_id=spelled)
            status, problem = await client.send(told)
            assert (status, problem["error"]) == (403, "not_yours"), problem
            status, lines = await client.send(raw(told) + b"\n", kind="application/x-ndjson")
            assert (status, lines[0]["result"]) == (207, "not_yours")


async def squat_in_steps(loop, key, taken_id):
    async with Client(loop.running.http_url, key) as client:
        start = {"agent_id": "b", "trajectory_id": taken_id}
        status, problem = await client("POST", "/v1/trajectories/start", start)
        assert (status, problem["error"]) == (403, "not_yours"), problem
        for end in ("steps", "end"):
            status, _ = await client("POST", f"/v1/trajectories/{taken_id}/{end}", STEP)
            assert status == 404


async def squat_by_bus(loop, _, taken_id):
    before = (await loop.store.counts())["dead"]
    async with on_bus(loop.running.nats_urls["agent"]) as agent:
        told = raw(trajectory(trajectory_id=taken_id))
        await agent.jetstream(timeout=60).publish(TRAJECTORY, told)
    await until(lambda: _more_dead(loop, before), 60)


async def squat_by_sdk(loop, key, taken_id):
    """What is refused does not hold up what the same recorder has behind it."""
    ids = [taken_id, trajectory()["trajectory_id"]]

    def record():
        recorder = Recorder(
            url=loop.running.http_url,
            key=key,
            spool=loop.folder.parent / "spool",
            new_id=iter(ids).__next__,
        )
        for _ in ids:
            with recorder.trajectory(agent_id="b", task="t") as record:
                record.turn("hi", {"type": "response"}, "ho")
        recorder.flush(60)
        recorder.close()
        return recorder.stats

    stats = await asyncio.to_thread(record)
    assert (stats.sent, stats.errors, stats.pending) == (1, 1, 0), stats
    assert await loop.store.trajectory(ids[1])


async def _more_dead(loop, before):
    letters = await loop.store.list_dead_letters(reason="not_yours")
    return (await loop.store.counts())["dead"] > before and letters


@pytest.mark.long
async def test_nobody_takes_the_id_of_an_episode_that_is_open_at_a_gateway(data):
    async with (
        Scripted() as backend,
        running_loop(data, gateway_port=0, settings=served_by(backend.url)) as loop,
    ):
        bucket = await loop.bus.js.key_value("rl_traffic")
        await bucket.put("plan", write_plan(plan(model("base", backend.url), fence=1000)))
        ann, _ = await made(loop, "ann", "agent")
        bob, _ = await made(loop, "bob", "agent")
        async with Client(loop.running.gateway_url) as gateway:
            for key in (ann, bob):
                await opens(gateway, key)
            taken_id = await opened(gateway, ann, "X-Episode-Id: e1")
            assert is_gateway_id(taken_id)
            for squat in (squat_by_http, squat_in_steps, squat_by_bus, squat_by_sdk):
                await squat(loop, bob, taken_id)
                assert await loop.store.trajectory(taken_id) is None
            assert (await closed(gateway, ann, "e1"))["trajectory_id"] == taken_id
            stored = await stored_at(loop, taken_id)
            assert stored.door == "gateway"
            assert b'"agent_id":"ann"' in stored.admitted.body
            await names_are_each_keys_own(loop, gateway, (ann, bob))
        await export_comes_back(loop, bob, stored)


async def names_are_each_keys_own(loop, gateway, keys):
    """Two keys call their episodes alike, at the gateway and by HTTP: each trajectory has an id that its source gives."""
    shared = trajectory()["trajectory_id"]
    ids = [await opened(gateway, key, f"X-Episode-Id: {shared}") for key in keys]
    assert len({*ids, shared}) == 3
    async with Client(loop.running.http_url, keys[1]) as client:
        told = trajectory(trajectory_id=shared, metadata={"episode_id": shared})
        assert (await client.send(told))[1]["result"] == "stored"
    for key, taken_id in zip(keys, ids, strict=True):
        assert (await closed(gateway, key, shared))["trajectory_id"] == taken_id
        assert (await stored_at(loop, taken_id)).door == "gateway"


async def export_comes_back(loop, agent, stored):
    """What is stored is known to whoever sends just that; an operator may bring it to another loop."""
    body = stored.admitted.body
    async with Client(loop.running.http_url, agent) as client:
        assert (await client.send(body))[1]["result"] == "known"
    async with (
        running_loop(loop.folder.parent / "other") as other,
        Client(other.running.http_url, other.running.key) as client,
    ):
        assert (await client.send(body))[1]["result"] == "stored"
