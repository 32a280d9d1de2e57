"""Where are messages decoded, validated and redacted? In child processes, so that one that kills its reader takes no loop along."""

from __future__ import annotations

import os

import msgspec

from upswing.collect.core.admit import check_size
from upswing.collect.core.evaluate import MessageKind, Verdict, digest, evaluate
from upswing.collect.core.step_evaluation import (
    RefuseRequest,
    StepwiseRequest,
    StepwiseVerdict,
    evaluate_stepwise,
)
from upswing.collect.core.traces.export import evaluate_export
from upswing.collect.core.traces.traced import ExportRequest, ExportVerdict
from upswing.collect.worker import (
    EXPORT,
    EXPORT_VERDICTS,
    STEPWISE,
    STEPWISE_VERDICTS,
    VERDICTS,
    encode_frame,
    limits_of,
    redactor_of,
)
from upswing.config import Settings
from upswing.errors import Misuse, Rejected
from upswing.infra.child_workers import WorkerPool
from upswing.records import RejectedMessage
from upswing.redact import Redactor

_SENT_OF_TOO_LONG = 1024 * 1024 + 1
"""Bytes of a message beyond the limit that a worker gets: no more of it is kept."""


def make_redactor(settings: Settings) -> Redactor:
    """The built-in rules and the user's own."""
    try:
        return redactor_of(settings)
    except ValueError as error:
        raise Misuse(f"A redaction rule of the config cannot be used: {error}") from None


def workers_for(cores: int) -> int:
    """How many admission workers there are: one per core, four at most.

    >>> [workers_for(cores) for cores in (1, 2, 64)]
    [1, 2, 4]
    """
    return max(1, min(4, cores))


class AdmissionPool:
    """Decodes, validates and redacts what comes in."""

    def __init__(self, settings: Settings, redactor: Redactor, *, here: bool) -> None:
        """`here`: in this process, because the redactor is somebody's own and cannot move."""
        self._redactor, self._limits = redactor, limits_of(settings)
        greeting = encode_frame("s", msgspec.msgpack.encode(settings))
        count = workers_for(os.cpu_count() or 1)
        self._children = None if here else WorkerPool(count, "upswing.collect.worker", greeting)

    async def start(self) -> None:
        if self._children:
            await self._children.start()

    async def stop(self) -> None:
        if self._children:
            await self._children.stop()

    async def __call__(self, kind: MessageKind, raw: bytes) -> Verdict:
        if self._children is None:
            return evaluate(kind, raw, self._redactor, self._limits)
        try:
            check_size(raw, self._limits)
        except Rejected as error:  # it need not be sent over whole to be refused
            return await self.refusal(raw, error)
        verdict: Verdict = VERDICTS.decode(await self._children.request(encode_frame(kind, raw)))
        return verdict

    async def refusal(self, raw: bytes, error: Rejected) -> RejectedMessage:
        """What is kept of a message that is refused; redacted by a worker, too."""
        part = RefuseRequest(raw[:_SENT_OF_TOO_LONG], error.reason, error.detail)
        refused = await self.stepwise(part)
        if not isinstance(refused, RejectedMessage):
            raise TypeError(f"a {type(refused).__name__} came back for a refusal")
        return msgspec.structs.replace(refused, sha256=digest(raw))

    async def stepwise(self, request: StepwiseRequest) -> StepwiseVerdict:
        """The verdict on one request of the step-wise endpoints."""
        if self._children is None:
            return evaluate_stepwise(request, self._redactor)
        frame = encode_frame(STEPWISE, msgspec.msgpack.encode(request))
        verdict: StepwiseVerdict = STEPWISE_VERDICTS.decode(await self._children.request(frame))
        return verdict

    async def export(self, request: ExportRequest) -> ExportVerdict:
        """What is in an OTLP export."""
        if self._children is None:
            return evaluate_export(request)
        frame = encode_frame(EXPORT, msgspec.msgpack.encode(request))
        verdict: ExportVerdict = EXPORT_VERDICTS.decode(await self._children.request(frame))
        return verdict
