"""How do the parts become a loop? The one place with a clock, fresh ids and open sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import platform
import secrets
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from prometheus_client import CollectorRegistry, ProcessCollector, disable_created_metrics

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
from upswing.api.server import HttpServer
from upswing.api.training import TrainingRoutes
from upswing.api.users import UserRoutes
from upswing.api.validation import ValidationRoutes
from upswing.app.analysis import analyse_validation, make_analyst
from upswing.app.archive import Archive
from upswing.app.backtest import run_backtest
from upswing.app.deployment import (
    Installation,
    LoopStores,
    ModelDelivery,
    ValidationHelp,
    answers_health,
    can_serve,
)
from upswing.app.maintenance import Maintenance, TrajectoryStores
from upswing.app.outbox import Relay
from upswing.app.read_api import CurrentState, LiveViews, ReadApi, ReadSources
from upswing.collect.consumer import BusIntake
from upswing.collect.core.evaluate import refusal
from upswing.collect.dead_letter_consumer import gateway_dead_letter_handler
from upswing.collect.intake import Intake
from upswing.collect.metrics import CollectMetrics
from upswing.collect.open_trajectories import OpenTrajectories
from upswing.collect.step_intake import StepwiseIntake
from upswing.collect.worker_pool import AdmissionPool, make_redactor
from upswing.config import Settings, Surroundings, registered_worlds
from upswing.contracts.backend import is_remote
from upswing.contracts.topics import (
    DEAD_GATEWAY,
    DEADS,
    FEEDBACK,
    GATEWAY_FEEDBACK,
    GATEWAY_TRAJECTORY,
    ROLES,
    STATUS_ENQUIRY,
    STORED,
    TRAINING,
    TRAINING_REQUEST,
    TRAJECTORY,
    consumer_name,
    topic_of_subject,
)
from upswing.dashboard.process import DashboardSupervisor
from upswing.deploy.wiring import DeployRuntime
from upswing.errors import Damaged, Misuse, Transient
from upswing.gateway.process import GatewayChildEnv, GatewaySupervisor
from upswing.infra.clock import SteadyClock
from upswing.infra.dead_letters import BadRowMetrics, DeadLetterWriter
from upswing.infra.instance import (
    InstanceInfo,
    read_known_secrets,
    read_secrets,
    renew_secrets,
    write_private,
)
from upswing.infra.nats.bus import ACK_WAIT_SECONDS, Bus, Pull, redacted_url
from upswing.infra.nats.consumer import MessageHandler, StreamConsumer
from upswing.infra.nats.durability import log_durability, query_durability
from upswing.infra.nats.permissions import OPERATOR
from upswing.infra.nats.requests import answer_enquiries
from upswing.infra.nats.server import EmbeddedServer, make_private_folder
from upswing.infra.nats.traffic import make_buckets
from upswing.infra.sql.audit import AuditTrail
from upswing.infra.sql.datasets import DataSets
from upswing.infra.sql.decisions import Decisions
from upswing.infra.sql.inspection import Inspection
from upswing.infra.sql.keys import OPERATOR_ID, Keys
from upswing.infra.sql.mark import Marker
from upswing.infra.sql.models import Models
from upswing.infra.sql.revoked import Revoked
from upswing.infra.sql.store import open_store
from upswing.infra.sql.task_stats import TaskStatsReader
from upswing.infra.sql.users import Users
from upswing.infra.tasks import cancel_all, run_with_backoff, start_task
from upswing.monitor.baseline_history import BaselineHistory, DriftRules
from upswing.monitor.condition_metrics import ConditionCollector
from upswing.monitor.conditions import ConditionReader, ConditionSources
from upswing.monitor.log_alerts import AlertLogHandler
from upswing.monitor.report_builder import no_requests
from upswing.monitor.wiring import MonitoredLoop, MonitorRuntime, MonitorStage, price_list
from upswing.redact import Redactor
from upswing.reward.core.decline import reward_drop
from upswing.reward.core.influence import fair_mean
from upswing.reward.wiring import RewardStage
from upswing.train.bases.catalog import check_base
from upswing.train.core.request import check_recipe_settings
from upswing.train.jobs.consumer import TrainingRequests
from upswing.train.jobs.data import TrainingData
from upswing.train.jobs.repository import JobRepository
from upswing.train.jobs.submission import JobSubmission, SubmissionSettings
from upswing.train.metrics import TrainMetrics
from upswing.train.wiring import TrainerPool, TrainingRuntime, TrainingStores
from upswing.trigger.core.decide import not_trainable_here
from upswing.trigger.core.policy import TriggerPolicy, trigger_policy_of
from upswing.trigger.signals import SignalReader
from upswing.trigger.trigger import Trigger
from upswing.validate.repository import Validations
from upswing.worlds.known import locate_world

log = logging.getLogger(__name__)
ALERT_SECONDS = 10.0
WEAK_KEY = 20
"""Characters below which a key of the operator's own choice is refused on a public address."""


def _policy_for_base(policy: TriggerPolicy, settings: Settings) -> TriggerPolicy:
    """A base at a server of the user's own is trained here only if its weights are here, too."""
    base = policy.defaults.base_model
    if settings.serve.url is None or base is None:
        return policy
    try:
        check_base(base)
    except Misuse:
        return replace(policy, rules=replace(policy.rules, elsewhere=True))
    return policy


_OWN_KEYS = (
    (OPERATOR_ID, "made at first start", "operator", "key"),
    ("gateway", "the loop's own gateway", "gateway", "gateway_loop_key"),
)
"""Id, name and scope in the table of keys, and the entry in `secrets.json`."""


now = SteadyClock()
"""The clock. Everything else is told the time."""


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """Where to listen."""

    host: str = "127.0.0.1"
    port: int = 8100
    gateway_port: int | None = 3000
    """None: no gateway and no model server; the loop records and trains."""
    nats_port: int = 0
    dashboard_port: int | None = None
    """Of the web page; None: none is started."""


def _admin_token(secret: Mapping[str, str]) -> str:
    """What our gateway takes as the admin's, in its own order."""
    return os.environ.get("TENSORZERO_ADMIN_TOKEN", "").strip() or secret["admin_token"]


def _new_keys_message(lost: bool, renewed: Sequence[str]) -> tuple[str, ...]:
    """Why keys are others than at the last start, and what to do."""
    show = "`upswing info --show-secrets` shows the new ones"
    if renewed:
        message = "%s in secrets.json was revoked, so another was made; " + show
        return message, " and ".join(f"`{name}`" for name in renewed)
    why = "was missing" if lost else "is not the one of the last start"
    message = "secrets.json %s: all of the loop's own keys are new, and whoever asks with an old one gets 401; "
    return message + show, why


class Loop:
    """The whole loop in one process."""

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        surroundings: Surroundings,
        address: ListenAddress,
        *,
        clock: Callable[[], datetime] = now,
        new_id: Callable[[], UUID] = uuid4,
        redactor: Redactor | None = None,
        worlds: Mapping[str, Any] | None = None,
        ack_wait_seconds: float = ACK_WAIT_SECONDS,
        alert_seconds: float = ALERT_SECONDS,
    ) -> None:
        """`worlds` are those whose held-out tasks validation knows; None: our own.

        `alert_seconds` pass between two looks at what alerts rest on.
        """
        self.folder = folder
        self._settings = settings
        self._surroundings = surroundings
        self._address = address
        self._clock = clock
        self._new_id = new_id
        self._worlds = worlds
        self._ack_wait_seconds, self._alert_seconds = ack_wait_seconds, alert_seconds
        self.redactor = redactor or make_redactor(settings)
        self.policy = _policy_for_base(trigger_policy_of(settings, surroundings), settings)
        self._world_locations = registered_worlds(settings)
        check_recipe_settings(
            settings.train.recipe, partial(locate_world, registered=self._world_locations)
        )
        self._in_process = redactor is not None
        self._installation = Installation(folder, settings, surroundings)
        self._exits = contextlib.AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []
        self._failed = asyncio.Event()
        self._log_alerts = AlertLogHandler()
        self._http_url = self._webhook_secret = self._gateway_url = ""
        self.server: EmbeddedServer | None = None
        self.delivery: ModelDelivery | None = None
        self._dashboard_url: str | None = None
        self._step = "the store"

    def waiting_for(self) -> str:
        """What has to come before a model answers here, as far as we know."""
        model = self.delivery.waiting_for() if self.delivery else ""
        return " and ".join(filter(None, (self._step, model)))

    async def start(self) -> InstanceInfo:
        """Bring everything up, in the order in which things depend on each other."""
        running = await self._start_unless_stopped(asyncio.Event())
        if running is None:
            raise AssertionError("Nobody could stop it.")
        return running

    async def _start_unless_stopped(self, stop: asyncio.Event) -> InstanceInfo | None:
        """None: it was told to stop before it had started, and is down again."""
        make_private_folder(self.folder)
        await self._exits.__aenter__()
        starting, stopping = start_task(self._start(), name="start"), start_task(stop.wait())
        try:
            await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                return await starting
        except BaseException:
            await cancel_all([starting, stopping])
            await self.stop()
            raise
        finally:
            stopping.cancel()
        await cancel_all([starting])
        await self.stop()
        return None

    async def _start(self) -> InstanceInfo:
        self._log_alerts.attach()
        self._exits.callback(self._log_alerts.detach)
        known = read_known_secrets(self.folder)
        if self._surroundings.api_key:
            self._refuse_weak_key(self._surroundings.api_key)
        self.store = open_store(self.folder, self._surroundings.database_url)
        self._exits.callback(self.store.close)
        secret = read_secrets(self.folder, dict(known))
        self._refuse_weak_key(self._surroundings.api_key or secret["key"])
        await self._inspect_store()
        await self.store.prepare()
        await self._continue_store_time()
        self.users = Users(self.store.database)
        self.keys = Keys(self.store.database, Revoked(self.folder))
        await self.users.load()
        secret = await self._prepare_own_keys(secret, lost=not known)
        self._webhook_secret = self._surroundings.webhook_secret or secret["webhook_secret"]
        self._prepare_dead_letters()
        self._step = "the message bus"
        nats_urls = await self._start_bus(secret)
        self._step = "the workers that redact and check messages"
        await self._wire()
        http_url = self._http_url = await self._serve()
        self._step = "the gateway's process"
        gateway_url = await self._open_gateway(http_url, secret["gateway_loop_key"], nats_urls)
        self._open_dashboard(http_url)
        running = InstanceInfo(
            os.getpid(),
            http_url,
            gateway_url,
            nats_urls.get(OPERATOR, ""),
            nats_urls,
            self._surroundings.api_key or secret["key"],
            str(self.folder),
            secret["gateway_key"] if gateway_url else None,
            _admin_token(secret) if gateway_url else None,
            self._dashboard_url,
        )
        self._announce(running)
        self._step = ""
        return running

    async def _inspect_store(self) -> None:
        """A damaged store is not written to; where it is too large to be looked through now, it is later."""
        self._inspection: Inspection | None = None
        if self.store.folder is not None:
            self._inspection = Inspection(self.folder, self.store.database)
            await self._inspection.begin()

    async def _prepare_own_keys(self, secret: dict[str, str], *, lost: bool) -> dict[str, str]:
        """Our own keys, as `secrets.json` and the environment say them now; those that were revoked are made anew."""
        at, given = self._clock(), self._surroundings.api_key
        await self.keys.load()
        await self.keys.write_down_revoked()
        wanted = {"gateway_loop_key"} | ({"key"} if not given else set())
        if dead := sorted(name for name in wanted if self.keys.was_revoked(secret[name])):
            secret = renew_secrets(self.folder, dead)
        changed = [
            await self.keys.set_instance_key(key_id, name, scope, secret[entry], at)
            for key_id, name, scope, entry in _OWN_KEYS
        ]
        await self.keys.set_operator_key(f"env-{self._new_id()}", secret["key"], given, at)
        if any(changed):
            log.warning(*_new_keys_message(lost, dead), extra={"action": "keys_changed"})
        return secret

    def _prepare_dead_letters(self) -> None:
        """What any part cannot read becomes a dead letter, a count and a word in the log."""
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._bad_row_metrics = BadRowMetrics(self.registry)
        bad_rows = self.store.database.bad_rows
        bad_rows.on_bad_row = self._bad_row_metrics.count_row
        self.dead_letters = DeadLetterWriter(
            bad_rows,
            self.store,
            lambda raw, error: refusal(raw, error, self.redactor),
            clock=self._clock,
            on_change=self._wake_relay,
        )

    def _wake_relay(self) -> None:
        self.relay.wake()

    def now(self) -> datetime:
        """The loop's own time."""
        return self._clock()

    @property
    def dashboard_url(self) -> str | None:
        """Where the page is, if there is one."""
        return self._dashboard_url

    @property
    def failed(self) -> asyncio.Event:
        """Set when a part broke."""
        return self._failed

    async def _continue_store_time(self) -> None:
        """A store's time never goes back: it may have been kept by a clock that ran ahead."""
        newest = await Decisions(self.store.database).latest_time()
        clock, ahead = self._clock, newest - self._clock() if newest else timedelta()
        if ahead <= timedelta():
            return
        self._clock = lambda: clock() + ahead
        if ahead > timedelta(minutes=1):
            log.warning(
                "the store's time lies %s ahead of the clock: it goes on from there",
                timedelta(seconds=round(ahead.total_seconds())),
                extra={"action": "time_ahead"},
            )

    def _refuse_weak_key(self, key: str) -> None:
        if self._address.host not in {"127.0.0.1", "::1", "localhost"} and len(key) < WEAK_KEY:
            raise Misuse(
                f"AGENTGYM_RL_API_KEY has fewer than {WEAK_KEY} characters, which is too weak for a public "
                "address: leave it out to have one made, or listen on 127.0.0.1."
            )

    async def _start_bus(self, secret: dict[str, str]) -> dict[str, str]:
        if url := self._surroundings.nats_url:
            urls = {OPERATOR: url}
        else:
            passwords = {role: secret[f"nats_{role}"] for role in (OPERATOR, *ROLES)}
            self.server = EmbeddedServer(self.folder / "nats", passwords, self._address.nats_port)
            self._exits.push_async_callback(self.server.stop)
            await self.server.start()
            urls = {role: self.server.url(role) for role in (OPERATOR, *ROLES)}
        self.bus = await Bus.connect(urls[OPERATOR], ack_wait_seconds=self._ack_wait_seconds)
        self._exits.push_async_callback(self.bus.close)
        await self.bus.prepare()
        if self._surroundings.nats_url:
            durability = await query_durability(self.bus, self._surroundings.nats_monitor)
            log_durability(durability, redacted_url(urls[OPERATOR]))
        return urls

    async def _wire(self) -> None:
        """Make the stages and let them run."""
        self.live = LiveViews(self.store.database, self._installation, clock=self._clock)
        self.events = self.live.events
        self._run("events", self.events.run)
        metrics = CollectMetrics(self.registry)
        self.relay = Relay(
            self.store,
            self.bus,
            lambda: self.intake.crowded,
            check=self.bus.check_message,
            dead_letters=self.dead_letters,
        )
        self._nudges, self._suspects_alone = asyncio.Event(), asyncio.Lock()
        self.admission = AdmissionPool(self._settings, self.redactor, here=self._in_process)
        self._exits.push_async_callback(self.admission.stop)
        self.intake = Intake(
            self.store,
            self.users,
            self.admission,
            metrics,
            clock=self._clock,
            new_id=self._new_id,
            stored=self._on_stored,
        )
        self.steps = StepwiseIntake(
            self.intake,
            OpenTrajectories(self.store.database),
            self.store,
            self.users,
            self.admission.stepwise,
            clock=self._clock,
            new_id=self._new_id,
            dead_letters=self.dead_letters,
        )
        await self._start_rewarding()
        await self._start_training()
        await self._start_delivery()
        self.read_api = ReadApi(
            ReadSources(self.store.database, self.redactor, self._installation),
            self.live,
            self.trainers.checkpoint_store,
            self.delivery,
            clock=self._clock,
        )
        await self.admission.start()  # by now a model server starts beside us, which takes longest
        self._metrics = metrics
        bus_intake = BusIntake(self.intake, self.store, self.redactor)
        trajectories, feedback = bus_intake.trajectory_handler(), bus_intake.feedback_handler()
        for topic, handler in (
            (topic_of_subject(TRAJECTORY), trajectories),
            (topic_of_subject(GATEWAY_TRAJECTORY), trajectories),
            (topic_of_subject(FEEDBACK), feedback),
            (topic_of_subject(GATEWAY_FEEDBACK), feedback),
        ):
            stream, name = topic.stream or "", consumer_name(topic, "collector")
            consumer = self._consumer(self.bus.pull(stream, topic.subject, name), handler)
            with contextlib.suppress(Transient):
                await consumer.learn_backlog()
            self._run(f"collect {stream}{topic.consumer}", consumer.run)
        handler = gateway_dead_letter_handler(self.store, metrics.refused)
        letters = self._consumer(self.bus.pull(DEADS, DEAD_GATEWAY, "letters"), handler)
        self._run("letters", letters.run)
        self._run("relay", self.relay.run)
        self._run("nudge", self._send_nudges)
        await self._start_maintenance()

    def _consumer(self, pull: Pull, handler: MessageHandler) -> StreamConsumer:
        """Consumers of this process crash together: one of them at a time processes suspects."""
        return StreamConsumer(
            pull,
            self.bus,
            self.store,
            handler,
            dead_letters=self.dead_letters,
            alone=self._suspects_alone,
        )

    async def _start_rewarding(self) -> None:
        """The reward stage: rewards at once, late words, and ended windows."""
        self.reward_stage = RewardStage(
            self.folder,
            self.store,
            self._settings,
            self._surroundings,
            self.registry,
            clock=self._clock,
            on_publish=self._on_stored,
            is_busy=lambda: self.intake.crowded,
            dead_letters=self.dead_letters,
            models=[base] if (base := self.policy.defaults.base_model) else [],
        )
        self.rewarder = self.reward_stage.rewarder
        self.group_judge = self.reward_stage.group_judge
        self.rewards = self.reward_stage.rewards
        self._run("reward", self.rewarder.run)

    async def _start_training(self) -> None:
        """The trigger, the desk, and the desk's doors on the bus."""
        database, policy, train = self.store.database, self.policy, self._settings.train
        self.jobs, self.models = JobRepository(database), Models(database)
        self.decisions, self.signals = Decisions(database), SignalReader(database)
        self.train_metrics = TrainMetrics(self.registry)
        self.submission = JobSubmission(
            self.jobs,
            self.redactor,
            SubmissionSettings(
                policy.defaults,
                {
                    "min_agents": train.min_agents,
                    "min_attempts": train.min_attempts,
                    **train.recipe,
                },
                policy.train_here,
            ),
            check_base=self._check_base,
            check_world=partial(locate_world, registered=self._world_locations),
            clock=self._clock,
            new_id=self._new_id,
            on_change=self._on_jobs_changed,
            on_finished=self.train_metrics.finished,
        )
        self.trigger = Trigger(
            self.signals,
            self.decisions,
            self.submission,
            policy,
            mean=fair_mean,
            compare=reward_drop,
            clock=self._clock,
            new_id=self._new_id,
            deploys=self._serves_models(),
        )
        requests = TrainingRequests(
            self.store,
            self.submission,
            redact_rejected=lambda raw, error: refusal(raw, error, self.redactor),
            clock=self._clock,
            new_id=self._new_id,
            on_change=self._on_jobs_changed,
        )
        trainer = self.bus.pull(TRAINING, TRAINING_REQUEST, "trainer")
        await answer_enquiries(self.bus, STATUS_ENQUIRY, self.submission.answer_enquiry)
        self._run("training requests", self._consumer(trainer, requests.handler()).run)
        self._run("trigger", self.trigger.run)
        archive_path = self._surroundings.storage_path
        self.archive = Archive(archive_path) if archive_path else None
        self.trainers = TrainerPool(
            self.folder,
            self._settings.train,
            TrainingStores(
                self.jobs,
                self.models,
                self.decisions,
                TrainingData(
                    DataSets(database),
                    archive=self.archive,
                    bus=self.bus,
                    dead_letters=self.dead_letters,
                ),
            ),
            self.train_metrics,
            TrainingRuntime(self._clock, self._new_id, self._on_jobs_changed, self.dead_letters),
            storage=self._surroundings.model_storage_path,
            worlds=self._settings.validate.worlds,
            shares_cores=self._serves_models() and not self._settings.serve.url,
        )
        if policy.train_here:
            await self.jobs.release_orphans(self._clock())
            for number, worker in enumerate(self.trainers.workers):
                self._run(f"trainer {number}", worker.run)

    def _serves_models(self) -> bool:
        """Whether models are validated and rolled out here."""
        base = self.policy.defaults.base_model
        return (
            self._address.gateway_port is not None
            and base is not None
            and bool(self._settings.serve.url or can_serve())
        )

    async def _start_delivery(self) -> None:
        """What makes a trained model answer, where this loop serves models."""
        base = self.policy.defaults.base_model
        self.analyst = make_analyst(
            self.store.database, self._clock, self._new_id, self.dead_letters
        )
        if self._address.gateway_port is None:
            return
        if base is None or not (self._settings.serve.url or can_serve()):
            why = "no base model is named" if base is None else "the `train` extra is not installed"
            log.warning("%s, so no model is served here", why, extra={"action": "no_serving"})
            return
        self.delivery = ModelDelivery(
            self._installation,
            LoopStores(self.store.database, self.bus, self.trainers.checkpoint_store),
            DeployRuntime(
                self._clock, now, self._new_id, self._on_deployment_changed, self.dead_letters
            ),
            base,
            redactor=self.redactor,
            registry=self.registry,
            help_with=ValidationHelp(
                self.reward_stage.judge_client,
                self._worlds,
                partial(analyse_validation, clock=self._clock),
            ),
        )
        self._exits.push_async_callback(self.delivery.close)
        self._run("shipping", self.delivery.run)
        self._run("failure analysis", self.analyst.run)

    async def _open_gateway(self, http_url: str, key: str, nats: dict[str, str]) -> str | None:
        if self._address.gateway_port is None:
            return None
        await make_buckets(self.bus)
        env = GatewayChildEnv(
            nats.get("gateway") or nats[OPERATOR], http_url, key, self._backend_keys()
        )
        gateway = GatewaySupervisor(
            self.folder, env, self._address.host, self._address.gateway_port
        )
        self._exits.push_async_callback(gateway.stop)
        self._gateway_url = await gateway.start()
        return self._gateway_url

    def _open_dashboard(self, http_url: str) -> None:
        """The page starts beside us; nothing waits for it."""
        port = self._address.dashboard_port
        if port is None:
            return
        page = DashboardSupervisor(self.folder, http_url, self._address.host, port)
        self._exits.push_async_callback(page.stop)
        self._dashboard_url = page.start()

    def _backend_keys(self) -> dict[str, str]:
        """The gateway asks a model server of somebody's own, so it has to know its key."""
        url, key = self._settings.serve.url, self._surroundings.serve_key
        if not url or not key:
            return {}
        known = [os.environ.get("UPSWING_BACKEND_KEYS", ""), f"{url}={key}"]
        return {"UPSWING_BACKEND_KEYS": ",".join(filter(None, known))}

    async def _check_base(self, name: str) -> None:
        """A model of ours, or a base that can be had here."""
        row = await self.models.get(name)
        if self.policy.rules.elsewhere and name == self.policy.defaults.base_model:
            raise Misuse(not_trainable_here(name))
        if row is not None and is_remote(row.path):
            raise Misuse(not_trainable_here(name))
        if row is None:
            await asyncio.to_thread(check_base, name)

    def _on_jobs_changed(self) -> None:
        """A job's row has changed: what follows from it is published at once."""
        self.relay.wake()
        self.trainers.wake()
        self.events.wake()
        if self.delivery:
            self.delivery.controller.wake_trained()

    def _on_deployment_changed(self) -> None:
        self.relay.wake()
        self.events.wake()

    def _on_stored(self) -> None:
        self.relay.wake()
        self.rewarder.wake()
        self._nudges.set()
        self.events.wake()
        if self.delivery:
            self.delivery.controller.wake()

    async def _send_nudges(self) -> None:
        """Wake other processes that follow the store: one nudge for all commits since the last."""
        while True:
            await self._nudges.wait()
            self._nudges.clear()
            with contextlib.suppress(Transient, OSError):
                await self.bus.send_empty_message(STORED)

    async def _start_maintenance(self) -> None:
        """The slow chores of all stages."""
        await self._start_monitoring()
        stale = timedelta(hours=self._settings.collect.stale_hours)
        dead = timedelta(days=self._settings.collect.dead_days)
        self.maintenance = Maintenance(
            TrajectoryStores(
                self.store, self.users, self.bus, self.archive, self.reward_stage.judge_cache
            ),
            self._metrics,
            clock=self._clock,
            stage_chores=[
                self.users.load,
                self.keys.load,
                self.rewarder.maintain,
                self.group_judge.judge_ended_windows,
                lambda: self.steps.end_stale(stale),
                lambda: self.store.prune_dead(self._clock() - dead),
                self.trainers.prune,
                self.monitor.maintain,
                self.read_api.prune,
            ],
            forget=[self.delivery.validation.forget_trajectories] if self.delivery else [],
            dead_letters=self.dead_letters,
            failed=self._bad_row_metrics.count_round,
        )
        self._run("upkeep", self.maintenance.run)
        self._marker: Marker | None = None
        if self._inspection:
            self._marker = Marker(self.folder, self.store.database)
            self._run("mark", self._marker.run)
            self._run("inspection", self._inspection.run)

    async def _start_monitoring(self) -> None:
        """What metrics and alerts rest on is read from here on."""
        rules, models = self.policy.rules, self._surroundings.model_storage_path
        history = BaselineHistory(
            self.store.database,
            rules.base_model,
            DriftRules(self.policy.recent, rules.min_sample, rules.drop),
            compare=reward_drop,
        )
        folders = {"data": self.folder}
        if models and "://" not in models:
            folders["models"] = Path(models)
        sources = ConditionSources(
            lambda: self.bus.connected,
            bus_sync_always=self._bus_sync_always,
            gateway_answers=self._gateway_answers,
            model_server_answers=self._model_server_answers,
            judge=self.reward_stage.judge_use,
            drift=history.drift,
            folders=folders,
        )
        self.conditions = ConditionReader(sources, self.store.database, seconds=self._alert_seconds)
        self.registry.register(ConditionCollector(lambda: self.conditions.newest))
        self._run("conditions", self.conditions.run)
        self.monitor = MonitorStage(
            self.folder,
            self.store.database,
            self._settings,
            self.redactor,
            MonitoredLoop(
                lambda: self.conditions.newest,
                lambda: self._http_url,
                rules.base_model,
                self._log_alerts,
                self.registry,
                self.delivery.request_counts if self.delivery else no_requests,
                platform.node() if self._surroundings.database_url else "",
            ),
            MonitorRuntime(
                self._clock,
                now,
                self._new_id,
                self._webhook_secret,
                on_commit=self.relay.wake,
                publish=self.events.publish,
                dead_letters=self.dead_letters,
                seconds=self._alert_seconds,
            ),
        )
        self.monitor.listen()
        for name, part in self.monitor.parts():
            self._run(name, part)

    async def _bus_sync_always(self) -> bool | None:
        """Our own server fsyncs before it acknowledges; another one is asked."""
        if self.server is not None:
            return True
        return (await query_durability(self.bus, self._surroundings.nats_monitor)).always

    async def _gateway_answers(self) -> bool | None:
        """Of our own; None: there is none, or it has not come up for the first time."""
        return await answers_health(self._gateway_url) if self._gateway_url else None

    async def _model_server_answers(self) -> bool | None:
        return await self.delivery.server_answers() if self.delivery else None

    async def _serve(self) -> str:
        auditor = Auditor(AuditTrail(self.store.database), self._clock)
        health = HealthRoutes(
            self.store,
            self.registry,
            bus_connected=lambda: self.bus.connected,
            trouble=lambda: self._marker.trouble if self._marker else None,
        )
        dead_letters = DeadLetterRoutes(
            self.store,
            self.intake,
            auditor,
            clock=self._clock,
            score_again=self.rewarder.score_again,
        )
        keys = KeyRoutes(
            self.keys,
            self.redactor,
            auditor,
            clock=self._clock,
            new_key=lambda: (secrets.token_hex(6), f"up_{secrets.token_urlsafe(32)}"),
        )
        users = UserRoutes(
            self.users,
            self.redactor,
            auditor,
            clock=self._clock,
            sweep=self.maintenance.erase_pending,
        )
        training = TrainingRoutes(
            self.submission,
            self.trigger,
            self.jobs,
            self.models,
            self.signals,
            self.trainers.planner,
            auditor,
            clock=self._clock,
        )
        judging = RewardRoutes(
            self.reward_stage.rewards,
            self.reward_stage.outcomes,
            self.redactor,
            auditor,
            clock=self._clock,
            ready=training.ready,
        )
        routes = [
            *judging.routes(),
            *training.routes(),
            *CurriculumRoutes(TaskStatsReader(self.store.database), self._world_locations).routes(),
            *IngestRoutes(
                self.intake, self.steps, self._settings.collect.max_bytes, auditor
            ).routes(),
            *health.routes(),
            *PageRoutes(lambda: self._dashboard_url).routes(),
            *dead_letters.routes(),
            *keys.routes(),
            *users.routes(),
            *self._monitor_routes(auditor),
            *self.read_api.routes(CurrentState(health.current, training.counted_readiness)),
        ]
        routes += AnalysisRoutes(
            self.analyst,
            Validations(self.store.database),
            partial(run_backtest, self.decisions),
            clock=self._clock,
        ).routes()
        if self.delivery:
            delivery = self.delivery
            routes += DeploymentRoutes(delivery.controller, self.redactor).routes()
            routes += ValidationRoutes(
                delivery.validation,
                self.store,
                self.redactor,
                auditor,
                compare=delivery.compare,
                current=delivery.current,
                known=delivery.lookup.is_known,
            ).routes()
        front = HttpServer(routes, self.keys, self._address.host, self._address.port)
        self.app = front.app
        self._run("http", front.run, again=False)
        self._exits.push_async_callback(front.close)
        return front.url

    def _monitor_routes(self, auditor: Auditor) -> list[Route]:
        monitor = self.monitor
        alerts = AlertRoutes(
            monitor.alerts,
            monitor.deliveries,
            self.redactor,
            auditor,
            clock=self._clock,
            on_change=monitor.announce,
        )
        reports = ReportRoutes(
            monitor.reports,
            monitor.builder,
            monitor.costs,
            price_list(self._settings),
            clock=self._clock,
        )
        return [*alerts.routes(), *reports.routes()]

    def _run(self, name: str, work: Callable[[], Awaitable[None]], *, again: bool = True) -> None:
        """A part that breaks is logged, counted and begun again; the loop ends where that is no use."""

        async def watched() -> None:
            try:
                await run_with_backoff(
                    name,
                    work,
                    on_failure=self._bad_row_metrics.count_round,
                    restart=again,
                    fatal=(Damaged,),
                )
            except asyncio.CancelledError:
                raise
            except Exception:
                log.exception("%s broke for good", name, extra={"action": "broke"})
                self._failed.set()

        self._tasks.append(start_task(watched(), name=name))

    def _announce(self, running: InstanceInfo) -> None:
        path = self.folder / "running.json"
        write_private(path, json.dumps(asdict(running), indent=2))
        self._exits.callback(lambda: path.unlink(missing_ok=True))

    async def stop(self) -> None:
        """Take everything down, in reverse; what was acknowledged is on the disk already."""
        await cancel_all(task for task in self._tasks if task.get_name() != "http")
        await self._exits.aclose()

    async def run_until_signalled(self, started: Callable[[InstanceInfo], None]) -> int:
        """Run in the foreground; 0 when asked to stop, 1 when a part broke."""
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for name in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(name, stop.set)
        running = await self._start_unless_stopped(stop)
        if running is None:
            return 0
        started(running)
        waits = [start_task(stop.wait()), start_task(self._failed.wait())]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        await self.stop()
        return 1 if self._failed.is_set() else 0
