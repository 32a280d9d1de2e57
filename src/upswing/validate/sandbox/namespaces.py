"""How does a process get a world of its own? No network in it, no other processes, a small disk.

Whoever runs us needs no rights for it: a user namespace gives them, where the system allows one.
Somebody who is root leaves that behind first, if Python's library can be read without it.
"""

from __future__ import annotations

import os
import signal
import stat
import sysconfig
from pathlib import Path

from upswing.validate.sandbox.libc import be_inspectable, call, die_with_parent, long

_NEW = (
    0x10000000  # user
    | 0x40000000  # network
    | 0x20000000  # processes
    | 0x08000000  # IPC
    | 0x04000000  # host name
    | 0x00020000  # mounts
)
_PRIVATE = 0x40000 | 0x4000  # MS_PRIVATE, MS_REC
_PLAIN = 0x2 | 0x4  # MS_NOSUID, MS_NODEV
_NOBODY = 2_000_000_000
"""Above all users that systems give out; with the process id it is this process's own."""


def leave_root(folder: str) -> None:
    """Root becomes nobody, unless nobody could not even import the standard library."""
    if os.geteuid() != 0 or not _readable_by_all(sysconfig.get_path("stdlib")):
        return
    nobody = _NOBODY + os.getpid()
    os.chown(folder, nobody, nobody)
    os.setgroups([])
    os.setresgid(nobody, nobody, nobody)
    os.setresuid(nobody, nobody, nobody)
    be_inspectable()


def enter(folder: str, disk_bytes: int, seconds: int) -> bool:
    """Go on inside new namespaces, as their first process; the outer one waits and ends with it.

    `folder` becomes a file system in memory of at most `disk_bytes`. The outer process lives for
    `seconds` at most and dies with whoever started it, and everything inside dies with it.
    """
    user, group = os.getuid(), os.getgid()
    size = f"size={disk_bytes},nr_inodes=256,mode=700".encode()
    try:
        call("unshare", _NEW)
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
        call("mount", b"none", b"/", None, long(_PRIVATE), None)
        call("mount", b"tmpfs", folder.encode(), b"tmpfs", long(_PLAIN), size)
    except OSError:
        return False  # refused, or granted without its rights: what was gained so far does no harm
    _continue_as_init(seconds)
    os.chdir(folder)
    return True


def _continue_as_init(seconds: int) -> None:
    child = os.fork()
    if child:
        die_with_parent(signal.SIGKILL)  # asked for before, and forgotten with the old namespace
        signal.alarm(seconds)
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    die_with_parent(signal.SIGKILL)


def _readable_by_all(path: str) -> bool:
    ways = [Path(path), *Path(path).parents]
    return all(way.stat().st_mode & stat.S_IXOTH for way in ways)


def _write(path: str, text: str) -> None:
    Path(path).write_text(text)
