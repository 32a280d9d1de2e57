"""A power cut takes what was not fsynced, and a disk may refuse to: what is left of a spool then?"""

import errno
import logging
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upswing.gateway.core.episode_redaction import RedactedMessage
from upswing.gateway.recorder.publisher import Publisher
from upswing.infra.spool import Spool
from upswing.infra.spool_log import FileLog, SpoolEntry, SpoolEntryKind


def entry(n, size=0):
    return SpoolEntry(SpoolEntryKind.TRAJECTORY, b'{"n":%d}' % n + b" " * size)


class Disk:
    """What a power cut would leave: names as of a folder's fsync, bytes as of a file's.

    It fails as Linux does: pages that could not be written count as clean afterwards, so that a
    second fsync of the same file succeeds and keeps nothing.
    """

    def __init__(self, faults=()):
        self._faults = iter(faults)
        self._names, self._bytes, self._spoilt = {}, {}, set()
        self._held = []  # open, so that no other file gets an inode's number
        self.broken = False

    def fsync(self, fd):
        found = os.fstat(fd)
        self._held.append(os.dup(fd))
        if self.broken or next(self._faults, False):
            self._spoilt.add(found.st_ino)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if stat.S_ISDIR(found.st_mode):
            folder = Path(f"/proc/self/fd/{fd}").readlink()
            self._names[str(folder)] = {path.name: path.stat().st_ino for path in folder.iterdir()}
        elif found.st_ino not in self._spoilt:
            self._bytes[found.st_ino] = os.pread(fd, found.st_size, 0)

    def after_a_power_cut(self, folder):
        """Every spool file that is still there, as it is found."""
        names = self._names.get(str(folder), {})
        return {name: self._bytes.get(inode, b"") for name, inode in names.items()}

    def has_name(self, path):
        return path.name in self._names.get(str(path.parent), {})

    def close(self):
        for fd in self._held:
            os.close(fd)


@pytest.fixture
def disk(monkeypatch):
    made = Disk()
    monkeypatch.setattr(os, "fsync", made.fsync)
    yield made
    made.close()


def entries_of(raw, folder):
    """What the next process finds in this file."""
    path = folder / "found.spool"
    path.write_bytes(raw)
    log = FileLog.adopt(path)
    found = [each.body for each in log.peek(10**6, 10**9)]
    log.forget()
    return found


acts = st.lists(st.one_of(st.just("sync"), st.just("remove"), st.integers(0, 600)), max_size=40)


@pytest.mark.skipif(sys.platform != "linux", reason="names are read from /proc")
@given(acts, st.lists(st.booleans(), max_size=30))
def test_what_sync_says_is_kept_is_kept(tmp_path_factory, acts, faults):
    folder = tmp_path_factory.mktemp("spool")
    disk = Disk(faults)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", disk.fsync)
        spool, n = Spool(folder / "deep" / "own", "a", 4000), 0
        for act in [*acts, "sync"]:
            if act == "remove":
                spool.remove(spool.peek(1, 10**6))
            elif act != "sync":
                spool.append(entry(n, size=act))
                n += 1
            elif spool.sync():
                waiting = [each.body for each in spool.peek(10**6, 10**9)]
                left = disk.after_a_power_cut(folder / "deep" / "own").get("a.spool", b"")
                assert set(waiting) <= set(entries_of(left, folder))
                if waiting:
                    assert disk.has_name(folder / "deep" / "own")
                    assert disk.has_name(folder / "deep")
        spool.close()
    disk.close()


def test_a_disk_that_does_not_keep_is_told_once_and_may_recover(tmp_path, disk, caplog):
    spool = Spool(tmp_path, "a", 10**6)
    spool.append(entry(1))
    assert (spool.sync(), spool.durability_trouble) == (True, "")
    spool.append(entry(2))
    disk.broken = True
    with caplog.at_level(logging.ERROR, logger="upswing.sdk"):
        assert [spool.sync(), spool.sync()] == [False, False]
    told = "A power cut would take what the spool holds (Input/output error)."
    assert (spool.durability_trouble, caplog.messages) == (told, [told])
    disk.broken = False
    assert (spool.sync(), spool.durability_trouble) == (True, "")
    left = disk.after_a_power_cut(tmp_path)["a.spool"]
    assert entries_of(left, tmp_path) == [entry(1).body, entry(2).body]
    spool.close()


async def test_the_gateway_calls_nothing_spooled_that_is_not_on_disk(tmp_path, disk):
    publisher = Publisher("nats://127.0.0.1:1", str(tmp_path / "spool"), 10**6)
    message = RedactedMessage("t-1", b'{"trajectory_id":"t-1"}')
    assert await publisher.publish(SpoolEntryKind.TRAJECTORY, [message]) == ["spooled"]
    disk.broken = True
    assert await publisher.publish(SpoolEntryKind.TRAJECTORY, [message]) == ["later"]
    held = sum(path.stat().st_size for path in (tmp_path / "spool").iterdir())
    assert await publisher.publish(SpoolEntryKind.TRAJECTORY, [message]) == ["later"]
    assert sum(path.stat().st_size for path in (tmp_path / "spool").iterdir()) == held
    disk.broken = False
    assert await publisher.publish(SpoolEntryKind.TRAJECTORY, [message]) == ["spooled"]


FAILING = """
import ctypes, errno, os, struct, sys
from pathlib import Path
from upswing.validate.sandbox import libc, seccomp
from upswing.sdk import Recorder

column, architecture = seccomp._MACHINES[os.uname().machine]
calls = [pair[column] for pair in ((74, 82), (75, 83))]  # fsync, fdatasync
lines = [(seccomp._LOAD, 0, 0, 0)]
for number in calls:
    lines += [(seccomp._EQUAL, 0, 1, number), (seccomp._RETURN, 0, 0, seccomp._ERROR | errno.EIO)]
lines.append((seccomp._RETURN, 0, 0, seccomp._ALLOW))
raw = b"".join(struct.pack("=HBBI", *line) for line in lines)
kept = ctypes.create_string_buffer(raw, len(raw))
shape = struct.pack("@HxxxxxxQ", len(lines), ctypes.addressof(kept))
libc.gain_no_privileges()
libc.call("prctl", libc.long(22), libc.long(2), shape, libc.long(0), libc.long(0))

recorder = Recorder(url="http://127.0.0.1:1", spool=Path(sys.argv[1]), key="k")
with recorder.trajectory(agent_id="a") as t:
    t.turn([{"role": "user", "content": "hello"}], "hello")
for _ in range(600):  # as long as it takes on a busy machine
    recorder.flush(0.5)
    if "Input/output" in str(recorder.stats.last_error):
        break
print(recorder.stats.pending, recorder.stats.last_error)
recorder.close(1)
"""


@pytest.mark.live
@pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine not in {"x86_64", "aarch64"},
    reason="the kernel is told to fail",
)
def test_a_recorder_whose_kernel_refuses_fsync_says_so(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FAILING, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("1 "), (done.stdout, done.stderr)
    assert "(Input/output error)" in done.stdout
