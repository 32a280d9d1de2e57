"""How does a model server come along with one process? A child that lives as long as we do.

It is started anew on the same port when it dies or no longer answers, and then serves the adapters
that it served before: it writes down which, whoever had them loaded. The next of us takes that port
and these adapters as well, if it can: who was told of them finds them where they were.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import secrets
import socket
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from upswing.adapters.engines.choosing import Wish
from upswing.adapters.environment import child_environment
from upswing.adapters.processes import die_with_parent
from upswing.errors import Misuse, Reason, Rejected, Transient, UpswingError
from upswing.together import aside, kept

log = logging.getLogger(__name__)
_START_SECONDS = 600.0
"""A base that has to be made first takes minutes on a busy machine; a usual start takes seconds."""
_STOP_SECONDS = 10.0
_CHECK_SECONDS = 5.0
_ILL_CHECKS = 6
"""In a row: it answers even while it computes, but a machine may be very busy."""
_ADMIN_SECONDS = 600.0
"""An unload waits for the requests under way."""
_AGAIN_SECONDS = (0.2, 1.0, 5.0, 30.0)
"""Between starts that fail one after the other."""


class ModelProcess:
    """A model server in a process of its own."""

    def __init__(
        self, base: str, cache: Path, folder: Path, *, engine: Wish = "auto",
        key: str | None = None, port: int = 0, seats: int | None = None, requests: int = 128,
        threads: int | None = None,
    ) -> None:  # fmt: skip
        """`folder` holds its log and its state. Without a key, one is made: see `key`."""
        self._folder = folder
        self.key = key or secrets.token_urlsafe(32)
        self.port = port
        self.restarts = 0
        self._words = [
            "--base", base, "--cache", str(cache.absolute()), "--engine", engine,
            "--requests", str(requests), "--with-parent",
            "--drain-seconds", str(_STOP_SECONDS / 2), "--state", str(folder.absolute() / "adapters.json"),
            *(("--threads", str(threads)) if threads else ()),
            *(("--seats", str(seats)) if seats else ()),
        ]  # fmt: skip
        self._process: asyncio.subprocess.Process | None = None
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
        self.port = self.port or self._port_of_last_time()
        try:
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

    async def load(self, name: str, path: Path) -> None:
        """Serve a checkpoint; `Rejected` if it is none of this base, `Transient` if it is away."""
        await self._ask("load_lora_adapter", {"lora_name": name, "lora_path": _absolute(path)})

    async def unload(self, name: str) -> None:
        """Serve it no more, when its requests under way have ended."""
        await self._ask("unload_lora_adapter", {"lora_name": name})

    # ── life ─────────────────────────────────────────────────────────────────────────────────────

    async def _launch(self) -> None:
        known = {
            **child_environment(),
            "UPSWING_MODEL_SERVER_KEY": self.key,
            "PYTHONUNBUFFERED": "1",
        }
        with (self._folder / "model-server.log").open("ab") as words:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "upswing.model_server", *self._words, "--port", str(self.port),
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=words,
                env=known, preexec_fn=die_with_parent,
                start_new_session=True,  # Ctrl-C in a terminal is for us; we stop it in order
            )  # fmt: skip
        try:
            self.port = await asyncio.wait_for(self._ready(self._process), _START_SECONDS)
        except TimeoutError:
            await self._end(0)
            raise Transient(f"The model server was not ready in {_START_SECONDS:.0f} s.") from None
        except BaseException:
            await self._end(0)
            raise

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
            await self._again()

    async def _again(self) -> None:
        failures = 0
        while True:
            try:
                await self._launch()
            except (Transient, OSError, ValueError) as error:
                log.error("%s", error, extra={"action": "model_server_restart_failed"})  # noqa: TRY400 - a clear sentence
                await asyncio.sleep(_AGAIN_SECONDS[min(failures, len(_AGAIN_SECONDS) - 1)])
                failures += 1
            else:
                return

    async def _until_it_ends(self, process: asyncio.subprocess.Process) -> int:
        """Its exit code; one that runs and does not answer is ended."""
        ill = 0
        while True:
            try:
                return await asyncio.wait_for(process.wait(), _CHECK_SECONDS)
            except TimeoutError:
                ill = 0 if await asyncio.to_thread(_answers, self.url) else ill + 1
            if ill >= _ILL_CHECKS and process.returncode is None:
                log.warning("the model server is deaf", extra={"action": "model_server_deaf"})
                process.kill()

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
        text = (self._folder / "model-server.log").read_text(errors="replace").strip()
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
