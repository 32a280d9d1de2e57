"""Which files are there at all? Python's library, unchangeable, and one folder.

Landlock refuses to open a foreign file, but whoever owns it could still look at it and change its
mode, owner and times. In a root of its own a process does not find it:

| what                        | how it is there                                   |
|-----------------------------|---------------------------------------------------|
| libraries, a few devices    | bound from outside under their names, read-only   |
| the folder                  | the small file system that `namespaces` mounted   |
| the directories above them  | empty but for them, read-only                     |

It needs the rights that `namespaces` brings, and Linux 5.12.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from pathlib import Path

from upswing.validate.sandbox.libc import call, long
from upswing.validate.sandbox.python_files import DEVICES, libraries

_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_MOUNT_SETATTR = 442
_BIND, _BIND_ALL, _DETACH = 0x1000, 0x1000 | 0x4000, 2
_PLAIN = 0x2 | 0x4  # MS_NOSUID, MS_NODEV
_HERE, _RECURSIVE, _READ_ONLY = -100, 0x8000, 1
_SMALL = b"size=1m,nr_inodes=1024,mode=755"


def change(folder: str) -> bool:
    """From here on nothing exists but what Python needs, and `folder`."""
    number = _PIVOT_ROOT.get(os.uname().machine)
    if number is None:
        return False
    stage = f"{folder}/root"
    try:
        Path(stage).mkdir()
        _build(stage, folder)
        os.chdir(stage)
        call("syscall", long(number), b".", b".")
    except OSError:
        os.chdir(folder)
        with contextlib.suppress(OSError):
            call("umount2", stage.encode(), _DETACH)
        with contextlib.suppress(OSError):
            Path(stage).rmdir()
        return False
    call("umount2", b".", _DETACH)  # the old root; a failure here ends the run, as it must
    os.chdir(folder)
    Path(stage).rmdir()
    return True


def _build(stage: str, folder: str) -> None:
    call("mount", b"tmpfs", stage.encode(), b"tmpfs", long(_PLAIN), _SMALL)
    bound: list[str] = []
    for path in (*libraries(), *DEVICES):
        inside = any(path.startswith(f"{place}/") for place in bound)
        if not inside and Path(path).exists():
            _bind(path, f"{stage}{path}", _BIND_ALL)
            _make_read_only(f"{stage}{path}", _RECURSIVE)
            bound.append(path)
    _bind(folder, f"{stage}{folder}", _BIND)
    _make_read_only(stage, 0)


def _bind(source: str, target: str, how: int) -> None:
    if Path(source).is_dir():
        Path(target).mkdir(parents=True, exist_ok=True)
    else:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        Path(target).touch()
    call("mount", source.encode(), target.encode(), None, long(how), None)


def _make_read_only(path: str, flags: int) -> None:
    attributes = ctypes.create_string_buffer(struct.pack("=4Q", _READ_ONLY, 0, 0, 0), 32)
    call(
        "syscall",
        long(_MOUNT_SETATTR),
        long(_HERE),
        path.encode(),
        long(flags),
        attributes,
        long(32),
    )
