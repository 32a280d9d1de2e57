"""How do stages help to look into failures? What a refusal is, validation knows; what failures share, the monitor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

from upswing.contracts.analysis import FailureAnalysis
from upswing.infra.dead_letters import DeadLetterWriter
from upswing.infra.sql.database import Database
from upswing.monitor.core.analysis import AnalysisSubject, analyse_failures
from upswing.monitor.failure_analyst import FailureAnalyst
from upswing.records import EpisodeFacts
from upswing.validate.core.checkers.refusal import classify_refusal


def make_analyst(
    database: Database,
    clock: Callable[[], datetime],
    new_id: Callable[[], UUID],
    dead_letters: DeadLetterWriter | None = None,
) -> FailureAnalyst:
    """One that knows a refusal when it reads one."""
    return FailureAnalyst(
        database,
        clock=clock,
        new_id=new_id,
        is_refusal=is_refusal,
        dead_letters=dead_letters,
    )


def is_refusal(answer: str) -> bool:
    return bool(answer) and classify_refusal(answer) == "refused"


def analyse_validation(
    candidate: str,
    current: str,
    run_id: str,
    facts: Sequence[EpisodeFacts],
    *,
    clock: Callable[[], datetime],
) -> FailureAnalysis:
    """What the tasks have in common that a candidate does worse."""
    subject = AnalysisSubject(
        candidate, current, "validation", "regressed_task", about=run_id, made=clock()
    )
    return analyse_failures(subject, facts)
