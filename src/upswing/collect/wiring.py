"""How are the parts of collecting put together?"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from prometheus_client import CollectorRegistry

from upswing.collect.core.traces.waiting import WaitingLimits
from upswing.collect.intake import Intake
from upswing.collect.trace_intake import TraceIntake
from upswing.collect.trace_metrics import TraceMetrics
from upswing.collect.worker_pool import AdmissionPool
from upswing.config import Settings
from upswing.infra.dead_letters import DeadLetterWriter


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
