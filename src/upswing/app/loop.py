"""How do the parts become a loop? The one place with a clock, fresh ids and open sockets.

agent ──▶ collect ─▶ redact ─▶ store ─▶ reward ─▶ trigger ─▶ train ─▶ validate ─▶ deploy ─▶ gateway ──▶ agent

`Loop._start` says what comes up in which order, `Loop._wire` how the stages are joined; what a stage consists of
is said in its own `wiring.py`, and in the modules beside this one where stages meet.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from prometheus_client import CollectorRegistry, ProcessCollector, disable_created_metrics

from upswing.api.server import HttpServer
from upswing.app.analysis import analyse_validation, make_analyst
from upswing.app.bus import start_bus
from upswing.app.context import Installation, LoopContext
from upswing.app.deployment import ModelDelivery, ValidationHelp, make_delivery, why_not_served
from upswing.app.gateway_child import make_gateway
from upswing.app.http_api import ApiSources, HttpApi
from upswing.app.monitoring import Monitoring, MonitorLinks
from upswing.app.outbox import Relay
from upswing.app.own_keys import admin_token
from upswing.app.read_api import LiveViews, ReadApi, ReadSources
from upswing.app.stages import LoopStages, make_collect, make_maintenance, make_reward
from upswing.app.storage import make_dead_letters, open_storage
from upswing.app.supervision import PartSupervisor, start_unless_stopped, stop_signals
from upswing.app.tracing import LoopTracing
from upswing.app.training import TrainingStages, policy_for_base
from upswing.collect.worker_pool import make_redactor
from upswing.config import Settings, Surroundings, registered_worlds
from upswing.contracts.topics import ROLES, STORED
from upswing.dashboard.process import DashboardSupervisor
from upswing.errors import Transient
from upswing.infra.clock import SteadyClock
from upswing.infra.dead_letters import BadRowMetrics
from upswing.infra.instance import STARTING, InstanceInfo, write_private
from upswing.infra.nats.bus import ACK_WAIT_SECONDS
from upswing.infra.nats.consumer import ConsumerFactory
from upswing.infra.nats.permissions import OPERATOR
from upswing.infra.nats.server import EmbeddedServer, make_private_folder
from upswing.infra.nats.traffic import make_buckets
from upswing.infra.sql.store_mark import StoreMarkWriter
from upswing.monitor.log_alerts import AlertLogHandler
from upswing.redact import Redactor
from upswing.train.core.request import check_recipe_settings
from upswing.trigger.core.policy import trigger_policy_of
from upswing.worlds.known import locate_world

log = logging.getLogger(__name__)
ALERT_SECONDS = 10.0

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
        self.policy = policy_for_base(trigger_policy_of(settings, surroundings), settings)
        self._world_locations = registered_worlds(settings)
        check_recipe_settings(
            settings.train.recipe, partial(locate_world, registered=self._world_locations)
        )
        self._in_process = redactor is not None
        self._installation = Installation(folder, settings, surroundings)
        self._exits = contextlib.AsyncExitStack()
        self._parts = PartSupervisor()
        self._nudges = asyncio.Event()
        self._log_alerts = AlertLogHandler()
        self._http_url = self._gateway_url = ""
        self._marker: StoreMarkWriter | None = None
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
        running = await self.start_unless_stopped(asyncio.Event())
        if running is None:
            raise AssertionError("Nobody could stop it.")
        return running

    async def start_unless_stopped(self, stop: asyncio.Event) -> InstanceInfo | None:
        """None: it was told to stop before it had started, and is down again."""
        make_private_folder(self.folder)
        await self._exits.__aenter__()
        starting = self.folder / STARTING
        write_private(starting, str(os.getpid()))
        self._exits.callback(lambda: starting.unlink(missing_ok=True))
        return await start_unless_stopped(self._start, self.stop, stop)

    async def _start(self) -> InstanceInfo:
        self._log_alerts.attach()
        self._exits.callback(self._log_alerts.detach)
        storage = await open_storage(
            self._exits,
            self._installation,
            self._address.host,
            clock=self._clock,
            new_id=self._new_id,
        )
        self.store, self._clock, self._inspection = storage.store, storage.clock, storage.inspection
        self.users, self.keys, secret = storage.users, storage.keys, storage.secrets
        self._prepare_metrics()
        self._step = "the message bus"
        await self._open_bus(secret)
        self._step = "the workers that redact and check messages"
        stages = await self._wire(self._surroundings.webhook_secret or secret["webhook_secret"])
        self._http_url = self._serve(stages)
        self._step = "the gateway's process"
        gateway_url = await self._open_gateway(secret["gateway_loop_key"])
        self._open_dashboard()
        running = InstanceInfo(
            os.getpid(),
            self._http_url,
            gateway_url,
            self._loop_bus.urls.get(OPERATOR, ""),
            self._loop_bus.urls,
            self._surroundings.api_key or secret["key"],
            str(self.folder),
            secret["gateway_key"] if gateway_url else None,
            admin_token(secret) if gateway_url else None,
            self._dashboard_url,
        )
        self._announce(running)
        self._step = ""
        return running

    def _prepare_metrics(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        bad_rows = BadRowMetrics(self.registry)
        self._parts.on_failure = bad_rows.count_round
        self.dead_letters = make_dead_letters(
            self.store, self.redactor, bad_rows, clock=self._clock, on_change=self._wake_relay
        )

    async def _open_bus(self, secret: Mapping[str, str]) -> None:
        self._loop_bus = await start_bus(
            self._exits,
            self._installation,
            {role: secret[f"nats_{role}"] for role in (OPERATOR, *ROLES)},
            port=self._address.nats_port,
            ack_wait_seconds=self._ack_wait_seconds,
        )
        self.bus, self.server = self._loop_bus.bus, self._loop_bus.server
        self.context = LoopContext(
            self._installation,
            self.store,
            self.bus,
            self.redactor,
            self.registry,
            self.dead_letters,
            clock=self._clock,
            wall_clock=now,
            new_id=self._new_id,
        )

    async def _wire(self, webhook_secret: str) -> LoopStages:
        """Make the stages and let them run, in the order in which data moves through them."""
        run, consumers = self._parts.run, ConsumerFactory(self.bus, self.store, self.dead_letters)
        self.tracing = LoopTracing(
            self._settings.otel.endpoint, clock=self._clock, new_id=self._new_id
        )
        self.tracing.start(self.registry, self._exits, run)
        self._make_outputs()
        run("events", self.events.run)
        self._make_collect()
        self._make_reward()
        run("reward", self.rewarder.run)
        self._make_training()
        await self.training.start(consumers, run)
        self._make_delivery()
        if self.delivery:
            run("shipping", self.delivery.run)
            run("failure analysis", self.analyst.run)
        # Only now: the model server, which takes longest, starts beside us already.
        await self.collect.admission.start()
        for name, consume in await self.collect.consumers(consumers):
            run(name, consume)
        run("relay", self.relay.run)
        run("nudge", self._send_nudges)
        self._make_monitoring(webhook_secret).start(run)
        stages = LoopStages(
            self.users,
            self.keys,
            self.collect,
            self.reward_stage,
            self.training,
            self.delivery,
            self.analyst,
            self.monitor,
            self._make_read_api(),
        )
        self.maintenance = make_maintenance(self.context, stages, on_failure=self._parts.on_failure)
        run("upkeep", self.maintenance.run)
        if self._inspection:
            self._marker = StoreMarkWriter(self.folder, self.store.database)
            run("mark", self._marker.run)
            run("inspection", self._inspection.run)
        return stages

    def _make_outputs(self) -> None:
        """What follows from a commit: messages on the bus, and events for whoever watches."""
        self.live = LiveViews(self.store.database, self._installation, clock=self._clock)
        self.events = self.live.events
        self.relay = Relay(
            self.store,
            self.bus,
            lambda: self.collect.intake.crowded,
            check=self.bus.check_message,
            dead_letters=self.dead_letters,
        )

    def _make_collect(self) -> None:
        self.collect = make_collect(
            self.context, self.users, on_stored=self._on_stored, in_process=self._in_process
        )
        self._exits.push_async_callback(self.collect.admission.stop)
        self._exits.push_async_callback(self.collect.traces.flush)

    def _make_reward(self) -> None:
        self.reward_stage = make_reward(
            self.context,
            self.policy.defaults.base_model,
            on_publish=self._on_stored,
            is_busy=lambda: self.collect.intake.crowded,
        )
        self.rewarder, self.rewards = self.reward_stage.rewarder, self.reward_stage.rewards
        self.group_judge = self.reward_stage.group_judge

    def _make_training(self) -> None:
        """The trigger, and the jobs that it asks for."""
        base = self.policy.defaults.base_model
        serves = self._address.gateway_port is not None and not why_not_served(self._settings, base)
        self.training = TrainingStages(
            self.context,
            self.policy,
            self._world_locations,
            serves_models=serves,
            on_change=self._on_jobs_changed,
            on_job_end=self.tracing.trace_job,
        )
        self.jobs, self.models = self.training.jobs, self.training.models
        self.decisions, self.archive = self.training.decisions, self.training.archive
        self.submission, self.trigger = self.training.submission, self.training.trigger
        self.trainers = self.training.trainers

    def _make_delivery(self) -> None:
        """What makes a trained model answer, where this loop serves models."""
        self.analyst = make_analyst(
            self.store.database, self._clock, self._new_id, self.dead_letters
        )
        if self._address.gateway_port is None:
            return
        self.delivery = make_delivery(
            self.context,
            self.trainers.checkpoint_store,
            self.policy.defaults.base_model,
            help_with=ValidationHelp(
                self.reward_stage.judge_client,
                self._worlds,
                partial(analyse_validation, clock=self._clock),
            ),
            on_commit=self._on_deployment_changed,
        )
        if self.delivery:
            self._exits.push_async_callback(self.delivery.close)

    def _make_monitoring(self, webhook_secret: str) -> Monitoring:
        links = MonitorLinks(
            self._log_alerts,
            lambda: self._http_url,
            lambda: self._gateway_url,
            webhook_secret,
            on_commit=self.relay.wake,
            publish=self.events.publish,
        )
        monitoring = Monitoring(
            self.context,
            self._loop_bus,
            self.policy,
            self.delivery,
            self.reward_stage.judge_use,
            links,
            seconds=self._alert_seconds,
        )
        self.conditions, self.monitor = monitoring.conditions, monitoring.stage
        return monitoring

    def _make_read_api(self) -> ReadApi:
        return ReadApi(
            ReadSources(self.store.database, self.redactor, self._installation),
            self.live,
            self.trainers.checkpoint_store,
            self.delivery,
            clock=self._clock,
        )

    def _serve(self, stages: LoopStages) -> str:
        """Answer HTTP; returns the address."""
        sources = ApiSources(
            new_key=lambda: (secrets.token_hex(6), f"up_{secrets.token_urlsafe(32)}"),
            erase_pending=self.maintenance.erase_pending,
            store_trouble=lambda: self._marker.trouble if self._marker else None,
            dashboard_url=lambda: self._dashboard_url,
            worlds=self._world_locations,
        )
        routes = HttpApi(self.context, stages, sources).routes()
        server = HttpServer(routes, self.keys, self._address.host, self._address.port)
        self.app = server.app
        self._parts.run("http", server.run, restart=False)
        self._exits.push_async_callback(server.close)
        return server.url

    async def _open_gateway(self, key: str) -> str | None:
        host, port = self._address.host, self._address.gateway_port
        if port is None:
            return None
        await make_buckets(self.bus)
        gateway = make_gateway(
            self._installation, self._loop_bus, self._http_url, key, host=host, port=port
        )
        self._exits.push_async_callback(gateway.stop)
        self._gateway_url = await gateway.start()
        return self._gateway_url

    def _open_dashboard(self) -> None:
        """The page starts beside us; nothing waits for it."""
        port = self._address.dashboard_port
        if port is None:
            return
        page = DashboardSupervisor(self.folder, self._http_url, self._address.host, port)
        self._exits.push_async_callback(page.stop)
        self._dashboard_url = page.start()

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
        return self._parts.failed

    def _wake_relay(self) -> None:
        self.relay.wake()

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

    def _announce(self, running: InstanceInfo) -> None:
        path = self.folder / "running.json"
        write_private(path, json.dumps(asdict(running), indent=2))
        (self.folder / STARTING).unlink(missing_ok=True)
        self._exits.callback(lambda: path.unlink(missing_ok=True))

    async def stop(self) -> None:
        """Take everything down, in reverse; what was acknowledged is on the disk already."""
        await self._parts.cancel(spare="http")
        await self._exits.aclose()

    async def run_until_signalled(self, started: Callable[[InstanceInfo], None]) -> int:
        """Run in the foreground; 0 when asked to stop, 1 when a part broke."""
        stop = stop_signals()
        running = await self.start_unless_stopped(stop)
        if running is None:
            return 0
        started(running)
        await self._parts.wait_stopped(stop)
        await self.stop()
        return 1 if self.failed.is_set() else 0
