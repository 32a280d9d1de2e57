"""What does Python itself refuse, where the kernel cannot be asked to?

This stops code that does not mean to break out, and no other: `ctypes`, a crash or the garbage
collector's lists lead around it. It is used only where a better fence is missing.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from typing import Any

_REFUSED = (
    "socket.", "subprocess.", "os.fork", "os.exec", "os.spawn", "os.posix_spawn", "os.system",
    "os.kill", "os.putenv", "ctypes.", "pty.", "signal.pthread_kill",
)  # fmt: skip
_ALLOWED = frozenset({"socket.gethostname"})
_CHANGES = frozenset(
    {"os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate",
     "os.chmod", "os.chown", "os.utime", "shutil.rmtree", "shutil.move", "shutil.copyfile"}
)  # fmt: skip
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def watch(folder: str) -> None:
    """From here on this process refuses itself what the list names."""
    home = os.path.realpath(folder)
    readable = tuple(
        os.path.realpath(path)
        for path in {*sys.path, sysconfig.get_path("stdlib"), "/usr/share/zoneinfo"}
        if path
    )
    real = os.path.realpath

    def beneath(path: Any, *places: str) -> bool:
        if isinstance(path, int):
            return True  # a file that is open already
        where = real(os.fsdecode(path))
        return any(where == place or where.startswith(f"{place}/") for place in places)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            writes = isinstance(flags, int) and flags & _WRITING
            allowed = (home,) if writes else (home, *readable)
            if path is not None and not beneath(path, *allowed):
                raise PermissionError(f"{path!r} is outside the sandbox")
        elif event in _CHANGES:
            if not beneath(arguments[0], home):
                raise PermissionError(f"{arguments[0]!r} is outside the sandbox")
        elif event.startswith(_REFUSED) and event not in _ALLOWED:
            raise PermissionError(f"{event} is not allowed in the sandbox")

    sys.addaudithook(hook)
