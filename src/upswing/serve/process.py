"""How does a model server come along with one process? A child that belongs to the data directory.

It is started anew on the same port when it dies or no longer answers, and then serves the adapters
that it served before: it writes down which, whoever had them loaded. The next of us takes that port
and these adapters as well, if it can: who was told of them finds them where they were.

| we …                  | the server                                                                 |
|-----------------------|----------------------------------------------------------------------------|
| stop in order         | ends                                                                       |
| are killed            | goes on; the next of us adopts it, and after a minute without one it ends  |
| want something else   | (another base, another version) is ended, and another is started           |
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import secrets
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from upswing import __version__
from upswing.errors import Misuse, Reason, Rejected, Transient, UpswingError
from upswing.infra.adoption import (
    ChildRecord,
    adopt_process,
    hold_lock,
    process_start_time,
    read_or_create_key,
    read_record,
    write_record,
)
from upswing.infra.backoff import Backoff
from upswing.infra.child_env import child_environment
from upswing.infra.heartbeat import FROZEN_SECONDS
from upswing.infra.http import Unreachable, exchange
from upswing.infra.process import (
    ChildSupervisor,
    HealthCheck,
    begin_new_log,
    kill_group,
    last_line,
)
from upswing.infra.sockets import read_saved_port
from upswing.infra.tasks import run_in_background
from upswing.openai.errors import read_error
from upswing.serve.engines.selection import EngineChoice

log = logging.getLogger(__name__)
_STOP_SECONDS = 10.0
_ANSWER_SECONDS = 5.0
_MAX_FAILED_CHECKS = 6
"""In a row: it answers even while it computes, but a machine may be very busy."""
ORPHAN_SECONDS = 60.0
"""Without one of us, a server ends after so long."""
_ADMIN_SECONDS = 600.0
"""An unload waits for the requests under way."""
_RESTARTS = Backoff(0.2, 30.0)
"""Seconds between starts that fail one after the other: each of them computes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelServerSettings:
    """What a model server serves, and how."""

    base: str
    cache: Path
    """Where bases are kept that are made here."""
    engine: EngineChoice = "auto"
    slots: int | None = None
    """Requests in one batch; None: the engine decides."""
    requests: int = 128
    """In flight at once; the others get 429."""
    threads: int | None = None
    """For computing; None: the engine decides."""
    orphan_seconds: float = ORPHAN_SECONDS
    """Without a process that it belongs to, it ends after so long."""

    def arguments(self, folder: Path) -> list[str]:
        """The command line of `upswing.serve.main`, without the port; `folder` holds its state."""
        return [
            "--base",
            self.base,
            "--cache",
            str(self.cache.absolute()),
            "--engine",
            self.engine,
            "--requests",
            str(self.requests),
            "--main-lock",
            str(folder.absolute() / "main.lock"),
            "--orphan-seconds",
            str(self.orphan_seconds),
            "--drain-seconds",
            str(_STOP_SECONDS / 2),
            "--state",
            str(folder.absolute() / "adapters.json"),
            *(("--threads", str(self.threads)) if self.threads else ()),
            *(("--seats", str(self.slots)) if self.slots else ()),
        ]


class ModelProcess:
    """A model server in a process of its own."""

    def __init__(
        self,
        settings: ModelServerSettings,
        folder: Path,
        *,
        key: str | None = None,
        port: int = 0,
        frozen_seconds: float = FROZEN_SECONDS,
        python: Callable[[], str] = lambda: sys.executable,
    ) -> None:
        """`folder` holds its log and its state. Without a key, one is made there: see `key`.

        `python` is the interpreter that each start uses.
        """
        self._folder, self._python = folder, python
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.key = key or read_or_create_key(folder / "key", secrets.token_urlsafe(32))
        self.port = port
        self._arguments = settings.arguments(folder)
        self._lock: int | None = None
        self._stdout_task: asyncio.Task[None] | None = None
        self._child = ChildSupervisor(
            "the model server",
            self._launch_server,
            restart_action="model_server_restart",
            health=HealthCheck(self._is_answering, _MAX_FAILED_CHECKS, "model_server_deaf"),
            is_alive=self._is_answering,
            frozen_seconds=frozen_seconds,
            backoff=_RESTARTS,
        )

    @property
    def url(self) -> str:
        """Without `/v1`; the same as long as we live."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int | None:
        return self._child.pid

    @property
    def restarts(self) -> int:
        return self._child.restarts

    async def start(self) -> str:
        """Its URL, once it answers; `Misuse` with its own last words when it cannot."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            self._lock = self._lock or await hold_lock(self._folder / "main.lock")
            if not await self._adopt_last():
                self.port = self.port or self._last_port()
                await self._launch_server()
        except Transient as error:
            raise Misuse(str(error)) from None
        with contextlib.suppress(OSError):  # without it, the next start takes any port
            (self._folder / "port").write_text(str(self.port))
        self._child.watch()
        return self.url

    async def stop(self) -> None:
        """Requests under way end, for a while; then it goes."""
        await self._child.stop(_STOP_SECONDS)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    async def load(self, name: str, path: Path) -> None:
        """Serve a checkpoint; `Rejected` if it is none of this base, `Transient` if it is away."""
        await self._post_admin(
            "load_lora_adapter", {"lora_name": name, "lora_path": _absolute_path(path)}
        )

    async def unload(self, name: str) -> None:
        """Serve it no more, when its requests under way have ended."""
        await self._post_admin("unload_lora_adapter", {"lora_name": name})

    # ── life ─────────────────────────────────────────────────────────────────────────────────────

    async def _adopt_last(self) -> bool:
        """Take over the server that the last of us left; one that is not as we want it is ended."""
        record = read_record(self._folder / "server.json")
        found = adopt_process(record) if record else None
        if record is None or found is None:
            return False
        url = f"http://127.0.0.1:{record.port}"
        wanted = record.identity == self._server_identity() and self.port in {0, record.port}
        if not wanted or not await _is_answering(url):
            kill_group(found)
            await found.wait()
            return False
        self.port = record.port
        self._child.adopt(found)
        log.info("the model server of last time goes on", extra={"action": "model_server_adopted"})
        return True

    def _server_identity(self) -> str:
        """What a server is begun with; another version is another server."""
        parts = [__version__, self._python(), self._arguments, self.key]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    async def _launch_server(self) -> None:
        environment = {
            **child_environment(),
            "UPSWING_MODEL_SERVER_KEY": self.key,
            "PYTHONUNBUFFERED": "1",
        }
        await asyncio.to_thread(begin_new_log, self._folder / "model-server.log")
        with (self._folder / "model-server.log").open("ab") as log_file:
            process = await self._child.launch(
                self._python(),
                "-m",
                "upswing.serve.main",
                *self._arguments,
                "--port",
                str(self.port),
                env=environment,
                outlives=True,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log_file,
            )
        self.port = await self._child.wait_ready(process, self._wait_ready(process))
        record = ChildRecord(
            process.pid, process_start_time(process.pid), self.port, self._server_identity()
        )
        write_record(self._folder / "server.json", record)

    async def _wait_ready(self, process: asyncio.subprocess.Process) -> int:
        assert process.stdout is not None  # noqa: S101 - we asked for a pipe
        while line := await process.stdout.readline():
            keyword, _, url = line.decode(errors="replace").strip().partition(" ")
            if keyword == "ready":
                self._stdout_task = run_in_background(
                    _discard_output(process.stdout), name="output of the model server"
                )
                return int(url.rpartition(":")[2])
        await process.wait()
        logged = last_line(self._folder / "model-server.log")
        raise Transient(f"The model server did not start: {logged}")

    async def _is_answering(self) -> bool:
        return await _is_answering(self.url)

    def _last_port(self) -> int:
        """0, any free one, if there was none or somebody else has it now."""
        port = read_saved_port(self._folder / "port")
        if not port or _is_free(port):
            return port
        log.warning(
            "port %d is taken; taking any free one", port, extra={"action": "model_server_port"}
        )
        return 0

    # ── questions ────────────────────────────────────────────────────────────────────────────────

    async def _post_admin(self, endpoint: str, body: dict[str, str]) -> None:
        try:
            reply = await exchange(
                "POST",
                f"{self.url}/v1/{endpoint}",
                body=json.dumps(body).encode(),
                key=self.key,
                seconds=_ADMIN_SECONDS,
            )
        except Unreachable as error:
            raise Transient(f"The model server does not answer: {error}") from None
        if not 200 <= reply.status < 300:
            raise _error_from_response(reply.status, reply.body)


async def _discard_output(stream: asyncio.StreamReader) -> None:
    """What a library prints is of no interest, but who is not heard out stands still."""
    while await stream.read(65536):
        pass


def _absolute_path(path: Path) -> str:
    """A matter of names: no disk is asked."""
    return str(path.absolute())


def _error_from_response(status: int, body: bytes) -> UpswingError:
    """What the server's refusal means to us.

    >>> _error_from_response(404, b'{"error":{"message":"There is none."}}')
    Misuse('There is none.')
    """
    error = read_error(body)
    message = error.message or f"The model server answered {status}."
    if status in {404, 401, 403}:
        return Misuse(message)
    if status >= 500:
        return Transient(message)
    return Rejected(Reason(error.code) if error.code in set(Reason) else Reason.SCHEMA, message)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except (OSError, OverflowError):
            return False
    return True


async def _is_answering(url: str) -> bool:
    """Whatever its status is."""
    try:
        await exchange("GET", f"{url}/health", seconds=_ANSWER_SECONDS)
    except (Transient, Rejected):
        return False
    return True
