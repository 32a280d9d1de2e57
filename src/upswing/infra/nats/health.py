"""Is our nats-server well? It is asked on the bus itself, so that no monitoring port has to be open.

A monitoring port tells everybody on the machine who is connected and what they listen to, without a
password. The same question can be asked by a user of the system account who may ask nothing else.
"""

from __future__ import annotations

import json
import socket
from typing import BinaryIO
from urllib.parse import urlsplit

HEALTH = "health"
"""The user who may ask; no role of ours."""
QUESTION = "$SYS.REQ.SERVER.PING.HEALTHZ"
INBOX = f"_INBOX_{HEALTH}.>"
_REPLY = f"_INBOX_{HEALTH}.answer"


def health_url(port: int, password: str) -> str:
    """Where `is_healthy` asks."""
    return f"nats://{HEALTH}:{password}@127.0.0.1:{port}"


def is_healthy(url: str, seconds: float = 1.0) -> bool:
    """Whether the server answers, and says that its streams are recovered and can be written."""
    to = urlsplit(url)
    login = {
        "verbose": False,
        "pedantic": False,
        "lang": "python",
        "version": "1",
        "name": "upswing-health",
        "user": to.username,
        "pass": to.password,
    }
    commands = f"CONNECT {json.dumps(login)}\r\nSUB {_REPLY} 1\r\nPUB {QUESTION} {_REPLY} 0\r\n\r\n"
    try:
        with (
            socket.create_connection((to.hostname or "", to.port or 0), seconds) as connection,
            connection.makefile("rb") as answers,
        ):
            answers.readline()  # it introduces itself
            connection.sendall(commands.encode())
            return _reports_ok(answers)
    except (OSError, ValueError):
        return False


def _reports_ok(answers: BinaryIO) -> bool:
    while fields := answers.readline().split():
        if fields[0] == b"-ERR":
            return False
        if fields[0] == b"MSG":
            reply = json.loads(answers.read(int(fields[-1])))
            return isinstance(reply, dict) and (reply.get("data") or {}).get("status") == "ok"
    return False
