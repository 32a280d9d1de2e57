"""How does a training child report to its parent, and send heartbeats?"""

from __future__ import annotations

import os
import resource
import sys
import threading
import time

from upswing.train.core.report import ENCODER, Heartbeat, Report

_HEARTBEAT_SECONDS = 1.0


class ReportChannel:
    """What is ours is kept apart from whatever libraries print: that goes to standard error."""

    def __init__(self, *, silent: bool = False) -> None:
        self._out = os.fdopen(os.dup(1), "wb", buffering=0)
        os.dup2(2, 1)
        self._lock = threading.Lock()
        self._silent = silent
        """Of several processes that train together, one reports."""
        self.activity = "starting"
        self.step = 0

    def send(self, report: Report) -> None:
        if not self._silent:
            with self._lock:
                self._out.write(ENCODER.encode(report) + b"\n")

    def start_heartbeat(self) -> None:
        """In a thread: training keeps the main one busy."""
        threading.Thread(target=self._send_heartbeats, name="heartbeat", daemon=True).start()

    def _send_heartbeats(self) -> None:
        while True:
            try:
                self.send(Heartbeat(resident_bytes(), self.activity, time.process_time()))
            except OSError:  # the parent is gone, and so are we
                os._exit(1)
            time.sleep(_HEARTBEAT_SECONDS)


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
