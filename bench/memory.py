"""How much memory does a resting upswing hold, and how quickly does it answer `--help`?"""

import subprocess
import sys
import time
import urllib.request
from importlib.metadata import version
from pathlib import Path

from bench.harness import Row, upswing_up, versions

TARGET_MB = 250.0
HELP_S = 0.3
QUIET_S = 3.0


def rows() -> list[Row]:
    with upswing_up() as service:
        until = time.monotonic() + QUIET_S
        while time.monotonic() < until:
            with urllib.request.urlopen(f"{service.http_url}/health", timeout=5):
                time.sleep(0.5)
        held = resident_mb(service.process.pid)
    main, *children = held
    listed = " + ".join(f"{name} {megabytes:.0f}" for name, megabytes in children) or "no children"
    told = versions(msgspec=version("msgspec"))
    return [
        _row("memory at rest, main process", main[1], told),
        _row(f"memory at rest, with {listed}", sum(size for _, size in held), told),
        Row(
            name="upswing --help, best of five",
            value=min(_help_s() for _ in range(5)),
            target=HELP_S,
            better="lower",
            unit="s",
            versions=told,
        ),
    ]


def _help_s() -> float:
    command = [str(Path(sys.executable).parent / "upswing"), "--help"]
    start = time.perf_counter()
    subprocess.run(command, capture_output=True, check=True)
    return time.perf_counter() - start


def _row(name: str, megabytes: float, told: dict[str, str]) -> Row:
    return Row(
        name=name, value=megabytes, target=TARGET_MB, better="lower", unit="MB", versions=told
    )


def resident_mb(pid: int) -> list[tuple[str, float]]:
    """Name and resident size of a process and all below it, the process itself first."""
    listing = subprocess.run(
        ["ps", "-axo", "pid=,ppid=,rss=,comm="], capture_output=True, check=True, text=True
    ).stdout
    lines = [line.split(None, 3) for line in listing.splitlines()]
    family = [pid]
    for member in family:  # grows while it is walked: children of children are found too
        family += [int(child) for child, parent, *_ in lines if int(parent) == member]
    by_pid = {
        int(line[0]): (line[3].rsplit("/", 1)[-1], int(line[2]) * 1024 / 1e6) for line in lines
    }
    return [by_pid[member] for member in family]
