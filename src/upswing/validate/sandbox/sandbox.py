"""How is code run that a model wrote? In a child process that can do nothing but compute.

| what                    | bound                                                                  |
|-------------------------|------------------------------------------------------------------------|
| CPU time, wall time     | 4 s, 20 s; then it is killed, and every process it may have with it    |
| memory                  | 512 MB of addresses                                                    |
| processes               | none besides itself, and a few threads                                 |
| files                   | reads libraries, writes one temporary folder of 16 MB, which goes away |
|                         | others are not there: not to look at, not to change mode, owner, times |
| network                 | none                                                                   |
| what it prints, gives   | the first 64 KB, 1 MB; the rest is thrown away                         |

How firmly these hold depends on the system, and each run says what held it (`ProgramRun.fences`; the
table is in `upswing.validate.sandbox`). On Linux with all five fences the bounds are the kernel's.
Where the own root, Landlock or seccomp is missing, as on macOS or in most containers, the rest is
fenced by Python's own audit hooks, which stop mistakes and not malice: there, whoever validates
models they do not trust does it in a virtual machine. A side channel, such as the time something
takes, is open everywhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

import upswing
from upswing.contracts.validation import CaseResult, Program, ProgramRun
from upswing.errors import Transient
from upswing.infra.process import die_with_parent, kill_group

_LIBRARY = str(Path(upswing.__file__).parent.parent)
_START = f"import sys; sys.path.insert(0, {_LIBRARY!r}); from upswing.validate.sandbox.run import main; main()"
_MB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """How much one program may use."""

    cpu_seconds: int = 4
    wall_seconds: int = 20
    """From start to end; it waits for nothing, so only a busy machine needs more than CPU time."""
    memory_bytes: int = 512 * _MB
    disk_bytes: int = 16 * _MB
    processes: int = 16
    """Threads, mostly: on Linux it cannot start a process at all."""
    output_bytes: int = 64 * 1024
    value_bytes: int = _MB


class Sandbox:
    """Runs programs, a few at a time."""

    def __init__(
        self,
        limits: SandboxLimits = SandboxLimits(),  # noqa: B008  it is frozen
        max_concurrent: int = 2,
        fences: Collection[str] = ("namespaces", "root", "landlock", "seccomp"),
    ) -> None:
        """`fences` are those to try; fewer of them show what a lesser system can do."""
        self._limits = limits
        self._fences = list(fences)
        self._room = asyncio.Semaphore(max_concurrent)

    async def __call__(self, program: Program) -> ProgramRun:
        """How it ran; `Transient` when it could not even be started, which is not its fault."""
        async with self._room:
            with tempfile.TemporaryDirectory(prefix="upswing-sandbox-") as folder:
                return await self._run(program, str(Path(folder).resolve()))  # noqa: ASYNC240 - at once

    async def _run(self, program: Program, folder: str) -> ProgramRun:
        process = await self._start(folder)
        ended = "done"
        work = asyncio.gather(
            _send(process, self._order(program, folder)),
            _read_first(process.stdout, self._limits.value_bytes),
            _read_first(process.stderr, self._limits.output_bytes),
        )
        try:
            async with asyncio.timeout(self._limits.wall_seconds):
                _, reported, printed = await asyncio.shield(work)
        except TimeoutError:
            ended = "timeout"
            kill_group(process)
            _, reported, printed = await work
        finally:
            kill_group(process)
            await process.wait()
        if ended == "done" and process.returncode:
            ended = "killed"
        return parse_output(reported, printed, ended)

    async def _start(self, folder: str) -> asyncio.subprocess.Process:
        try:
            return await asyncio.create_subprocess_exec(
                sys.executable,
                "-I",
                "-S",
                "-B",
                "-c",
                _START,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=folder,
                start_new_session=True,
                preexec_fn=die_with_parent,
                env={"PATH": os.defpath, "HOME": folder, "TMPDIR": folder, "LC_ALL": "C.UTF-8"},
            )
        except OSError as error:
            raise Transient(f"The sandbox does not start ({error.strerror}).") from None

    def _order(self, program: Program, folder: str) -> bytes:
        return msgspec.json.encode(
            {
                "library": _LIBRARY,
                "folder": folder,
                "limits": asdict(self._limits),
                "fences": self._fences,
                "source": program.source.encode(errors="replace").decode(),
                "cases": program.cases,
            }
        )


def parse_output(reported: bytes, printed: bytes, ended: str) -> ProgramRun:
    r"""What the child told, as far as it can be read.

    >>> parse_output(b'{"fences": ["limits"]}\n{"value": 4}\n{"err', b"hello", "killed").gave
    (CaseResult(value=4, error=None),)
    """
    lines = [_line(line) for line in reported.split(b"\n")]
    if "fences" not in lines[0]:
        last_line = printed.decode(errors="replace").strip().rpartition("\n")[2]
        raise Transient(
            f"The sandbox could not be set up: {last_line[:200] or 'it ended at once'}."
        )
    gave = []
    for line in lines[1:]:
        if "value" not in line and "error" not in line:
            break  # cut off: what follows cannot be matched to its case
        gave.append(CaseResult(line.get("value"), line.get("error")))
    return ProgramRun(
        ended=ended,  # type: ignore[arg-type] # one of its words
        gave=tuple(gave),
        broken=next((str(line["broken"]) for line in lines[1:2] if "broken" in line), None),
        output=printed.decode(errors="replace"),
        fences=tuple(map(str, lines[0]["fences"])),
    )


def _line(raw: bytes) -> dict[str, Any]:
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return line if isinstance(line, dict) else {}


async def _send(process: asyncio.subprocess.Process, order: bytes) -> None:
    line = process.stdin
    assert line is not None  # noqa: S101 - we asked for a pipe
    with contextlib.suppress(ConnectionError, BrokenPipeError):
        line.write(order)
        await line.drain()
    line.close()


async def _read_first(stream: asyncio.StreamReader | None, limit: int) -> bytes:
    """The first bytes of what comes; the rest is read and forgotten, so that nobody blocks."""
    assert stream is not None  # noqa: S101 - we asked for a pipe
    kept = bytearray()
    while chunk := await stream.read(65536):
        kept += chunk[: limit - len(kept)]
    return bytes(kept)
