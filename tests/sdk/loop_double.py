"""A double of the loop's HTTP side that can refuse, hang, die and come back; and patience."""

import contextlib
import json
import socket
import threading
import time
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from upswing.redact import Redactor, Rule


def eventually(holds, seconds=60.0):
    """Wait until `holds()` is true, and give its value."""
    deadline = time.monotonic() + seconds
    while not (value := holds()):
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.005)
    return value


class PlainRedactor(Redactor):
    """The redactor with one rule of the test's own, so that a test sees that it was asked."""

    def __init__(self):
        super().__init__(rules=(Rule("key", r"sk-[a-z0-9]{3,64}", literals=("sk-",)),))


class LoopDouble:
    """Stands in for the loop's `/v1/trajectories` and `/v1/feedback`.

    `script` holds what it does next, one word per request: a status, `hang`, `lose_answer` (it
    stores and then drops the connection) or a dict of statuses per line; then it takes all.
    """

    def __init__(self):
        self.script, self.requests, self.seen = deque(), [], []
        self.released = threading.Event()
        self.port = 0
        self.key = None
        self.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def ids(self):
        """What was taken, in order, each once: the loop knows an id it has."""
        return list(dict.fromkeys(message.get("trajectory_id") for message in self.seen))

    def start(self):
        self._sockets = set()
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), self._handler())
        self._server.daemon_threads, self._server.block_on_close = True, False
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )
        self._thread.start()

    def stop(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        for each in list(self._sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _handler(double):  # noqa: C901, N805 - two selves meet here, and many ways to fail
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                super().setup()
                double._sockets.add(self.connection)

            def finish(self):
                double._sockets.discard(self.connection)
                with contextlib.suppress(OSError):
                    super().finish()

            def log_message(self, *args):
                pass

            def do_POST(self):
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                lines = [json.loads(line) for line in raw.splitlines()]
                double.requests.append((self.path, self.headers["Content-Type"], lines))
                if double.key and self.headers["Authorization"] != f"Bearer {double.key}":
                    return self.answer(401, {"reason": "denied"})
                act = double.script.popleft() if double.script else 202
                if act == "hang":
                    double.released.wait(300)
                    return self.close()
                if isinstance(act, int) and act >= 300:
                    return self.answer(act, {"reason": "schema", "detail": "no"})
                statuses = act if isinstance(act, dict) else {}
                results = []
                for number, message in enumerate(lines, 1):
                    status = statuses.get(number, 202)
                    results.append({"line": number, "status": status, "result": "stored"})
                    if status == 202:
                        double.seen.append(message)
                if act == "lose_answer":
                    return self.close()
                if self.headers["Content-Type"] == "application/json":
                    return self.answer(202, results[0])
                return self.answer(207 if statuses else 202, *results)

            def close(self):
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)

            def answer(self, status, *lines):
                raw = "\n".join(map(json.dumps, lines)).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

        return Handler


def say(recorder, text="hello", **about):
    """Record one trajectory of one turn, and give its id."""
    with recorder.trajectory(agent_id="a", task="greet", model="m", **about) as t:
        t.turn(observation=text, action="hi", result="ok")
    return t.id
