"""Which requests does the kernel refuse this process from now on?

| request                                                     | answer                            |
|-------------------------------------------------------------|-----------------------------------|
| a socket, another program, a signal, a look into a process  | EPERM                             |
| mounts, namespaces, modules, keys, tracing, io_uring, SysV  | EPERM                             |
| a file's mode, owner, times, attributes, if `root` is away  | EPERM, in the own folder too      |
| `clone` without CLONE_THREAD: a new process                 | EPERM; a thread may be started    |
| `clone3`, whose flags cannot be read here                   | ENOSYS, so that `clone` is tried  |
| `socketpair` of another family than local                   | EPERM; event loops need local ones|
| a call of another architecture                              | the process ends                  |
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

from upswing.validate.sandbox.libc import call, long

# name: (x86-64, arm64); None where there is no such call
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    "socket": (41, 198), "connect": (42, 203), "accept": (43, 202), "accept4": (288, 242),
    "bind": (49, 200), "listen": (50, 201), "fork": (57, None), "vfork": (58, None),
    "execve": (59, 221), "execveat": (322, 281), "kill": (62, 129), "tkill": (200, 130),
    "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424), "pidfd_getfd": (438, 438),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "setsid": (112, 157), "setpgid": (109, 154),
    "personality": (135, 92), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "mount_setattr": (442, 442),
    "unshare": (272, 97), "setns": (308, 268), "bpf": (321, 280), "perf_event_open": (298, 241),
    "userfaultfd": (323, 282), "keyctl": (250, 219), "add_key": (248, 217),
    "request_key": (249, 218), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225), "shmget": (29, 194),
    "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180), "memfd_create": (319, 279),
    "memfd_secret": (447, 447), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
}  # fmt: skip
_METADATA: dict[str, tuple[int | None, int | None]] = {
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
}
"""What changes a file's metadata. A filter cannot read the path, so it is refused for every file."""
_IOCTL, _SET_FLAGS = (16, 29), (0x40086602, 0x401C5820)
_CLONE, _SOCKETPAIR, _CLONE3 = (56, 220), (53, 199), 435
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Name → column of the table, and how the kernel calls the architecture."""
_LOAD, _EQUAL, _ANY_BIT, _AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _SECOND_ARGUMENT = (
    0,
    4,
    16,
    24,
)  # where they stand in what the filter sees
_FOREIGN = 0x40000000  # x86's third way to number its calls
_THREAD, _LOCAL = 0x10000, 1
_SET_SECCOMP, _FILTER = 22, 2

Instruction = tuple[int, int, int, int]
"""Code, lines to skip if true, lines to skip if not, operand."""


def refuse(*, metadata: bool) -> bool:
    """Put the filter on this process; False where nobody has written one for the machine.

    `metadata`: files of others are within reach, so that no file's mode, owner or times may change.
    """
    known = _MACHINES.get(os.uname().machine)
    if known is None:
        return False
    lines = program(*known, metadata=metadata)
    raw = b"".join(struct.pack("=HBBI", *line) for line in lines)
    kept = ctypes.create_string_buffer(raw, len(raw))
    shape = struct.pack("@HxxxxxxQ", len(lines), ctypes.addressof(kept))
    holder = ctypes.create_string_buffer(shape, len(shape))
    try:
        call("prctl", long(_SET_SECCOMP), long(_FILTER), holder, long(0), long(0))
    except OSError:
        return False
    return True


def program(column: int, architecture: int, *, metadata: bool = False) -> list[Instruction]:
    """The filter, line by line."""
    no = _ERROR | errno.EPERM
    numbers = [row[column] for row in (_REFUSED | _METADATA if metadata else _REFUSED).values()]
    lines: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _FOREIGN),
        (_RETURN, 0, 0, no),
        (_EQUAL, 0, 1, _CLONE3),
        (_RETURN, 0, 0, _ERROR | errno.ENOSYS),
    ]
    for number in numbers:
        if number is not None:
            lines += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, no)]
    if metadata:
        lines += [
            (_EQUAL, 0, 5, _IOCTL[column]),
            (_LOAD, 0, 0, _SECOND_ARGUMENT),
            (_EQUAL, 1, 0, _SET_FLAGS[0]),
            (_EQUAL, 0, 1, _SET_FLAGS[1]),
            (_RETURN, 0, 0, no),
            (_RETURN, 0, 0, _ALLOW),
        ]
    return [
        *lines,
        (_EQUAL, 0, 4, _CLONE[column]),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_ANY_BIT, 1, 0, _THREAD),
        (_RETURN, 0, 0, no),
        (_RETURN, 0, 0, _ALLOW),
        (_EQUAL, 0, 3, _SOCKETPAIR[column]),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_EQUAL, 1, 0, _LOCAL),
        (_RETURN, 0, 0, no),
        (_RETURN, 0, 0, _ALLOW),
    ]
