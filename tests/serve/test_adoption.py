"""A model server outlives the process that began it: the next one adopts it, or it ends by itself."""

import asyncio
import contextlib
import os
import shutil
import signal
import sys

import pytest
from serving_cases import checkpoint
from tests.support import Client, alive, freeze, until

from upswing.errors import Transient
from upswing.infra.adoption import (
    ChildRecord,
    adopt_process,
    hold_lock,
    is_lock_held,
    process_start_time,
    read_or_create_key,
)
from upswing.serve.process import ModelProcess, ModelServerSettings

CODE = """
import asyncio, sys, pathlib
from upswing.serve.process import ModelProcess, ModelServerSettings
async def main():
    bases, folder, path = map(pathlib.Path, sys.argv[1:4])
    settings = ModelServerSettings(base='tiny', cache=bases, threads=1, orphan_seconds=float(sys.argv[4]))
    made = ModelProcess(settings, folder)
    await made.start()
    await made.load('v1', path)
    print(made.pid, made.url, flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


@contextlib.asynccontextmanager
async def left_behind(bases, folder, path, seconds):
    """A server whose parent has been killed: its pid and its URL."""
    parent = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        CODE,
        str(bases),
        str(folder),
        str(path),
        str(seconds),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        pid, url = (await parent.stdout.readline()).decode().split()
    finally:
        parent.kill()
        await parent.wait()
    try:
        yield int(pid), url
    finally:
        if alive(int(pid)):
            os.kill(int(pid), signal.SIGKILL)


@pytest.mark.long
@pytest.mark.live
async def test_the_next_one_adopts_it_as_it_is_and_watches_over_it(bases, tiny, tmp_path):
    path, _ = checkpoint(tiny, tmp_path, "v1", full=False)
    folder = tmp_path / "server"
    async with left_behind(bases, folder, path, 60) as (pid, url):
        settings = ModelServerSettings(base="tiny", cache=bases, threads=1, orphan_seconds=60.0)
        process = ModelProcess(settings, folder, frozen_seconds=2.0)
        assert await asyncio.wait_for(process.start(), 300) == url
        try:
            assert process.pid == pid
            async with Client(url, process.key) as client:
                _, listed = await client("GET", "/v1/models")
            assert [model["id"] for model in listed["data"]] == ["tiny", "v1"]
            await process.unload("v1")  # its key works
            await until(lambda: process._child.pulse.beats)
            freeze(pid)
            await until(lambda: not alive(pid), 60, "a frozen one was not ended")
            await until(lambda: process.pid != pid and process.restarts == 1, 60)
        finally:
            await process.stop()
        assert not alive(process.pid)


@pytest.mark.long
@pytest.mark.live
async def test_one_that_is_not_wanted_so_is_ended(bases, tiny, tmp_path):
    path, _ = checkpoint(tiny, tmp_path, "v1", full=False)
    folder = tmp_path / "server"
    async with left_behind(bases, folder, path, 60) as (pid, _):
        process = ModelProcess(
            ModelServerSettings(base="tiny", cache=bases, threads=1, requests=7), folder
        )
        await process.start()
        try:
            assert not alive(pid)
            assert process.pid != pid
        finally:
            await process.stop()


@pytest.mark.long
@pytest.mark.live
@pytest.mark.parametrize("gone", [False, True])
async def test_without_anybody_to_serve_it_ends(bases, tiny, tmp_path, gone):
    path, _ = checkpoint(tiny, tmp_path, "v1", full=False)
    folder = tmp_path / "server"
    async with left_behind(bases, folder, path, 60 if gone else 2) as (pid, _):
        if gone:
            shutil.rmtree(folder)
        await until(lambda: not alive(pid), 60, "it is still there")


async def test_a_number_that_another_process_has_by_now_is_not_adopted():
    here = os.getpid()
    assert adopt_process(ChildRecord(here, "1", 80, "")) is None
    assert adopt_process(ChildRecord(2**22 + 1, process_start_time(here), 80, "")) is None
    found = adopt_process(ChildRecord(here, process_start_time(here), 80, ""))
    assert found.returncode is None
    found._loop.remove_reader(found._handle)
    os.close(found._handle)


async def test_an_adopted_process_is_waited_for_and_ended_like_a_child():
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", "input()", stdin=-1)
    found = adopt_process(ChildRecord(child.pid, process_start_time(child.pid), 80, ""))
    waits = [asyncio.create_task(found.wait()) for _ in range(3)]
    found.kill()
    assert await asyncio.gather(*waits) == [0, 0, 0]
    found.kill()  # nobody is there, and nobody is hit
    await child.wait()
    assert process_start_time(child.pid) == ""


async def test_a_lock_is_held_by_one_and_seen_by_all(tmp_path):
    path = tmp_path / "lock"
    assert is_lock_held(path) is None
    handle = await hold_lock(path)
    assert is_lock_held(path) is True
    with pytest.raises(Transient):
        await hold_lock(path)
    os.close(handle)
    assert is_lock_held(path) is False
    os.close(await hold_lock(path))


def test_a_key_is_made_once_and_is_private(tmp_path):
    assert read_or_create_key(tmp_path / "key", "first") == "first"
    assert read_or_create_key(tmp_path / "key", "second") == "first"
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    assert read_or_create_key(tmp_path / "nowhere" / "key", "third") == "third"
