"""The gateway as it is run: by its command or by a loop, with its own role on the bus, killed and drained."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tests.conftest import running_loop
from tests.gateway.bus import GATEWAY, nats, published
from tests.gateway.conftest import assistant, lease, model, plan, user
from tests.gateway.process import COMMAND, KEY, TOKEN, Command, refused, surroundings
from tests.gateway.scripted import Misbehaving, Scripted, chunk, sse
from tests.gateway.talking import raw, request, unchunked
from tests.support import Client, alive, family, files_with, on_bus, until

from upswing.contracts.topics import FEEDBACKS
from upswing.contracts.traffic import write_plan
from upswing.errors import Misuse
from upswing.gateway.process import GatewayChildEnv, GatewaySupervisor
from upswing.infra.nats.permissions import OPERATOR
from upswing.infra.nats.traffic import make_buckets

pytestmark = pytest.mark.live
KILLS = 3
AWAY = (OSError, asyncio.IncompleteReadError, TimeoutError)


@contextlib.asynccontextmanager
async def board(server):
    """Writes plans, as the controller does."""
    async with on_bus(server.url(OPERATOR)) as client:
        bucket = await client.jetstream().key_value("rl_traffic")

        async def write(made):
            await bucket.put("plan", write_plan(made))

        yield write


def episode(name):
    return (f"X-Episode-Id: {name}",)


# --- the plan ------------------------------------------------------------------------------------


async def test_a_plan_is_followed_from_before_the_start_and_episodes_are_durable(tmp_path):
    async with nats(tmp_path / "nats") as server, Scripted() as backend, board(server) as write:
        base, new = model("base", backend.url), model("new", backend.url)
        await write(plan(base))
        async with Command(tmp_path / "gateway", server) as gateway:
            assert (await gateway.health())["shares"] == {"base": 1.0}
            assert (await gateway.chat(user("hi"), headers=episode("e1")))[0] == 200
            await write(plan(base, (new, 1.0), version=2, lease_until=lease(3600)))

            async def follows():
                return (await gateway.health())["shares"].get("new") == 1.0

            await until(follows, 60)
            await gateway.chat(user("hello"), headers=episode("e2"))
            await gateway.chat(user("hi"), assistant("…"), user("go on"), headers=episode("e1"))
            assert [r["body"]["model"] for r in backend.requests] == ["base", "new", "base"]
            status, closed = await gateway.close("e2")
            assert (status, closed["state"]) == (200, "published")
            word = {"metric_name": "ok", "value": True, "episode_id": "e2"}
            assert (await gateway.client("POST", "/feedback", word))[0] == 200
        (kept,) = await published(server.url(OPERATOR))
        assert kept["trajectory_id"] == closed["trajectory_id"]
        assert kept["agent_id"] == "tester"
        assert len(await published(server.url(OPERATOR), FEEDBACKS)) == 1
        told = gateway.log.read_text()
        assert "RL model configuration: {'enabled': True" in told
        assert "'baseline': 'base'" in told
        assert files_with(tmp_path / "gateway", KEY, TOKEN) == []


async def test_the_gateways_role_reads_the_plan_and_cannot_write_it(tmp_path):
    async with nats(tmp_path) as server, board(server) as write, Scripted() as backend:
        await write(plan(model("base", backend.url)))
        errors = []
        forged = write_plan(plan(model("evil", "http://evil"), version=99, fence=99))
        async with on_bus(server.url(GATEWAY), errors=errors) as own:
            js = own.jetstream(timeout=0.3)
            bucket = await js.key_value("rl_traffic")
            before = await bucket.get("plan")
            for wish in (
                lambda: bucket.put("plan", forged),
                lambda: bucket.delete("plan"),
                lambda: js.purge_stream("KV_rl_traffic"),
                lambda: js.delete_stream("KV_rl_traffic"),
                lambda: js.create_key_value(bucket="rl_other"),
                lambda: js.get_msg("RL_TRAJECTORIES", 1),
            ):
                errors.clear()
                with pytest.raises(Exception):  # noqa: B017 - nats-py has a name for each
                    await wish()
                await until(lambda: any("ermissions" in e for e in errors), 60, "it was allowed")
            # A consumer delivers where it is told to, with nobody's permissions: it stores nothing.
            await own.subscribe("$KV.rl_traffic.plan")
            await own.publish("$KV.rl_pins.x", forged)
            push = {"name": "h", "deliver_subject": "$KV.rl_traffic.plan", "ack_policy": "none"}
            wish = json.dumps({"stream_name": "KV_rl_pins", "config": push}).encode()
            await own.request("$JS.API.CONSUMER.CREATE.KV_rl_pins.h", wish, timeout=60)
            heard = await own.subscribe("$KV.rl_traffic.plan")
            with contextlib.suppress(Exception):
                await heard.next_msg(timeout=0.5)
            after = await bucket.get("plan")
            assert (after.value, after.revision) == (before.value, before.revision)


async def test_other_shares_reach_new_episodes_while_a_stream_of_the_old_ones_goes_on(tmp_path):
    go_on = asyncio.Event()

    class Slow(Misbehaving):
        async def slow(self, request, reader, writer):
            await self.stream(writer, [sse(chunk({"content": "one"}), done=False)], end=False)
            await go_on.wait()
            last = [sse(chunk({"content": "two"}), done=False), sse(chunk({}, "stop"))]
            for piece in last:
                writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            writer.write(b"0\r\n\r\n")
            await writer.drain()
            return True

    async with (
        nats(tmp_path / "nats") as server,
        Slow("slow") as old,
        Scripted() as fresh,
        board(server) as write,
    ):
        base, new = model("base", old.url), model("new", fresh.url)
        await write(plan(base))
        async with Command(tmp_path / "gateway", server) as gateway:
            reader, writer = await asyncio.open_connection("127.0.0.1", gateway.client.port)
            body = {"model": "m", "messages": [user("hi")], "stream": True}
            writer.write(request(body, f"Authorization: Bearer {KEY}", *episode("e1")))
            seen = await asyncio.wait_for(reader.readuntil(b"one"), 300)
            await write(plan(base, (new, 1.0), version=2, operator=True))

            old.how, names = "well", map(str, range(1000))

            async def answered_by_the_new_one():
                await gateway.chat(user("hi"), headers=episode(f"n{next(names)}"))
                return fresh.requests

            await until(answered_by_the_new_one, 60)
            before = len(old.requests)
            await gateway.chat(user("hi"), headers=episode("later"))
            assert (len(old.requests), len(fresh.requests)) == (before, 2)
            go_on.set()
            whole = seen + await asyncio.wait_for(reader.read(), 300)
            writer.close()
            events = unchunked(whole.partition(b"\r\n\r\n")[2])
            assert b"one" in events
            assert b"two" in events
            assert events.endswith(b"data: [DONE]\n\n")


# --- death ---------------------------------------------------------------------------------------


class Load:
    """Agents of two turns each, that close their episodes and remember what they were told."""

    def __init__(self, url):
        self.url = url
        self.acknowledged, self.statuses = set(), {}
        self.episodes = 0
        self.ending = False

    async def run(self, agents):
        async with asyncio.TaskGroup() as group:
            for _ in range(agents):
                group.create_task(self._agent())

    async def _agent(self):
        while not self.ending:
            with contextlib.suppress(*AWAY):
                async with Client(self.url, KEY) as client:
                    while not self.ending:
                        await self._episode(client)
            await asyncio.sleep(0.02)  # a client's back-off

    async def _episode(self, client):
        self.episodes += 1
        name = f"e{self.episodes}"
        messages = [user(f"task {name}")]
        for turn in ("first", "second"):
            body = {"model": "m", "messages": messages}
            status, answer = await self._ask(client, "/v1/chat/completions", body, episode(name))
            said = answer["choices"][0]["message"]["content"]
            messages = [*messages, assistant(said), user(turn)]
        status, answer = await self._ask(client, f"/v1/episodes/{name}/close", b"")
        if status == 200:
            assert answer["recorded"], answer
            self.acknowledged.add(answer["trajectory_id"])

    async def _ask(self, client, path, body, headers=()):
        status, answer = await asyncio.wait_for(client("POST", path, body, headers=headers), 300)
        key = path.rpartition("/")[2], status
        self.statuses[key] = self.statuses.get(key, 0) + 1
        return status, answer


def child(folder, server, **more):
    """A gateway as a loop starts it."""
    told = GatewayChildEnv(
        server.url(GATEWAY), "http://127.0.0.1:1", KEY, {"TENSORZERO_ADMIN_TOKEN": TOKEN, **more}
    )
    folder.mkdir(exist_ok=True)
    return GatewaySupervisor(folder, told, port=0)


@pytest.mark.long
async def test_kills_under_load_cost_a_moment_and_nothing_that_was_acknowledged(tmp_path):
    async with nats(tmp_path / "nats") as server, Scripted() as backend, board(server) as write:
        await write(plan(model("base", backend.url)))
        gateway = child(tmp_path / "data", server)
        load = Load(await gateway.start())
        loading = asyncio.create_task(load.run(8))
        try:
            for kill in range(1, KILLS + 1):
                before, pid = len(load.acknowledged), gateway.pid
                await until(lambda before=before: len(load.acknowledged) >= before + 20, 60)
                assert not loading.done(), loading
                relatives = family(pid)
                os.kill(pid, signal.SIGKILL)
                await until(lambda r=relatives: not any(map(alive, r)), 60, "its recorder lives on")
                await until(lambda p=pid: gateway.pid != p, 60, "it was not started anew")
                assert gateway.restarts == kill
            before = len(load.acknowledged)
            await until(lambda: len(load.acknowledged) >= before + 20, 60)
            load.ending = True
            await loading

            async def there():
                kept = {each["trajectory_id"] for each in await published(server.url(OPERATOR))}
                return load.acknowledged <= kept

            await until(there, 60, "what was acknowledged is not on the bus")
        finally:
            load.ending = True
            await gateway.stop()
        # An episode whose gateway died before its end is not known to the next one.
        assert set(load.statuses) <= {("completions", 200), ("close", 200), ("close", 404)}
        assert load.statuses.get(("close", 404), 0) <= 8 * KILLS
        kept = [each["trajectory_id"] for each in await published(server.url(OPERATOR))]
        assert len(kept) == len(set(kept))


@pytest.mark.long
async def test_a_gateway_that_is_told_to_end_lets_answers_end_and_records_what_is_open(tmp_path):
    go_on = asyncio.Event()

    class Slow(Scripted):
        async def answer(self, request, reader, writer):
            await go_on.wait()
            return await super().answer(request, reader, writer)

    async with nats(tmp_path / "nats") as server, Slow() as backend, board(server) as write:
        await write(plan(model("base", backend.url)))
        async with Command(tmp_path / "gateway", server) as gateway:
            asked = asyncio.create_task(gateway.chat(user("hi"), headers=episode("e1")))
            await until(lambda: backend.requests, 60)
            gateway.popen.terminate()

            async def closed():
                with contextlib.suppress(ConnectionRefusedError):
                    _, writer = await asyncio.open_connection("127.0.0.1", gateway.client.port)
                    writer.close()
                    return False
                return True

            await until(closed, 60, "it still takes connections")
            go_on.set()
            assert (await asked)[0] == 200
            assert await asyncio.to_thread(gateway.popen.wait, 300) == 0
            (kept,) = await published(server.url(OPERATOR))
            assert kept["metadata"]["episode_id"] == "e1"
            async with on_bus(server.url(OPERATOR)) as client:
                tally = await client.jetstream().key_value("rl_tally")
                (instance,) = await tally.keys()
                counts = json.loads((await tally.get(instance)).value)
                assert counts["rollout-1"]["base"]["requests"] == 1


async def test_a_gateway_ends_with_the_loop_that_started_it(tmp_path):
    script = """
import asyncio, sys
from pathlib import Path
from upswing.gateway.process import GatewayChildEnv, GatewaySupervisor
async def main():
    env = GatewayChildEnv(sys.argv[2], "http://127.0.0.1:1", "k")
    child = GatewaySupervisor(Path(sys.argv[1]), env, port=0)
    print(await child.start(), flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""
    async with nats(tmp_path / "nats") as server, board(server) as write:
        await write(plan(model("base", "http://127.0.0.1:1")))
        parent = subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path), server.url(GATEWAY)],
            stdout=subprocess.PIPE,
        )
        try:
            with parent.stdout:
                line = await asyncio.to_thread(parent.stdout.readline)
            assert line.startswith(b"http://127.0.0.1:")
            relatives = family(parent.pid)
            assert len(relatives) == 2
        finally:
            parent.kill()
            parent.wait(300)
        await until(lambda: not any(map(alive, relatives)), 60, "it lives on")


async def test_what_is_wrong_with_a_child_is_its_own_sentence_and_its_log_is_ours(tmp_path, caplog):
    caplog.set_level("INFO")
    async with nats(tmp_path / "nats") as server, board(server) as write:
        await write(plan(model("base", "http://127.0.0.1:1")))
        with pytest.raises(Misuse, match="USE_RL_MODEL is 'perhaps': say true or false"):
            await child(tmp_path / "data", server, USE_RL_MODEL="perhaps").start()
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            with pytest.raises(Misuse, match="--gateway-port"):
                await GatewaySupervisor(
                    tmp_path, GatewayChildEnv("nats://b:1", "http://l", "k"), port=port
                ).start()
        gateway = child(tmp_path / "data", server, USE_RL_MODEL="off")
        await gateway.start()
        await gateway.stop()
        (line,) = [r for r in caplog.records if "RL model configuration" in r.getMessage()]
        assert (line.name, line.levelname) == ("upswing.gateway.gateway", "INFO")
        assert "'enabled': False" in line.getMessage()


LISTED = [
    {"model_id": "agent-rl-v4", "state": "rolled_back"},
    {"model_id": "agent-rl-v3", "state": "deployed"},
    {"model_id": "agent-rl-v2", "state": "retired"},
    {"model_id": "agent-rl-v1", "state": "failed"},
    {"model_id": "tiny", "state": "base"},
]


@contextlib.contextmanager
def a_loop(*rows):
    """A labelled double of the loop: it lists these models, and knows no keys."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            said = json.dumps({"models": rows, "keys": []}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.long
async def test_a_pin_is_refused_at_the_first_start_and_means_the_base_later(tmp_path, caplog):
    async with nats(tmp_path / "nats") as server, Scripted() as backend, board(server) as write:
        base, new = model("tiny", backend.url), model("agent-rl-v3", backend.url)
        await write(plan(new, base=base, trained=True))
        with a_loop(*LISTED) as url:
            for version, why in (
                ("v99", "no model is called so"),
                ("v4", "agent-rl-v4 is rolled_back"),
                ("v1", "agent-rl-v1 is failed"),
            ):
                env = surroundings(
                    server,
                    AGENTGYM_RL_URL=url,
                    AGENTGYM_RL_API_KEY=f"gwl_{KEY}",
                    RL_MODEL_VERSION=version,
                )
                code, said = await asyncio.to_thread(refused, env=env)
                there = "agent-rl-v3 (deployed), agent-rl-v2 (retired), tiny (base)"
                assert code == 1
                assert said.splitlines()[-1] == (
                    f"upswing: RL_MODEL_VERSION is '{version}', and {why}. There are: {there}."
                )
            told = GatewayChildEnv(server.url(GATEWAY), url, KEY, {"RL_MODEL_VERSION": "v3"})
            (tmp_path / "data").mkdir()
            gateway = GatewaySupervisor(tmp_path / "data", told, port=0)
            try:
                async with Client(await gateway.start()) as client:
                    assert (await client("GET", "/health"))[1]["shares"] == {"agent-rl-v3": 1.0}
                    await write(plan(base, version=2, withdrawn=("agent-rl-v3",)))

                    async def base_answers():
                        told = (await client("GET", "/health"))[1]
                        return told["shares"] == {"tiny": 1.0} and "withdrawn" in told["alert"]

                    await until(base_answers, 60)
                    await until(lambda: "agent-rl-v3 is withdrawn" in caplog.text, 60)
                    os.kill(gateway.pid, signal.SIGKILL)

                    async def answers_again():
                        with contextlib.suppress(*AWAY):
                            return gateway.restarts == 1 and await base_answers()

                    await until(answers_again, 60)
            finally:
                await gateway.stop()


@pytest.mark.long
async def test_a_restart_that_the_system_refuses_is_tried_again(tmp_path, monkeypatch, caplog):
    async with nats(tmp_path / "nats") as server, board(server) as write:
        await write(plan(model("base", "http://127.0.0.1:1")))
        gateway = child(tmp_path / "data", server)
        url = await gateway.start()
        try:
            with monkeypatch.context() as broken:
                broken.setattr(sys, "executable", str(tmp_path / "nowhere"))
                os.kill(gateway.pid, signal.SIGKILL)
                await until(lambda: "No such file" in caplog.text, 60, "it does not say so")
            async with Client(url) as client:
                assert (await asyncio.wait_for(client("GET", "/health"), 300))[0] == 200
        finally:
            await gateway.stop()


# --- beside a loop -------------------------------------------------------------------------------


async def test_beside_a_loop_its_data_directory_says_everything(data):
    async with running_loop(data) as loop, Scripted() as backend:
        secrets = json.loads((data / "secrets.json").read_text())
        await make_buckets(loop.bus)
        bucket = await loop.bus.js.key_value("rl_traffic")
        made = plan(model("base", backend.url), fence=1000)
        await bucket.put("plan", write_plan(made))
        popen = subprocess.Popen(
            [*COMMAND, "--port", "0", "--data", str(data)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        try:
            line = (await asyncio.to_thread(popen.stdout.readline)).decode()
            async with Client(line.rpartition(" ")[2].strip()) as ask:
                chat = {"model": "m", "messages": [user("hi")]}
                for key, status in ((None, 401), ("guess", 401), (secrets["gateway_key"], 200)):
                    assert (await ask("POST", "/v1/chat/completions", chat, key=key))[0] == status
                told = await ask("GET", "/admin/traffic", key=secrets["admin_token"])
                assert told[1]["traffic"] == {"base": 100.0}
                assert (await ask("GET", "/admin/traffic", key=secrets["gateway_key"]))[0] == 401
                path = "/api/admin/training/status"
                status, told = await ask("GET", path, key=loop.running.key)
                assert (status, told["readiness"]["ready"]) == (200, False)
        finally:
            popen.terminate()
            assert await asyncio.to_thread(popen.wait, 300) == 0
            popen.stdout.close()
        assert files_with(data / "gateway-spool", b"trajectory_id") == []


# --- bad input -----------------------------------------------------------------------------------


async def test_bad_input_is_a_clear_error_and_a_counter_and_traffic_goes_on(tmp_path):
    async with (
        nats(tmp_path / "nats") as server,
        Scripted() as good,
        Misbehaving("garbage") as bad,
        board(server) as write,
    ):
        base, broken = model("base", good.url), model("broken", bad.url)
        await write(plan(base, (broken, 0.0), operator=True))
        async with Command(tmp_path / "gateway", server, RL_FALLBACK_TO_BASE="false") as gateway:
            share = {"model_id": "base", "traffic_percentage": 1}
            key = f"Authorization: Bearer {KEY}"
            asked = {"model": "m", "messages": [user("hi")]}
            large = {"model": "m", "messages": [user("x" * 50_000_000)]}
            table = [
                (request(large, key), 413, "too_large"),
                (request({**asked, "episode_id": "a\r\nset-cookie: b=c"}, key), 400, "schema"),
                (request(asked, key, "X-Episode-Id: a", " b: c"), 400, "bad_http"),
                (request(asked, key, "X-Model-Id: nobody"), 404, "unknown_model"),
                (request(asked, "Authorization: Bearer guess"), 401, "key"),
                (
                    request(
                        share, "Authorization: Bearer guess", path="/admin/traffic", method="PUT"
                    ),
                    401,
                    "admin_token",
                ),
                (request(share, key, path="/admin/traffic", method="PUT"), 401, "admin_token"),
            ]
            for message, status, word in table:
                answer = await raw(gateway, message)
                assert answer.startswith(b"HTTP/1.1 %d " % status), (word, answer[:300])
                assert b'"error":{"message":"' in answer
                assert (await gateway.chat(user("still there?")))[0] == 200
                assert f'reason="{word}"' in (await gateway.client("GET", "/metrics"))[1]
            status, told = await gateway.chat(user("hi"), headers=("X-Model-Id: broken",))
            assert (status, told["error"]["code"]) == (502, "garbage")
            assert 'fault="garbage"' in (await gateway.client("GET", "/metrics"))[1]
            assert (await gateway.chat(user("and after all that?")))[0] == 200


async def test_a_gateway_that_strangers_could_use_does_not_start(tmp_path):
    env = {"NATS_URL": "nats://127.0.0.1:1"}
    code, said = await asyncio.to_thread(refused, "--host", "0.0.0.0", env=env)
    assert (code, "No client's key is set" in said) == (1, True)
    weak = {**env, "UPSWING_GATEWAY_KEYS": f"tester={KEY}", "TENSORZERO_ADMIN_TOKEN": "admin"}
    code, said = await asyncio.to_thread(refused, "--host", "0.0.0.0", env=weak)
    assert (code, said.startswith("upswing: TENSORZERO_ADMIN_TOKEN is too weak")) == (1, True)
    code, said = await asyncio.to_thread(refused, "--data", str(tmp_path), env={"NATS_URL": ""})
    assert (code, "There is no bus" in said) == (1, True)
