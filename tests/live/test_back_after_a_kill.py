"""Main or its model server is killed: who answers next, and what do clients hear meanwhile?"""

import contextlib
import json
import os
import signal

import pytest
from tests.support import Client, Process, alive, until

pytestmark = [pytest.mark.live]
ASKED = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}


@contextlib.contextmanager
def running(data):
    process = Process.start(data, gateway=True)
    try:
        process.until_ready(120)
        yield process
    finally:
        process.destroy()


def server_of(data):
    return json.loads((data / "serve" / "server.json").read_text())["pid"]


async def answered(process, seconds=180):
    """Ask until there is an answer; the statuses on the way."""
    statuses = []
    async with Client(process.info["gateway_url"], process.info["gateway_key"]) as client:

        async def ok():
            statuses.append((await client("POST", "/v1/chat/completions", ASKED))[0])
            return statuses[-1] == 200

        await until(ok, seconds, "nobody answers")
    return set(statuses)


@pytest.mark.long
async def test_a_killed_main_finds_its_model_server_and_a_killed_model_server_is_replaced(
    tmp_path, bases
):
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "bases").symlink_to(bases)
    with running(data) as first:
        await answered(first)
        server = server_of(data)
        first.kill()
        assert alive(server)
        with running(data) as second:
            assert await answered(second) <= {200, 503}
            assert server_of(data) == server
            assert alive(server)
            os.kill(server, signal.SIGKILL)
            assert await answered(second) <= {200, 503}
            other = server_of(data)
            assert other != server
            assert second.stop() == 0, second.log.read_text()
            assert not alive(other)
