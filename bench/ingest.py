"""How many trajectories per second are stored for good and acknowledged, for 64 clients?

mlflow keeps agent traces too, so it is the peer, with the same trajectories as traces
of one root and ten child spans. It has two ways in that acknowledge only what is stored:

    SDK    asynchronous logging off; what its documentation shows, one write per span;
           on the SQLite file or through its server, whichever is quicker in that round
    OTLP   whole traces in one request to its server, like for like with ours and its quickest

Each round starts both sides afresh, one after the other: neither works off a backlog while
the other is measured.
"""

import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

from bench.corpus import trajectory_bytes
from bench.harness import (
    PeerError,
    Row,
    Service,
    interleave,
    median_ratio,
    peer_python,
    run_peer,
    upswing_up,
    versions,
)

PAYLOAD_BYTES = 4_000
"""A chat of ten short turns. mlflow writes per span, we per byte: larger ones narrow the ratio."""
DISTINCT = 64
ROUNDS = 3
SECONDS = 5
SDK_SECONDS = 12
"""Longer, because 64 traces under way take the SDK some nine seconds."""
WARM_SECONDS = 1
BATCH = 50
TARGET = 200.0
"""Against tracing as mlflow's documentation shows it: its SDK, synchronous."""
FASTER = 1.0
"""Its server's OTLP endpoint takes a whole trace in one request; nobody promised a figure there."""
SETTLE_S = 60.0
"""The stream acknowledges; the table behind it may take a while to catch up with a burst."""

# The number of server workers that serves each way best on two cores.
WORKERS = {"direct": 1, "server": 4, "otlp": 2, "otlp-batch": 2}


def rows() -> list[Row]:
    corpus = b"\n".join(trajectory_bytes(seed=seed, size=PAYLOAD_BYTES) for seed in range(DISTINCT))
    python = peer_python("mlflow", "mlflow")
    told = versions(msgspec=version("msgspec"))
    measures: dict[str, Callable[[], float]] = {
        "one": partial(_ours, corpus, 1),
        "sdk": partial(_mlflow_sdk, python, corpus, told),
        "otlp": partial(_mlflow, python, "otlp", corpus, told),
        "many": partial(_ours, corpus, BATCH),
        "otlp-batch": partial(_mlflow, python, "otlp-batch", corpus, told),
    }
    taken = interleave(measures, ROUNDS)
    size = f"{PAYLOAD_BYTES // 1000} KB"
    one, many = f"ingest, 64 clients, {size} each", f"ingest, 64 clients, {BATCH} × {size} each"
    pairs = (
        (one, "one", "sdk", "mlflow SDK, sync", TARGET),
        (many, "many", "sdk", "mlflow SDK, sync", TARGET),
        (one, "one", "otlp", "mlflow OTLP, to compare", FASTER),
        (many, "many", "otlp-batch", f"mlflow OTLP, {BATCH} each, to compare", FASTER),
    )
    return [
        Row(
            name=name,
            value=median_ratio(taken, ours, theirs),
            target=target,
            peer=peer,
            versions=told,
        )
        for name, ours, theirs, peer, target in pairs
    ]


def _mlflow_sdk(python: Path, corpus: bytes, told: dict[str, str]) -> float:
    return max(_mlflow(python, mode, corpus, told) for mode in ("direct", "server"))


def _mlflow(python: Path, mode: str, corpus: bytes, told: dict[str, str]) -> float:
    seconds = SDK_SECONDS if mode in {"direct", "server"} else SECONDS
    workers = ("--workers", WORKERS[mode])
    answer = run_peer(python, "mlflow_ingest.py", mode, seconds, *workers, stdin=corpus)
    told.update(answer["versions"])
    _say(f"mlflow {mode}: {answer['per_second']:,.1f}/s")
    return float(answer["per_second"])


def _ours(corpus: bytes, per_request: int) -> float:
    with upswing_up() as service:
        warm = _load(service, corpus, per_request, WARM_SECONDS)
        measured = _load(service, corpus, per_request, SECONDS)
        acknowledged = warm["acknowledged"] + measured["acknowledged"]
        _check_stored(service, acknowledged)
    _say(
        f"upswing, {per_request} per request: {measured['per_second']:,.1f}/s, "
        f"p50 {measured['p50_ms']:.1f} ms, p99 {measured['p99_ms']:.1f} ms"
    )
    return float(measured["per_second"])


def _load(service: Service, corpus: bytes, per_request: int, seconds: float) -> dict:
    at = urlsplit(service.http_url)
    answer = run_peer(
        Path(sys.executable),
        "upswing_load.py",
        *(at.hostname, at.port, per_request, seconds),
        stdin=service.key.encode() + b"\n" + corpus,
    )
    if not answer["acknowledged"]:
        raise PeerError(f"upswing acknowledged nothing: {answer['last_refusal']}")
    if answer["refused"]:
        _say(f"upswing refused {answer['refused']}: {answer['last_refusal']}")
    return answer


def _check_stored(service: Service, acknowledged: int) -> None:
    """An acknowledgement is a promise: what was answered 202 is there, no more and no less."""
    deadline = time.monotonic() + SETTLE_S
    while (stored := int(service.command("status")["trajectories"])) != acknowledged:
        if time.monotonic() > deadline:
            raise PeerError(f"upswing acknowledged {acknowledged} trajectories and has {stored}.")
        time.sleep(0.2)


def _say(sentence: str) -> None:
    print(f"  {sentence}", file=sys.stderr)
