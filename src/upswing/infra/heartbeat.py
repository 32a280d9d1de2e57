"""Does a child still live, or is it frozen? It beats once a second, and its parent listens.

    child: thread or event loop ── a byte a second ──▶ pipe ──▶ `HeartbeatMonitor.beat` ─┐
    training child ── a line a second on its standard output ─▶ `HeartbeatMonitor.beat` ─┼─▶ `HeartbeatMonitor.frozen`
    bus, which is no program of ours ◀── is asked who it is ──▶ `HeartbeatMonitor.beat` ─┘

| silent for `FROZEN_SECONDS`, and meanwhile …    | frozen | because                                   |
|-------------------------------------------------|--------|-------------------------------------------|
| its group has used the processor                | no     | who computes may hold the interpreter     |
| a thread of its group waits for a disk          | no     | the disk is slow, and it would not end    |
| a thread of its group waits for a processor     | no     | others have them all: the machine is busy |
| we have not run ourselves                       | no     | then nobody listened: that time is no silence |
| none of these                                   | yes    | stopped, suspended or deadlocked          |

So it is from the moment that it is launched: who loads libraries or weights is busy, and every child beats
as soon as its own code runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

FROZEN_SECONDS = 10.0
BEAT_SECONDS = 1.0
ENVIRONMENT = "UPSWING_PULSE_FD"
"""Names the pipe's end to the child."""
_BUSY = 0.05
"""Of one processor: below it, a silent child does not compute. Waiting threads use a little."""
_OURS = 2 * BEAT_SECONDS
"""At most so much of the time between two looks is silence; in the rest we did not run."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a process group did so far."""

    seconds: float
    """Of processors."""
    waits: bool = False
    """A thread of it waits for a disk, or for its turn at a processor: the first may only wait for the one that loads."""


class HeartbeatMonitor:
    """The beats of one child."""

    def __init__(self, limit: float = FROZEN_SECONDS) -> None:
        self._limit = limit
        self.beats = self._seen = 0
        self._silent = 0.0
        self._at: float | None = None
        self._before: Work | None = None

    def beat(self) -> None:
        self.beats += 1

    def is_frozen(self, now: float, work: Callable[[], Work | None]) -> bool:
        """Whether the child is, asked about once a second; `work` is asked only of a silent one."""
        first, passed, self._at = self._at is None, now - (self._at or 0.0), now
        if self.beats != self._seen or first:
            self._seen, self._silent, self._before = self.beats, 0.0, None
            return False
        self._silent += min(passed, _OURS)
        if self._before is None and self._silent >= self._limit / 4:
            self._before = work()
        if self._silent < self._limit:
            return False
        if _is_working(self._before, now_done := work(), self._silent):
            self._silent, self._before = self._limit / 2, now_done
            return False
        return True

    def listen(self, read_fd: int) -> None:
        """Hear the beats that come through a pipe, until its other end is closed."""
        loop = asyncio.get_running_loop()
        os.set_blocking(read_fd, False)

        def on_readable() -> None:
            try:
                data = os.read(read_fd, 4096)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if data:
                self.beat()
            else:
                loop.remove_reader(read_fd)
                os.close(read_fd)

        loop.add_reader(read_fd, on_readable)


def _is_working(before: Work | None, after: Work | None, seconds: float) -> bool:
    if before is None or after is None:
        return False
    return after.waits or after.seconds - before.seconds > _BUSY * seconds


def group_work(group: int) -> Work | None:
    """What the processes of a group did; None where the system does not tell."""
    found = list(_group_process_stats(group))
    if not found:
        return None
    tick = os.sysconf("SC_CLK_TCK")
    return Work(
        sum(int(fields[11]) + int(fields[12]) for fields in found) / tick,
        any(fields[0] in {"D", "R"} for fields in _group_process_stats(group, threads=True)),
    )


def _group_process_stats(group: int, *, threads: bool = False) -> Iterator[list[str]]:
    """The fields of `/proc/PID/stat` behind the name, of each process of a group, or of each of its threads."""
    for path in Path("/proc").glob("[0-9]*/task/[0-9]*/stat" if threads else "[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
            if int(fields[2]) == group:
                yield fields


class Beats:
    """The child's side. Without a parent who listens, nothing happens."""

    def __init__(self) -> None:
        value = os.environ.pop(ENVIRONMENT, "")
        self._write_fd = int(value) if value.isdecimal() else None
        if self._write_fd is not None:
            try:
                os.set_inheritable(self._write_fd, False)
                os.set_blocking(self._write_fd, False)
            except OSError:  # it was named to somebody before us
                self._write_fd = None

    def beat(self) -> bool:
        """False when nobody listens any more."""
        if self._write_fd is None:
            return False
        try:
            os.write(self._write_fd, b".")
        except BlockingIOError:  # it is there, and does not listen just now
            return True
        except OSError:
            return False
        return True

    def start_in_thread(self) -> None:
        """Whatever the main thread computes."""
        threading.Thread(target=self._beat_forever, name="upswing-pulse", daemon=True).start()

    def _beat_forever(self) -> None:
        while self.beat():
            time.sleep(BEAT_SECONDS)

    async def beat_from_event_loop(self) -> None:
        """As long as the event loop takes its turns: one that is stuck is as good as frozen."""
        while self.beat():  # noqa: ASYNC110 - nothing is waited for
            await asyncio.sleep(BEAT_SECONDS)
