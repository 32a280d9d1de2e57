"""What does monitoring watch? The conditions of this loop, and what it has to know of the other stages."""

from __future__ import annotations

import platform
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from upswing.app.bus import LoopBus
from upswing.app.context import Installation, LoopContext
from upswing.app.deployment import ModelDelivery, answers_health
from upswing.app.supervision import RunPart
from upswing.infra.sql.database import Database
from upswing.monitor.baseline_history import BaselineHistory, DriftRules
from upswing.monitor.condition_metrics import ConditionCollector
from upswing.monitor.conditions import ConditionReader, ConditionSources
from upswing.monitor.log_alerts import AlertLogHandler
from upswing.monitor.report_builder import no_requests
from upswing.monitor.wiring import MonitoredLoop, MonitorRuntime, MonitorStage
from upswing.records import JudgeUse
from upswing.reward.core.decline import reward_drop
from upswing.trigger.core.policy import TriggerPolicy


@dataclass(frozen=True, slots=True)
class MonitorLinks:
    """Whom monitoring wakes and tells, and what it signs with."""

    log_alerts: AlertLogHandler
    http_url: Callable[[], str]
    """The loop's own address, once it is known."""
    gateway_url: Callable[[], str]
    """Of the loop's own gateway; empty: there is none, or it has not come up for the first time."""
    webhook_secret: str = field(repr=False)
    on_commit: Callable[[], None]
    publish: Callable[[str, Mapping[str, Any]], None]
    """Tells live views of an alert or a report."""


class Monitoring:
    """The conditions of this loop, and the monitor stage that watches them."""

    def __init__(
        self,
        context: LoopContext,
        loop_bus: LoopBus,
        policy: TriggerPolicy,
        delivery: ModelDelivery | None,
        judge_use: Callable[[], Awaitable[JudgeUse | None]],
        links: MonitorLinks,
        *,
        seconds: float,
    ) -> None:
        """`seconds` pass between two looks at the conditions."""
        database = context.store.database
        self._delivery, self._gateway_url = delivery, links.gateway_url
        sources = ConditionSources(
            lambda: context.bus.connected,
            bus_sync_always=loop_bus.syncs_always,
            gateway_answers=self._gateway_answers,
            model_server_answers=self._model_server_answers,
            judge=judge_use,
            drift=_baseline_history(database, policy).drift,
            folders=_folders(context.installation),
        )
        self.conditions = ConditionReader(sources, database, seconds=seconds)
        context.registry.register(ConditionCollector(lambda: self.conditions.newest))
        self.stage = MonitorStage(
            context.installation.folder,
            database,
            context.installation.settings,
            context.redactor,
            MonitoredLoop(
                lambda: self.conditions.newest,
                links.http_url,
                policy.rules.base_model,
                links.log_alerts,
                context.registry,
                delivery.request_counts if delivery else no_requests,
                platform.node() if context.installation.surroundings.database_url else "",
            ),
            MonitorRuntime(
                context.clock,
                context.wall_clock,
                context.new_id,
                links.webhook_secret,
                on_commit=links.on_commit,
                publish=links.publish,
                dead_letters=context.dead_letters,
                seconds=seconds,
            ),
        )

    def start(self, run: RunPart) -> None:
        """Read conditions, and hear of logged alerts."""
        run("conditions", self.conditions.run)
        self.stage.listen()
        for name, part in self.stage.parts():
            run(name, part)

    async def _gateway_answers(self) -> bool | None:
        url = self._gateway_url()
        return await answers_health(url) if url else None

    async def _model_server_answers(self) -> bool | None:
        return await self._delivery.server_answers() if self._delivery else None


def _baseline_history(database: Database, policy: TriggerPolicy) -> BaselineHistory:
    rules = policy.rules
    drift = DriftRules(policy.recent, rules.min_sample, rules.drop)
    return BaselineHistory(database, rules.base_model, drift, compare=reward_drop)


def _folders(installation: Installation) -> dict[str, Path]:
    """Name of a disk → a folder on it."""
    models = installation.surroundings.model_storage_path
    folders = {"data": installation.folder}
    if models and "://" not in models:
        folders["models"] = Path(models)
    return folders
