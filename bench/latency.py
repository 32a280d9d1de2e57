"""How long after a client hands a trajectory over does the world hear its reward?

The clock runs from the moment the trajectory is due on the bus to the moment its reward is heard
there. In between it is checked, redacted, committed to SQLite, scored beside the last thousand
and published. The load is open: the next one leaves when it is due, whether or not the last came
back. The peer does the same work on a bus of its own that need not wait for the disk; both sides
run all the time and are asked in turn, at a rate that leaves the peer idle most of the time, for
a queue would be measured otherwise. The trajectories report their outcome and a linter's
score, so that neither side lints; one in ten holds an e-mail address.
"""

import asyncio
import contextlib
import json
import subprocess
import sys
import sysconfig
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nats
from bench.corpus import encode, trajectory
from bench.harness import (
    PeerError,
    Row,
    interleave,
    live_peer,
    peer_python,
    upswing_up,
    versions,
)

TRAJECTORY, REWARD = "agent.rl.trajectory.v1", "agent.rl.reward.v1"
PAYLOAD_BYTES, SMALL_BYTES = 25_000, 4_000
DISTINCT = 64
SECRET_EVERY = 10
REPORT_BYTES = 100
"""What an outcome, a linter's score and an address add."""
REQUIREMENTS = ("faststream[nats]", "pydantic", "presidio-analyzer==2.2.366")

RATE, SECONDS, ROUNDS = 2, 25, 5
FULL_RATE, FULL_SECONDS, FULL_ROUNDS = 200, 5, 3
WARM_SECONDS = 3
HISTORY, HISTORY_RATE = 100, 4
"""Rewards before the first measured one: enough that every component has a past to compare with."""
PATIENCE_S = 30.0
START_S = 20.0
RATIO_TARGET, TARGET_MS = 0.05, 50.0


def rows() -> list[Row]:
    python = peer_python("faststream", *REQUIREMENTS)
    told = versions(msgspec=version("msgspec"))
    ours: list[float] = []
    theirs: list[float] = []
    full: list[float] = []
    small: list[float] = []
    with upswing_up() as service:
        url = service.command("info")["nats_url"]
        with _peer(python, told) as peer_url:
            for bus in (url, peer_url):
                asyncio.run(_measure(bus, HISTORY_RATE, HISTORY, PAYLOAD_BYTES))
            measures = {
                "upswing": lambda: _round("upswing", url, RATE, SECONDS, ours),
                "peer": lambda: _round("peer", peer_url, RATE, SECONDS, theirs),
            }
            interleave(measures, ROUNDS)
        _round("upswing, warming", url, FULL_RATE, WARM_SECONDS, [])
        for _ in range(FULL_ROUNDS):
            _round("upswing alone", url, FULL_RATE, FULL_SECONDS, full)
            _round("upswing alone, small", url, FULL_RATE, FULL_SECONDS, small, SMALL_BYTES)
    name = f"ingest → reward published, p99 ({PAYLOAD_BYTES // 1000} KB, 10 turns"
    peer = "faststream + pydantic + presidio"
    lower = {"better": "lower", "versions": told}
    return [
        Row(
            name=f"{name}, {RATE}/s), ours of theirs",
            value=p(99, ours) / p(99, theirs),
            target=RATIO_TARGET,
            peer=peer,
            **lower,
        ),
        Row(name=f"{name}, {RATE}/s)", value=p(99, ours), target=TARGET_MS, unit="ms", **lower),
        Row(
            name=f"{name}, {FULL_RATE}/s)", value=p(99, full), target=TARGET_MS, unit="ms", **lower
        ),
        Row(
            name=f"{name.replace('25', '4')}, {FULL_RATE}/s)",
            value=p(99, small),
            target=TARGET_MS,
            unit="ms",
            **lower,
        ),
    ]


def p(percent: int, numbers: Sequence[float]) -> float:
    """The least number that so many percent do not exceed.

    >>> p(99, range(1, 101)), p(50, [3, 1, 2])
    (99, 2)
    """
    ordered = sorted(numbers)
    return ordered[-(-len(ordered) * percent // 100) - 1]


def _round(
    who: str, url: str, rate: float, seconds: float, into: list[float], size: int = PAYLOAD_BYTES
) -> float:
    """Measure once, in ms; all rounds together make the percentile, for one has too few."""
    taken = asyncio.run(_measure(url, rate, int(rate * seconds), size))
    into += taken
    print(
        f"  {who}, {rate:g}/s: p50 {p(50, taken):.1f} ms, p99 {p(99, taken):.1f} ms, "
        f"worst {max(taken):.1f} ms",
        file=sys.stderr,
    )
    return p(99, taken)


# --- the load ------------------------------------------------------------------------------------


def _bodies(count: int, size: int) -> list[tuple[str, bytes]]:
    """As many trajectories, each under an id of its own: a repeated one would cost nothing."""
    made = []
    for number in range(count):
        draft, key = _draft(number % DISTINCT, size), str(uuid.uuid4())
        reported = {
            "outcome": {"status": ("completed", "partial", "failed")[number % 3]},
            "linter_results": {"pylint": 7 + number % 4},
            "reply_to": f"user{number}@example.org" if number % SECRET_EVERY == 0 else "nobody",
        }
        document = draft | {"trajectory_id": key, "metadata": draft["metadata"] | reported}
        made.append((key, encode(document)))
    return made


@cache
def _draft(seed: int, size: int) -> dict[str, Any]:
    return trajectory(seed=seed, size=size - REPORT_BYTES)


async def _measure(url: str, rate: float, count: int, size: int) -> list[float]:
    """Milliseconds from due to heard, of each trajectory."""
    bodies = _bodies(count, size)
    client = await nats.connect(url)
    due: dict[str, float] = {}
    heard: dict[str, float] = {}
    complete = asyncio.Event()

    async def hear(message: nats.aio.msg.Msg) -> None:
        now = time.perf_counter()
        known = json.loads(message.data)["trajectory_id"]
        if known in due:
            heard.setdefault(known, now)
        if len(heard) == len(bodies):
            complete.set()

    try:
        await client.subscribe(REWARD, cb=hear)
        await client.flush()
        begin = time.perf_counter() + 0.1
        for number, (key, body) in enumerate(bodies):
            due[key] = begin + number / rate
            await asyncio.sleep(max(0.0, due[key] - time.perf_counter()))
            await client.publish(TRAJECTORY, body)
        async with asyncio.timeout(PATIENCE_S):
            await complete.wait()
    except TimeoutError:
        raise PeerError(
            f"{len(bodies)} trajectories were sent, {len(heard)} rewards heard."
        ) from None
    finally:
        await client.close()
    return [(heard[key] - at) * 1000 for key, at in due.items()]


# --- the peer ------------------------------------------------------------------------------------


@contextlib.contextmanager
def _peer(python: Path, told: dict[str, str]) -> Iterator[str]:
    """The peer on a bus of its own; neither outlives the block."""
    with tempfile.TemporaryDirectory(prefix="faststream-bench-") as name:
        folder = Path(name)
        with _bus(folder) as url, live_peer(python, "faststream_reward.py", url, folder) as ask:
            told.update(ask("ready"))
            yield url


@contextlib.contextmanager
def _bus(folder: Path) -> Iterator[str]:
    """A nats-server with JetStream and nothing else set: it acknowledges before it syncs."""
    binary = Path(sysconfig.get_path("scripts")) / "nats-server"
    with (folder / "nats.log").open("wb") as log:
        process = subprocess.Popen(
            [
                *(str(binary), "--addr", "127.0.0.1", "--port", "-1", "--jetstream"),
                *("--store_dir", str(folder / "jetstream"), "--ports_file_dir", str(folder)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        yield _address(process, folder)
    finally:
        process.kill()
        process.wait()


def _address(process: subprocess.Popen[bytes], folder: Path) -> str:
    ports = folder / f"nats-server_{process.pid}.ports"
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError, ValueError, KeyError, IndexError):
            return str(json.loads(ports.read_text())["nats"][0])
        time.sleep(0.05)
    raise PeerError(f"nats-server did not start: {(folder / 'nats.log').read_text()[-1000:]}")
