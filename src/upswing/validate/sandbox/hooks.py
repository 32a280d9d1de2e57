"""What does Python itself refuse, where the kernel cannot be asked to?

This stops code that does not mean to break out, and no other: `ctypes`, a crash or the garbage
collector's lists lead around it. It is used only where a better fence is missing.
"""

from __future__ import annotations

import os
import posix
import sys
import sysconfig
from _thread import _local
from collections.abc import Callable
from typing import Any

from upswing.validate.sandbox.python_files import DEVICES

_REFUSED = (
    "socket.",
    "subprocess.",
    "os.fork",
    "os.exec",
    "os.spawn",
    "os.posix_spawn",
    "os.system",
    "os.kill",
    "os.putenv",
    "ctypes.",
    "pty.",
    "signal.pthread_kill",
)
_ALLOWED = frozenset({"socket.gethostname"})
_CHANGES = frozenset(
    {
        "os.remove",
        "os.rename",
        "os.rmdir",
        "os.mkdir",
        "os.link",
        "os.symlink",
        "os.truncate",
        "shutil.rmtree",
        "shutil.move",
        "shutil.copyfile",
    }
)
_METADATA = frozenset(
    {"os.chmod", "os.chown", "os.utime", "os.chflags", "os.setxattr", "os.removexattr"}
)
"""A file that is open may be anybody's, so these want a path."""
_READS = frozenset({"os.listdir", "os.scandir", "os.getxattr", "os.listxattr", "os.chdir"})
_SILENT = ("stat", "lstat", "access", "readlink", "statvfs", "pathconf")
"""Functions without an audit event: they are put behind a check of their own."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def install_audit_hook(folder: str) -> None:
    """From here on this process refuses itself what the list names."""
    fence = _PathFence(folder)
    _guard_silent_functions(fence.check_readable)
    sys.addaudithook(fence.check_event)


class _PathFence:
    """Which paths are within, and what an event asks for."""

    def __init__(self, folder: str) -> None:
        self._writable = (os.path.realpath(folder), *DEVICES)
        libraries = {*sys.path, sysconfig.get_path("stdlib"), "/usr/share/zoneinfo"}
        self._readable = (*self._writable, *(os.path.realpath(path) for path in libraries if path))
        self._finding = _local()

    def check_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            self._check_open(*arguments)
        elif event in _CHANGES:
            self._require_within(arguments[0], self._writable)
        elif event in _METADATA:
            self._require_within(
                "/" if isinstance(arguments[0], int) else arguments[0], self._writable
            )
        elif event in _READS:
            self.check_readable(arguments[0])
        elif event.startswith(_REFUSED) and event not in _ALLOWED:
            raise PermissionError(f"{event} is not allowed in the sandbox")

    def check_readable(self, path: Any) -> None:
        if not getattr(self._finding, "out", False):  # finding out where a path leads looks at it
            self._require_within("." if path is None else path, self._readable)

    def _check_open(self, path: Any, _: Any, flags: Any) -> None:
        if path is not None:
            writes = isinstance(flags, int) and flags & _WRITING
            self._require_within(path, self._writable if writes else self._readable)

    def _require_within(self, path: Any, places: tuple[str, ...]) -> None:
        if isinstance(path, int):
            return  # a file that is open already
        self._finding.out = True
        try:
            where = os.path.realpath(os.fsdecode(path))
        finally:
            self._finding.out = False
        if not any(where == place or where.startswith(f"{place}/") for place in places):
            raise PermissionError(f"{path!r} is outside the sandbox")


def _guard_silent_functions(check: Callable[[Any], None]) -> None:
    """Put `check` before the functions that Python does not report."""
    for name in _SILENT:
        if hasattr(os, name):
            function = _guarded(getattr(os, name), check)
            setattr(os, name, function)
            setattr(posix, name, function)


def _guarded(plain: Callable[..., Any], check: Callable[[Any], None]) -> Callable[..., Any]:
    def function(path: Any, *arguments: Any, **named: Any) -> Any:
        check(path)
        return plain(path, *arguments, **named)

    return function
