"""What should a person hear of now? One look after the other: facts, what happened, and what the log says.

    conditions ─┐
    incidents  ─┼─▶ rules ─▶ redacted ─▶ decide ─▶ one transaction: rows, bus, webhooks, cursors
    log lines  ─┘

Nothing here waits for an address or the bus: both are told from the store.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from upswing.errors import Transient
from upswing.monitor.alert_repository import AlertRepository, AlertRow, as_open
from upswing.monitor.core.alert_catalog import CATALOG
from upswing.monitor.core.alert_rules import AlertLimits, observe_conditions
from upswing.monitor.core.alert_states import (
    AlertChange,
    AlertSeen,
    ContinueAlert,
    Observation,
    Settling,
    decide_changes,
)
from upswing.monitor.core.happenings import (
    observe_incidents,
    observe_logged,
    observe_promotion,
    observe_validations,
)
from upswing.monitor.fact_watch import FactWatch
from upswing.monitor.happening_reader import HappeningReader
from upswing.monitor.log_alerts import AlertLogHandler
from upswing.redact import RedactionFailed, Redactor

log = logging.getLogger(__name__)
_SECONDS = 10.0
_AGAIN = timedelta(minutes=5)
"""How often a condition that holds on is written down again."""
_LONGEST, _LONGEST_LABEL = 1000, 200
"""Characters of a sentence, and of a label."""
_LOCAL = {
    "BusUnreachable",
    "CollectionErrors",
    "DiskNearlyFull",
    "ModelServerUnreachable",
    "TrainingServiceUnreachable",
}
"""Conditions of one machine: where several share a store, each has its own."""


@dataclass(frozen=True, slots=True)
class AlertSources:
    """What the monitor looks at."""

    facts: FactWatch
    happenings: HappeningReader
    log_lines: AlertLogHandler
    redactor: Redactor
    host: str = ""
    """This machine, where several share the store."""


class AlertMonitor:
    """Raises and resolves alerts."""

    def __init__(
        self,
        sources: AlertSources,
        repository: AlertRepository,
        *,
        limits: AlertLimits,
        settling: Settling,
        clock: Callable[[], datetime],
        on_change: Callable[[Sequence[AlertRow]], None] = lambda _: None,
        seconds: float = _SECONDS,
    ) -> None:
        """`on_change` hears of every alert whose state changed, after that is durable."""
        self._sources, self._repository = sources, repository
        self._limits, self._settling, self._clock = limits, settling, clock
        self._on_change, self._seconds = on_change, seconds
        self._cleared_since: dict[str, datetime] = {}
        self.open: Sequence[AlertRow] = ()
        """Those that are not resolved, as they were last read."""
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Something was logged, or happened; from the loop's own thread."""
        self._woken.set()

    async def run(self) -> None:
        """For ever; a store that is away is waited for."""
        while True:
            self._woken.clear()
            try:
                while await self.look():
                    pass
            except Transient as error:
                log.warning("%s", error, extra={"action": "alerts"})
            try:
                async with asyncio.timeout(self._seconds):
                    await self._woken.wait()
            except TimeoutError:
                continue

    async def look(self) -> bool:
        """One look; true when more has happened than one look takes."""
        lines = self._sources.log_lines.take()
        try:
            happened = await self._sources.happenings.read()
            observed = [
                *map(
                    self._localise,
                    observe_conditions(await self._sources.facts.read(), self._limits),
                ),
                *observe_incidents(happened.incidents),
                *observe_validations(happened.validations),
                *observe_promotion(happened.promoted),
                *observe_logged(lines),
            ]
            clean = await asyncio.to_thread(_redact_all, observed, self._sources.redactor)
            await self._carry_out(clean, happened.cursors)
        except BaseException:
            self._sources.log_lines.put_back(lines)
            raise
        return happened.more

    async def _carry_out(self, observed: Sequence[Observation], cursors: Mapping[str, int]) -> None:
        now, known = self._clock(), await self._repository.open_alerts()
        self.open = known
        changes = decide_changes(
            [as_open(each) for each in known], observed, self._cleared_since, now, self._settling
        )
        seen = {each.alert_id: each.seen for each in known}
        worth = [each for each in changes if _is_news(each, seen, now)]
        if not worth and not cursors:
            return
        changed = await self._repository.apply(worth, cursors, now)
        for row in changed:
            log.warning(
                "%s is %s: %s",
                row.name,
                row.state,
                row.over or row.summary,
                extra={"action": f"alert_{row.state}", "alert": row.alert_id},
            )
        if changed:
            self.open = await self._repository.open_alerts()
            self._on_change(changed)

    def _localise(self, observed: Observation) -> Observation:
        """A machine speaks for itself."""
        host = self._sources.host
        if not host or observed.name not in _LOCAL or observed.labels is None:
            return observed
        return replace(observed, labels={**observed.labels, "host": host})


def _is_news(change: AlertChange, seen: Mapping[str, datetime], now: datetime) -> bool:
    """A condition that just holds on is written down now and then, everything else at once."""
    if not isinstance(change, ContinueAlert) or not CATALOG[change.seen.name].lasting:
        return True
    return now - seen[change.alert_id] >= _AGAIN


def _redact_all(observed: Sequence[Observation], redactor: Redactor) -> list[Observation]:
    return [
        redact_seen(each, redactor) if isinstance(each, AlertSeen) else each for each in observed
    ]


def redact_seen(seen: AlertSeen, redactor: Redactor) -> AlertSeen:
    """The same without secrets; a text that cannot be redacted is left out."""
    about = CATALOG[seen.name].about
    try:
        summary = str(redactor.text(seen.summary[:_LONGEST]).value).strip() or about
        evidence: dict[str, Any] = redactor.tree(dict(seen.evidence)).value
        labels: dict[str, str] = redactor.tree(dict(seen.labels)).value
    except RedactionFailed:
        return AlertSeen(seen.name, about, {}, {}, seen.times)
    labels = {name: value[:_LONGEST_LABEL] for name, value in labels.items()}
    return AlertSeen(seen.name, summary[:_LONGEST], labels, evidence, seen.times)
