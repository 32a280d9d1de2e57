"""What is wrong, and who is on it? Alerts over HTTP: listed, one with its deliveries, acknowledged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from upswing.api.auditing import Auditor, actor_of
from upswing.api.paging import ListQuery
from upswing.api.router import JSON, Problem, Request, Response, Route, answer
from upswing.api.scopes import OPERATOR, READER
from upswing.contracts.field_errors import schema_error_sentence
from upswing.contracts.notices import SEVERITIES
from upswing.contracts.typed import from_json
from upswing.errors import Misuse, Reason, Rejected
from upswing.monitor.alert_repository import AlertFilter, AlertRepository, AlertRow
from upswing.monitor.core.alert_catalog import CATALOG
from upswing.monitor.deliveries import DeliveryQueue, DeliveryRow
from upswing.redact import RedactionFailed, Redactor

_ID = {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[^/]+$"}
STATES = {
    "open": ("firing", "acknowledged"),
    "firing": ("firing",),
    "acknowledged": ("acknowledged",),
    "resolved": ("resolved",),
    "all": None,
}
"""What can be asked for → the states that are meant; None: any."""
_ALERTS = ListQuery(
    "alerts",
    {
        "state": {"type": "string", "enum": list(STATES)},
        "severity": {"type": "string", "enum": list(SEVERITIES)},
        "name": {"type": "string", "enum": sorted(CATALOG)},
    },
)
_MOST_BYTES = 8 * 1024


class AlertItem(Struct, frozen=True, kw_only=True):
    """An alert in a list."""

    alert_id: str
    name: str
    severity: str
    state: str
    summary: str
    labels: dict[str, Any]
    evidence: dict[str, Any]
    runbook: str
    """Where the documentation says more: a page of it, and the place there."""
    remedy: str
    """What to do, in the runbook's words."""
    began: datetime
    changed: datetime
    seen: datetime
    """When it was last seen to hold, or to happen."""
    times: int
    acknowledged_by: str | None
    acknowledged: datetime | None
    note: str | None
    over: str | None
    """Why it is over."""
    resolved: datetime | None


class AlertList(Struct, frozen=True):
    alerts: list[AlertItem]
    next: str | None


class DeliveryView(Struct, frozen=True):
    """How a notice fared at one webhook."""

    target: str
    state: str
    tries: int
    error: str
    queued: datetime
    next_try: datetime | None


class AlertView(AlertItem, frozen=True, kw_only=True):
    """An alert, and who was told."""

    deliveries: list[DeliveryView]


class Acknowledgement(Struct, frozen=True, forbid_unknown_fields=True):
    """A person's word on an alert."""

    note: Annotated[str, Meta(max_length=1000)] = ""


class AlertRoutes:
    """The handlers."""

    def __init__(
        self,
        alerts: AlertRepository,
        deliveries: DeliveryQueue,
        redactor: Redactor,
        auditor: Auditor,
        *,
        clock: Callable[[], datetime],
        on_change: Callable[[Sequence[AlertRow]], None] = lambda _: None,
    ) -> None:
        self._alerts, self._deliveries, self._redactor = alerts, deliveries, redactor
        self._auditor, self._clock, self._on_change = auditor, clock, on_change

    def routes(self) -> list[Route]:
        gone = {404: ("There is no such alert.", Problem)}
        wrong = {422: ("Something is not what it should be.", Problem)}
        return [
            Route(
                "GET",
                "/v1/alerts",
                "Alerts, the newest first; those that are open unless `state` says otherwise.",
                self.list,
                READER,
                query=_ALERTS.schema,
                answers={200: ("A page of them.", AlertList), **wrong},
            ),
            Route(
                "GET",
                "/v1/alerts/{alert_id}",
                "An alert, and which webhooks heard of it.",
                self.one,
                READER,
                params={"alert_id": _ID},
                answers={200: ("It.", AlertView), **gone},
            ),
            Route(
                "POST",
                "/v1/alerts/{alert_id}/acknowledge",
                "Say that somebody has seen it.",
                self.acknowledge,
                OPERATOR,
                takes={JSON: Acknowledgement},
                params={"alert_id": _ID},
                answers={
                    200: ("How it stands now.", AlertItem),
                    **gone,
                    **wrong,
                    400: ("Not JSON.", Problem),
                    409: ("It is over.", Problem),
                },
                max_body=_MOST_BYTES,
            ),
        ]

    async def list(self, request: Request) -> Response:
        page = _ALERTS.read(request, self._clock)
        state = page.filters.get("state", "open")
        wanted = AlertFilter(
            states=STATES[state],
            severity=page.filters.get("severity"),
            name=page.filters.get("name"),
            since=page.since,
            until=page.until,
            before_seq=page.before,
        )
        found = await self._alerts.search(wanted, page.limit + 1)
        rows = found[: page.limit]
        more = rows[-1].seq if len(found) > page.limit else None
        return answer(200, AlertList([alert_item(each) for each in rows], page.cursor(more)))

    async def one(self, request: Request) -> Response:
        row = await self._alerts.get(request.params["alert_id"])
        if row is None:
            raise _unknown_alert()
        deliveries = await self._deliveries.of_notice(row.alert_id)
        view = AlertView(
            **msgspec.structs.asdict(alert_item(row)), deliveries=[*map(delivery_view, deliveries)]
        )
        return answer(200, view)

    async def acknowledge(self, request: Request) -> Response:
        note = self._redacted(_read(request.body or b"{}").note)
        alert_id = request.params["alert_id"]
        audit = self._auditor.entry(
            request,
            "acknowledge",
            alert_id,
            detail={"note": note},
            before={"state": "firing"},
            after={"state": "acknowledged"},
        )
        row = await self._alerts.acknowledge(
            alert_id, actor_of(request), note, self._clock(), audit
        )
        if row is None:
            raise _unknown_alert()
        self._on_change([row])
        return answer(200, alert_item(row))

    def _redacted(self, note: str) -> str:
        try:
            return str(self._redactor.text(note).value)
        except RedactionFailed:
            raise Rejected(Reason.REDACTION_FAILED, "The note cannot be redacted.") from None


def alert_item(row: AlertRow) -> AlertItem:
    """An alert as it is shown."""
    return AlertItem(
        alert_id=row.alert_id,
        name=row.name,
        severity=row.severity,
        state=row.state,
        summary=row.summary,
        labels=msgspec.json.decode(row.labels),
        evidence=msgspec.json.decode(row.evidence),
        runbook=row.runbook,
        remedy=CATALOG[row.name].remedy if row.name in CATALOG else "",
        began=row.began,
        changed=row.changed,
        seen=row.seen,
        times=row.times,
        acknowledged_by=row.acknowledged_by,
        acknowledged=row.acknowledged,
        note=row.note,
        over=row.over,
        resolved=row.resolved,
    )


def delivery_view(row: DeliveryRow) -> DeliveryView:
    """A delivery as it is shown: by the address's name, never by the address."""
    waiting = row.state == "waiting"
    return DeliveryView(
        row.target, row.state, row.tries, row.error, row.queued, row.next if waiting else None
    )


def _unknown_alert() -> Misuse:
    return Misuse("There is no alert with this id; `upswing alerts --state all` lists them.")


def _read(body: bytes) -> Acknowledgement:
    try:
        return from_json(body, Acknowledgement)
    except msgspec.ValidationError as error:
        raise Rejected(Reason.SCHEMA, schema_error_sentence(error, Acknowledgement)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Rejected(Reason.MALFORMED, f"The body is not JSON: {error}.") from None
