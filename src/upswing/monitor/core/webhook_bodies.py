"""What does a webhook get to read? The notice as on the bus, a Slack message, or Alertmanager's list.

Signed like this, so that a receiver can tell that it is ours and not an old one sent again:

    X-Upswing-Signature: t=1767000000,v1=<hex HMAC-SHA256 of "1767000000." and the body>
    X-Upswing-Delivery: the same for every try of one delivery
    X-Upswing-Event: alert or report
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

import msgspec

from upswing.contracts import AlertNotice, ReportNotice, decode
from upswing.contracts.notices import SEVERITIES, Severity
from upswing.monitor.core.alert_catalog import CATALOG

NoticeEvent = Literal["alert", "report"]
_SIGNS = {"firing": "🔥", "acknowledged": "👀", "resolved": "✅"}
_SLACK_CHARACTERS = 3500
"""Of a message: Slack cuts off longer ones at 4,000."""
_LABEL_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """What is sent."""

    body: bytes
    headers: Mapping[str, str]


def sign_request(
    body: bytes, secret: str, event: NoticeEvent, delivery_id: str, now: datetime
) -> SignedRequest:
    """The body, with headers that say whose it is."""
    at = int(now.timestamp())
    signature = hmac.new(secret.encode(), f"{at}.".encode() + body, "sha256").hexdigest()
    return SignedRequest(
        body,
        {
            "X-Upswing-Event": event,
            "X-Upswing-Delivery": delivery_id,
            "X-Upswing-Signature": f"t={at},v1={signature}",
        },
    )


def is_heard(severity: Severity, least: Severity) -> bool:
    """Whether an alert of this severity goes to whoever hears from `least` on.

    >>> is_heard("warning", "warning"), is_heard("info", "warning")
    (True, False)
    """
    return SEVERITIES.index(severity) >= SEVERITIES.index(least)


def json_body(event: NoticeEvent, notice: bytes) -> bytes:
    """The notice as on the bus, with which of the two it is."""
    return msgspec.json.encode({"event": event, event: msgspec.Raw(notice)})


def slack_body(event: NoticeEvent, notice: bytes) -> bytes:
    """A message that Slack, Mattermost and others like them show."""
    text = (
        _alert_text(decode(AlertNotice, notice))
        if event == "alert"
        else _escape_slack(decode(ReportNotice, notice).text)
    )
    return msgspec.json.encode({"text": text[:_SLACK_CHARACTERS]})


def _alert_text(alert: AlertNotice) -> str:
    head = f"{_SIGNS[alert.state]} *{alert.name}* ({alert.severity}, {alert.state})"
    kind = CATALOG.get(alert.name)
    remedy = "" if kind is None else f"\n_What to do:_ {_escape_slack(kind.remedy)}"
    return f"{head}\n{_escape_slack(alert.summary)}{remedy}"


def _escape_slack(text: str) -> str:
    """What Slack would read as a link or a mention stays text."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


@dataclass(frozen=True, slots=True)
class AlertmanagerEntry:
    """An alert as Alertmanager has to know it."""

    name: str
    severity: Severity
    summary: str
    labels: Mapping[str, str]
    runbook: str
    began: datetime
    resolved: datetime | None
    """None: it is open."""


def _annotations(entry: AlertmanagerEntry) -> dict[str, str]:
    """As in the rules of Prometheus."""
    kind = CATALOG.get(entry.name)
    action = {} if kind is None else {"action": kind.remedy}
    return {"summary": entry.summary, **action, "runbook": entry.runbook}


def alertmanager_body(
    entries: Iterable[AlertmanagerEntry], now: datetime, lasts: timedelta, source: str
) -> bytes:
    """Alertmanager's `POST /api/v2/alerts`. An open alert holds for `lasts`, unless it is sent again."""
    return msgspec.json.encode(
        [
            {
                "labels": _alertmanager_labels(each, source),
                "annotations": _annotations(each),
                "startsAt": each.began,
                "endsAt": each.resolved or now + lasts,
            }
            for each in entries
        ]
    )


def _alertmanager_labels(entry: AlertmanagerEntry, source: str) -> dict[str, str]:
    """Names that Alertmanager takes; an empty label is none to it."""
    own = {
        "alertname": entry.name,
        "severity": entry.severity,
        "job": "upswing",
        "instance": source,
    }
    more = {
        f"upswing_{name}" if name in own else name: value[:_LABEL_CHARACTERS]
        for name, value in entry.labels.items()
    }
    return {name: value for name, value in {**more, **own}.items() if value}


def verify_signature(
    body: bytes, header: str, secret: str, now: datetime, tolerance: timedelta
) -> bool:
    """What a receiver does: whether the header fits the body, and is not too old.

    >>> from datetime import UTC
    >>> at = datetime(2026, 1, 5, tzinfo=UTC)
    >>> sent = sign_request(b"{}", "whs_1", "alert", "d", at)
    >>> signed = sent.headers["X-Upswing-Signature"]
    >>> [verify_signature(b"{}", signed, "whs_1", at + age, timedelta(minutes=5)) for age in (timedelta(), timedelta(hours=1))]
    [True, False]
    >>> verify_signature(b"[]", signed, "whs_1", at, timedelta(minutes=5))
    False
    """
    parts = dict(_pairs(header.split(",")))
    stamp, given = parts.get("t", ""), parts.get("v1", "")
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) <= 12):
        return False
    wanted = hmac.new(secret.encode(), f"{stamp}.".encode() + body, "sha256").hexdigest()
    fresh = abs(now.timestamp() - int(stamp)) <= tolerance.total_seconds()
    return fresh and hmac.compare_digest(given.encode(), wanted.encode())


def _pairs(parts: Sequence[str]) -> Iterable[tuple[str, Any]]:
    for part in parts:
        name, _, value = part.partition("=")
        yield name, value
