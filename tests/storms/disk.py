"""A disk that forgets: what does it hold when the power goes, with a cache that was never flushed?

A process of its own serves one file through /dev/fuse; a loop device makes a disk of it, on which lies an
ext4. It knows every write and every flush of that disk in their order. A cut writes an image of the disk as
the current's end would leave it: all that was flushed, and of the writes since the last flush some, some in
part, and in no order.

    stdin   cut PATH SEED      stdout  cut WRITES DROPPED
"""

import contextlib
import ctypes
import errno
import mmap
import os
import random
import select
import shutil
import struct
import subprocess
import sys
from pathlib import Path

CHUNK, SECTOR = 1 << 16, 512
ONE_WRITE = 1 << 20
SILENT = {2, 36, 42}
"""Forget, interrupt and many forgets: the kernel wants no answer."""
_LIBC = ctypes.CDLL(None, use_errno=True)


class Platter:
    """The bytes of the disk: as the machine reads them, as they are for good, and what lies between."""

    def __init__(self, size):
        self.size = size
        self.now, self._stable = mmap.mmap(-1, size), mmap.mmap(-1, size)
        self._pending, self._touched = [], set()

    def write(self, offset, body):
        self.now[offset : offset + len(body)] = body
        self._pending.append((offset, body))

    def flush(self):
        for offset, body in self._pending:
            self._put(self._stable, offset, body)
        self._pending.clear()

    def _put(self, image, offset, body):
        image[offset : offset + len(body)] = body
        self._touched.update(range(offset // CHUNK, (offset + len(body) - 1) // CHUNK + 1))

    def cut(self, path, chance):
        """Write the image that is left; how many writes were not flushed, and how many of these are lost."""
        left, dropped = {}, 0
        for offset, body in self._pending:
            fate = chance.random()
            if fate < 0.5:
                dropped += 1
                continue
            end = len(body)
            if fate < 0.6 and end > SECTOR:  # torn
                end = SECTOR * chance.randrange(1, end // SECTOR)
                dropped += 1
            for place in range(0, end, SECTOR):
                left[offset + place] = body[place : place + SECTOR]
        image = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
        try:
            os.ftruncate(image, self.size)
            for chunk in sorted(self._touched):
                os.pwrite(image, self._stable[chunk * CHUNK : (chunk + 1) * CHUNK], chunk * CHUNK)
            for offset, body in left.items():
                os.pwrite(image, body, offset)
        finally:
            os.close(image)
        return len(self._pending), dropped


class Server:
    """Answers the kernel: one file, mounted over a file."""

    def __init__(self, mountpoint, size):
        self._platter = Platter(size)
        self._fuse = os.open("/dev/fuse", os.O_RDWR)
        told = f"fd={self._fuse},rootmode=100600,user_id=0,group_id=0".encode()
        if _LIBC.mount(b"disk", os.fsencode(mountpoint), b"fuse", 0, told):
            raise OSError(ctypes.get_errno(), "mount")

    def run(self):
        while True:
            ready, _, _ = select.select([self._fuse, sys.stdin.buffer.raw], [], [])
            if self._fuse in ready:
                self._answer()
            if sys.stdin.buffer.raw in ready:
                line = sys.stdin.buffer.raw.readline().decode()
                if not line:
                    return
                _, path, seed = line.split()
                writes, dropped = self._platter.cut(path, random.Random(int(seed)))
                print("cut", writes, dropped, flush=True)

    def _answer(self):
        asked = os.read(self._fuse, ONE_WRITE + 4096)
        _, kind, unique = struct.unpack_from("<IIQ", asked)
        if kind in SILENT:
            return
        body, error = self._body(kind, asked[40:])
        os.write(self._fuse, struct.pack("<IiQ", 16 + len(body), error, unique) + body)

    def _body(self, kind, asked):
        platter = self._platter
        match kind:
            case 26:  # INIT: large writes
                major, minor, ahead, _ = struct.unpack_from("<IIII", asked)
                flags = 1 << 5 | 1 << 22
                pages = ONE_WRITE // 4096
                return struct.pack(
                    "<IIIIHHIIHHI28x",
                    major,
                    min(minor, 31),
                    ahead,
                    flags,
                    64,
                    48,
                    ONE_WRITE,
                    1,
                    pages,
                    0,
                    0,
                ), 0
            case 3 | 4:  # GETATTR, SETATTR
                return struct.pack("<QII", 3600, 0, 0) + self._attributes(), 0
            case 14:  # OPEN
                return struct.pack("<QII", 1, 0, 0), 0
            case 15:  # READ
                _, offset, size = struct.unpack_from("<QQI", asked)
                return platter.now[offset : offset + size], 0
            case 16:  # WRITE
                _, offset, size = struct.unpack_from("<QQI", asked)
                platter.write(offset, asked[40 : 40 + size])
                return struct.pack("<II", size, 0), 0
            case 20:  # FSYNC
                platter.flush()
                return b"", 0
            case 17:  # STATFS
                return struct.pack(
                    "<QQQQQIIII24x", platter.size // 4096, 0, 0, 1, 0, 4096, 255, 4096, 0
                ), 0
            case 18 | 25 | 38:  # RELEASE, FLUSH, DESTROY
                return b"", 0
            case _:
                return b"", -errno.ENOSYS

    def _attributes(self):
        size = self._platter.size
        return struct.pack(
            "<QQQQQQIIIIIIIIII",
            1,
            size,
            size // 512,
            0,
            0,
            0,
            0,
            0,
            0,
            0o100600,
            1,
            0,
            0,
            0,
            4096,
            0,
        )


# ── the other side: who uses such a disk ─────────────────────────────────────────────────────────


def missing():
    """Why there can be no such disk here, if so."""
    if os.geteuid() != 0:
        return "a disk of our own needs root"
    for path in ("/dev/fuse", "/dev/loop-control"):
        if not Path(path).exists():
            return f"there is no {path}"
    tools = [tool for tool in ("losetup", "mkfs.ext4", "mount", "umount") if not shutil.which(tool)]
    return f"{', '.join(tools)} is not installed" if tools else None


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, command))}: {done.stderr}"
    return done.stdout.strip()


@contextlib.contextmanager
def mounted(image, place):
    """An image's ext4 at a place. What the journal holds is applied, as after every cut."""
    place.mkdir(exist_ok=True)
    device = run("losetup", "--find", "--show", image)
    try:
        # Without its help for programs that forget to fsync before they rename.
        run("mount", "-t", "ext4", "-o", "noauto_da_alloc", device, place)
        try:
            yield place
        finally:
            run("umount", "--lazy", place)
    finally:
        run("losetup", "--detach", device)


class Disk:
    """The process, the loop device and the mounted file system."""

    def __init__(self, folder, megabytes=256):
        self._folder, self._size = folder, megabytes << 20
        self._ways_out = contextlib.ExitStack()

    def __enter__(self):
        with contextlib.ExitStack() as made:
            file = self._folder / "disk"
            file.touch()
            self._server = subprocess.Popen(
                [sys.executable, "-m", "tests.storms.disk", file, str(self._size)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            made.callback(self._end)
            assert self._server.stdout.readline() == "mounted\n"
            made.callback(run, "umount", "--lazy", file)
            run("mkfs.ext4", "-q", "-F", "-E", "nodiscard", file)
            self.root = made.enter_context(mounted(file, self._folder / "mounted"))
            self._ways_out = made.pop_all()
        return self

    def __exit__(self, *error):
        return self._ways_out.__exit__(*error)

    def _end(self):
        self._server.stdin.close()
        self._server.wait(300)
        self._server.stdout.close()

    def cut(self, path, seed):
        """The power is gone: an image of what is left; (writes not flushed, those of them that are lost)."""
        self._server.stdin.write(f"cut {path} {seed}\n")
        self._server.stdin.flush()
        word, writes, dropped = self._server.stdout.readline().split()
        assert word == "cut"
        return int(writes), int(dropped)


if __name__ == "__main__":
    served = Server(sys.argv[1], int(sys.argv[2]))
    print("mounted", flush=True)
    with contextlib.suppress(OSError):  # it is unmounted
        served.run()
