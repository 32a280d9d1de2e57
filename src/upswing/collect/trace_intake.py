"""How do traces enter the loop? Exports are read by a worker, spans wait for their root, conversations are admitted as trajectories.

What waits is in memory and nowhere else: an export's answer means that its spans are known here, not that they are durable. A loop that
ends in order stores what waits; one that is killed loses it. What is stored comes by the same admission as everything else.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from upswing.collect.core.traces.emitters import LIMIT_SWITCH, missing_content
from upswing.collect.core.traces.traced import (
    ExportRequest,
    ExportVerdict,
    ReadExport,
    RefusedExport,
    SpanKind,
)
from upswing.collect.core.traces.trajectory import trace_trajectory
from upswing.collect.core.traces.waiting import (
    SHUTDOWN,
    FinishedConversation,
    WaitingLimits,
    WaitingTrace,
    WaitingTraces,
)
from upswing.collect.intake import STAGE, Intake
from upswing.collect.trace_metrics import KNOWN, REJECTED, TAKEN, TraceMetrics
from upswing.errors import Transient
from upswing.infra.dead_letters import DeadLetterWriter
from upswing.infra.tasks import start_task
from upswing.principals import Sender

log = logging.getLogger(__name__)
DOOR = "otel"
SUBJECT = "/v1/traces"
_TICK_SECONDS = 0.5
"""Between two looks for traces that are over."""
_AT_ONCE = 64
"""Conversations that are admitted at the same time."""
_REMEMBERED = 1000
"""Keys of which is known whether their spans have content."""


@dataclass(frozen=True, slots=True)
class ExportResult:
    """What an exporter hears."""

    rejected: int = 0
    message: str = ""
    """Why spans were rejected; where none were, advice."""
    refused: RefusedExport | None = None


class TraceIntake:
    """Takes OTLP exports, and stores the conversations in them."""

    def __init__(
        self,
        intake: Intake,
        read: Callable[[ExportRequest], Awaitable[ExportVerdict]],
        limits: WaitingLimits,
        metrics: TraceMetrics,
        *,
        clock: Callable[[], datetime],
        dead_letters: DeadLetterWriter,
    ) -> None:
        self._intake, self._read, self._metrics = intake, read, metrics
        self._clock, self._dead_letters = clock, dead_letters
        self.waiting = WaitingTraces(limits)
        self._unstored: list[FinishedConversation] = []
        """Conversations that are over: they leave this list when they are durable."""
        self._popped: list[tuple[WaitingTrace, str]] = []
        self._log_senders: OrderedDict[str, None] = OrderedDict()
        """Keys that have sent log records: their spans may have their content there."""
        self._advised: OrderedDict[tuple[str, str], None] = OrderedDict()
        metrics.watch(lambda: len(self.waiting) + len(self._unstored), lambda: self.waiting.size)

    async def take(self, request: ExportRequest, sender: Sender) -> ExportResult:
        """Take an export; `Transient` where there is no room for it just now."""
        verdict = await self._read(request)
        if isinstance(verdict, RefusedExport):
            self._metrics.refused(verdict.status)
            log.info("an export was refused: %s", verdict.message, extra={"action": "refuse"})
            return ExportResult(refused=verdict)
        try:
            added = self.waiting.add(sender, verdict, self._now())
        except Transient:
            self._metrics.refused(503)
            raise
        rejected = verdict.rejected + added.rejected
        for outcome, count in ((TAKEN, added.spans), (KNOWN, added.known), (REJECTED, rejected)):
            self._metrics.spans(outcome, count)
        if request.logs and verdict.records:
            _remember(self._log_senders, sender.key_id)
        problem = verdict.problem or added.problem
        advice = "" if request.logs else self._advice(verdict, sender)
        return ExportResult(rejected, " ".join(filter(None, (problem, advice))))

    def _advice(self, export: ReadExport, sender: Sender) -> str:
        """What the sender could do better, as far as this export shows."""
        sentences = []
        if sender.key_id not in self._log_senders:
            empty: dict[str, int] = {}
            for span in export.spans:
                if span.kind is SpanKind.CHAT and not span.has_content and not span.error:
                    empty[span.emitter] = empty.get(span.emitter, 0) + 1
            sentences += [missing_content(emitter, count) for emitter, count in empty.items()]
        dropped = sum(bool(each.dropped_attributes) for each in export.spans)
        if dropped:
            sentences.append(f"{dropped} spans have lost attributes: {LIMIT_SWITCH}.")
        return " ".join(sentences)

    # --- what is over ------------------------------------------------------------------------------

    async def run(self) -> None:
        """Store what is over, for ever."""
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            try:
                await self.close_due()
            except (Transient, OSError) as error:
                log.warning("traces wait on: %s", error, extra={"action": "again"})

    async def close_due(self) -> None:
        """Store the conversations that are over by now."""
        now = self._now()
        self._popped += self.waiting.pop_due(now)
        self._unstored += self.waiting.pop_held(now)
        await self._store_all(now)

    async def flush(self) -> None:
        """The loop ends: store everything that waits, whole or not."""
        now = self._now()
        self._popped += self.waiting.pop_due(now, everything=SHUTDOWN)
        self._unstored += self.waiting.pop_held(now, everything=True)
        try:
            await self._store_all(now)
        except (Transient, OSError) as error:
            log.error(  # noqa: TRY400 - a clear sentence
                "%d conversations of traces are lost, which could not be stored at the end: %s",
                len(self._popped) + len(self._unstored),
                error,
                extra={"action": "traces_lost"},
            )

    async def _store_all(self, now: float) -> None:
        while self._popped:
            trace, why = self._popped.pop(0)
            await self._dead_letters.process_each(
                STAGE,
                "traces",
                [trace],
                lambda each, why=why: self._finish(each, why, now),  # type: ignore[misc]
                key=lambda each: each.trace_id,
                raw=_texts_of,
            )
            if len(self._unstored) >= _AT_ONCE:
                await self._store_unstored()
        await self._store_unstored()

    async def _finish(self, trace: WaitingTrace, why: str, now: float) -> None:
        closed = self.waiting.finish(trace, why, now)
        self._unstored += closed.finished
        self._metrics.closed(why)
        for emitter, count in closed.without_content.items():
            self._metrics.without_content(emitter, count)
            self._say_once(trace.sender.key_id, emitter, count)

    def _say_once(self, key_id: str, emitter: str, count: int) -> None:
        if (key_id, emitter) not in self._advised:
            _remember(self._advised, (key_id, emitter))
            log.warning(
                "key %s: %s",
                key_id,
                missing_content(emitter, count),
                extra={"action": "no_content", "emitter": emitter},
            )

    async def _store_unstored(self) -> None:
        while self._unstored:
            batch = self._unstored[:_AT_ONCE]
            stores = [start_task(self._store(each)) for each in batch]
            results = await asyncio.gather(*stores, return_exceptions=True)
            for result in results:
                if isinstance(result, BaseException):
                    raise result

    async def _store(self, finished: FinishedConversation) -> None:
        """Through the one admission; what it refuses becomes a dead letter there."""
        await self._dead_letters.process_each(
            STAGE,
            "traces",
            [finished],
            self._admit,
            key=lambda each: each.conversation.trace_id,
            raw=lambda each: msgspec.json.encode(each.conversation.calls[-1].messages),
        )
        self._unstored = [each for each in self._unstored if each is not finished]
        self.waiting.release(finished.sender, finished.size)

    async def _admit(self, finished: FinishedConversation) -> None:
        sender = finished.sender
        tree = trace_trajectory(finished.conversation, sender.key_id, finished.ended_by)
        raw = msgspec.json.encode(tree)
        await self._intake.trajectory(raw, door=DOOR, subject=SUBJECT, sender=sender)

    def _now(self) -> float:
        return self._clock().timestamp()


def _texts_of(trace: WaitingTrace) -> bytes:
    return b"\n".join(trace.bodies.values())


def _remember(table: OrderedDict[Any, None], key: Any) -> None:
    table[key] = None
    table.move_to_end(key)
    if len(table) > _REMEMBERED:
        table.popitem(last=False)
