"""How does a child outlive its parent, for a while, and how does the next parent find it?

The parent holds a lock for as long as it lives, however it ends; the child looks at the lock and ends
when nobody has held it for too long. The next parent takes the lock, reads who the child is, and
watches it as if it had begun it.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import signal
from pathlib import Path
from typing import Protocol

import msgspec

from upswing.contracts.typed import from_json
from upswing.errors import Transient

_TRIES = 100
_TRY_SECONDS = 0.02
"""Whoever looks at a lock holds it for a moment."""


class ChildProcess(Protocol):
    """A process that can be watched and ended: a child of ours, or one that was adopted."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None: ...
    async def wait(self) -> int: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


class ChildRecord(msgspec.Struct, frozen=True):
    """Who a child is, for the next parent."""

    pid: int
    started: str
    """When, in the kernel's own count: a number that another process has by now is told apart."""
    port: int
    identity: str
    """What it was begun with; a parent that wants something else does not adopt it."""


class AdoptedProcess:
    """A process that somebody else began."""

    def __init__(self, pid: int, handle: int) -> None:
        """`handle`: the kernel's, which is of this process and no later one."""
        self.pid = pid
        self.returncode: int | None = None
        self._handle, self._over = handle, asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(handle, self._on_exit)

    def _on_exit(self) -> None:
        self._loop.remove_reader(self._handle)
        os.close(self._handle)
        self.returncode = 0  # only a parent is told more
        self._over.set()

    async def wait(self) -> int:
        await self._over.wait()
        return 0

    def terminate(self) -> None:
        self._send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self._send_signal(signal.SIGKILL)

    def _send_signal(self, number: int) -> None:
        if self.returncode is None:
            signal.pidfd_send_signal(self._handle, number)


def adopt_process(record: ChildRecord) -> AdoptedProcess | None:
    """The process of a record, if it still runs and can be watched here."""
    try:
        handle = os.pidfd_open(record.pid)
    except (OSError, AttributeError):  # it has ended, or this is not Linux
        return None
    if process_start_time(record.pid) != record.started:
        os.close(handle)
        return None
    return AdoptedProcess(record.pid, handle)


def process_start_time(pid: int) -> str:
    """When a process began, in the kernel's count; "" if there is none, or it is over."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[19]


def read_record(path: Path) -> ChildRecord | None:
    try:
        return from_json(path.read_bytes(), ChildRecord)
    except (OSError, msgspec.MsgspecError):
        return None


def write_record(path: Path, record: ChildRecord) -> None:
    """Without it the child is not adopted, which costs only time."""
    with contextlib.suppress(OSError):
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(msgspec.to_builtins(record)))
        fresh.replace(path)


async def hold_lock(path: Path) -> int:
    """Hold a lock until the returned descriptor is closed, or we end; `Transient` if another does."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    for _ in range(_TRIES):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle
        await asyncio.sleep(_TRY_SECONDS)
    os.close(handle)
    raise Transient(f"Another process holds {path}.")


def is_lock_held(path: Path) -> bool | None:
    """Whether somebody holds a lock; None when there is no such file any more."""
    try:
        handle = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return None
    except OSError:
        return True  # we cannot know just now
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def read_or_create_key(path: Path, new_key: str) -> str:
    """The key in a file that only we can read; `new_key` is written there if there is none."""
    try:
        if known := path.read_text().strip():
            return known
    except (OSError, ValueError):
        pass
    with contextlib.suppress(OSError):  # then the next parent has another key, and adopts nobody
        path.unlink(missing_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(new_key)
    return new_key
