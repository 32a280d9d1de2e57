"""The gateway: one port, OpenAI-shaped, in front of the models.

It can be started in a process or a test with plain arguments; the bus, the controller and other
gateways are ports, and each of them may be missing.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from datetime import datetime
from time import monotonic
from typing import Any
from uuid import UUID

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

from upswing.contracts.traffic import Plan
from upswing.errors import Misuse, Transient
from upswing.gateway.admin import AdminCallbacks, AdminRoutes
from upswing.gateway.chat import ChatHandler, shape_of
from upswing.gateway.core.keys import ClientKeys
from upswing.gateway.counters import GatewayCounters
from upswing.gateway.metrics import GatewayCollector, GatewayGauges
from upswing.gateway.options import GatewayOptions
from upswing.gateway.proxy.exchange import ChatExchange
from upswing.gateway.proxy.exchange_context import ExchangeContext
from upswing.gateway.proxy.upstreams import Upstreams
from upswing.gateway.recorder.client import RecorderClient
from upswing.gateway.recorder.outcome_intake import OutcomeIntake
from upswing.gateway.recorder.recorder import EpisodeRecorder
from upswing.gateway.tracing import ExchangeTracer
from upswing.gateway.traffic import TrafficRouter
from upswing.infra.http1.connection import Connection as Client
from upswing.infra.http1.port import TICK, Port
from upswing.infra.http1.request import AdmittedRequest, HttpRequest, Refusal
from upswing.infra.nats.traffic import Pins
from upswing.infra.tasks import cancel_all, run_critical
from upswing.infra.tracing import SpanCollector, SpanExporter
from upswing.openai.errors import ErrorType, error_body

log = logging.getLogger(__name__)
_MIN_FLUSH_SECONDS = 1.0
"""To record what has ended, even when an answer took all the time there was."""
_DEFAULT_OPTIONS = GatewayOptions()
_ERROR_TYPES: dict[int, ErrorType] = {429: "rate_limit_error", 503: "server_error"}


class Gateway:
    """Routes, answers, counts and records."""

    def __init__(
        self,
        *,
        clock: Callable[[], datetime],
        new_id: Callable[[], UUID],
        draw: Callable[[], float],
        options: GatewayOptions = _DEFAULT_OPTIONS,
        recorder_client: RecorderClient | None = None,
        pins: Pins | None = None,
        exporter: SpanExporter | None = None,
    ) -> None:
        """`draw` gives a number from 0 to 1 by chance.

        Without a `recorder_client` nothing is recorded; `pins` are what other gateways have assigned.
        """
        limits, auth, routing = options.limits, options.auth, options.routing
        self._options, self._recorder_client = options, recorder_client
        self.port = Port(self, limits, monotonic)
        self.counters = GatewayCounters()
        self.traffic = TrafficRouter(
            routing.policy, clock, pins, draw=draw, by_user=routing.by_user
        )
        self._upstreams = Upstreams(limits, auth.backend_keys)
        self.recorder = EpisodeRecorder(
            recorder_client, limits, now=monotonic, wall_clock=lambda: clock().timestamp()
        )
        client_keys = ClientKeys(auth.client_keys, from_loop=auth.keys_from_loop)
        self.client_keys = client_keys
        self._context = ExchangeContext(
            limits=limits,
            policy=routing.policy,
            traffic=self.traffic,
            upstreams=self._upstreams,
            recorder=self.recorder,
            counters=self.counters,
            fallback=routing.fallback,
            tracer=ExchangeTracer(exporter, clock=clock, new_id=new_id) if exporter else None,
        )
        self._chat_handler = ChatHandler(
            self._context, client_keys, new_id=new_id, explore=routing.explore
        )
        outcome_intake = OutcomeIntake(
            self.recorder,
            recorder_client,
            limits,
            clock=clock,
            new_id=new_id,
            admin_client=options.admin_client,
        )
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._registry.register(GatewayCollector(self.counters, self._read_gauges))
        if exporter is not None:
            self._registry.register(SpanCollector(exporter))
        self._admin_routes = AdminRoutes(
            AdminCallbacks(
                health=self.health,
                metrics=lambda: generate_latest(self._registry),
                models=self._listed_models,
                traffic=self._traffic_view,
                close_episode=outcome_intake.close_episode,
                record_feedback=outcome_intake.record_feedback,
                key_owner=client_keys.owner_of_request,
                count_refusal=self.counters.count_refusal,
            ),
            limits,
            admin_token=auth.admin_token,
            admin_client=options.admin_client,
            training_url=options.training_url,
        )
        self._tasks: list[asyncio.Task[None]] = []
        self.failed = asyncio.Event()
        """Set when a part of it is dead that it cannot do without: its process has to end."""

    # --- life ------------------------------------------------------------------------------------

    async def start(
        self, host: str = "127.0.0.1", port: int = 3000, *, listener: socket.socket | None = None
    ) -> str:
        """Listen; the URL, without `/v1`."""
        if self._options.plan:
            self.apply(self._options.plan)
        summary = self._options.routing.policy.summary(self.traffic.plan)
        log.info("RL model configuration: %s", summary, extra={"action": "rl_configuration"})
        try:
            url = await self.port.listen(host, port, listener)
        except Misuse:
            self.traffic.stop()
            raise
        coroutines = [("housekeeping", self._run_housekeeping()), *self.recorder.workers()]
        self._tasks = [
            run_critical(work, name=name, on_end=self.failed.set) for name, work in coroutines
        ]
        return url

    async def stop(self, seconds: float = 5.0) -> None:
        """Let answers under way end, for so many seconds; record what there is, and go."""
        deadline = monotonic() + seconds
        await self.port.close()
        while self._context.in_flight and monotonic() < deadline:  # noqa: ASYNC110 - it ends by itself
            await asyncio.sleep(0.01)
        await self.recorder.flush(max(_MIN_FLUSH_SECONDS, deadline - monotonic()))
        await self._admin_routes.close()
        await self.port.close_all()
        await cancel_all(self._tasks)
        self.traffic.stop()
        self._upstreams.close()
        await asyncio.sleep(0)

    async def _run_housekeeping(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            try:
                self._do_housekeeping(monotonic())
            except Exception:  # whatever broke, the next round must come
                log.exception("housekeeping failed", extra={"action": "tending_failed"})

    def _do_housekeeping(self, now: float) -> None:
        """End what is late, idle or over."""
        for exchange in [each for each in self._context.in_flight if each.deadline < now]:
            exchange.on_deadline()
        self.port.close_overdue()
        self.recorder.end_due_episodes()
        self._upstreams.close_idle(now)

    def apply(self, plan: Plan, age: float | None = None) -> bool:
        """Follow this plan, written `age` seconds ago, from the next request on; False when it is too old."""
        applied = self.traffic.apply(plan, age)
        if not applied:
            self.counters.count_refusal("stale_plan")
        return applied

    # --- requests --------------------------------------------------------------------------------

    def admit(self, request: HttpRequest) -> AdmittedRequest | Refusal:
        if shape_of(request) is not None:
            return self._chat_handler.admit(request)
        return self._admin_routes.admit(request)

    def handle(self, client: Client, request: HttpRequest) -> ChatExchange | None:
        if shape_of(request) is not None:
            return self._chat_handler.handle(client, request)
        self._admin_routes.handle(client, request)
        return None

    def refusal_for(self, status: int, reason: str, message: str) -> Refusal:
        self.counters.count_refusal(reason)
        error_type: ErrorType = _ERROR_TYPES.get(status, "invalid_request_error")
        extra = b"retry-after: 1\r\n" if status in _ERROR_TYPES else b""
        return Refusal(status, error_body(message, error_type), extra)

    # --- what it tells of itself -----------------------------------------------------------------

    def health(self) -> dict[str, Any]:
        return {
            "status": "ok" if self.traffic.table else "starting",
            "shares": self.traffic.shares(),
            **({"alert": alert} if (alert := self.traffic.alert) else {}),
            "lease_seconds": self.traffic.lease_left(),
            "under_way": len(self._context.in_flight),
            "episodes": len(self.recorder.episode_table),
            "recording": self._recorder_client is not None,
        }

    def _listed_models(self) -> list[str]:
        models = self.traffic.table.listed_models() if self.traffic.table else ()
        return [model.model_id for model in models]

    def _traffic_view(self) -> dict[str, Any]:
        plan = self.traffic.plan
        if plan is None:
            raise Transient("There is no traffic plan yet.")
        return {
            "rollout": plan.rollout,
            "baseline": plan.baseline.model_id,
            "operator": plan.operator,
            "traffic": {name: 100 * share for name, share in self.traffic.shares().items()},
            "lease_until": plan.lease_until,
            "version": plan.version,
            "fence": plan.fence,
        }

    def _read_gauges(self) -> GatewayGauges:
        recorder, counts = self.recorder, self.recorder.counts
        return GatewayGauges(
            self.traffic.shares(),
            len(self._context.in_flight),
            len(self.port.connections),
            len(recorder.episode_table),
            recorder.held_bytes,
            counts.recorded,
            {"lost": counts.lost, "refused": counts.refused, "empty": counts.empty},
            self.traffic.lease_left(),
        )
