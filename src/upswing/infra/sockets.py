"""Is this port to be had? A socket that has it, or a sentence that says what to do."""

from __future__ import annotations

import errno
import socket
from pathlib import Path

from upswing.errors import Misuse

_OF_PORTS = {errno.EADDRINUSE, errno.EACCES, errno.EPERM}


def bind_port(host: str, port: int, option: str = "--port") -> socket.socket:
    """A socket that has its port and does not listen yet; `option` is how to ask for another."""
    if not 0 <= port <= 65535:
        raise Misuse(f"{option} is a number from 0 to 65535, not {port}.")
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
    except OSError as error:
        made.close()
        raise _bind_refusal(error, host, port, option) from None
    return made


def _bind_refusal(error: OSError, host: str, port: int, option: str) -> Misuse:
    """Who is to blame, the port or the address?"""
    if error.errno in _OF_PORTS:
        return Misuse(
            f"Port {port} on {host} cannot be used ({error.strerror}): give another with {option}, or 0 for any."
        )
    return Misuse(
        f"{host} is no address of this machine ({error.strerror}): give another with --host, such as 127.0.0.1."
    )


def read_saved_port(path: Path) -> int:
    """The port that a server wrote down last time, so that clients find it where it was; 0, any free one, if none."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 0
