"""How do the parts of collecting come together? Admission workers, the intakes, and consumers of the bus."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from datetime import datetime
from uuid import UUID

from prometheus_client import CollectorRegistry

from upswing.collect.consumer import BusIntake
from upswing.collect.core.traces.waiting import WaitingLimits
from upswing.collect.dead_letter_consumer import gateway_dead_letter_handler
from upswing.collect.intake import Intake
from upswing.collect.metrics import CollectMetrics
from upswing.collect.open_trajectories import OpenTrajectories
from upswing.collect.step_intake import StepwiseIntake
from upswing.collect.trace_intake import TraceIntake
from upswing.collect.trace_metrics import TraceMetrics
from upswing.collect.worker_pool import AdmissionPool
from upswing.config import Settings
from upswing.contracts.topics import (
    DEAD_GATEWAY,
    DEADS,
    FEEDBACK,
    GATEWAY_FEEDBACK,
    GATEWAY_TRAJECTORY,
    TRAJECTORY,
    consumer_name,
    topic_of_subject,
)
from upswing.errors import Transient
from upswing.infra.dead_letters import DeadLetterWriter
from upswing.infra.nats.consumer import ConsumerFactory
from upswing.infra.sql.store import SqlStore
from upswing.infra.sql.users import Users
from upswing.redact import Redactor


class CollectStage:
    """The collect stage of this machine."""

    def __init__(
        self,
        store: SqlStore,
        users: Users,
        settings: Settings,
        redactor: Redactor,
        registry: CollectorRegistry,
        *,
        clock: Callable[[], datetime],
        new_id: Callable[[], UUID],
        on_stored: Callable[[], None],
        dead_letters: DeadLetterWriter,
        in_process: bool = False,
    ) -> None:
        """`in_process`: messages are admitted here, without workers."""
        self._store, self._redactor = store, redactor
        self.metrics = CollectMetrics(registry)
        self.admission = AdmissionPool(settings, redactor, here=in_process)
        self.intake = Intake(
            store,
            users,
            self.admission,
            self.metrics,
            clock=clock,
            new_id=new_id,
            stored=on_stored,
        )
        self.steps = StepwiseIntake(
            self.intake,
            OpenTrajectories(store.database),
            store,
            users,
            self.admission.stepwise,
            clock=clock,
            new_id=new_id,
            dead_letters=dead_letters,
        )
        self.traces = trace_intake(
            settings,
            self.intake,
            self.admission,
            registry,
            clock=clock,
            dead_letters=dead_letters,
        )

    async def consumers(
        self, factory: ConsumerFactory
    ) -> list[tuple[str, Callable[[], Awaitable[None]]]]:
        """What runs for ever, with names: consumers of trajectories, feedback and gateways' dead letters, and traces."""
        bus_intake = BusIntake(self.intake, self._store, self._redactor)
        trajectories, feedback = bus_intake.trajectory_handler(), bus_intake.feedback_handler()
        parts: list[tuple[str, Callable[[], Awaitable[None]]]] = []
        for subject, handler in (
            (TRAJECTORY, trajectories),
            (GATEWAY_TRAJECTORY, trajectories),
            (FEEDBACK, feedback),
            (GATEWAY_FEEDBACK, feedback),
        ):
            topic = topic_of_subject(subject)
            stream, name = topic.stream or "", consumer_name(topic, "collector")
            consumer = factory.make(stream, topic.subject, name, handler)
            with contextlib.suppress(Transient):
                await consumer.learn_backlog()
            parts.append((f"collect {stream}{topic.consumer}", consumer.run))
        handler = gateway_dead_letter_handler(self._store, self.metrics.refused)
        letters = factory.make(DEADS, DEAD_GATEWAY, "letters", handler)
        return [*parts, ("letters", letters.run), ("traces", self.traces.run)]


def trace_intake(
    settings: Settings,
    intake: Intake,
    admission: AdmissionPool,
    registry: CollectorRegistry,
    *,
    clock: Callable[[], datetime],
    dead_letters: DeadLetterWriter,
) -> TraceIntake:
    """What takes traces."""
    otel = settings.otel
    limits = WaitingLimits(
        otel.grace_seconds,
        otel.idle_seconds,
        otel.longest_seconds,
        otel.max_traces,
        max_bytes=otel.max_megabytes * 1024 * 1024,
    )
    return TraceIntake(
        intake,
        admission.export,
        limits,
        TraceMetrics(registry),
        clock=clock,
        dead_letters=dead_letters,
    )
