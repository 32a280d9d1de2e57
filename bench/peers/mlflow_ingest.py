"""How many agent traces per second does mlflow store, durably, for 64 clients?

    python mlflow_ingest.py MODE SECONDS [--workers N]   < trajectories.jsonl

Four ways in; a comparison takes the quickest one that does the same work:

    direct       the SDK writes to the SQLite file, 64 threads in two processes
    server       the SDK talks to `mlflow server` over HTTP, likewise
    otlp         whole traces to the server's /v1/traces, one trace per request
    otlp-batch   the same, 50 traces per request

Asynchronous logging is off: it acknowledges what is not stored yet. A trace
counts once the database holds it with all its spans, whatever the client was told.
"""

import argparse
import json
import multiprocessing
import os
import secrets
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from importlib.metadata import version
from pathlib import Path
from typing import Any

CLIENTS = 64
PROCESSES = 2
BATCH = 50
SETTINGS = {
    # By default 15 connections serve all threads of a process; 64 clients then lose most of their
    # traces to the pool's time limit, and the SQLite file is some thirty times slower.
    "MLFLOW_SQLALCHEMYSTORE_POOL_SIZE": str(CLIENTS),
    "MLFLOW_SQLALCHEMYSTORE_MAX_OVERFLOW": str(CLIENTS),
    "MLFLOW_ENABLE_ASYNC_TRACE_LOGGING": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    "MLFLOW_LOGGING_LEVEL": "ERROR",
    "ALEMBIC_LOG_LEVEL": "ERROR",
}


def _log_with_sdk(mlflow: Any, trajectory: dict[str, Any]) -> None:
    context = trajectory["task_context"]
    with mlflow.start_span("trajectory", span_type="AGENT") as root:
        root.set_inputs(context)
        root.set_attributes({"agent": trajectory["agent_id"], **trajectory["metadata"]})
        for turn in trajectory["turns"]:
            with mlflow.start_span(f"turn-{turn['turn_id']}", span_type="TOOL") as span:
                span.set_inputs({"observation": turn["observation"], "action": turn["action"]})
                span.set_outputs(turn["result"])
                span.set_attribute("thought_process", turn["thought_process"])
        root.set_outputs({"turns": len(trajectory["turns"])})


def _sdk_process(
    uri: str, trajectories: list[Any], *, threads: int, seconds: float, ready: Any, go: Any
) -> None:
    import mlflow

    mlflow.set_tracking_uri(uri)
    mlflow.set_experiment("bench")
    ready.release()
    go.wait()
    deadline = time.perf_counter() + seconds

    def client(number: int) -> None:
        while time.perf_counter() < deadline:
            _log_with_sdk(mlflow, trajectories[number % len(trajectories)])
            number += threads

    clients = [threading.Thread(target=client, args=(number,)) for number in range(threads)]
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()


def _with_sdk(uri: str, trajectories: list[Any], seconds: float) -> float:
    spawn = multiprocessing.get_context("spawn")
    ready, go = spawn.Semaphore(0), spawn.Event()
    how = {"threads": CLIENTS // PROCESSES, "seconds": seconds, "ready": ready, "go": go}
    processes = [
        spawn.Process(target=_sdk_process, args=(uri, trajectories), kwargs=how)
        for _ in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    for _ in processes:
        ready.acquire()
    begin = time.perf_counter()
    go.set()
    for process in processes:
        process.join()
    return time.perf_counter() - begin


def _otlp_maker(trajectories: list[Any], batch: int) -> Any:
    """Bodies with fresh ids, made of templates beforehand so that the clients have little to do."""
    from opentelemetry.proto.trace.v1 import trace_pb2

    templates = [_otlp_spans(trajectory, trace_pb2) for trajectory in trajectories]

    def body(number: int) -> bytes:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
            ExportTraceServiceRequest,
        )

        request = ExportTraceServiceRequest()
        scope = request.resource_spans.add().scope_spans.add()
        for item in range(batch):
            trace_id = secrets.token_bytes(16)
            root_id = secrets.token_bytes(8)
            for place, template in enumerate(templates[(number * batch + item) % len(templates)]):
                span = scope.spans.add()
                span.CopyFrom(template)
                span.trace_id = trace_id
                span.span_id = secrets.token_bytes(8) if place else root_id
                span.parent_span_id = root_id if place else b""
        return request.SerializeToString()

    return body


def _otlp_spans(trajectory: dict[str, Any], trace_pb2: Any) -> list[Any]:
    def span(name: str, **attributes: Any) -> Any:
        made = trace_pb2.Span(name=name, kind=1, start_time_unix_nano=time.time_ns())
        made.end_time_unix_nano = made.start_time_unix_nano + 1_000_000
        made.status.code = 1
        for key, value in attributes.items():
            attribute = made.attributes.add(key=f"mlflow.{key}")
            attribute.value.string_value = json.dumps(value)
        return made

    root = span(
        "trajectory",
        spanInputs=trajectory["task_context"],
        spanOutputs={"turns": len(trajectory["turns"])},
        metadata=trajectory["metadata"],
    )
    turns = [
        span(
            f"turn-{turn['turn_id']}",
            spanInputs={"observation": turn["observation"], "action": turn["action"]},
            spanOutputs=turn["result"],
            thoughtProcess=turn["thought_process"],
        )
        for turn in trajectory["turns"]
    ]
    return [root, *turns]


def _with_otlp(port: int, trajectories: list[Any], seconds: float, batch: int) -> float:
    import mlflow
    from load import run

    mlflow.set_tracking_uri(f"http://127.0.0.1:{port}")
    experiment = mlflow.set_experiment("bench").experiment_id
    answer = run(
        ("127.0.0.1", port),
        "/v1/traces",
        {"Content-Type": "application/x-protobuf", "x-mlflow-experiment-id": experiment},
        _otlp_maker(trajectories, batch),
        lambda status, _body: batch if status == 200 else 0,
        clients=CLIENTS,
        seconds=seconds,
        items_each=batch,
    )
    print(json.dumps(answer), file=sys.stderr)
    return float(answer["seconds"])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _start_server(folder: Path, workers: int) -> tuple[subprocess.Popen[bytes], int]:
    port = _free_port()
    command = [
        *(sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)),
        *("--backend-store-uri", f"sqlite:///{folder}/store.db", "--workers", str(workers)),
        *("--default-artifact-root", f"{folder}/artifacts", "--uvicorn-opts", "--log-level error"),
    ]
    log = (folder / "server.log").open("wb")
    server = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    for _ in range(240):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2):
                return server, port
        except OSError:
            time.sleep(0.5)
    _stop(server)
    raise SystemExit("mlflow server did not start: " + (folder / "server.log").read_text()[-2000:])


def _stop(server: subprocess.Popen[bytes]) -> None:
    """The whole group: mlflow's workers outlive a parent that is merely terminated."""
    os.killpg(server.pid, signal.SIGTERM)
    try:
        server.wait(10)
    except subprocess.TimeoutExpired:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _stored(folder: Path, spans: int) -> int:
    with sqlite3.connect(folder / "store.db") as database:
        query = (
            "SELECT count(*) FROM (SELECT s.trace_id FROM spans s JOIN trace_info t "
            "ON t.request_id = s.trace_id GROUP BY s.trace_id HAVING count(*) = ?)"
        )
        return int(database.execute(query, (spans,)).fetchone()[0])


def _measure(
    mode: str, trajectories: list[Any], seconds: float, workers: int, folder: Path
) -> float:
    if mode == "direct":
        import mlflow

        uri = f"sqlite:///{folder}/store.db"
        mlflow.set_tracking_uri(uri)
        mlflow.set_experiment("bench")  # makes the tables before the clock starts
        return _with_sdk(uri, trajectories, seconds)
    server, port = _start_server(folder, workers)
    try:
        if mode == "server":
            return _with_sdk(f"http://127.0.0.1:{port}", trajectories, seconds)
        return _with_otlp(port, trajectories, seconds, BATCH if mode == "otlp-batch" else 1)
    finally:
        _stop(server)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=("direct", "server", "otlp", "otlp-batch"))
    parser.add_argument("seconds", type=float)
    parser.add_argument("--workers", type=int, default=1)
    asked = parser.parse_args()
    os.environ.update(SETTINGS)
    trajectories = [json.loads(line) for line in sys.stdin.buffer]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        took = _measure(asked.mode, trajectories, asked.seconds, asked.workers, folder)
        stored = _stored(folder, len(trajectories[0]["turns"]) + 1)
    answer = {
        "mode": asked.mode,
        "stored": stored,
        "seconds": took,
        "per_second": stored / took,
        "versions": {"mlflow": version("mlflow"), "sqlite": sqlite3.sqlite_version},
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
