"""How does a child end when its parent is gone, however the parent ended?"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import sys

_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_SET_DEATH_SIGNAL = 1


def die_with_parent() -> None:
    """In the child, before it becomes another program: the kernel ends it with its parent.

    Elsewhere than on Linux nothing is done: children end with an orderly stop, and those that read
    their standard input end when it does.
    """
    if _LIBC is not None:
        _LIBC.prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)


def kill_group(process: asyncio.subprocess.Process) -> None:
    """End a child that leads its group, and what is left of the group.

    A number is given to another process once its own has been waited for and nobody of its group is left. So
    a process of that number beside a child that has ended is a stranger; orphans of the group are not.
    """
    with contextlib.suppress(ProcessLookupError):
        if process.returncode is not None and _exists(process.pid):
            return
        os.killpg(process.pid, signal.SIGKILL)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
