"""What `upswing traffic` prints of the loop's answer: shares, roles, and where they do not hold."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from upswing.cli import main

TRAFFIC = {
    "baseline": "v2",
    "holdback": "v1",
    "rollout": None,
    "operator": False,
    "exceptions": ["USE_RL_MODEL is off at 1 of 2 gateways: the base model answers there."],
    "traffic": {"v2": 85.0, "v3": 10.0, "v1": 5.0},
}


@pytest.fixture
def answered(monkeypatch):
    """A double of the loop's port that gives this answer to everything."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body = json.dumps(TRAFFIC).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setenv("AGENTGYM_RL_URL", f"http://127.0.0.1:{server.server_address[1]}")
    monkeypatch.setenv("AGENTGYM_RL_API_KEY", "k")
    yield
    server.shutdown()
    server.server_close()


def test_traffic_names_each_role_and_every_exception(answered, capsys):
    assert main(["traffic"]) == 0
    lines = capsys.readouterr().out.splitlines()
    shown = [(line.split()[0], line.split()[1], line.split()[-1]) for line in lines[:3]]
    assert shown == [
        ("v2", "85.00", "baseline"),
        ("v3", "10.00", "candidate"),
        ("v1", "5.00", "holdback"),
    ]
    assert lines[3:] == TRAFFIC["exceptions"]
