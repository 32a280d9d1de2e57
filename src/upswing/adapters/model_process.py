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
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from upswing import __version__
from upswing.adapters.adopting import (
    Adopted,
    ChildProcess,
    Record,
    adopt,
    hold,
    private_key,
    read_record,
    started_at,
    write_record,
)
from upswing.adapters.engines.choosing import Wish
from upswing.adapters.environment import child_environment
from upswing.adapters.processes import ended, kill_group, launched, relaunched, until_ready
from upswing.errors import Misuse, Reason, Rejected, Transient, UpswingError
from upswing.pulse import BEAT_SECONDS, FROZEN_SECONDS, Pulse
from upswing.together import aside, begin, end, kept

log = logging.getLogger(__name__)
_STOP_SECONDS = 10.0
_CHECK_SECONDS = 5.0
_ILL_CHECKS = 6
"""In a row: it answers even while it computes, but a machine may be very busy."""
ORPHAN_SECONDS = 60.0
"""Without one of us, a server ends after so long."""
_ADMIN_SECONDS = 600.0
"""An unload waits for the requests under way."""
_LONGEST_PAUSE = 30.0
"""Seconds between starts that fail one after the other, at most: each of them computes."""


class ModelProcess:
    """A model server in a process of its own."""

    def __init__(
        self, base: str, cache: Path, folder: Path, *, engine: Wish = "auto",
        key: str | None = None, port: int = 0, seats: int | None = None, requests: int = 128,
        threads: int | None = None, frozen_seconds: float = FROZEN_SECONDS,
        orphan_seconds: float = ORPHAN_SECONDS,
    ) -> None:  # fmt: skip
        """`folder` holds its log and its state. Without a key, one is made there: see `key`."""
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.key = key or private_key(folder / "key", secrets.token_urlsafe(32))
        self.port = port
        self.restarts = 0
        self._words = [
            "--base", base, "--cache", str(cache.absolute()), "--engine", engine,
            "--requests", str(requests), "--main-lock", str(folder.absolute() / "main.lock"),
            "--orphan-seconds", str(orphan_seconds),
            "--drain-seconds", str(_STOP_SECONDS / 2), "--state", str(folder.absolute() / "adapters.json"),
            *(("--threads", str(threads)) if threads else ()),
            *(("--seats", str(seats)) if seats else ()),
        ]  # fmt: skip
        self._process: ChildProcess | None = None
        self._lock: int | None = None
        self._frozen = frozen_seconds
        self._pulse = Pulse(frozen_seconds)
        self._watch: asyncio.Task[None] | None = None
        self._ears: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """Without `/v1`; the same as long as we live."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    async def start(self) -> str:
        """Its URL, once it answers; `Misuse` with its own last words when it cannot."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            self._lock = self._lock or await hold(self._folder / "main.lock")
            if not await self._adopted():
                self.port = self.port or self._port_of_last_time()
                await self._launch()
        except Transient as error:
            raise Misuse(str(error)) from None
        with contextlib.suppress(OSError):  # without it, the next start takes any port
            (self._folder / "port").write_text(str(self.port))
        self._watch = kept(self._keep_alive, name="model server")
        return self.url

    async def stop(self) -> None:
        """Requests under way end, for a while; then it goes."""
        if self._watch:
            self._watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watch
        await self._end(_STOP_SECONDS)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    async def load(self, name: str, path: Path) -> None:
        """Serve a checkpoint; `Rejected` if it is none of this base, `Transient` if it is away."""
        await self._ask("load_lora_adapter", {"lora_name": name, "lora_path": _absolute(path)})

    async def unload(self, name: str) -> None:
        """Serve it no more, when its requests under way have ended."""
        await self._ask("unload_lora_adapter", {"lora_name": name})

    # ── life ─────────────────────────────────────────────────────────────────────────────────────

    async def _adopted(self) -> bool:
        """Take over the server that the last of us left; one that is not as we want it is ended."""
        record = read_record(self._folder / "server.json")
        found = adopt(record) if record else None
        if record is None or found is None:
            return False
        url = f"http://127.0.0.1:{record.port}"
        wanted = record.identity == self._identity() and self.port in {0, record.port}
        if not wanted or not await asyncio.to_thread(_answers, url):
            kill_group(found)
            await found.wait()
            return False
        self._process, self.port, self._pulse = found, record.port, Pulse(self._frozen)
        log.info("the model server of last time goes on", extra={"action": "model_server_adopted"})
        return True

    def _identity(self) -> str:
        """What a server is begun with; another version is another server."""
        told = [__version__, sys.executable, self._words, self.key]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()

    async def _launch(self) -> None:
        known = {
            **child_environment(),
            "UPSWING_MODEL_SERVER_KEY": self.key,
            "PYTHONUNBUFFERED": "1",
        }
        self._pulse = Pulse(self._frozen)
        with (self._folder / "model-server.log").open("ab") as words:
            self._process = process = await launched(
                sys.executable, "-m", "upswing.model_server", *self._words, "--port", str(self.port),
                pulse=self._pulse, env=known, outlives=True, stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE, stderr=words,
            )  # fmt: skip
        self.port = await until_ready(
            process, self._pulse, "the model server", self._ready(process)
        )
        told = Record(process.pid, started_at(process.pid), self.port, self._identity())
        write_record(self._folder / "server.json", told)

    async def _ready(self, process: asyncio.subprocess.Process) -> int:
        assert process.stdout is not None  # noqa: S101 - we asked for a pipe
        while line := await process.stdout.readline():
            word, _, url = line.decode(errors="replace").strip().partition(" ")
            if word == "ready":
                self._ears = aside(_hear_out(process.stdout), name="words of the model server")
                return int(url.rpartition(":")[2])
        await process.wait()
        raise Transient(f"The model server did not start: {self._last_words()}")

    async def _keep_alive(self) -> None:
        while self._process:
            code = await self._until_it_ends(self._process)
            self.restarts += 1
            said = "the model server ended with %s; starting it again"
            log.warning(said, code, extra={"action": "model_server_restart"})
            await relaunched(self._launch, "the model server", longest=_LONGEST_PAUSE)

    async def _until_it_ends(self, process: ChildProcess) -> int:
        """Its exit code; one that runs and is frozen or does not answer is ended."""
        beside = [begin(self._check(process), name="health")]
        if isinstance(process, Adopted):  # it beats for the last of us
            beside.append(begin(self._listen(), name="beats"))
        try:
            return await ended(process, self._pulse, "the model server")
        finally:
            await end(beside)

    async def _listen(self) -> None:
        while True:
            if await asyncio.to_thread(_answers, self.url):
                self._pulse.beat()
            await asyncio.sleep(BEAT_SECONDS)

    async def _check(self, process: ChildProcess) -> None:
        ill = 0
        while ill < _ILL_CHECKS:
            await asyncio.sleep(_CHECK_SECONDS)
            ill = 0 if await asyncio.to_thread(_answers, self.url) else ill + 1
        log.warning("the model server is deaf", extra={"action": "model_server_deaf"})
        kill_group(process)

    async def _end(self, seconds: float) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), seconds)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    def _port_of_last_time(self) -> int:
        """0, any free one, if there was none or somebody else has it now."""
        try:
            port = int((self._folder / "port").read_text())
        except (OSError, ValueError):
            return 0
        if _is_free(port):
            return port
        log.warning(
            "port %d is taken; taking any free one", port, extra={"action": "model_server_port"}
        )
        return 0

    def _last_words(self) -> str:
        try:
            text = (self._folder / "model-server.log").read_text(errors="replace").strip()
        except OSError as error:
            return f"its log cannot be read ({error})"
        return text.splitlines()[-1] if text else "it said nothing"

    # ── questions ────────────────────────────────────────────────────────────────────────────────

    async def _ask(self, what: str, told: dict[str, str]) -> None:
        error = await asyncio.to_thread(_post, f"{self.url}/v1/{what}", told, self.key)
        if error is not None:
            raise error


async def _hear_out(words: asyncio.StreamReader) -> None:
    """What a library prints is of no interest, but who is not heard out stands still."""
    while await words.read(65536):
        pass


def _absolute(path: Path) -> str:
    """A matter of names: no disk is asked."""
    return str(path.absolute())


def _post(url: str, told: dict[str, str], key: str) -> UpswingError | None:
    headers = {"content-type": "application/json", "authorization": f"Bearer {key}"}
    request = urllib.request.Request(url, json.dumps(told).encode(), headers)  # noqa: S310 - loopback
    try:
        with urllib.request.urlopen(request, timeout=_ADMIN_SECONDS):  # noqa: S310 - loopback
            return None
    except urllib.error.HTTPError as error:
        with error:
            return _as_ours(error.code, error.read())
    except OSError as error:
        return Transient(f"The model server does not answer: {error}.")


def _as_ours(status: int, body: bytes) -> UpswingError:
    """What the server's refusal means to us.

    >>> _as_ours(404, b'{"error":{"message":"There is none."}}')
    Misuse('There is none.')
    """
    try:
        told: Any = json.loads(body)["error"]
        said, code = str(told["message"]), str(told.get("code"))
    except (ValueError, KeyError, TypeError):
        said, code = f"The model server answered {status}.", ""
    if status in {404, 401, 403}:
        return Misuse(said)
    if status >= 500:
        return Transient(said)
    return Rejected(Reason(code) if code in set(Reason) else Reason.SCHEMA, said)


def _is_free(port: int) -> bool:
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", port))
        except (OSError, OverflowError):
            return False
    return True


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=_CHECK_SECONDS):  # noqa: S310 - loopback
            return True
    except urllib.error.HTTPError as error:
        error.close()
        return True
    except OSError:
        return False
