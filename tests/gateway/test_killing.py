"""`kill -9` of the gateway under load: what do clients see, and is an acknowledged end still true?"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.gateway.bus import nats, published
from tests.gateway.conftest import assistant, model, plan, user
from tests.gateway.scripted import Scripted
from tests.support import Client, alive, family, until
from upswing.adapters.nats.permissions import OPERATOR

pytestmark = pytest.mark.live
KILLS = 5
AWAY = (OSError, asyncio.IncompleteReadError, TimeoutError)


class Gateway:
    """The process, always on the same port."""

    def __init__(self, setup):
        self.setup = setup

    def start(self):
        script = Path(__file__).with_name("process.py")
        self.popen = subprocess.Popen(
            [sys.executable, str(script), json.dumps(self.setup)], stdout=subprocess.PIPE
        )
        assert self.popen.stdout.readline().startswith(b"http://"), "it did not start"
        self.popen.stdout.close()

    def kill(self):
        relatives = family(self.popen.pid)
        os.kill(self.popen.pid, signal.SIGKILL)
        self.popen.wait(10)
        return relatives


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
                async with Client(self.url) as client:
                    while not self.ending:
                        await self._episode(client)
            await asyncio.sleep(0.02)  # a client's back-off

    async def _episode(self, client):
        self.episodes += 1
        name = f"e{self.episodes}"
        messages = [user(f"task {name}")]
        for turn in ("first", "second"):
            body = {"model": "m", "messages": messages}
            status, answer = await self._ask(
                client, "/v1/chat/completions", body, (f"X-Episode-Id: {name}",)
            )
            said = answer["choices"][0]["message"]["content"]
            messages = [*messages, assistant(said), user(turn)]
        status, answer = await self._ask(client, f"/v1/episodes/{name}/close", b"")
        if status == 200:
            assert answer["recorded"], answer
            self.acknowledged.add(answer["trajectory_id"])

    async def _ask(self, client, path, body, headers=()):
        status, answer = await asyncio.wait_for(client("POST", path, body, headers=headers), 20)
        self.statuses[path.rpartition("/")[2], status] = (
            self.statuses.get((path.rpartition("/")[2], status), 0) + 1
        )
        return status, answer


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def test_kills_under_load_cost_a_moment_and_nothing_that_was_acknowledged(tmp_path):
    async with nats(tmp_path / "nats") as server, Scripted() as backend:
        port = free_port()
        made = msgspec.to_builtins(plan(model("base", backend.url)))
        gateway = Gateway({
            "nats_url": server.url(OPERATOR), "port": port, "plan": made,
            "spool": str(tmp_path / "spool"),
        })  # fmt: skip
        await asyncio.to_thread(gateway.start)
        load = Load(f"http://127.0.0.1:{port}")
        loading = asyncio.create_task(load.run(8))
        try:
            for _ in range(KILLS):
                before = len(load.acknowledged)
                await until(lambda before=before: len(load.acknowledged) >= before + 20, 60)
                assert not loading.done(), loading
                relatives = gateway.kill()
                await until(lambda r=relatives: not any(map(alive, r)), 10, "its keeper lives on")
                await asyncio.to_thread(gateway.start)
            before = len(load.acknowledged)
            await until(lambda: len(load.acknowledged) >= before + 20, 60)
            load.ending = True
            await loading
        finally:
            load.ending = True
            gateway.kill()
        # An episode whose gateway died before its end is not known to the next one.
        assert set(load.statuses) <= {("completions", 200), ("close", 200), ("close", 404)}
        assert load.statuses.get(("close", 404), 0) <= 8 * KILLS

        async def there():
            kept = await published(server.url(OPERATOR))
            return load.acknowledged <= {each["trajectory_id"] for each in kept}

        await until(there, 30, "what was acknowledged is not on the bus")
        kept = await published(server.url(OPERATOR))
        assert len(kept) == len({each["trajectory_id"] for each in kept})
        for each in kept:
            if each["trajectory_id"] in load.acknowledged:
                assert 1 <= len(each["turns"]) <= 2
