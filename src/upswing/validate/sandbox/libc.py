"""How is the kernel asked for what Python has no function for?"""

from __future__ import annotations

import ctypes
import os
import sys

_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
LINUX = _LIBC is not None
_SET_DEATH_SIGNAL = 1
_SET_DUMPABLE = 4
_SET_NO_NEW_PRIVILEGES = 38
_CAPABILITIES_V3 = 0x20080522


def call(name: str, *arguments: object) -> int:
    """The result of a C function; OSError when it failed."""
    if _LIBC is None:
        raise OSError(f"{name} is a call of Linux")
    result: int = getattr(_LIBC, name)(*arguments)
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)
    return result


def long(value: int) -> ctypes.c_long:
    """A number at its full width, as the variadic calls take it."""
    return ctypes.c_long(value)


def die_with_parent(signal: int) -> None:
    call("prctl", long(_SET_DEATH_SIGNAL), long(signal), long(0), long(0), long(0))


def be_inspectable() -> None:
    """After a change of user the kernel hides a process's own files in /proc from itself."""
    call("prctl", long(_SET_DUMPABLE), long(1), long(0), long(0), long(0))


def gain_no_privileges() -> None:
    """From here on no program that is started can be more powerful than this one."""
    call("prctl", long(_SET_NO_NEW_PRIVILEGES), long(1), long(0), long(0), long(0))


def drop_capabilities() -> None:
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_V3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    call("capset", header, nothing)
