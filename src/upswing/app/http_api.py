"""What does the loop's HTTP port answer? Every route, with the parts of the loop behind it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from upswing.api.alerts import AlertRoutes
from upswing.api.analysis import AnalysisRoutes
from upswing.api.auditing import Auditor
from upswing.api.curriculum import CurriculumRoutes
from upswing.api.dead_letters import DeadLetterRoutes
from upswing.api.deployment import DeploymentRoutes
from upswing.api.health import HealthRoutes
from upswing.api.ingest import IngestRoutes
from upswing.api.keys import KeyRoutes
from upswing.api.page import PageRoutes
from upswing.api.reports import ReportRoutes
from upswing.api.rewards import RewardRoutes
from upswing.api.router import Route
from upswing.api.traces import TraceRoutes
from upswing.api.training import TrainingRoutes
from upswing.api.users import UserRoutes
from upswing.api.validation import ValidationRoutes
from upswing.app.backtest import run_backtest
from upswing.app.context import LoopContext
from upswing.app.deployment import ModelDelivery
from upswing.app.read_api import CurrentState
from upswing.app.stages import LoopStages
from upswing.infra.sql.audit import AuditTrail
from upswing.infra.sql.task_stats import TaskStatsReader
from upswing.monitor.wiring import price_list
from upswing.validate.repository import Validations


@dataclass(frozen=True, slots=True)
class ApiSources:
    """What the HTTP port has to know besides."""

    new_key: Callable[[], tuple[str, str]]
    """A fresh id and a fresh key."""
    erase_pending: Callable[[], Awaitable[tuple[int, int]]]
    """Erases what waits to be erased from streams and the archive."""
    store_trouble: Callable[[], str | None]
    dashboard_url: Callable[[], str | None]
    worlds: Mapping[str, str]
    """Name → location of those that are registered."""


class HttpApi:
    """The routes of the loop's HTTP port."""

    def __init__(self, context: LoopContext, stages: LoopStages, sources: ApiSources) -> None:
        self._context, self._stages, self._sources = context, stages, sources
        self._auditor = Auditor(AuditTrail(context.store.database), context.clock)

    def routes(self) -> list[Route]:
        context, stages, sources = self._context, self._stages, self._sources
        health = HealthRoutes(
            context.store,
            context.registry,
            bus_connected=lambda: context.bus.connected,
            trouble=sources.store_trouble,
        )
        training = self._training()
        task_stats = TaskStatsReader(context.store.database)
        return [
            *self._rewards(training),
            *training.routes(),
            *CurriculumRoutes(task_stats, sources.worlds).routes(),
            *self._ingest(),
            *health.routes(),
            *PageRoutes(sources.dashboard_url).routes(),
            *self._dead_letters(),
            *self._access(),
            *self._monitor(),
            *stages.read_api.routes(CurrentState(health.current, training.counted_readiness)),
            *self._analysis(),
            *(self._delivery(stages.delivery) if stages.delivery else ()),
        ]

    def _training(self) -> TrainingRoutes:
        training = self._stages.training
        return TrainingRoutes(
            training.submission,
            training.trigger,
            training.jobs,
            training.models,
            training.signals,
            training.trainers.planner,
            self._auditor,
            clock=self._context.clock,
        )

    def _rewards(self, training: TrainingRoutes) -> list[Route]:
        reward = self._stages.reward
        return RewardRoutes(
            reward.rewards,
            reward.outcomes,
            self._context.redactor,
            self._auditor,
            clock=self._context.clock,
            ready=training.ready,
        ).routes()

    def _ingest(self) -> list[Route]:
        collect, config = self._stages.collect, self._context.installation.settings.collect
        ingest = IngestRoutes(collect.intake, collect.steps, config.max_bytes, self._auditor)
        return [*ingest.routes(), *TraceRoutes(collect.traces).routes()]

    def _dead_letters(self) -> list[Route]:
        return DeadLetterRoutes(
            self._context.store,
            self._stages.collect.intake,
            self._auditor,
            clock=self._context.clock,
            score_again=self._stages.reward.rewarder.score_again,
        ).routes()

    def _access(self) -> list[Route]:
        """Keys and users."""
        context, stages = self._context, self._stages
        keys = KeyRoutes(
            stages.keys,
            context.redactor,
            self._auditor,
            clock=context.clock,
            new_key=self._sources.new_key,
        )
        users = UserRoutes(
            stages.users,
            context.redactor,
            self._auditor,
            clock=context.clock,
            sweep=self._sources.erase_pending,
        )
        return [*keys.routes(), *users.routes()]

    def _monitor(self) -> list[Route]:
        context, monitor = self._context, self._stages.monitor
        alerts = AlertRoutes(
            monitor.alerts,
            monitor.deliveries,
            context.redactor,
            self._auditor,
            clock=context.clock,
            on_change=monitor.announce,
        )
        reports = ReportRoutes(
            monitor.reports,
            monitor.builder,
            monitor.costs,
            price_list(context.installation.settings),
            clock=context.clock,
        )
        return [*alerts.routes(), *reports.routes()]

    def _analysis(self) -> Sequence[Route]:
        return AnalysisRoutes(
            self._stages.analyst,
            Validations(self._context.store.database),
            partial(run_backtest, self._stages.training.decisions),
            clock=self._context.clock,
        ).routes()

    def _delivery(self, delivery: ModelDelivery) -> list[Route]:
        """Rollouts and validations."""
        context = self._context
        validation = ValidationRoutes(
            delivery.validation,
            context.store,
            context.redactor,
            self._auditor,
            compare=delivery.compare,
            current=delivery.current,
            known=delivery.lookup.is_known,
        )
        rollouts = DeploymentRoutes(delivery.controller, context.redactor)
        return [*rollouts.routes(), *validation.routes()]
