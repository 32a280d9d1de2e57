"""How do the parts of monitoring come together? Alerts, their webhooks, reports and what things cost."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
from prometheus_client import CollectorRegistry

from upswing.config import Settings
from upswing.infra.backoff import Backoff
from upswing.infra.dead_letters import DeadLetterWriter
from upswing.infra.sql.database import Database
from upswing.monitor.alert_metrics import AlertCollector
from upswing.monitor.alert_monitor import AlertMonitor, AlertSources
from upswing.monitor.alert_repository import AlertRepository, AlertRow, notice_of
from upswing.monitor.core.alert_rules import AlertLimits
from upswing.monitor.core.alert_states import Settling
from upswing.monitor.core.conditions import LoopConditions
from upswing.monitor.core.costs import PriceList
from upswing.monitor.core.report_periods import read_schedule
from upswing.monitor.deliveries import DeliveryQueue
from upswing.monitor.fact_watch import FactWatch, read_message_counts
from upswing.monitor.happening_reader import HappeningReader
from upswing.monitor.log_alerts import AlertLogHandler
from upswing.monitor.report_builder import ReportBuilder, RequestCounts, no_requests
from upswing.monitor.report_repository import ReportRepository, ReportRow
from upswing.monitor.reporter import Reporter, ReportPolicy
from upswing.monitor.usage import CostReader, UsageRecorder
from upswing.monitor.webhooks import (
    RETRIES,
    AlertmanagerSync,
    WebhookRuntime,
    WebhookSender,
    recipients_of,
)
from upswing.redact import Redactor

_DELIVERIES_KEPT = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class MonitorRuntime:
    """What the composition root gives to monitoring: time, ids, secrets, and who is notified."""

    clock: Callable[[], datetime]
    """The loop's own."""
    wall_clock: Callable[[], datetime]
    """Real time, which receivers of webhooks go by."""
    new_id: Callable[[], UUID]
    webhook_secret: str = field(repr=False)
    on_commit: Callable[[], None] = lambda: None
    """Called after a commit, so that what follows from it is published at once."""
    publish: Callable[[str, Mapping[str, Any]], None] = lambda _event, _data: None
    """Tells live views of an `alert` or a `report`."""
    dead_letters: DeadLetterWriter = field(default_factory=DeadLetterWriter)
    seconds: float = 10.0
    """Between two looks for alerts."""
    retries: Backoff = RETRIES
    """Of webhooks."""


@dataclass(frozen=True, slots=True)
class MonitoredLoop:
    """What of the loop is looked at."""

    conditions: Callable[[], LoopConditions]
    training_url: Callable[[], str]
    base: str | None
    log_lines: AlertLogHandler
    registry: CollectorRegistry
    requests: RequestCounts = no_requests
    host: str = ""
    """This machine, where several share a store."""


class MonitorStage:
    """Everything that watches the loop and tells people."""

    def __init__(
        self,
        folder: Path,
        database: Database,
        settings: Settings,
        redactor: Redactor,
        loop: MonitoredLoop,
        runtime: MonitorRuntime,
    ) -> None:
        self._settings, self._runtime, self._loop = settings, runtime, loop
        recipients = recipients_of(settings.alerts.webhooks)
        self.alerts = AlertRepository(database, recipients, new_id=runtime.new_id)
        self.deliveries = DeliveryQueue(database)
        self.monitor = self._build_monitor(database, redactor)
        loop.registry.register(AlertCollector(lambda: self.monitor.open))
        self._senders = self._build_senders()
        prices = price_list(settings)
        self.reports = ReportRepository(database, recipients)
        self.builder = ReportBuilder(database, prices, loop.base, requests=loop.requests)
        self.usage = UsageRecorder(database, clock=runtime.clock)
        self.costs = CostReader(database, prices)
        self.reporter = Reporter(
            self.builder,
            self.reports,
            folder / "reports",
            report_policy(settings),
            clock=runtime.clock,
            on_report=self._on_report,
            dead_letters=runtime.dead_letters,
        )

    def _build_monitor(self, database: Database, redactor: Redactor) -> AlertMonitor:
        config, loop, runtime = self._settings.alerts, self._loop, self._runtime
        facts = FactWatch(
            loop.conditions,
            database,
            partial(read_message_counts, loop.registry),
            training_url=loop.training_url,
            window=timedelta(minutes=config.refused_minutes),
            clock=runtime.clock,
        )
        return AlertMonitor(
            AlertSources(facts, HappeningReader(database), loop.log_lines, redactor, loop.host),
            self.alerts,
            limits=AlertLimits(
                bus_away=timedelta(minutes=config.bus_minutes),
                server_away=timedelta(minutes=config.server_minutes),
                refused_share=config.refused_share,
            ),
            settling=Settling(
                timedelta(seconds=config.clear_seconds), timedelta(hours=config.quiet_hours)
            ),
            clock=runtime.clock,
            on_change=self.announce,
            seconds=runtime.seconds,
        )

    def _build_senders(self) -> dict[str, WebhookSender | AlertmanagerSync]:
        config, runtime = self._settings.alerts, self._runtime
        sending = WebhookRuntime(
            runtime.webhook_secret,
            runtime.clock,
            runtime.wall_clock,
            timedelta(hours=config.retry_hours),
            runtime.retries,
        )
        return {
            each.name: AlertmanagerSync(
                each,
                self.alerts.open_alerts,
                self.alerts.resolved_since,
                sending,
                source=self._loop.host or "upswing",
            )
            if each.format == "alertmanager"
            else WebhookSender(each, self.deliveries, sending)
            for each in config.webhooks
        }

    def parts(self) -> Iterator[tuple[str, Callable[[], Awaitable[None]]]]:
        """What runs for ever, with names."""
        yield "alerts", self.monitor.run
        yield "reports", self.reporter.run
        for name, sender in self._senders.items():
            yield f"webhook {name}", sender.run

    def listen(self) -> None:
        """Logged alerts wake the monitor, from whichever thread they come."""
        loop = asyncio.get_running_loop()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the loop was closed while somebody logged
                loop.call_soon_threadsafe(self.monitor.wake)

        self._loop.log_lines.on_alert = wake

    async def maintain(self) -> None:
        """Count what was used, and forget what is old."""
        now, settings = self._runtime.clock(), self._settings
        await self.usage.record()
        await self.deliveries.give_up_strangers(
            [each.name for each in settings.alerts.webhooks], now
        )
        await self.deliveries.prune(now - _DELIVERIES_KEPT)
        await self.alerts.prune(now - timedelta(days=settings.alerts.keep_days))
        await self.reports.prune(now - timedelta(days=settings.reports.keep_days))

    def announce(self, changed: Sequence[AlertRow]) -> None:
        """These alerts have changed, which is durable."""
        self._wake()
        for row in changed:
            notice = notice_of(row, self._runtime.clock())
            self._runtime.publish("alert", msgspec.to_builtins(notice))

    def _on_report(self, row: ReportRow) -> None:
        self._wake()
        view = {"report_id": row.report_id, "kind": row.kind, "title": row.title}
        self._runtime.publish("report", view)

    def _wake(self) -> None:
        self._runtime.on_commit()
        for sender in self._senders.values():
            sender.wake()


def price_list(settings: Settings) -> PriceList:
    """As the config says it."""
    costs = settings.costs
    return PriceList(costs.training_hour, costs.million_tokens, costs.models)


def report_policy(settings: Settings) -> ReportPolicy:
    """As the config says it."""
    reports = settings.reports
    return ReportPolicy(
        read_schedule(reports.daily, reports.weekly),
        reports.jobs,
        timedelta(hours=reports.job_hours),
    )
