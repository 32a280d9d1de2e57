"""Who evaluates a message that may be hostile? A child process: if it dies of it, nobody else does.

    stdin   4 bytes length, 1 byte kind, the message
    stdout  4 bytes length, the verdict in MessagePack, in the order of the questions

The first message on stdin is the settings. The end of stdin is the end of the child.
"""

from __future__ import annotations

import sys
from typing import BinaryIO

import msgspec

from upswing.collect.core.admit import AdmissionLimits
from upswing.collect.core.evaluate import MessageKind, Verdict, evaluate
from upswing.collect.core.step_evaluation import (
    StepwiseRequest,
    StepwiseVerdict,
    evaluate_stepwise,
)
from upswing.collect.core.traces.export import evaluate_export
from upswing.collect.core.traces.traced import ExportRequest, ExportVerdict
from upswing.config import Settings
from upswing.contracts.typed import from_msgpack, msgpack_decoder
from upswing.infra.heartbeat import Beats
from upswing.redact import Redactor, Rule, default_rules

HEADER = 5
_ENCODER = msgspec.msgpack.Encoder()
VERDICTS = msgpack_decoder(Verdict)
STEPWISE = "w"
"""The kind of a frame that holds a request of the step-wise endpoints."""
STEPWISE_VERDICTS = msgpack_decoder(StepwiseVerdict)
_STEPWISE_REQUESTS = msgpack_decoder(StepwiseRequest)
EXPORT = "o"
"""The kind of a frame that holds an OTLP export."""
EXPORT_VERDICTS = msgpack_decoder(ExportVerdict)
_EXPORT_REQUESTS = msgpack_decoder(ExportRequest)


def encode_frame(kind: str, message: bytes) -> bytes:
    """A frame for the child's stdin."""
    return len(message).to_bytes(4, "big") + kind.encode("ascii") + message


def limits_of(settings: Settings) -> AdmissionLimits:
    collect = settings.collect
    return AdmissionLimits(collect.max_bytes, collect.max_depth, collect.window_hours)


def redactor_of(settings: Settings) -> Redactor:
    """The built-in rules and the user's own; `ValueError` when one of those cannot be used."""
    own = tuple(Rule(rule.name, rule.pattern) for rule in settings.redact.rules)
    return Redactor(rules=default_rules(public_ip=settings.redact.public_ip) + own)


def serve(source: BinaryIO, target: BinaryIO) -> None:
    """Answer questions until there are no more."""
    _, settings_raw = _read_frame(source) or ("", b"")
    settings = from_msgpack(settings_raw, Settings)
    redactor, limits = redactor_of(settings), limits_of(settings)
    redactor.text("warm up")
    while (frame := _read_frame(source)) is not None:
        verdict = _ENCODER.encode(_verdict(*frame, redactor, limits))
        target.write(len(verdict).to_bytes(4, "big") + verdict)
        target.flush()


def _verdict(
    kind: str, message: bytes, redactor: Redactor, limits: AdmissionLimits
) -> Verdict | StepwiseVerdict | ExportVerdict:
    if kind == EXPORT:
        return evaluate_export(_EXPORT_REQUESTS.decode(message))
    if kind == STEPWISE:
        return evaluate_stepwise(_STEPWISE_REQUESTS.decode(message), redactor)
    return evaluate(MessageKind(kind), message, redactor, limits)


def _read_frame(source: BinaryIO) -> tuple[str, bytes] | None:
    header = source.read(HEADER)
    if len(header) < HEADER:
        return None
    size = int.from_bytes(header[:4], "big")
    message = source.read(size)
    return (chr(header[4]), message) if len(message) == size else None


if __name__ == "__main__":
    Beats().start_in_thread()
    serve(sys.stdin.buffer, sys.stdout.buffer)
