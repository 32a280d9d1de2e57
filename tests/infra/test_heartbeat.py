"""A child that is frozen is ended and replaced; one that only computes, reads or is not heard is not."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gateway.bus import GATEWAY, nats
from tests.gateway.conftest import model, plan
from tests.gateway.scripted import Scripted
from tests.support import Client, alive, freeze, on_bus, raw, trajectory, until
from upswing.collect.worker import encode_frame
from upswing.config import Settings
from upswing.contracts.traffic import write_plan
from upswing.errors import Misuse, Transient
from upswing.gateway.process import GatewayChildEnv, GatewaySupervisor
from upswing.gateway.recorder.child import SETUP, RecorderSetup
from upswing.gateway.recorder.child import encode_request as recorder_request
from upswing.infra.backoff import Backoff
from upswing.infra.child_workers import WorkerProcess
from upswing.infra.heartbeat import (
    BEAT_SECONDS,
    ENVIRONMENT,
    FROZEN_SECONDS,
    Beats,
    HeartbeatMonitor,
    Work,
    group_work,
)
from upswing.infra.nats.permissions import OPERATOR
from upswing.infra.process import (
    ChildSupervisor,
    kill_group,
    launch_child,
    wait_for_exit,
    wait_ready,
)
from upswing.serve.process import ModelProcess, ModelServerSettings

IDLE = Work(1.0)
SHORT = 2.0
"""Seconds after which a child counts as frozen, so that a test need not wait for ten."""


def judged(gaps, *, beats, work=lambda: IDLE, limit=FROZEN_SECONDS):
    """Whether a child was ever called frozen, looked at after each gap; before some it has beaten."""
    pulse, now = HeartbeatMonitor(limit), 100.0
    pulse.beat()
    found = [pulse.is_frozen(now, work)]
    for gap, beat in zip(gaps, beats, strict=True):
        now += gap
        if beat:
            pulse.beat()
        found.append(pulse.is_frozen(now, work))
    return any(found)


looks = st.lists(st.tuples(st.floats(0.9, 1.3), st.booleans()), max_size=60)


@given(looks)
def test_who_is_heard_again_in_time_is_not_frozen(made):
    silent, beats = 0.0, []
    for gap, beat in made:
        beats.append(beat or silent + gap >= FROZEN_SECONDS)
        silent = 0.0 if beats[-1] else silent + gap
    assert not judged([gap for gap, _ in made], beats=beats)


@given(looks)
def test_who_falls_silent_is_frozen_after_ten_seconds(made):
    gaps = [gap for gap, _ in made] + [1.0] * 11
    assert judged(gaps, beats=[beat for _, beat in made] + [False] * 11)


@given(st.lists(st.floats(60, 90_000), min_size=1, max_size=4))
def test_time_in_which_we_did_not_run_is_no_silence(gaps):
    assert not judged(gaps, beats=[False] * len(gaps))


@given(st.floats(0.1, 4.0))
def test_who_computes_or_waits_for_a_disk_is_not_frozen(share):
    used = iter(range(10_000))
    gaps, beats = [1.0] * 200, [False] * 200
    assert not judged(gaps, beats=beats, work=lambda: Work(next(used) * share * 10))
    assert not judged(gaps, beats=beats, work=lambda: Work(1.0, waits=True))
    assert judged(gaps, beats=beats, work=lambda: Work(next(used) * 0.001))
    assert judged(gaps, beats=beats, work=lambda: None)


@given(st.lists(st.floats(0.95, 1.05), min_size=12, max_size=12))
def test_who_has_not_beaten_yet_is_judged_alike(gaps):
    for work, frozen in ((IDLE, True), (Work(1.0, waits=True), False), (None, True)):
        pulse, now, found = HeartbeatMonitor(), 5000.0, []
        for gap in gaps:
            found.append(pulse.is_frozen(now, lambda work=work: work))
            now += gap
        assert any(found) is frozen
        assert not any(found[:9])


SAYS_READY = """
import sys, time
from upswing.infra.heartbeat import Beats
Beats().start_in_thread()
time.sleep(float(sys.argv[1]))
print("ready", flush=True)
"""


async def starting(program, pulse, *words):
    return await launch_child(
        sys.executable, "-c", program, *words, pulse=pulse, stdout=asyncio.subprocess.PIPE
    )


@pytest.mark.live
async def test_a_slow_start_is_waited_for_and_told_of(caplog):
    pulse = HeartbeatMonitor(SHORT)
    child = await starting(SAYS_READY, pulse, str(3 * SHORT))
    ready = wait_ready(child, pulse, "it", child.stdout.readline(), slow_seconds=SHORT)
    assert await asyncio.wait_for(ready, 300) == b"ready\n"
    assert "it is not ready after" in caplog.text
    assert await child.wait() == 0


@pytest.mark.live
@pytest.mark.parametrize("program", ["import os; os.kill(os.getpid(), 19)", SAYS_READY])
async def test_a_child_that_is_frozen_while_it_starts_is_ended(program, caplog):
    """Before its first beat, and after it."""
    pulse = HeartbeatMonitor(SHORT)
    child = await starting(program, pulse, "600")
    if program == SAYS_READY:
        await until(lambda: pulse.beats, 60)
        freeze(child.pid)
    with pytest.raises(Transient, match=r"^It stood still while it started"):
        await asyncio.wait_for(wait_ready(child, pulse, "it", child.stdout.readline()), 300)
    assert child.returncode == -signal.SIGKILL
    assert "it is frozen and is ended" in caplog.text


@pytest.mark.live
@pytest.mark.parametrize("kind", ["model server", "gateway"])
async def test_every_child_that_is_frozen_while_it_starts_is_replaced(tmp_path, monkeypatch, kind):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nkill -STOP $$\n")
    python.chmod(0o700)
    if kind == "gateway":
        child = GatewaySupervisor(
            tmp_path, GatewayChildEnv("", "", ""), port=0, frozen_seconds=SHORT
        )
    else:
        child = ModelProcess(
            ModelServerSettings(base="tiny", cache=tmp_path),
            tmp_path / "serve",
            frozen_seconds=SHORT,
        )
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(python))
        with pytest.raises((Transient, Misuse), match="stood still while it started"):
            await asyncio.wait_for(child.start(), 300)
    assert not alive(child.pid)
    await child.stop()


HOLDS_THE_INTERPRETER = """
import re
from upswing.infra.heartbeat import Beats
Beats().start_in_thread()
print("beats", flush=True)
input()
print("computes", flush=True)
re.match(r"(a+)+$", "a" * 60 + "b")
"""


async def beating(program, pulse):
    child = await launch_child(
        sys.executable,
        "-c",
        program,
        pulse=pulse,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert await child.stdout.readline() == b"beats\n"
    await until(lambda: pulse.beats)
    return child


@pytest.mark.long
@pytest.mark.live
async def test_a_child_that_holds_its_interpreter_goes_on_until_it_is_stopped(caplog):
    pulse = HeartbeatMonitor(SHORT)
    child = await beating(HOLDS_THE_INTERPRETER, pulse)
    watch = asyncio.create_task(wait_for_exit(child, pulse, "it"))
    child.stdin.write(b"\n")
    assert await child.stdout.readline() == b"computes\n"
    heard = pulse.beats
    done, _ = await asyncio.wait({watch}, timeout=3 * SHORT + BEAT_SECONDS)
    assert not done
    assert pulse.beats <= heard + 1  # it did not come to beat
    freeze(child.pid)
    assert await asyncio.wait_for(watch, 300) == -signal.SIGKILL
    assert "it is frozen and is ended" in caplog.text


LOADS_IN_A_THREAD = """
import threading
def load():
    while True:
        pass
threading.Thread(target=load, daemon=True).start()
print("loads", flush=True)
threading.Event().wait()
"""


@pytest.mark.live
async def test_a_child_whose_first_thread_waits_for_one_that_loads_is_working():
    """On a busy machine it hardly computes, and its first thread does not even want to."""
    child = await launch_child(
        sys.executable, "-c", LOADS_IN_A_THREAD, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert await child.stdout.readline() == b"loads\n"
        await until(lambda: Path(f"/proc/{child.pid}/stat").read_text().split()[2] == "S")
        assert group_work(child.pid).waits
    finally:
        kill_group(child)
        await child.wait()


def test_a_child_whose_parent_is_gone_does_not_mind(monkeypatch):
    ears, mouth = os.pipe()
    monkeypatch.setenv(ENVIRONMENT, str(mouth))
    beats = Beats()
    assert beats.beat()
    os.close(ears)
    assert not beats.beat()
    os.close(mouth)
    assert not Beats().beat()  # nobody was named
    monkeypatch.setenv(ENVIRONMENT, str(mouth))
    assert not Beats().beat()  # and now somebody who is gone


# --- every child of ours -------------------------------------------------------------------------


async def replaced(pid_of, what):
    """Stop a process, and wait until it is gone and another one runs in its place."""
    pid = pid_of()
    freeze(pid)
    await until(lambda: not alive(pid), 60, f"{what} is still there")
    return await until(lambda: pid_of() not in {None, pid} and pid_of(), 60, f"no other {what}")


@pytest.mark.live
async def test_a_frozen_bus_is_replaced_on_its_port(tmp_path):
    async with nats(tmp_path, frozen_seconds=SHORT) as server:
        url = server.url(OPERATOR)
        await asyncio.sleep(0)
        await until(lambda: server._child.pulse.beats)
        await replaced(lambda: server.pid, "bus")
        await until(lambda: server.restarts == 1)

        async def answers():
            async with on_bus(url) as client:
                return client.is_connected

        assert await until(answers, 60)


@pytest.mark.long
@pytest.mark.live
async def test_a_frozen_gateway_is_replaced_and_its_clients_are_answered(tmp_path):
    async with nats(tmp_path / "nats") as server, Scripted() as backend:
        async with on_bus(server.url(OPERATOR)) as client:
            bucket = await client.jetstream().key_value("rl_traffic")
            await bucket.put("plan", write_plan(plan(model("base", backend.url))))
        told = GatewayChildEnv(server.url(GATEWAY), "", "")
        gateway = GatewaySupervisor(tmp_path, told, port=0, frozen_seconds=SHORT)
        url = await gateway.start()
        try:
            await until(lambda: gateway._child.pulse.beats)
            freeze(gateway.pid)
            async with Client(url) as asks:
                assert (await asyncio.wait_for(asks("GET", "/health"), 300))[0] == 200
            assert gateway.restarts == 1
        finally:
            await gateway.stop()


@pytest.mark.long
@pytest.mark.live
@pytest.mark.parametrize("module", ["upswing.collect.worker", "upswing.gateway.recorder.child"])
async def test_a_frozen_worker_is_replaced_for_whoever_waits_and_whoever_asks_next(
    tmp_path, module
):
    child = WorkerProcess(module, _greeting(module, tmp_path), frozen_seconds=SHORT)
    await child.start()
    try:
        pid = child._process.pid
        ask = _question(module)
        assert await child.request(ask)
        freeze(pid)
        with pytest.raises(Transient):
            await asyncio.wait_for(child.request(ask), 300)
        await until(lambda: not alive(pid), 60)
        assert await asyncio.wait_for(child.request(ask), 300)
        freeze(child._process.pid)  # also when nobody asks
        await until(lambda: child._process is None, 60)
    finally:
        await child.stop()


def _greeting(module, folder):
    if module == "upswing.gateway.recorder.child":
        setup = RecorderSetup(Settings(), "nats://127.0.0.1:9", str(folder))
        return recorder_request(SETUP, msgspec.msgpack.encode(setup))
    return encode_frame("s", msgspec.msgpack.encode(Settings()))


def _question(module):
    if module == "upswing.gateway.recorder.child":
        return recorder_request(b"f", b"{}")
    return encode_frame("t", raw(trajectory()))


@pytest.mark.long
@pytest.mark.live
@pytest.mark.learn
async def test_a_frozen_model_server_is_replaced_where_it_was(bases, tmp_path):
    process = ModelProcess(
        ModelServerSettings(base="tiny", cache=bases, threads=1), tmp_path, frozen_seconds=SHORT
    )
    url = await process.start()
    try:
        await replaced(lambda: process.pid, "model server")

        async def answers():
            try:
                async with Client(url) as client:
                    return (await client("GET", "/health"))[0] == 200
            except (OSError, asyncio.IncompleteReadError):
                return False

        assert await until(answers, 60)
    finally:
        await process.stop()


# --- the system lacks something ------------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [OSError(28, "full"), Transient("later"), Misuse("gone"), ValueError("odd")]
)
async def test_a_start_that_fails_is_tried_again_for_ever(error, caplog):
    tried = 0

    async def launch():
        nonlocal tried
        tried += 1
        if tried < 30:
            raise error

    child = ChildSupervisor("it", launch, restart_action="again", backoff=Backoff(0.001, 0.001))
    await child.relaunch()
    assert tried == 30
    assert caplog.text.count("it does not start, and is tried again") == 29
    assert caplog.text.count("it is running again") == 1


@pytest.mark.live
async def test_a_bus_whose_folder_cannot_be_written_comes_back_when_it_can(tmp_path, caplog):
    async with nats(tmp_path) as server:
        config = tmp_path / "nats.conf"
        kept = config.read_bytes()
        config.unlink()
        config.mkdir()  # nobody can write there, not even root
        os.kill(server.pid, signal.SIGKILL)
        await until(lambda: caplog.text.count("nats-server does not start") >= 3, 60)
        config.rmdir()
        config.write_bytes(kept)

        async def answers():
            async with on_bus(server.url(OPERATOR)) as client:
                return client.is_connected

        assert await until(answers, 60)
        assert server.restarts == 1


@pytest.mark.live
async def test_a_child_that_the_system_cannot_start_leaves_no_pipe_open():
    def open_files():
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - counted

    before = open_files()
    for _ in range(20):
        with pytest.raises(OSError, match="nowhere"):
            await launch_child(str(Path("/nowhere/at/all")), pulse=HeartbeatMonitor())
    assert open_files() <= before + 2  # the event loop's own
    child = await launch_child(sys.executable, "-c", "", pulse=HeartbeatMonitor())
    kill_group(child)
    await child.wait()
    await until(lambda: open_files() <= before + 2)
