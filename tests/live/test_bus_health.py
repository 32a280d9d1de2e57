"""What does the bus leave open, and how do we know that it is well?"""

import asyncio
import os
import signal
from pathlib import Path

import pytest
from tests.gateway.bus import nats
from tests.serving import Listening
from tests.support import cli, freeze, on_bus, until

from upswing.contracts.topics import ROLES
from upswing.infra.nats.health import QUESTION, health_url, is_healthy
from upswing.infra.nats.permissions import OPERATOR

pytestmark = pytest.mark.live
_LISTENS = "0A"


def listening(pid):
    """(address, port) of every socket on which a process listens."""
    mine = set()
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        target = fd.readlink().as_posix()
        if target.startswith("socket:["):
            mine.add(target[8:-1])
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == _LISTENS and words[9] in mine:
                address, _, port = words[1].partition(":")
                found.add((address, int(port, 16)))
    return found


async def test_the_bus_listens_for_clients_on_the_loopback_and_nowhere_else(tmp_path):
    async with nats(tmp_path) as server:
        assert listening(server.pid) == {("0100007F", server.port)}  # 127.0.0.1


async def test_it_says_that_it_is_healthy_to_who_may_ask(tmp_path):
    async with nats(tmp_path) as server:
        assert is_healthy(server._health)
        assert not is_healthy(health_url(server.port, "a guess"))
        for role in (OPERATOR, *ROLES):
            errors = []
            async with on_bus(server.url(role), errors=errors) as client:
                await client.publish(QUESTION, b"", reply=f"_INBOX_{role}.here")
                await until(
                    lambda told=errors: any("violation" in each.lower() for each in told), 60
                )
        async with on_bus(server._health, errors=(errors := [])) as health:
            for subject in ("agent.rl.trajectory.v1", "$JS.API.INFO", "$SYS.REQ.SERVER.PING.CONNZ"):
                await health.publish(subject, b"")
            await until(lambda: len(errors) == 3, 60, f"one question and no other: {errors}")


async def test_a_bus_that_is_frozen_or_gone_is_not_well(tmp_path):
    async with nats(tmp_path) as server:
        freeze(server.pid)
        try:
            assert not await asyncio.to_thread(is_healthy, server._health, 0.3)
        finally:
            os.kill(server.pid, signal.SIGCONT)
        await until(lambda: asyncio.to_thread(is_healthy, server._health), 60)
    assert not is_healthy(server._health)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nok",
        b"-ERR 'Authorization Violation'\r\n",
        b"MSG a 1 2\r\n{}\r\n",
        b"MSG a 1 4\r\nnull\r\n",
        b"MSG a 1 x\r\n",
        b"MSG a 1 9\r\n{",
        b'MSG a 1 35\r\n{"data":{"status":"error","more":1}}\r\n',
        b"\xff\xfe" * 50,
    ],
)
async def test_whatever_else_listens_there_is_not_our_bus(answer):
    async def greet(reader, writer):
        writer.write(b"INFO {}\r\n" + answer)
        await writer.drain()
        writer.close()

    async with Listening(greet) as other:
        assert not await asyncio.to_thread(is_healthy, health_url(other.port, "x"), 0.5)


async def test_the_printed_configuration_gives_the_permissions_of_the_embedded_server(loop, data):
    def users(text):
        return [line.strip() for line in text.splitlines() if line.strip().startswith('{"user"')]

    printed = cli("nats-config", data=data).stdout.decode()
    own = (data / "nats" / "nats.conf").read_text()
    assert len(users(printed)) == len((OPERATOR, *ROLES))
    assert users(printed) == users(own)
    assert "http" not in printed
