"""The server as a process: it says when it is ready, ends in order, and comes back when killed."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from pathlib import Path

import pytest
from serving_cases import checkpoint
from tests.support import Client, until

from upswing.errors import Misuse, Rejected, Transient
from upswing.serve.main import main
from upswing.serve.process import ModelProcess, ModelServerSettings

pytestmark = pytest.mark.live
CHAT = "/v1/chat/completions"
LEAST = {"model": "tiny", "messages": [{"role": "user", "content": "zzz" * 30}], "temperature": 0}


def settings(cache, base="tiny"):
    return ModelServerSettings(base=base, cache=cache, threads=1)


@pytest.fixture
async def process(bases, tmp_path):
    made = ModelProcess(settings(bases), tmp_path / "server")
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def started(bases, tmp_path):
    """Start the command; what is left at the end is killed."""
    made = []

    async def begin(*words):
        ready = tmp_path / "ready"
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "upswing.serve.main",
            "--base",
            "tiny",
            "--cache",
            str(bases),
            "--threads",
            "1",
            "--ready-file",
            str(ready),
            *words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
        )
        made.append(child)
        await until(lambda: ready.exists() or child.returncode is not None, 60)
        assert child.returncode is None
        return child

    yield begin
    for child in made:
        if child.returncode is None:
            child.kill()
        await child.wait()


def gone(pid):
    """A process that has ended, also if nobody has asked how."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True


@pytest.mark.long
async def test_killed_it_comes_back_on_the_same_port_with_its_adapters(
    process, bases, tiny, tmp_path
):
    path, _ = checkpoint(tiny, tmp_path, "v1", full=True)
    other, _ = checkpoint(tiny, tmp_path, "v2", full=False)
    await process.load("v1", path)
    await process.load("v2", other)
    await process.unload("v2")
    url, pid = process.url, process.pid
    os.kill(pid, signal.SIGKILL)
    await until(lambda: process.restarts == 1 and process.pid != pid)

    async def answers():
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            async with Client(url) as client:
                return await client("POST", CHAT, {**LEAST, "model": "v1", "max_tokens": 2})

    status, _ = await until(answers, 60, "it did not come back")
    assert status == 200
    assert process.url == url
    async with Client(url) as client:
        _, listed = await client("GET", "/v1/models")
    assert [model["id"] for model in listed["data"]] == ["tiny", "v1"]
    await refusals_are_our_errors(process, tmp_path)
    pid = process.pid
    await process.stop()
    assert gone(pid)
    assert process._child.process.returncode == 0
    with pytest.raises(Transient):
        await process.load("v1", path)
    await the_next_one_is_where_this_one_was(bases, tmp_path / "server", url)


async def the_next_one_is_where_this_one_was(bases, folder, url):
    again = ModelProcess(settings(bases), folder)
    try:
        assert await again.start() == url
    finally:
        await again.stop()


@pytest.mark.parametrize("written", ["", "many", "70000", "-1"])
def test_a_port_of_last_time_that_means_nothing_is_any_port(tmp_path, written):
    (tmp_path / "port").write_text(written)
    assert ModelProcess(settings(tmp_path), tmp_path)._last_port() == 0


def test_a_port_of_last_time_that_somebody_else_has_is_any_port(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        (tmp_path / "port").write_text(str(port))
        process = ModelProcess(settings(tmp_path), tmp_path)
        assert process._last_port() == 0
    assert process._last_port() == port


@pytest.mark.parametrize("first", ["#!/bin/sh\necho ready nowhere\n", "no program at all"])
async def test_a_restart_that_fails_in_an_odd_way_is_tried_again(tmp_path, caplog, first):
    python = tmp_path / "python"
    python.write_text(first)
    python.chmod(0o700)
    pythons = [python]
    process = ModelProcess(settings(tmp_path), tmp_path, python=lambda: str(pythons[-1]))
    again = asyncio.create_task(process._child.relaunch())
    try:
        await until(lambda: caplog.records, 60, "it does not say so")
        fresh = tmp_path / "fresh"
        fresh.write_text("#!/bin/sh\necho ready http://127.0.0.1:7\nread line\n")
        fresh.chmod(0o700)
        pythons.append(fresh)
        await asyncio.wait_for(again, 300)
        assert process.port == 7
    finally:
        again.cancel()
        await process.stop()


async def refusals_are_our_errors(process, tmp_path):
    with pytest.raises(Rejected):
        await process.load("v3", tmp_path / "nowhere")
    with pytest.raises(Misuse):
        await process.unload("v3")
    async with Client(process.url, "wrong") as client:
        status, _ = await client("POST", "/v1/unload_lora_adapter", {"lora_name": "v1"})
    assert status == 401


@pytest.mark.long
async def test_told_to_stop_it_lets_an_answer_end_and_exits_with_zero(started, tmp_path):
    child = await started("--with-parent")
    async with Client((tmp_path / "ready").read_text()) as client:
        answer = asyncio.create_task(client("POST", CHAT, {**LEAST, "max_tokens": 800}))

        async def running():
            return (await client("GET", "/health"))[1]["under_way"] == 1

        await until(running)
        child.send_signal(signal.SIGTERM)
        status, body = await answer
    assert (status, body["usage"]["completion_tokens"]) == (200, 800)
    assert await asyncio.wait_for(child.wait(), 300) == 0


@pytest.mark.long
async def test_without_its_parent_it_ends(started):
    child = await started("--with-parent")
    child.stdin.close()
    assert await asyncio.wait_for(child.wait(), 300) == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--base", "no-such-model"], "nothing is downloaded"),
        (["--adapter", "v1=/nowhere"], "no checkpoint here"),
        (["--port", "1", "--host", "192.0.2.1"], "no address of this machine"),
    ],
)
def test_what_keeps_it_from_starting_is_one_sentence(bases, capfd, words, sentence):
    assert main(["--base", "tiny", "--cache", str(bases), *words]) == 1
    out, err = capfd.readouterr()
    assert sentence in err.splitlines()[-1]
    assert "ready" not in out


async def test_a_server_that_cannot_start_says_why(bases, tmp_path):
    with pytest.raises(Misuse, match="nothing is downloaded"):
        await ModelProcess(settings(bases, "no-such-model"), tmp_path / "server").start()


def test_what_is_remembered_but_gone_does_not_keep_it_from_starting(bases, tmp_path):
    state = tmp_path / "adapters.json"
    state.write_text(json.dumps({"old": str(tmp_path / "nowhere")}))

    async def run():
        from upswing.serve.main import ModelServerOptions, serve

        told, ready = asyncio.Event(), tmp_path / "ready"
        options = ModelServerOptions(
            base="tiny", cache=bases, state=state, ready_file=ready, threads=1
        )
        task = asyncio.create_task(serve(options, told))
        await until(lambda: ready.exists() or task.done())
        async with Client(ready.read_text()) as client:
            _, health = await client("GET", "/health")
        told.set()
        assert await task == 0
        return health["models"]

    assert asyncio.run(run()) == ["tiny"]
