"""Something happened: which alert is it? Rows of incidents and validations, and lines of the log.

| what happened                                             | alert                              |
|-----------------------------------------------------------|------------------------------------|
| a validation with the verdict `fail`, or without a report  | ValidationFailed, by model         |
| a validation with the verdict `pass`                       | ValidationFailed is over           |
| an incident whose rollout is rolled back                   | ModelRolledBack, by model          |
| any other incident                                         | by its reason (`INCIDENT_KINDS`)       |
| a promotion                                                | what is over then (`_PROMOTED`)    |
| a line of the log with `action=alert`                      | by its `reason` (`LOGGED`)         |

Incidents and validations are rows, so they are met once, also after a restart. A line of the log that tells of
such a row, or of a condition that a rule looks at, raises nothing of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from upswing.monitor.core.alert_states import AlertOver, AlertSeen, Observation

_ROLLED_BACK = "rolled_back"
INCIDENT_KINDS = {
    "not_better": "CandidateNotShipped",
    "no_change": "CandidateNotShipped",
    "validation_inconclusive": "CandidateNotShipped",
    "not_servable": "ModelNotServable",
    "emergency_override": "EmergencyOverride",
}
"""The reason of an incident → its kind."""
_TOLD_BY_VALIDATION = "validation_fail"
_PROMOTED = ("ModelRolledBack", "ModelDegraded")
LOGGED: Mapping[str, str] = {
    "needs_approval": "ApprovalNeeded",
    "foreign_plan": "ForeignPlan",
    "rollout_refused": "ControllerFailing",
    "controller_error": "ControllerFailing",
    "controller_broke": "ControllerFailing",
    "part_broke": "PartFailing",
    "chore_broke": "PartFailing",
    "line_broke": "PartFailing",
    "enquiry_broke": "PartFailing",
    "validation_stuck": "ValidationFailed",
    "unmeasurable_task": "RowsSetAside",
    "row_set_aside": "RowsSetAside",
    "no_dead_letter": "RowsSetAside",
    "archive_damaged": "DataDamaged",
    "pin_unreadable": "DataDamaged",
    "base_damaged": "DataDamaged",
    "mark_missing": "DataDamaged",
    "streams_changed": "DataDamaged",
    "own_request_refused": "TrainingRequestRefused",
    "training_broke": "TrainingNeedsAttention",
    "training_attention": "TrainingNeedsAttention",
    "not_encodable": "RowsSetAside",
    "judge_late": "JudgeLate",
    "no_base": "GatewayTrouble",
    "pin_missing": "GatewayTrouble",
    "episode_lost": "GatewayTrouble",
    "webhook_given_up": "WebhookFailing",
}
"""The `reason` of a logged alert → its kind. A new reason needs a line here, and a kind an entry in the runbook."""
TOLD_ELSEWHERE = frozenset({"bus_not_durable", "disk_full", "no_model_served"})
"""Reasons of which a rule tells already."""
_OF_ROLLOUTS = "upswing.deploy.executor"
"""What it logs for another reason than those above has an incident."""
_LABELS = ("model", "job", "part", "stage", "target")
"""What of a log record names the cause."""
_SUMMARY = 500


@dataclass(frozen=True, slots=True)
class IncidentRow:
    """What of an incident matters here."""

    seq: int
    model_id: str
    reason: str
    sentence: str
    rollout_state: str
    """Of the rollout that it is about; empty: about none."""


@dataclass(frozen=True, slots=True)
class EndedValidation:
    """What of an ended validation matters here."""

    run_id: str
    model_id: str
    verdict: str
    """`pass`, `fail` or `inconclusive`; empty: there is no report."""
    sentence: str
    ended: datetime


@dataclass(frozen=True, slots=True)
class LoggedAlert:
    """A line of the log that calls a person."""

    reason: str
    message: str
    labels: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    """The logger."""


def observe_incidents(rows: Iterable[IncidentRow]) -> list[Observation]:
    """What incidents call for."""
    return [_incident(each) for each in rows if each.reason != _TOLD_BY_VALIDATION]


def _incident(row: IncidentRow) -> AlertSeen:
    labels, evidence = {"model": row.model_id}, {"reason": row.reason}
    if row.rollout_state == _ROLLED_BACK:
        sentence = f"{row.model_id} was rolled back: {row.sentence}"
        return AlertSeen("ModelRolledBack", sentence, labels, evidence)
    name = INCIDENT_KINDS.get(row.reason, "ModelDegraded")
    return AlertSeen(name, f"{row.model_id}: {row.sentence}", labels, evidence)


def observe_validations(rows: Iterable[EndedValidation]) -> list[Observation]:
    """What ended validations call for, in the order in which they ended."""
    observed: list[Observation] = []
    for row in rows:
        labels, evidence = {"model": row.model_id}, {"validation": row.run_id}
        match row.verdict:
            case "pass":
                why = f"{row.model_id} has passed its validation."
                observed.append(AlertOver("ValidationFailed", why, before=row.ended))
            case "fail":
                sentence = f"{row.model_id} failed its validation: {row.sentence}"
                observed.append(AlertSeen("ValidationFailed", sentence, labels, evidence))
            case "":
                sentence = f"{row.model_id} could not be validated: {row.sentence}"
                observed.append(AlertSeen("ValidationFailed", sentence, labels, evidence))
            case _:  # inconclusive: the candidate's incident tells of it
                continue
    return observed


def observe_promotion(promoted: datetime | None) -> list[Observation]:
    """What a model that was promoted then puts an end to."""
    if promoted is None:
        return []
    return [AlertOver(name, "A model was promoted since.", before=promoted) for name in _PROMOTED]


def observe_logged(lines: Iterable[LoggedAlert]) -> list[Observation]:
    """What lines of the log call for."""
    return [
        AlertSeen(
            LOGGED.get(line.reason, "OtherAlert"),
            line.message[:_SUMMARY],
            {name: line.labels[name] for name in _LABELS if line.labels.get(name)},
            {"reason": line.reason} if line.reason else {},
        )
        for line in lines
        if line.reason not in TOLD_ELSEWHERE
        and (line.source != _OF_ROLLOUTS or line.reason in LOGGED)
    ]
