"""Hands of the tests: make trajectories, talk HTTP, start and kill processes, wait for a fact."""

import asyncio
import contextlib
import copy
import io
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

import pytest

from upswing.contracts import Trajectory
from upswing.contracts.examples import EXAMPLES

UPSWING = str(Path(sys.executable).parent / "upswing")


def trajectory(**changes):
    """A valid trajectory with an id of its own; `metadata` and `task_context` are merged."""
    made = copy.deepcopy(EXAMPLES[Trajectory]) | {"trajectory_id": str(uuid.uuid4())}
    for key, value in changes.items():
        made[key] = {**made[key], **value} if key in {"metadata", "task_context"} else value
    return made


def raw(document):
    return json.dumps(document).encode()


PATIENCE = 5
"""How many times longer than on a quiet machine a fact may take; only a test that fails waits so long."""


async def until(fact, seconds=60.0, what="it did not happen in time", *, patience=PATIENCE):
    """Wait for a fact about the world outside; nothing of it can be awaited."""
    deadline = time.monotonic() + patience * seconds
    while time.monotonic() < deadline:
        answer = fact()
        if asyncio.iscoroutine(answer):
            answer = await answer
        if answer:
            return answer
        await asyncio.sleep(0.02)
    raise AssertionError(what)


class Client:
    """A small HTTP/1.1 client with one kept connection per use."""

    def __init__(self, url, key=None):
        host, _, port = url.removeprefix("http://").partition(":")
        self.host, self.port, self.key = host, int(port), key
        self._free = []

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        for _, writer in self._free:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def __call__(
        self, method, path, body=b"", *, key="own", kind="application/json", headers=()
    ):
        """(status, parsed answer)"""
        if isinstance(body, dict | list):
            body = raw(body)
        head = [f"{method} {path} HTTP/1.1", f"Host: {self.host}", f"Content-Length: {len(body)}"]
        key = self.key if key == "own" else key
        if key:
            head.append(f"Authorization: Bearer {key}")
        if body:
            head.append(f"Content-Type: {kind}")
        message = "\r\n".join([*head, *headers, "", ""]).encode() + body
        while self._free and self._free[-1][0].at_eof():
            self._free.pop()[1].close()  # the server closed it while it was idle
        try:
            status, answer_headers, answer = await self._exchange(message)
        except ConnectionResetError:
            if method != "GET":
                raise
            status, answer_headers, answer = await self._exchange(message)  # it closed just now
        kind = answer_headers.get("content-type", "")
        if kind.startswith("application/json"):
            return status, json.loads(answer)
        if kind.startswith("application/x-ndjson"):
            return status, [json.loads(line) for line in answer.splitlines()]
        return status, answer if kind == "application/x-protobuf" else answer.decode()

    async def _exchange(self, message):
        reader, writer = (
            self._free.pop()
            if self._free
            else await asyncio.open_connection(self.host, self.port, limit=1 << 24)
        )
        try:
            writer.write(message)
            answer = await self._answer(reader)
        except BaseException:
            writer.close()
            raise
        self._free.append((reader, writer))
        return answer

    @staticmethod
    async def _answer(reader):
        top = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {
            k.lower(): v.strip() for k, _, v in (line.partition(":") for line in top[1:] if line)
        }
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        return int(top[0].split()[1]), headers, body

    async def send(self, document, **options):
        return await self("POST", "/v1/trajectories", document, **options)


async def close_episode(client, episode, body=b"", **options):
    """(status, answer) of a gateway once its recorder is there: a busy one says that it has to be asked again."""

    async def answered():
        answer = await client("POST", f"/v1/episodes/{episode}/close", body, **options)
        return None if answer[0] == 503 else answer

    return await until(answered, what=f"nobody records {episode}")


class Process:
    """`upswing up` in a process group of its own."""

    def __init__(self, popen, data, log):
        self.popen, self.data, self.log = popen, data, log

    @classmethod
    def start(cls, data, *options, env=None, gateway=False, dashboard=False):
        way = ("--gateway-port", "0") if gateway else ("--no-gateway",)
        way += ("--dashboard-port", "0") if dashboard else ("--no-dashboard",)
        data.parent.mkdir(parents=True, exist_ok=True)
        log = data.parent / f"{data.name}.log"
        with log.open("ab") as words:
            popen = subprocess.Popen(
                [UPSWING, "up", "--data", str(data), "--port", "0", *way, *options],
                stdout=words,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, **(env or {})},
            )
        return cls(popen, data, log)

    def until_ready(self, seconds=60):
        deadline = time.monotonic() + PATIENCE * seconds
        while time.monotonic() < deadline:
            code = self.popen.poll()
            assert code is None, f"it ended with {code}: {self.log.read_text()}"
            with contextlib.suppress(OSError, ValueError):
                self.info = json.loads((self.data / "running.json").read_text())
                if self.info["pid"] == self.popen.pid:
                    return self.info
            time.sleep(0.02)  # nothing to wait on but the file
        raise AssertionError(f"not ready: {self.log.read_text()}")

    @property
    def nats_pid(self):
        found = sorted(
            (self.data / "nats").glob("nats-server_*.ports"), key=lambda p: p.stat().st_mtime
        )
        return int(found[-1].stem.rpartition("_")[2]) if found else None

    def kill_group(self):
        """`kill -9` of everything at once."""
        os.killpg(self.popen.pid, signal.SIGKILL)
        self.popen.wait(300)

    def kill(self):
        self.popen.kill()
        self.popen.wait(300)

    def stop(self):
        self.popen.terminate()
        return self.popen.wait(300)

    def destroy(self):
        if self.popen.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self.kill_group()


def state_of(pid):
    """The letter of a process's state; None when there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return None


def alive(pid):
    return state_of(pid) not in {None, "Z"}


def freeze(pid):
    """Stop a process; a signal alone is only on its way when it has been sent."""
    os.kill(pid, signal.SIGSTOP)
    deadline = time.monotonic() + PATIENCE * 60
    while state_of(pid) not in {"T", "t"}:
        assert time.monotonic() < deadline, "it does not stand still"
        time.sleep(0.001)  # nothing to wait on but the kernel


def sized(name, cut, full):
    """A test in two sizes: a cut that every run has, and all of it among the slow ones."""
    return pytest.mark.parametrize(name, [cut, pytest.param(full, marks=pytest.mark.slow)])


def family(pid):
    """The living children of a process, their children, and so on."""
    children = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                children.setdefault(int(parent), []).append(int(stat.parent.name))
    found, left = [], [pid]
    while left:
        mine = children.get(left.pop(), [])
        found += mine
        left += mine
    return found


_ONE_AT_A_TIME = threading.Lock()
"""A process has one standard output."""
_OWN_PROCESS = frozenset({"up", "demo", "serve", "agents", "redact"})
"""Commands that start processes, take signals or write to descriptors get a process of their own."""


def cli(*arguments, data=None, stdin=b"", env=None, check=True, process=False):
    """Run a command of ours; what came of it, as of `subprocess.run`.

    `process`: as a person's shell runs it. Otherwise in this process, in a thread, which takes a tenth of the time.
    """
    words = [*arguments, *(["--data", str(data)] if data else [])]
    if process or not _OWN_PROCESS.isdisjoint(arguments[:1]):
        done = subprocess.run(
            [UPSWING, *words],
            input=stdin,
            capture_output=True,
            timeout=PATIENCE * 60,
            env={**os.environ, **(env or {})},
            check=False,
        )
    else:
        with (
            _ONE_AT_A_TIME,
            ThreadPoolExecutor(1) as thread,
            mock.patch.dict(os.environ, env or {}),
        ):
            done = thread.submit(_command, words, stdin).result()
    assert not check or done.returncode == 0, done.stderr.decode()
    return done


@contextlib.contextmanager
def _standard_input(content):
    """Descriptor 0 reads this."""
    kept = os.dup(0)
    try:
        with tempfile.TemporaryFile() as file:
            file.write(content)
            file.seek(0)
            os.dup2(file.fileno(), 0)
        yield
    finally:
        os.dup2(kept, 0)
        os.close(kept)


def _command(words, stdin):
    """`upswing` with these words, with standard streams and a log of its own."""
    from upswing.cli import main

    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(2)]
    before, root = (sys.stdout, sys.stderr), logging.getLogger()
    handlers, level = root.handlers[:], root.level
    sys.stdout, sys.stderr = streams
    try:
        with _standard_input(stdin):
            code = main(words)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except Exception:  # noqa: BLE001 - as the interpreter tells of it
        traceback.print_exc()
        code = 1
    finally:
        sys.stdout, sys.stderr = before
        root.handlers[:] = handlers
        root.setLevel(level)
    for each in streams:
        each.flush()
    return subprocess.CompletedProcess(words, code or 0, *(s.buffer.getvalue() for s in streams))


# ── the bus, the metrics and the disk ────────────────────────────────────────────────────────────


def small(text="ok", **metadata):
    """The smallest valid trajectory that says `text`."""
    at = "2025-12-08T13:00:00Z"
    return {
        "trajectory_id": str(uuid.uuid4()),
        "session_id": "s",
        "agent_id": "a",
        "start_timestamp": at,
        "end_timestamp": at,
        "turns": [
            {
                "turn_id": 1,
                "timestamp": at,
                "observation": {"type": "user_message", "content": "go"},
                "action": {"type": "response"},
                "result": {"success": True, "output": text},
            }
        ],
        "task_context": {"task_id": "t", "instructions": "go"},
        "metadata": {"model": "m", **metadata},
    }


@contextlib.asynccontextmanager
async def on_bus(url, *, errors=None, **options):
    """A plain nats-py client with the URL's role; what the server complains of goes to `errors`."""
    from nats.aio.client import Client as Nats

    complaints = [] if errors is None else errors

    async def complain(error):
        complaints.append(str(error))

    role = url.partition("://")[2].partition(":")[0] if "@" in url else ""
    prefix = f"_INBOX_{role}".encode() if role else b"_INBOX"
    client = Nats()
    try:
        await client.connect(
            url, inbox_prefix=prefix, error_cb=complain, **{"connect_timeout": 5, **options}
        )
    except BaseException:
        await client.close()
        if client._transport:  # a refused client forgets its socket
            client._transport.close()
            with contextlib.suppress(OSError):
                await client._transport.wait_closed()
        raise
    try:
        yield client
    finally:
        await client.close()


def samples(text):
    """{(series, sorted labels): value} of what /metrics says."""
    from prometheus_client.parser import text_string_to_metric_families

    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def rows(data, sql, *values):
    """Ask the data directory's SQLite file, as somebody who only reads."""
    import sqlite3

    with contextlib.closing(
        sqlite3.connect(f"file:{data / 'upswing.db'}?mode=ro", uri=True, timeout=60)
    ) as connection:
        return connection.execute(sql, values).fetchall()


def files_with(folder, *needles):
    """(file, needle) for every needle that stands in the bytes of a file below `folder`."""
    wanted = [n if isinstance(n, bytes) else n.encode() for n in needles]
    found = []
    for path in sorted(Path(folder).rglob("*")):
        if path.is_file():
            body = path.read_bytes()
            found += [(str(path.relative_to(folder)), n) for n in wanted if n in body]
    return found
