"""Does an acknowledgement outlive `kill -9`? Kills under load, then every promise is checked."""

import asyncio
import contextlib
import json
import os
import random
import signal
import time

import nats
import pytest
from tests.support import Client, alive, family, on_bus, raw, rows, small, until

from upswing.contracts.topics import TRAJECTORY

pytestmark = pytest.mark.live
AWAY = (OSError, asyncio.IncompleteReadError, TimeoutError, nats.errors.Error)
TARGETS = ["main", "nats-server", "everything"]


class Load:
    """Clients that send all the time, and remember what was acknowledged to them."""

    def __init__(self, process):
        self.process = process
        self.acknowledged = {"http": {}, "nats": {}}
        self.sent = {}
        self._ending = False

    def heard(self):
        return [len(each) for each in self.acknowledged.values()]

    async def run(self):
        async with asyncio.TaskGroup() as group:
            for _ in range(2):
                group.create_task(self._send("http", self._http))
                group.create_task(self._send("nats", self._nats))

    def end(self):
        self._ending = True

    async def _send(self, door, connect):
        """One trajectory after the other; each again and again, same id, until it is acknowledged."""
        waiting = None
        while not self._ending or waiting:
            try:
                async with connect(self.process.info) as send:
                    while not self._ending or waiting:
                        if waiting is None:
                            waiting = small(f"by {door}, number {len(self.sent)}")
                            self.sent[waiting["trajectory_id"]] = waiting
                        await send(raw(waiting))
                        self.acknowledged[door][waiting["trajectory_id"]] = waiting
                        waiting = None
            except AWAY:
                await asyncio.sleep(0.05)  # a client's back-off, as every client has one

    @contextlib.asynccontextmanager
    async def _http(self, info):
        async with Client(info["http_url"], info["key"]) as client:

            async def send(body):
                status, answer = await asyncio.wait_for(client("POST", "/v1/trajectories", body), 5)
                assert status in {202, 503}, (status, answer)
                if status == 503:
                    raise TimeoutError

            yield send

    @contextlib.asynccontextmanager
    async def _nats(self, info):
        url = info["nats_urls"]["agent"]
        async with on_bus(url, allow_reconnect=False, connect_timeout=1) as client:
            js = client.jetstream(timeout=2)

            async def send(body):
                await js.publish(TRAJECTORY, body)

            yield send


async def while_it_gets_less(left, what, seconds=60):
    """Wait for zero. After so many kills much may be left; nothing is lost while it becomes less."""
    least, since = left(), time.monotonic()
    while least:
        await asyncio.sleep(0.1)
        if (now := left()) < least:
            least, since = now, time.monotonic()
        assert time.monotonic() < since + seconds, f"{what}: {least}"


@pytest.mark.parametrize("each", [2, pytest.param(10, marks=pytest.mark.slow)])
async def test_kills_under_load_lose_nothing_that_was_acknowledged(start, data, each):
    order = TARGETS * each
    random.Random(5).shuffle(order)
    process = await asyncio.to_thread(start)
    load = Load(process)
    sending = asyncio.create_task(load.run())
    for target in order:
        before = load.heard()
        await until(
            lambda before=before: all(
                now >= then + 10 for now, then in zip(load.heard(), before, strict=True)
            ),
            30,
            f"the clients got no answers after a kill; load: {sending}",
        )
        assert not sending.done(), sending
        bus = process.nats_pid
        assert alive(bus)
        if target == "nats-server":
            os.kill(bus, signal.SIGKILL)
            await until(lambda bus=bus: load.process.nats_pid not in {None, bus}, 30, "no new bus")
            assert process.popen.poll() is None, "the loop died with its bus"
            continue
        relatives = family(process.popen.pid)
        assert bus in relatives
        if target == "everything":
            process.kill_group()
        else:
            process.kill()
        await until(
            lambda relatives=relatives: not any(map(alive, relatives)),
            10,
            "a child outlived its parent",
        )
        process = load.process = await asyncio.to_thread(start)
    load.end()
    await sending

    promised = load.acknowledged["http"] | load.acknowledged["nats"]
    known = "SELECT trajectory_id, body FROM trajectories"
    await while_it_gets_less(
        lambda: len(promised.keys() - {row[0] for row in rows(data, known)}),
        "what was acknowledged is not stored",
    )
    relatives = family(process.popen.pid)
    assert process.stop() == 0
    assert not any(map(alive, relatives))
    stored = rows(data, known)
    assert len(stored) == len({row[0] for row in stored}), "stored twice"
    assert {row[0] for row in stored} <= load.sent.keys()
    for trajectory_id, body in stored:
        assert json.loads(body) == load.sent[trajectory_id]
    assert rows(data, "SELECT count(*) FROM dead") == [(0,)]
    assert min(load.heard()) >= 300
