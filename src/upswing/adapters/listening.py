"""Is this port to be had? A socket that has it, or a sentence that says what to do."""

from __future__ import annotations

import socket

from upswing.errors import Misuse


def bound(host: str, port: int, option: str = "--port") -> socket.socket:
    """A socket that has its port and does not listen yet; `option` is how to ask for another."""
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
    except OSError as error:
        made.close()
        raise Misuse(
            f"Port {port} on {host} cannot be used ({error.strerror}): give another with {option}, or 0 for any."
        ) from None
    return made
