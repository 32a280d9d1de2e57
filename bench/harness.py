"""Is this ratio true, on a machine that is never quiet and against a peer we must not flatter?

Peers live in their own virtual environments and their own processes. Measurements
of both sides alternate, so that a busy minute hits both, and the median of the
ratios is what counts.
"""

import contextlib
import json
import math
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent
PEERS = HERE / "peers"
_VENVS = HERE / ".peers"
_START_PATIENCE_S = 60.0
_STOP_PATIENCE_S = 15.0


@dataclass(frozen=True, kw_only=True)
class Row:
    """One measured promise: the number, and what we said it would be."""

    name: str
    value: float
    target: float
    better: Literal["higher", "lower"] = "higher"
    unit: str = "×"
    peer: str = "–"
    versions: dict[str, str] = field(default_factory=dict)
    failure: str = ""
    """Why there is no number; such a row is never met."""

    @property
    def met(self) -> bool:
        """NaN meets nothing.

        >>> Row(name="a", value=math.nan, target=1).met, Row(name="a", value=2, target=1).met
        (False, True)
        """
        if self.better == "higher":
            return self.value >= self.target
        return self.value < self.target


class PeerError(RuntimeError):
    """A peer did not give its number; the sentence carries what it said on stderr."""


def versions(**others: str) -> dict[str, str]:
    return {"python": platform.python_version(), **others}


# --- peers ---------------------------------------------------------------------------------------


def peer_python(name: str, *requirements: str) -> Path:
    """The interpreter of a throwaway environment that holds exactly these requirements."""
    folder = _VENVS / name
    python = folder / "bin" / "python"
    record = folder / "requirements.txt"
    wanted = "\n".join(requirements)
    if python.exists() and record.exists() and record.read_text() == wanted:
        return python
    shutil.rmtree(folder, ignore_errors=True)
    _run([sys.executable, "-m", "venv", str(folder)])
    _run([str(python), "-m", "pip", "install", "--quiet", *requirements])
    record.write_text(wanted)  # last: an environment half made is made anew
    return python


def run_peer(python: Path, script: str, *args: object, stdin: bytes = b"") -> Any:
    """Run a script of bench/peers to its end; its stdout is one JSON document."""
    answer = _run([str(python), str(PEERS / script), *map(str, args)], stdin)
    try:
        return json.loads(answer)
    except ValueError:
        raise PeerError(f"{script} did not print JSON: {answer[:500]!r}") from None


def _run(command: list[str], stdin: bytes = b"") -> bytes:
    done = subprocess.run(command, input=stdin, capture_output=True, check=False)
    if done.returncode:
        told = done.stderr.decode(errors="replace")[-2000:]
        raise PeerError(f"{' '.join(command[:4])} … ended with {done.returncode}: {told}")
    return done.stdout


Ask = Callable[[Any], Any]


@contextlib.contextmanager
def live_peer(python: Path, script: str, *args: object) -> Iterator[Ask]:
    """A peer that stays: each question is a line of JSON, and so is its answer."""
    with tempfile.TemporaryFile() as stderr:
        process = subprocess.Popen(
            [str(python), str(PEERS / script), *map(str, args)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
        )

        def ask(question: Any) -> Any:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(json.dumps(question).encode() + b"\n")
                process.stdin.flush()
            line = process.stdout.readline()
            if not line:
                stderr.seek(0)
                raise PeerError(f"{script} stopped: {stderr.read()[-2000:].decode()}")
            return json.loads(line)

        try:
            yield ask
        finally:
            process.kill()
            process.communicate()


# --- comparing -----------------------------------------------------------------------------------


def interleave(measures: dict[str, Callable[[], float]], rounds: int = 5) -> list[dict[str, float]]:
    """Every measure once per round, in turn."""
    return [{name: measure() for name, measure in measures.items()} for _ in range(rounds)]


def median_ratio(taken: list[dict[str, float]], ours: str, theirs: str) -> float:
    """
    >>> median_ratio([{"we": 4, "they": 2}, {"we": 9, "they": 3}, {"we": 1, "they": 1}], "we", "they")
    2.0
    """
    ratios = [one[ours] / one[theirs] if one[theirs] > 0 else math.nan for one in taken]
    return math.nan if any(map(math.isnan, ratios)) else statistics.median(ratios)


def side_by_side(ours: Callable[[], float], theirs: Callable[[], float], rounds: int = 5) -> float:
    """How many times our rate is theirs. Both callables measure once and return a rate."""
    return median_ratio(interleave({"ours": ours, "theirs": theirs}, rounds), "ours", "theirs")


# --- our own service -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Service:
    process: subprocess.Popen[bytes]
    data: Path
    http_url: str
    key: str
    dashboard_url: str = ""

    def command(self, *words: str) -> Any:
        """What `upswing WORDS --data … --json` says."""
        return _upswing_json(self.data, *words)


def _upswing() -> str:
    return str(Path(sys.executable).with_name("upswing"))


def _upswing_json(data: Path, *words: str) -> Any:
    return json.loads(_run([_upswing(), *words, "--data", str(data), "--json"]))


@contextlib.contextmanager
def upswing_up(*, page: bool = False, config: str = "") -> Iterator[Service]:
    """`upswing up` on free ports and an empty folder, with the web page or without; it never outlives the block.

    `config` is its `upswing.toml`.
    """
    shown = ("--dashboard-port", "0") if page else ("--no-dashboard",)
    with tempfile.TemporaryDirectory(prefix="upswing-bench-", ignore_cleanup_errors=True) as name:
        data, log = Path(name) / "data", Path(name) / "log"
        if config:
            data.mkdir(mode=0o700)
            (data / "upswing.toml").write_text(config)
        with log.open("wb") as said:
            process = subprocess.Popen(
                [_upswing(), "up", "--port", "0", "--no-gateway", *shown, "--data", str(data)],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,  # so that its children can be stopped with it
            )
        try:
            yield _when_healthy(process, data, log)
        finally:
            _stop_group(process)


def _when_healthy(process: subprocess.Popen[bytes], data: Path, log: Path) -> Service:
    deadline = time.monotonic() + _START_PATIENCE_S
    reason = "it never answered"
    while time.monotonic() < deadline and process.poll() is None:
        try:
            info = _upswing_json(data, "info", "--show-secrets")
            with urllib.request.urlopen(f"{info['http_url']}/health", timeout=2):
                page = info.get("dashboard_url") or ""
                return Service(process, data, info["http_url"], info["key"], page)
        except (OSError, ValueError, KeyError, TypeError, PeerError) as error:
            reason = repr(error)
            time.sleep(0.2)
    told = log.read_text(errors="replace")[-1500:]
    raise PeerError(f"upswing up did not become healthy ({reason}); it said: {told}")


def _stop_group(process: subprocess.Popen[bytes]) -> None:
    """Ask the service alone first: stopping its children is its own business, and tested so."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_STOP_PATIENCE_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


# --- telling -------------------------------------------------------------------------------------


def _cells(row: Row) -> tuple[str, ...]:
    sign = "≥" if row.better == "higher" else "<"
    target = f"{sign} {row.target:g} {row.unit}"
    told = " ".join(f"{name} {number}" for name, number in row.versions.items())
    if row.failure:
        return (row.name, "–", "–", "FAILED", row.peer, row.failure)
    met = "met" if row.met else "MISSED"
    digits = 3 if row.value < 1 else 1
    return (row.name, f"{row.value:,.{digits}f} {row.unit}", target, met, row.peer, told)


def print_table(rows: list[Row]) -> None:
    table = [("name", "value", "target", "", "peer", "versions"), *map(_cells, rows)]
    widths = [max(len(line[column]) for line in table) for column in range(5)]
    for line in table:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=False)]
        print("  ".join([*cells, line[5]]).rstrip())


def write_results(rows: list[Row], path: Path) -> None:
    results = [
        {
            "name": row.name,
            "value": row.value if math.isfinite(row.value) else None,
            "target": row.target if math.isfinite(row.target) else None,
            "met": row.met,
            "peer": row.peer,
            "versions": row.versions,
        }
        for row in rows
    ]
    path.write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n")
