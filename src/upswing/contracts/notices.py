"""What should a person hear of? alert.v1 and report.v1: something is wrong, and how it went."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from upswing.contracts.wire import END, Json, Message, Timestamp, Wire

Severity = Literal["info", "warning", "urgent"]
SEVERITIES: tuple[Severity, ...] = ("info", "warning", "urgent")
"""The least urgent first."""
AlertState = Literal["firing", "acknowledged", "resolved"]
ReportKind = Literal["daily", "weekly", "job"]
TEXT_LIMIT = 256 * 1024
"""Characters of a report."""

NoticeId = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,199}" + END,
        description="The same id again is the same thing.",
        examples=["daily-2026-01-15"],
    ),
]
Label = Annotated[str, Meta(max_length=200)]


class ReportPeriod(Wire, frozen=True, kw_only=True):
    """What a report is about, in time; its end is not part of it."""

    start: Timestamp
    end: Timestamp


class AlertNotice(Message, frozen=True, kw_only=True):
    """Something that a person should know of has begun, was seen by somebody, or is over."""

    alert_id: NoticeId
    timestamp: Timestamp
    name: Annotated[str, Meta(pattern=r"^[A-Z][A-Za-z]{2,63}" + END, examples=["ModelRolledBack"])]
    severity: Severity
    state: AlertState
    summary: Annotated[str, Meta(min_length=1, max_length=2000, description="One sentence.")]
    labels: Annotated[dict[str, Label], Meta(max_length=20)] | UnsetType = UNSET
    evidence: Json | UnsetType = UNSET
    runbook: str | UnsetType = UNSET


class ReportNotice(Message, frozen=True, kw_only=True):
    """How a day, a week or a training job went."""

    report_id: NoticeId
    timestamp: Timestamp
    kind: ReportKind
    period: ReportPeriod | UnsetType = UNSET
    figures: Json | UnsetType = UNSET
    text: Annotated[str, Meta(min_length=1, max_length=TEXT_LIMIT, description="Markdown.")]
