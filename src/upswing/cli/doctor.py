"""Is this set-up sound? Each check says what it found and, when it is wrong, what to do."""

from __future__ import annotations

import argparse
import asyncio
import importlib.metadata
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from upswing.errors import UpswingError


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer of one check."""

    check: str
    ok: bool
    sentence: str


def doctor(arguments: argparse.Namespace) -> int:
    """Run every check; non-zero when one of them fails."""
    findings = [_run(name, check, arguments.data) for name, check in CHECKS.items()]
    if arguments.json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        for finding in findings:
            print(f"{'ok  ' if finding.ok else 'WRONG'} {finding.check:10} {finding.sentence}")
    return 0 if all(finding.ok for finding in findings) else 1


def _run(name: str, check: Callable[[Path], str], folder: Path) -> Finding:
    try:
        return Finding(name, ok=True, sentence=check(folder))
    except (UpswingError, OSError, sqlite3.Error) as error:
        return Finding(name, ok=False, sentence=str(error))


def _python(_: Path) -> str:
    return f"Python {sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}."


def _config(folder: Path) -> str:
    from upswing.config import read_settings, read_surroundings
    from upswing.looking import make_redactor
    from upswing.train.wish import check_knobs
    from upswing.trigger.policy import policy_of

    settings = read_settings(folder, os.environ)
    policy_of(settings, read_surroundings(os.environ))
    check_knobs(settings.train.recipe)
    make_redactor(settings)
    return f"The config is valid; {len(settings.redact.rules)} redaction rules of your own."


def _validation(folder: Path) -> str:
    from upswing.adapters.validation import MemoryPins
    from upswing.config import read_settings
    from upswing.proving_suites import Repertoire
    from upswing.validate.task import Task

    config = read_settings(folder, os.environ).validate
    Repertoire(config, MemoryPins(Task))
    own = f"{len(config.files)} files and {len(config.worlds)} worlds of your own"
    return f"The suites to validate with are there, with {own}."


def _redactor(_: Path) -> str:
    try:
        version = importlib.metadata.version("hyperscan")
    except importlib.metadata.PackageNotFoundError:
        return "hyperscan is not installed; the pure-Python engine finds the same, more slowly."
    return f"hyperscan {version} speeds up redaction."


def _data(folder: Path) -> str:
    there = folder if folder.exists() else folder.parent
    if not os.access(there, os.W_OK):
        raise PermissionError(f"{there} cannot be written: choose another directory with --data.")
    free = shutil.disk_usage(there).free / 1e9
    if free < 1:
        raise OSError(
            f"Only {free:.1f} GB are free at {there}: make room, or choose another directory."
        )
    return f"{folder} can be written; {free:.0f} GB are free."


def _bus(_: Path) -> str:
    from upswing.config import read_surroundings

    if url := read_surroundings(os.environ).nats_url:
        from upswing.adapters.nats.bus import Bus, redacted_url

        async def probe() -> None:
            bus = await Bus.connect(url)
            try:
                await bus.js.account_info()
            finally:
                await bus.close()

        asyncio.run(asyncio.wait_for(probe(), 10))
        return f"The bus at {redacted_url(url)} answers and has JetStream."
    from upswing.adapters.nats.server import binary

    version = subprocess.run([binary(), "--version"], capture_output=True, text=True, check=True)  # noqa: S603
    return f"{version.stdout.strip()} is there for the embedded bus."


def _store(folder: Path) -> str:
    from upswing.adapters.sql.store import read_only
    from upswing.config import read_surroundings

    url = read_surroundings(os.environ).database_url
    if not url and not (folder / "upswing.db").exists():
        return "No store yet; `upswing up` makes it."

    async def count() -> int:
        store = read_only(folder, url)
        try:
            return (await store.counts())["trajectories"]
        finally:
            store.close()

    return f"The store has {asyncio.run(count())} trajectories."


def _ports(folder: Path) -> str:
    from upswing.running import read_running

    if running := read_running(folder):
        return f"The loop runs at {running.http_url} (process {running.pid})."
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", 8100)) == 0:
            raise OSError(
                "Something else listens on port 8100: start with --port 0 or another number."
            )
    return "Port 8100 is free."


CHECKS: dict[str, Callable[[Path], str]] = {
    "python": _python,
    "config": _config,
    "validation": _validation,
    "redactor": _redactor,
    "data": _data,
    "bus": _bus,
    "store": _store,
    "ports": _ports,
}
