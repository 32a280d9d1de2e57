"""The bus as a way to the loop, against a real nats-server."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import nats
import pytest
from loop_double import PlainRedactor, eventually, say

from upswing.contracts.topics import FEEDBACK, TRAJECTORY
from upswing.sdk import Recorder

pytestmark = pytest.mark.live


class Bus:
    """A nats-server with one user; it can be stopped and started again."""

    def __init__(self, folder, streams=True, permissions=""):
        self.folder, self.port, self.permissions = folder, -1, permissions
        self.start()
        if streams:
            asyncio.run(self._streams())

    @property
    def url(self):
        return f"nats://agent:pw@127.0.0.1:{self.port}"

    def start(self):
        (self.folder / "nats.conf").write_text(f"""
            listen: "127.0.0.1:{self.port}"
            jetstream {{ store_dir: "{self.folder}/store" }}
            ports_file_dir: "{self.folder}"
            authorization {{ users: [
              {{ user: admin, password: pw }}
              {{ user: agent, password: pw, permissions: {{
                   publish: [{self.permissions or f'"{TRAJECTORY}", "{FEEDBACK}"'}],
                   subscribe: ["_INBOX_agent.>"] }} }}
            ] }}
        """)
        program = Path(sys.executable).with_name("nats-server")
        self.process = subprocess.Popen(
            [program, "-c", self.folder / "nats.conf"], stderr=subprocess.DEVNULL
        )
        file = self.folder / f"nats-server_{self.process.pid}.ports"
        eventually(lambda: file.exists() and file.read_text().strip())
        self.port = int(json.loads(file.read_text())["nats"][0].rpartition(":")[2])

    def stop(self):
        self.process.kill()
        self.process.wait()

    async def _admin(self):
        return await nats.connect(f"nats://admin:pw@127.0.0.1:{self.port}")

    async def _streams(self):
        client = await self._admin()
        for name, subject in (("T", TRAJECTORY), ("F", FEEDBACK)):
            await client.jetstream().add_stream(name=name, subjects=[subject])
        await client.close()

    def messages(self, stream="T"):
        async def read():
            client = await self._admin()
            js = client.jetstream()
            state = (await js.stream_info(stream)).state
            found = [await js.get_msg(stream, seq + 1) for seq in range(state.messages)]
            await client.close()
            return [(each.headers, json.loads(each.data)) for each in found]

        return asyncio.run(read())


@pytest.fixture
def bus(tmp_path):
    made = Bus(tmp_path)
    yield made
    made.stop()


@pytest.fixture
def recorder(bus, tmp_path):
    made = Recorder(url=bus.url, spool=tmp_path / "spool", redactor=PlainRedactor)
    yield made
    made.close(0.5)


def test_a_trajectory_is_in_the_stream_once_acknowledged_with_its_id_for_dedup(bus, recorder):
    tid = say(recorder)
    recorder.feedback(tid, "thumbs_up")
    assert recorder.flush(60)
    ((headers, body),) = bus.messages()
    assert headers["Nats-Msg-Id"] == body["trajectory_id"] == tid
    ((_, said),) = bus.messages("F")
    assert said["trajectory_id"] == tid


def test_work_waits_while_the_bus_is_away_and_goes_in_order_when_it_is_back(bus, recorder):
    ids = [say(recorder)]
    assert recorder.flush(60)
    bus.stop()
    ids += [say(recorder) for _ in range(5)]
    assert not recorder.flush()
    assert recorder.stats.spooled == 5
    bus.start()
    assert eventually(recorder.flush, 60)
    assert [body["trajectory_id"] for _, body in bus.messages()] == ids


def test_a_wrong_password_keeps_the_work_and_says_so(bus, tmp_path):
    url = f"nats://agent:no@127.0.0.1:{bus.port}"
    with Recorder(url=url, spool=tmp_path / "other", redactor=PlainRedactor) as recorder:
        say(recorder)
        assert not recorder.flush()
        # The server may hang up before its reason is read; the next try hears it.
        assert eventually(lambda: "does not let" in recorder.stats.last_error)
        assert recorder.stats.spooled == 1


def test_a_bus_without_the_stream_keeps_the_work(tmp_path):
    bus = Bus(tmp_path, streams=False)
    with Recorder(url=bus.url, spool=tmp_path / "spool", redactor=PlainRedactor) as recorder:
        say(recorder)
        assert not recorder.flush()
        assert recorder.stats.spooled == 1
    bus.stop()


def test_a_message_larger_than_the_bus_takes_is_refused_alone(bus, recorder):
    say(recorder, "x" * 2_000_000)
    tid = say(recorder)
    assert eventually(recorder.flush)
    assert (recorder.stats.errors, recorder.stats.sent) == (1, 1)
    assert [body["trajectory_id"] for _, body in bus.messages()] == [tid]
