"""How long has something been away, and what came in lately? The facts behind alerts, followed over time.

Times here are those that pass, not those of a clock: whoever sets a clock makes nothing last longer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

from prometheus_client import CollectorRegistry

from upswing.errors import Rejected, Transient
from upswing.infra.http import exchange
from upswing.infra.sql.database import Database, Tx
from upswing.infra.sql.store import to_microseconds
from upswing.monitor.core.alert_rules import AlertFacts, CollectionCounts
from upswing.monitor.core.conditions import LoopConditions

T = TypeVar("T")
_PROBE_SECONDS = 5.0
_TAKEN, _REFUSED = "upswing_messages_total", "upswing_refused_total"
_ACTIVE = "SELECT 1 FROM rollouts WHERE state IN ('ramping', 'paused') LIMIT 1"
_DUE = "SELECT job_id FROM jobs WHERE state = 'queued' AND not_before_us <= ? ORDER BY seq LIMIT 1"
_WORKED_ON = "SELECT 1 FROM jobs WHERE state = 'running' AND lease_us > ? LIMIT 1"


class Absence:
    """For how long something has not been there, as far as it was looked at."""

    def __init__(self) -> None:
        self._since: float | None = None

    def lasted(self, at: float, *, away: bool) -> timedelta:
        """Look once, at this time; zero while it is there."""
        if not away:
            self._since = None
            return timedelta()
        if self._since is None:
            self._since = at
        return timedelta(seconds=at - self._since)


@dataclass(frozen=True, slots=True)
class MessageCounts:
    """What all doors have taken and refused since the process began."""

    taken: float = 0.0
    refused: Mapping[str, float] = field(default_factory=dict)
    """By reason."""


def read_message_counts(registry: CollectorRegistry) -> MessageCounts:
    """From the counters that `/metrics` shows."""
    taken, refused = 0.0, dict[str, float]()
    for family in registry.restricted_registry([_TAKEN, _REFUSED]).collect():
        for sample in family.samples:
            if sample.name == _TAKEN:
                taken += sample.value
            elif sample.name == _REFUSED:
                reason = sample.labels["reason"]
                refused[reason] = refused.get(reason, 0.0) + sample.value
    return MessageCounts(taken, refused)


class CollectionWindow:
    """What came in during the last minutes: counts that only rise, looked at now and then."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._looks: deque[tuple[float, MessageCounts]] = deque()

    def look(self, at: float, counts: MessageCounts) -> CollectionCounts:
        """Since the newest look that is as old as the window, or since the first."""
        self._looks.append((at, counts))
        while len(self._looks) > 1 and self._looks[1][0] <= at - self._seconds:
            self._looks.popleft()
        before = self._looks[0][1]
        reasons = {
            reason: int(count - before.refused.get(reason, 0.0))
            for reason, count in counts.refused.items()
            if count > before.refused.get(reason, 0.0)
        }
        return CollectionCounts(int(counts.taken - before.taken), sum(reasons.values()), reasons)


class FactWatch:
    """Looks at everything that the rules need, once a round."""

    def __init__(
        self,
        conditions: Callable[[], LoopConditions],
        database: Database,
        counts: Callable[[], MessageCounts],
        *,
        training_url: Callable[[], str],
        window: timedelta,
        clock: Callable[[], datetime],
    ) -> None:
        """`training_url` is where the training service answers; empty: not yet."""
        self._conditions, self._database, self._counts = conditions, database, counts
        self._training_url, self._clock = training_url, clock
        self._bus, self._port = Absence(), Absence()
        self._gateway, self._model_server = Absence(), Absence()
        self._waiting: tuple[str, Absence] = "", Absence()
        self._window = CollectionWindow(window.total_seconds())
        self._window.look(0.0, MessageCounts())

    async def read(self) -> AlertFacts:
        """One look; what the store does not say just now, nobody says."""
        at, conditions = asyncio.get_running_loop().time(), self._conditions()
        return AlertFacts(
            conditions,
            bus_away=self._bus.lasted(at, away=not conditions.bus_connected),
            gateway_away=self._gateway.lasted(at, away=conditions.gateway_answers is False),
            model_server_away=self._model_server.lasted(
                at, away=conditions.model_server_answers is False
            ),
            training_port_away=await self._port_away(at),
            job_waits=await self._or_unknown(self._job_waits(at)),
            collected=self._window.look(at, self._counts()),
            rollout_under_way=await self._or_unknown(self._rollout_under_way()),
        )

    async def _port_away(self, at: float) -> timedelta | None:
        url = self._training_url()
        if not url:
            return None
        try:
            reply = await exchange("GET", f"{url}/health", seconds=_PROBE_SECONDS)
            away = reply.status >= 500
        except (Transient, Rejected):
            away = True
        return self._port.lasted(at, away=away)

    async def _job_waits(self, at: float) -> timedelta:
        """How long the first job in the queue has been due while no worker has any."""
        now = to_microseconds(self._clock())

        def due_in_transaction(tx: Tx) -> str:
            row = tx.row(_DUE, (now,))
            return str(row[0]) if row and not tx.row(_WORKED_ON, (now,)) else ""

        job = await self._database.read(due_in_transaction)
        if job != self._waiting[0]:
            self._waiting = job, Absence()
        return self._waiting[1].lasted(at, away=bool(job))

    async def _rollout_under_way(self) -> bool:
        return await self._database.read(lambda tx: tx.row(_ACTIVE) is not None)

    @staticmethod
    async def _or_unknown(reading: Awaitable[T]) -> T | None:
        try:
            return await reading
        except Transient:
            return None
