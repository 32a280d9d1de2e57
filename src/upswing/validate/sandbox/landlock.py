"""Which files can a process still reach? Python's own library to read, one folder to write.

Landlock is a promise that a process makes to the kernel about itself and its children, for ever.
"""

from __future__ import annotations

import ctypes
import os
import struct

from upswing.validate.sandbox.libc import call, long
from upswing.validate.sandbox.python_files import DEVICES, libraries

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION = 1
_BENEATH = 1
_EXECUTE, _WRITE, _READ, _LIST = 1, 2, 4, 8
_TRUNCATE, _DEVICES = 1 << 14, 1 << 15
_OF_A_FILE = _EXECUTE | _WRITE | _READ | _TRUNCATE | _DEVICES
_KNOWN = {1: 1 << 13, 2: 1 << 14, 3: 1 << 15, 4: 1 << 15}
"""Version → the first right that it does not know; newer ones know one more."""


def restrict(folder: str) -> bool:
    """From here on only `folder` can be written, and only it and libraries can be read."""
    try:
        version = call("syscall", long(_CREATE), None, long(0), long(_VERSION))
    except OSError:
        return False
    every = _KNOWN.get(version, 1 << 16) - 1
    rules = call("syscall", long(_CREATE), *_ruleset(version, every), long(0))
    for path in libraries():
        _allow(rules, path, (_READ | _LIST | _EXECUTE) & every)
    for path in DEVICES:
        _allow(rules, path, (_READ | _WRITE) & every)
    _allow(rules, folder, every & ~_EXECUTE)
    call("syscall", long(_RESTRICT), long(rules), long(0))
    os.close(rules)
    return True


def _ruleset(version: int, every: int) -> tuple[ctypes.Array[ctypes.c_char], ctypes.c_long]:
    words = [every]
    if version >= 4:
        words.append(0b11)  # binding and connecting TCP sockets
    if version >= 6:
        words.append(0b11)  # abstract sockets of others, signals to others
    raw = struct.pack(f"{len(words)}Q", *words)
    return ctypes.create_string_buffer(raw, len(raw)), long(len(raw))


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what is not there needs no permission
    allowed = rights if os.path.isdir(path) else rights & _OF_A_FILE  # noqa: PTH112 - no pathlib here
    rule = ctypes.create_string_buffer(struct.pack("=Qi", allowed, place), 12)
    call("syscall", long(_ADD), long(rules), long(_BENEATH), rule, long(0))
    os.close(place)
