"""An episode that can never be recorded is refused, alone, and whoever records never stops silently."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from uuid import uuid4

import pytest

from tests.conftest import running_loop
from tests.gateway.bus import GATEWAY, nats, published
from tests.gateway.conftest import model, plan, started, user
from tests.gateway.process import Command, surroundings
from tests.gateway.scripted import Scripted
from tests.gateway.test_trajectory import Talk
from tests.support import alive, family, on_bus, until
from upswing.config import Settings
from upswing.contracts.topics import DEADS, FEEDBACKS
from upswing.contracts.traffic import write_plan
from upswing.errors import Transient
from upswing.gateway.core.dead_letter import RejectedEpisode
from upswing.gateway.core.episode_redaction import RedactedMessage
from upswing.gateway.core.frames import encode_frame
from upswing.gateway.limits import GatewayLimits
from upswing.gateway.recorder.child import RecorderSetup
from upswing.gateway.recorder.client import RecorderClient
from upswing.gateway.recorder.publisher import Publisher
from upswing.infra.nats.permissions import OPERATOR
from upswing.infra.spool import Spool
from upswing.infra.spool_log import SpoolEntry, SpoolEntryKind
from upswing.infra.tasks import cancel_all

pytestmark = pytest.mark.live
MEGABYTE = 1024 * 1024
TWICE = str(uuid4())


def nested(depth, inside="null"):
    return "[" * depth + inside + "]" * depth


def frame(**changes):
    return (
        Talk(user("hi")).answers({"content": "hello"}).frame(trajectory_id=str(uuid4()), **changes)
    )


POISON = {
    "deep outcome": (lambda: frame(outcome=nested(600).encode()), "too_deep"),
    "deep words of the client": (
        lambda: frame(about=b'{"environment": %s}' % nested(600).encode()),
        "too_deep",
    ),
    "too large": (
        lambda: (
            Talk(user("word " * (9 * MEGABYTE // 5)))
            .answers({"content": "hello"})
            .frame(trajectory_id=str(uuid4()))
        ),
        "too_large",
    ),
    "no answer": (lambda: frame(conversations=[]), None),
    "not JSON": (lambda: frame(about=b"{NaN"), None),
    "NaN": (lambda: frame(outcome=b"NaN"), None),
    "a float out of range": (lambda: frame(outcome=b"1e999"), None),
    "half a pair": (lambda: frame(outcome=b'"\\ud800 alone"'), None),
    "not UTF-8": (lambda: frame(outcome=b'"\xff\xfe"'), None),
    "a time before time": (lambda: _timed(-1e300), None),
}
ODD = {
    "huge integers": lambda: frame(about=b'{"environment": {"n": 1%s}}' % (b"0" * 400)),
    "odd unicode": lambda: frame(
        outcome=json.dumps({"status": "completed", "note": "\u202e\x00\uffff\U0010ffff"}).encode()
    ),
}
"""Read or refused, but nobody dies of them."""


def _timed(at):
    talk = Talk(user("hi"))
    talk.at = at
    return talk.answers({"content": "hello"}).frame(trajectory_id=str(uuid4()))


class RunningRecorder:
    """A recorder's process of its own, and the bus it publishes on."""

    def __init__(self, folder, module="upswing.gateway.recorder.child"):
        self._folder, self._module = folder, module

    async def __aenter__(self):
        self._nats = nats(self._folder / "nats")
        self.server = await self._nats.__aenter__()
        setup = RecorderSetup(Settings(), self.server.url(GATEWAY), str(self._folder / "spool"))
        self.recorder = RecorderClient(setup, self._module)
        await self.recorder.start()
        return self

    async def __aexit__(self, *error):
        await self.recorder.stop()
        await self._nats.__aexit__(*error)

    @property
    def pid(self):
        process = self.recorder._child._process
        return process.pid if process else None

    async def record_episodes(self, *frames):
        return await asyncio.wait_for(
            self.recorder.record_episodes([encode_frame(f) for f in frames]), 300
        )

    async def letters(self):
        return {each["dead_id"]: each for each in await published(self.server.url(OPERATOR), DEADS)}

    async def works(self):
        """An honest episode is recorded, and so is a word on it."""
        honest = frame()
        (kept,) = await self.record_episodes(honest)
        assert kept.status == "published"
        word = {
            "feedback_id": str(uuid4()),
            "trajectory_id": honest.trajectory_id,
            "type": "thumbs_up",
            "timestamp": "2026-01-01T00:00:00Z",
        }
        said = await asyncio.wait_for(self.recorder.record_feedback(json.dumps(word).encode()), 300)
        assert said.status == "published", said


async def test_of_a_batch_the_refused_are_refused_and_the_others_are_recorded(tmp_path):
    async with RunningRecorder(tmp_path) as running_recorder:
        pid = None
        wanted = {}
        for sound in (0, 1, 2):  # all, some and none of a batch are refused
            refused = [made() for made, _ in POISON.values()] if sound < 2 else []
            honest = [frame() for _ in range(2 * sound)]
            mixed = [each for pair in zip(refused, honest, strict=False) for each in pair]
            batch = mixed + [each for each in (*refused, *honest) if each not in mixed]
            told = {
                each.trajectory_id: each for each in await running_recorder.record_episodes(*batch)
            }
            assert {told[each.trajectory_id].status for each in honest} <= {"published"}
            for each, (name, (_, reason)) in zip(refused, POISON.items(), strict=False):
                kept = told[each.trajectory_id]
                assert kept.status == "refused", name
                assert kept.reason == (reason or kept.reason), (name, kept)
                assert kept.detail, name
                wanted[each.trajectory_id] = kept.reason
            await running_recorder.works()
            pid = pid or running_recorder.pid
        assert running_recorder.pid == pid, "it died of one"
        letters = await running_recorder.letters()
        assert {name: letter["reason"] for name, letter in letters.items()} == wanted
        assert all("payload" not in letter for letter in letters.values())


async def test_what_is_odd_and_no_more_than_that_kills_nobody(tmp_path):
    async with RunningRecorder(tmp_path) as running_recorder:
        await running_recorder.works()
        pid = running_recorder.pid
        for name, made in ODD.items():
            (kept,) = await running_recorder.record_episodes(made())
            assert kept.status in {"published", "refused"}, name
            assert bool(kept.reason) == (kept.status == "refused"), name
        words = [b"{", b'"x"', b'{"feedback_id": %s}' % nested(900).encode(), b"\xff"]
        for word in words:
            assert (
                await asyncio.wait_for(running_recorder.recorder.record_feedback(word), 300)
            ).status == "refused"
        given_up = RejectedEpisode(
            str(uuid4()), "e", "a", "poison", "The recorder dies of it.", "0" * 64
        )
        assert (await running_recorder.recorder.record_dead_letter(given_up)).status == "published"
        assert (await running_recorder.letters())[given_up.trajectory_id]["reason"] == "poison"
        await running_recorder.works()
        assert running_recorder.pid == pid


@pytest.mark.parametrize("task", ["publisher", "writer", "answer"])
async def test_a_task_that_dies_inside_ends_the_process_and_another_takes_its_place(
    tmp_path, monkeypatch, capfd, task
):
    fault = tmp_path / "fault"
    monkeypatch.setenv("FAULT", str(fault))
    async with RunningRecorder(tmp_path, "tests.gateway.faulty_recorder") as running_recorder:
        await running_recorder.works()
        pid = running_recorder.pid
        fault.write_text(task)
        if task != "publisher":
            with pytest.raises(Transient):
                await running_recorder.record_episodes(frame())
        await until(lambda: not alive(pid), 60, "it lives on without a task")
        child = running_recorder.recorder._child
        await until(lambda: child._process is None or child._process.pid != pid, 60)
        fault.unlink()
        await until(lambda: f"a fault in the {task}" in capfd.readouterr().err, 60)
        await running_recorder.works()


# --- the whole gateway ---------------------------------------------------------------------------


async def test_after_every_poison_an_honest_episode_is_recorded_and_its_feedback_counts(tmp_path):
    """One gateway process: all at once, one by one, and after its recorder was killed."""
    async with nats(tmp_path / "nats") as server, Scripted() as backend:
        async with on_bus(server.url(OPERATOR)) as client:
            bucket = await client.jetstream().key_value("rl_traffic")
            await bucket.put("plan", write_plan(plan(model("base", backend.url))))
        async with Command(tmp_path / "gateway", server) as gateway:

            async def ended(name, text="hi", body=b""):
                status, _ = await gateway.chat(user(text), headers=(f"X-Episode-Id: {name}",))
                assert status == 200
                return await gateway.close(name, body)

            async def works(name):
                status, closed = await ended(name)
                assert (status, closed["state"]) == (200, "published")
                word = {"metric_name": "ok", "value": True, "episode_id": name}
                assert (await gateway.client("POST", "/feedback", word))[0] == 200

            deep = b'{"metadata": {"environment": %s}}' % nested(600).encode()
            large = "word " * (9 * MEGABYTE // 5)
            told = await asyncio.gather(ended("large", large), ended("deep", body=deep))
            assert [status for status, _ in told] == [413, 400]
            assert "cannot be recorded" in told[0][1]["error"]["message"]
            await works("after")
            huge = b'{"metadata": {"environment": 1%s}}' % (b"0" * 400)
            outcome = b'{"outcome": %s}' % nested(600).encode()
            for number, body in enumerate((deep, huge, outcome)):
                status, _ = await ended(f"poison-{number}", body=body)
                assert status in {200, 400, 422}
            (recorder,) = family(gateway.popen.pid)
            os.kill(recorder, signal.SIGKILL)
            await until(lambda: not alive(recorder))
            await works("later")
            status, _ = await gateway.close("large")
            assert status == 413, "asked again, it says the same"
        letters = await published(server.url(OPERATOR), DEADS)
        assert {"too_large", "too_deep"} <= {letter["reason"] for letter in letters}
        assert any("Episode large of tester" in letter["detail"] for letter in letters)
        assert len(await published(server.url(OPERATOR), FEEDBACKS)) == 2


async def test_the_loop_keeps_a_gateways_dead_letters_once_beside_its_own(data):
    async with running_loop(data) as loop:
        recorder = RecorderClient(RecorderSetup(Settings(), loop.running.nats_urls["gateway"]))
        await recorder.start()
        try:
            for detail in ("The message is too large.", "The message is still too large."):
                given_up = RejectedEpisode(TWICE, "e1", "tester", "too_large", detail, "0" * 64)
                assert (await recorder.record_dead_letter(given_up)).status == "published"

            async def kept():
                return await loop.store.list_dead_letters()

            (buried,) = await until(kept)
            assert (buried.stage, str(buried.letter.dead_id)) == ("gateway", TWICE)
            assert buried.letter.detail == (
                "Episode e1 of tester was not recorded: The message is too large."
            )
            await loop.store.add_dead_letter(buried.letter, stage="gateway", announced=True)
            counts = await loop.store.counts()
            assert (counts["dead"], counts["outbox"]) == (1, 0)
        finally:
            await recorder.stop()


BROKEN_WORKER = """
import sys
from upswing.gateway import main as gateway_server
from upswing.gateway.recorder.recorder import EpisodeRecorder
async def run_worker(self):
    raise KeyError("a fault in a worker")
EpisodeRecorder._run_worker = run_worker
sys.exit(gateway_server.main(sys.argv[1:]))
"""


@pytest.mark.long
async def test_a_gateway_without_one_of_its_tasks_says_so_and_ends(tmp_path):
    """Whoever started it starts another: `upswing up`, or a service manager."""
    async with nats(tmp_path / "nats") as server:
        with (tmp_path / "log").open("wb") as words:
            popen = subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    BROKEN_WORKER,
                    "--port",
                    "0",
                    "--spool",
                    str(tmp_path / "spool"),
                ],
                stdout=subprocess.DEVNULL,
                stderr=words,
                env=surroundings(server),
            )
        try:
            code = await asyncio.to_thread(popen.wait, 300)
        finally:
            popen.kill()
            popen.wait(300)
        told = (tmp_path / "log").read_text()
        assert code == 1, told
        assert "recording worker 0 broke" in told


async def test_what_is_spoilt_in_the_spool_or_too_large_for_the_bus_holds_up_nobody(
    tmp_path, caplog
):
    sound = [json.dumps({"trajectory_id": str(uuid4()), "n": n}).encode() for n in range(3)]
    large = json.dumps({"trajectory_id": str(uuid4()), "filler": "x" * 9 * MEGABYTE}).encode()
    spool = Spool(tmp_path / "spool", "gateway-1", 64 * MEGABYTE)
    (tmp_path / "spool").mkdir()
    for body in (b"[]", sound[0], b'{"trajectory_id": 7}', sound[1], large, b"{", sound[2]):
        spool.append(SpoolEntry(SpoolEntryKind.TRAJECTORY, body))
    spool.close()
    async with nats(tmp_path / "nats") as server:
        publisher = Publisher(server.url(GATEWAY), str(tmp_path / "spool"), 64 * MEGABYTE)
        running = asyncio.create_task(publisher.run())
        try:

            async def there():
                return [each["n"] for each in await published(server.url(OPERATOR))] == [0, 1, 2]

            await until(there)
            assert (
                await publisher.publish(SpoolEntryKind.TRAJECTORY, [RedactedMessage("x", large)])
            ) == ["refused"]
        finally:
            await cancel_all([running])
            await publisher.close()
        assert caplog.text.count("cannot be published and is given up") == 4


async def test_episodes_that_end_by_themselves_at_one_moment_are_recorded_once_each():
    names = [f"e{n}" for n in range(3)]
    async with Scripted() as backend:
        limits = GatewayLimits(episode_seconds=0.3)
        async with started(plan(model("base", backend.url)), limits=limits) as gateway:
            await asyncio.gather(
                *(gateway.chat(user("hi"), headers=(f"X-Episode-Id: {name}",)) for name in names)
            )
            await until(lambda: len(gateway.recorder.trajectories) == 3)
            for name in names:
                status, closed = await gateway.close(name)
                assert (status, closed["recorded"]) == (200, True)
            assert gateway.gateway.recorder.counts.empty == 0
