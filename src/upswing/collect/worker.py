"""Who looks at a message that may be hostile? A child process: if it dies of it, nobody else does.

    stdin   4 bytes length, 1 byte kind, the message
    stdout  4 bytes length, the verdict in MessagePack, in the order of the questions

The first message on stdin is the settings. The end of stdin is the end of the child.
"""

from __future__ import annotations

import sys
from typing import BinaryIO

import msgspec

from upswing.collect.admit import Limits
from upswing.collect.look import Kind, Verdict, look
from upswing.config import Settings
from upswing.contracts.typed import from_msgpack, msgpack_decoder
from upswing.pulse import Beats
from upswing.redact import Redactor, Rule, default_rules

HEADER = 5
_ENCODER = msgspec.msgpack.Encoder()
VERDICTS = msgpack_decoder(Verdict)


def question(kind: str, message: bytes) -> bytes:
    """A frame for the child's stdin."""
    return len(message).to_bytes(4, "big") + kind.encode("ascii") + message


def limits_of(settings: Settings) -> Limits:
    collect = settings.collect
    return Limits(collect.max_bytes, collect.max_depth, collect.window_hours)


def redactor_of(settings: Settings) -> Redactor:
    """The built-in rules and the user's own; `ValueError` when one of those cannot be used."""
    own = tuple(Rule(rule.name, rule.pattern) for rule in settings.redact.rules)
    return Redactor(rules=default_rules(public_ip=settings.redact.public_ip) + own)


def serve(source: BinaryIO, target: BinaryIO) -> None:
    """Answer questions until there are no more."""
    _, settings_raw = _read(source) or ("", b"")
    settings = from_msgpack(settings_raw, Settings)
    redactor, limits = redactor_of(settings), limits_of(settings)
    redactor.text("warm up")
    while (asked := _read(source)) is not None:
        verdict = _ENCODER.encode(look(Kind(asked[0]), asked[1], redactor, limits))
        target.write(len(verdict).to_bytes(4, "big") + verdict)
        target.flush()


def _read(source: BinaryIO) -> tuple[str, bytes] | None:
    header = source.read(HEADER)
    if len(header) < HEADER:
        return None
    size = int.from_bytes(header[:4], "big")
    message = source.read(size)
    return (chr(header[4]), message) if len(message) == size else None


if __name__ == "__main__":
    Beats().from_thread()
    serve(sys.stdin.buffer, sys.stdout.buffer)
