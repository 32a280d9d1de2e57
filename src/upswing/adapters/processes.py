"""How does a child end when its parent is gone, however the parent ended?"""

from __future__ import annotations

import ctypes
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
