"""A NATS that is not ours: does it keep what it acknowledges, by its own word?"""

import asyncio
import contextlib
import json
import logging

import pytest
from tests.conftest import running_loop
from tests.serving import Listening
from tests.support import until

from upswing.config import Surroundings
from upswing.infra.nats.bus import Bus
from upswing.infra.nats.durability import Durability, log_durability, query_durability
from upswing.infra.nats.server import find_server_binary

pytestmark = pytest.mark.live


@contextlib.asynccontextmanager
async def foreign(folder, options="", monitored=True):
    """A server of somebody's own: its URL, and its monitoring's."""
    folder.mkdir()
    monitoring = 'http: "127.0.0.1:-1"' if monitored else ""
    (folder / "nats.conf").write_text(
        f'listen: "127.0.0.1:-1"\n{monitoring}\njetstream {{ store_dir: "{folder}/js"\n{options} }}\n'
    )
    process = await asyncio.create_subprocess_exec(
        find_server_binary(),
        "-c",
        str(folder / "nats.conf"),
        "--ports_file_dir",
        str(folder),
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        ports = await until(lambda: listening(folder / f"nats-server_{process.pid}.ports"))
        yield ports["nats"][0], (ports.get("monitoring") or [None])[0]
    finally:
        process.terminate()
        await process.wait()


def listening(path):
    with contextlib.suppress(OSError, ValueError):
        return json.loads(path.read_text())
    return None


@contextlib.asynccontextmanager
async def connected(url):
    bus = await Bus.connect(url)
    try:
        yield bus
    finally:
        await bus.close()


@pytest.mark.parametrize(
    ("options", "always", "why"),
    [
        ("sync_interval: always", True, "it runs with `sync_interval: always`"),
        ("", False, "its sync_interval is 120 s"),
        ("sync_interval: 10s", False, "its sync_interval is 10 s"),
    ],
)
async def test_a_server_says_when_it_fsyncs(tmp_path, options, always, why):
    async with foreign(tmp_path / "nats", options) as (url, monitor), connected(url) as bus:
        found = await query_durability(bus, monitor)
    assert (found.always, found.why) == (always, why)


async def test_another_servers_word_does_not_count(tmp_path):
    async with (
        foreign(tmp_path / "ours", "", monitored=False) as (url, _),
        foreign(tmp_path / "other", "sync_interval: always") as (_, monitor),
        connected(url) as bus,
    ):
        assert (await query_durability(bus, monitor)).always is None


@pytest.mark.parametrize("monitor", [None, "http://127.0.0.1:1", "http://127.0.0.1:1/x y"])
async def test_a_server_that_cannot_be_asked_is_not_known(tmp_path, monitor):
    async with foreign(tmp_path / "nats", monitored=False) as (url, _), connected(url) as bus:
        assert (await query_durability(bus, monitor)).always is None


async def test_whoever_answers_something_else_is_not_believed(tmp_path):
    async def talk(reader, writer):
        await reader.readline()
        writer.write(b'HTTP/1.0 200 OK\r\n\r\n{"config": "yes"}')
        writer.close()

    async with (
        Listening(talk) as server,
        foreign(tmp_path / "nats", monitored=False) as (url, _),
        connected(url) as bus,
    ):
        assert (await query_durability(bus, f"http://127.0.0.1:{server.port}")).always is None


@pytest.mark.parametrize(
    ("options", "level", "said"),
    [
        ("", "ERROR", "may lose in a power cut what it has acknowledged"),
        ("sync_interval: always", "INFO", "keeps what it acknowledges"),
    ],
)
async def test_a_loop_tells_once_what_its_bus_says(tmp_path, data, caplog, options, level, said):
    caplog.set_level(logging.INFO)
    async with foreign(tmp_path / "nats", options) as (url, monitor):
        async with running_loop(
            data, surroundings=Surroundings(nats_url=url, nats_monitor=monitor)
        ):
            pass
    found = [record for record in caplog.records if said in record.message]
    assert [record.levelname for record in found] == [level]


def test_what_is_not_known_is_a_warning(caplog):
    log_durability(Durability(None, "nobody answers"), "nats://bus:4222")
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "is not known: nobody answers" in caplog.text
