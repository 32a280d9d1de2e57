"""Does the recorder hold the agent up, and how soon is finished work with the loop?

`t.turn` is timed in the agent's thread, with a turn of about 4 KB. "With the loop" is the time
from the end of a trajectory to the moment its request has arrived at an HTTP server on the same
machine: redacted by the real rules, spooled, sent. Both are 99th percentiles.
"""

import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from bench.harness import Row, versions

TURNS, TRAJECTORIES = 5_000, 300
_TEXT = "The quick brown fox jumps over the lazy dog, twice if nobody looks. " * 15


def rows() -> list[Row]:
    arrived: list[float] = []
    server = _server(arrived)
    with tempfile.TemporaryDirectory() as folder:
        from upswing.sdk import Recorder

        url = f"http://127.0.0.1:{server.server_address[1]}"
        with Recorder(url=url, key="k", spool=Path(folder)) as recorder:
            _trajectory(recorder, 1)
            recorder.flush(30)
            arrived.clear()
            turns = _turn_times(recorder)
            recorder.flush(30)
            arrived.clear()
            waits = _waits(recorder, arrived)
            lost = recorder.stats.errors + recorder.stats.dropped
    server.shutdown()
    server.server_close()
    failure = f"{lost} trajectories were lost" if lost else ""
    return [
        _row("recorder: t.turn in the agent's thread, p99", _p99(turns), 1.0, failure),
        _row("recorder: from the end to the loop, p99", _p99(waits), 100.0, failure),
    ]


def _row(name, value, target, failure):
    return Row(
        name=name,
        value=value,
        target=target,
        better="lower",
        unit="ms",
        versions=versions(),
        failure=failure,
    )


def _server(arrived):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            arrived.append(time.perf_counter())
            self.send_response(202)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def _trajectory(recorder, turns):
    with recorder.trajectory(agent_id="bench", task="Measure.", model="m") as t:
        for _ in range(turns):
            t.turn(
                _TEXT, {"tool": "search", "args": {"q": _TEXT}}, {"output": _TEXT, "success": True}
            )


def _turn_times(recorder):
    times = []
    for _ in range(TURNS // 50):
        with recorder.trajectory(agent_id="bench", task="Measure.", model="m") as t:
            for _ in range(50):
                before = time.perf_counter()
                t.turn(_TEXT, {"tool": "search", "args": {"q": _TEXT}}, _TEXT)
                times.append(time.perf_counter() - before)
    return times


def _waits(recorder, arrived):
    waits = []
    for count in range(1, TRAJECTORIES + 1):
        _trajectory(recorder, 5)
        ended = time.perf_counter()
        recorder.flush(10)
        waits.append(arrived[count - 1] - ended)
    return waits


def _p99(seconds):
    return sorted(seconds)[int(len(seconds) * 0.99)] * 1000


if __name__ == "__main__":
    for row in rows():
        print(f"{row.name}: {row.value:.3f} {row.unit} (promised: under {row.target:g})")
