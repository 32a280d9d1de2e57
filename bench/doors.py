"""What does an honest client notice of thousands who ask nothing, or slowly? At both ports.

Each port is a process, so are those who press it: connections from twenty addresses, who come back when
they are dropped. The honest client has a key and one kept connection, and asks again and again; it is
measured without and with them in turn, and the median of the ratios of its p99 counts. Memory is that of
the port's process with them, beyond what it had before.
"""

import socket
import statistics
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

from bench.harness import Ask, Row, live_peer

KEY = "sk-bench-0123456789abcdef"
BODY = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
PORTS = ("loop", "gateway")
WAYS = {
    "idle": 10_000,
    "slow heads": 2_000,
    "slow bodies": 2_000,
    "endless headers": 200,
    "keyless bodies": 18,
}
ROUNDS, ASKED = 3, 1_500
P99_TIMES, MOST_MB = 2.0, 600.0


def rows() -> list[Row]:
    python = Path(sys.executable)
    made: list[Row] = []
    for kind in PORTS:
        with (
            live_peer(python, "port.py", kind, KEY) as port,
            live_peer(python, "crowd.py") as crowd,
        ):
            _asked(port)  # awake
            for way, count in WAYS.items():
                made += _pressed(kind, way, count, port, crowd)
    return made


def _pressed(kind: str, way: str, count: int, port: Ask, crowd: Ask) -> list[Row]:
    ratios, grown = [], []
    for _ in range(ROUNDS):
        (p50, quiet), before = _asked(port), port("memory")["mb"]
        told = port("where")
        up = crowd([told["url"], told["path"], way, count])["made"]
        (p50_then, pressed), with_them = _asked(port), port("memory")["mb"]
        crowd(None)
        ratios.append(pressed / quiet)
        grown.append(with_them - before)
        print(
            f"  {kind}, {up:,} {way}: p50 {p50:.2f} → {p50_then:.2f} ms, p99 {quiet:.2f} → {pressed:.2f} ms, "
            f"memory {before:.0f} → {with_them:.0f} MB",
            file=sys.stderr,
        )
    name = f"doors, {kind}, {count:,} {way}"
    return [
        Row(
            name=f"{name}: p99 of an honest client",
            value=statistics.median(ratios),
            target=P99_TIMES,
            better="lower",
            peer="without them",
        ),
        Row(name=f"{name}: memory", value=max(grown), target=MOST_MB, better="lower", unit="MB"),
    ]


def _asked(port: Ask) -> tuple[float, float]:
    """p50 and p99 in milliseconds."""
    told = port("where")
    where = urlsplit(told["url"])
    message = (
        f"POST {told['path']} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n"
    ).encode() + BODY
    taken = []
    with socket.create_connection((where.hostname, where.port)) as line:
        for _ in range(ASKED):
            begun = time.perf_counter()
            line.sendall(message)
            if not line.recv(65_536).startswith(b"HTTP/1.1 200"):
                raise RuntimeError("an honest client was refused")
            taken.append((time.perf_counter() - begun) * 1000)
    taken.sort()
    return taken[len(taken) // 2], taken[int(len(taken) * 0.99)]
