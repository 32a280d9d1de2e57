"""How does a training child reach its parent, and show that it lives?"""

from __future__ import annotations

import os
import resource
import sys
import threading
import time

from upswing.train.report import ENCODER, Beat, Report

_BEAT_SECONDS = 1.0


class Channel:
    """What is ours is kept apart from whatever libraries print: that goes to standard error."""

    def __init__(self, *, silent: bool = False) -> None:
        self._out = os.fdopen(os.dup(1), "wb", buffering=0)
        os.dup2(2, 1)
        self._lock = threading.Lock()
        self._silent = silent
        """Of several processes that train together, one speaks."""
        self.doing = "starting"
        self.step = 0

    def tell(self, report: Report) -> None:
        if not self._silent:
            with self._lock:
                self._out.write(ENCODER.encode(report) + b"\n")

    def start_beating(self) -> None:
        """In a thread: training keeps the main one busy."""
        threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()

    def _beat(self) -> None:
        while True:
            try:
                self.tell(Beat(resident_bytes(), self.doing))
            except OSError:  # the parent is gone, and so are we
                os._exit(1)
            time.sleep(_BEAT_SECONDS)


def resident_bytes() -> int:
    """What this process holds in memory now; elsewhere than on Linux, what it held at most."""
    try:
        with open("/proc/self/statm") as numbers:  # noqa: PTH123 - once a second, for ever
            return int(numbers.read().split()[1]) * resource.getpagesize()
    except OSError:
        return peak_bytes()


def peak_bytes() -> int:
    """What this process held in memory at most."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
