"""Thousands who ask nothing, or slowly: is an honest client answered, and is memory bounded? Each port is a process of its own."""

import asyncio
import contextlib
import os
import resource
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

from tests.infra.http1.ports import CHAT, KINDS, connected, head, status, whole

pytestmark = pytest.mark.live
both = pytest.mark.parametrize("kind", KINDS)
WAYS = ("idle", "slow heads", "slow bodies", "endless headers", "keyless bodies")


@contextlib.contextmanager
def process(kind, files):
    """A port that may open so many files."""
    command = [sys.executable, "-m", "tests.infra.http1.ports", kind, str(files)]
    root = Path(__file__).parents[3]
    with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as made:
        try:
            where = urlsplit(made.stdout.readline().decode().strip())
            path = "/v1/echo" if kind == "loop" else "/v1/chat/completions"
            yield SimpleNamespace(
                host=where.hostname, number=where.port, path=path, pid=made.pid, kind=kind
            )
        finally:
            made.kill()


def resident(pid):
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def press(door, way, count, stack):
    """So many connections, from addresses of 400 each, that behave in one of these ways."""
    first = {
        "idle": b"",
        "slow heads": head(door, key=None)[:-10],
        "slow bodies": head(door, key="sk-wrong", size=30_000) + CHAT,
        "endless headers": b"GET /health HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 30_000,
        "keyless bodies": head(door, key="sk-wrong", size=32 << 20) + b"x" * 10_000,
    }[way]
    for number in range(count):
        source = (f"127.0.0.{2 + number // 400}", 0)
        try:
            _, writer = await stack.enter_async_context(connected(door, local_addr=source))
        except OSError:
            continue
        writer.write(first)
        if number % 50 == 0:
            await asyncio.sleep(0)


async def honest(door, count):
    """Requests on kept connections and on new ones."""
    told = []
    async with connected(door) as (reader, writer):
        for _ in range(count):
            writer.write(whole(door))
            told.append(await status(reader))
    for _ in range(count):
        async with connected(door) as (reader, writer):
            writer.write(whole(door))
            told.append(await status(reader))
    return told


@pytest.mark.long
@both
async def test_where_few_files_can_be_opened_honest_clients_are_answered(kind):
    with process(kind, 256) as door:
        async with connected(door) as (reader, writer), contextlib.AsyncExitStack() as stack:
            for way in WAYS:
                writer.write(whole(door))
                assert await status(reader) == 200, "one with a key was dropped for one without"
                await press(door, way, 300, stack)
                assert await honest(door, 3) == [200] * 6


@both
@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
async def test_ten_thousand_connections_cost_neither_answers_nor_memory(kind, way):
    wanted = 12_000
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < wanted:
        pytest.skip(f"this test needs {wanted} open files, and may have {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with process(kind, hard) as door:
        assert await honest(door, 5) == [200] * 10
        before = resident(door.pid)
        async with contextlib.AsyncExitStack() as stack:
            await press(door, way, 10_000, stack)
            assert await honest(door, 20) == [200] * 40
            assert resident(door.pid) - before < 600 << 20
