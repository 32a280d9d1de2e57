"""The gateway: one port, OpenAI-shaped, in front of the models.

It can be started in a process or a test with plain arguments; the bus, the controller and other
gateways are ports, and each of them may be missing.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping
from datetime import datetime
from time import monotonic
from typing import Any
from uuid import UUID

from prometheus_client import CollectorRegistry, generate_latest

from upswing.config import ExploreConfig, FallbackConfig
from upswing.errors import Misuse, Transient
from upswing.gateway.allowance import Allowance
from upswing.gateway.chat_service import Chat
from upswing.gateway.desk_service import Paths, Windows
from upswing.gateway.ending_service import Endings
from upswing.gateway.exchange_service import Exchange
from upswing.gateway.keys import Keys
from upswing.gateway.limits import Limits
from upswing.gateway.metrics import GatewayCollector, Reading
from upswing.gateway.plan import Plan
from upswing.gateway.ports import Desk, Keeper, PinBoard
from upswing.gateway.problems import Kind, error_body
from upswing.gateway.recorder_service import Recorder
from upswing.gateway.tally import Tally
from upswing.gateway.traffic_service import Traffic
from upswing.gateway.ways_service import Ways
from upswing.http1.connection import Connection as Client
from upswing.http1.port import TICK, Port
from upswing.http1.request import Admitted, Refusal, Request
from upswing.together import end, vital

log = logging.getLogger(__name__)
_CHAT = b"/v1/chat/completions"
_CHATS = frozenset({_CHAT, b"/chat/completions"})
_FLUSH_SECONDS = 1.0
"""To record what has ended, even when an answer took all the time there was."""
_DEFAULT_ALLOWANCE, _DEFAULT_LIMITS = Allowance(), Limits()
_KINDS: dict[int, Kind] = {429: "rate_limit_error", 503: "server_error"}


def _is_chat(request: Request) -> bool:
    path = request.path
    return request.method == b"POST" and (path == _CHAT or path.partition(b"?")[0] in _CHATS)


class Gateway:
    """Routes, answers, counts and records."""

    def __init__(
        self, *, clock: Callable[[], datetime], new_id: Callable[[], UUID],
        draw: Callable[[], float],
        plan: Plan | None = None, allowance: Allowance = _DEFAULT_ALLOWANCE,
        limits: Limits = _DEFAULT_LIMITS, keys: Mapping[str, str] | None = None,
        admin_token: str | None = None, backend_keys: Mapping[str, str] | None = None,
        keeper: Keeper | None = None, desk: Desk | None = None, pins: PinBoard | None = None,
        training_url: str | None = None, explore: ExploreConfig | None = None,
        by_user: bool = False, learns_keys: bool = False,
        fallback: FallbackConfig | None = None,
    ) -> None:  # fmt: skip
        """`draw` gives a number from 0 to 1 by chance; `by_user`: users keep their model between episodes.

        `keys`: a client's key → its name; `learns_keys`: the loop tells of more. Without either, everybody who
        reaches the port may ask.

        `backend_keys`: the beginning of a server's URL → the key that it wants. `fallback`: who answers
        while the models' own server is away.
        """
        self._limits, self._keeper, self._first_plan = limits, keeper, plan
        self._allowance = allowance
        self.port = Port(self, limits, monotonic)
        self.tally = Tally()
        self.traffic = Traffic(allowance, clock, pins, draw=draw, by_user=by_user)
        self._ways = Ways(limits, backend_keys or {})
        self.recorder = Recorder(
            keeper, limits, now=monotonic, wall=lambda: clock().timestamp()
        )  # fmt: skip
        self.keys = known = Keys(keys or {}, learns=learns_keys)
        self._chat = Chat(
            limits=limits, allowance=allowance, keys=known, traffic=self.traffic, ways=self._ways,
            recorder=self.recorder, tally=self.tally, new_id=new_id, explore=explore,
            fallback=fallback,
        )  # fmt: skip
        endings = Endings(self.recorder, keeper, limits, clock=clock, new_id=new_id, desk=desk)
        self._registry = CollectorRegistry()
        self._registry.register(GatewayCollector(self.tally, self._reading))
        self._paths = Paths(
            Windows(
                health=self.health, metrics=lambda: generate_latest(self._registry),
                models=self._models, traffic=self._traffic_told, close=endings.close,
                feedback=endings.feedback, owner=known.owner, refused=self.tally.refuse,
            ),
            limits, admin_token=admin_token, desk=desk, training_url=training_url,
        )  # fmt: skip
        self._tasks: list[asyncio.Task[None]] = []
        self.failed = asyncio.Event()
        """Set when a part of it is dead that it cannot do without: its process has to end."""

    # --- life ------------------------------------------------------------------------------------

    async def start(
        self, host: str = "127.0.0.1", port: int = 3000, *, listener: socket.socket | None = None
    ) -> str:
        """Listen; the URL, without `/v1`."""
        if self._first_plan:
            self.apply(self._first_plan)
        told = self._allowance.told(self.traffic.plan)
        log.info("RL model configuration: %s", told, extra={"action": "rl_configuration"})
        try:
            url = await self.port.listen(host, port, listener)
        except Misuse:
            self.traffic.stop()
            raise
        works = [("tending", self._tend()), *self.recorder.lanes()]
        self._tasks = [vital(work, name=name, broke=self.failed.set) for name, work in works]
        return url

    async def stop(self, seconds: float = 5.0) -> None:
        """Let answers under way end, for so many seconds; record what there is, and go."""
        deadline = monotonic() + seconds
        await self.port.close()
        while self._chat.active and monotonic() < deadline:  # noqa: ASYNC110 - it ends by itself
            await asyncio.sleep(0.01)
        await self.recorder.flush(max(_FLUSH_SECONDS, deadline - monotonic()))
        await self._paths.close()
        await self.port.end()
        await end(self._tasks)
        self.traffic.stop()
        self._ways.close()
        await asyncio.sleep(0)

    async def _tend(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            try:
                self._look_after(monotonic())
            except Exception:  # whatever broke, the next look must come
                log.exception("tending failed", extra={"action": "tending_failed"})

    def _look_after(self, now: float) -> None:
        """What is late, idle or over."""
        for exchange in [each for each in self._chat.active if each.deadline < now]:
            exchange.late()
        self.port.look_after()
        self.recorder.tend()
        self._ways.tidy(now)

    def apply(self, plan: Plan, age: float | None = None) -> bool:
        """Follow this plan, written `age` seconds ago, from the next request on; False when it is too old."""
        applied = self.traffic.apply(plan, age)
        if not applied:
            self.tally.refuse("stale_plan")
        return applied

    # --- the door --------------------------------------------------------------------------------

    def admit(self, request: Request) -> Admitted | Refusal:
        return self._chat.admit(request) if _is_chat(request) else self._paths.admit(request)

    def take(self, client: Client, request: Request) -> Exchange | None:
        if _is_chat(request):
            return self._chat.take(client, request)
        self._paths.take(client, request)
        return None

    def problem(self, status: int, word: str, sentence: str) -> Refusal:
        self.tally.refuse(word)
        kind: Kind = _KINDS.get(status, "invalid_request_error")
        extra = b"retry-after: 1\r\n" if status in _KINDS else b""
        return Refusal(status, error_body(sentence, kind), extra)

    # --- what it tells of itself -----------------------------------------------------------------

    def health(self) -> dict[str, Any]:
        return {
            "status": "ok" if self.traffic.table else "starting",
            "shares": self.traffic.shares(),
            **({"alert": alert} if (alert := self.traffic.alert) else {}),
            "lease_seconds": self.traffic.lease_left(),
            "under_way": len(self._chat.active),
            "episodes": len(self.recorder.book),
            "recording": self._keeper is not None,
        }

    def _models(self) -> dict[str, Any]:
        models = self.traffic.table.models() if self.traffic.table else ()
        about = {"object": "model", "created": 0, "owned_by": "upswing"}
        return {"object": "list", "data": [{"id": model.model_id, **about} for model in models]}

    def _traffic_told(self) -> dict[str, Any]:
        plan = self.traffic.plan
        if plan is None:
            raise Transient("There is no traffic plan yet.")
        return {
            "rollout": plan.rollout, "baseline": plan.baseline.model_id, "operator": plan.operator,
            "traffic": {name: 100 * share for name, share in self.traffic.shares().items()},
            "lease_until": plan.lease_until, "version": plan.version, "fence": plan.fence,
        }  # fmt: skip

    def _reading(self) -> Reading:
        recorder, counts = self.recorder, self.recorder.counts
        return Reading(
            self.traffic.shares(), len(self._chat.active), len(self.port.crowd), len(recorder.book),
            recorder.book.size + recorder.backlog_bytes, counts.recorded,
            {"lost": counts.lost, "refused": counts.refused, "empty": counts.empty},
            self.traffic.lease_left(),
        )  # fmt: skip
