"""How does an address hear of a notice? Signed, in order, again while it fails, and never in anybody's way.

| the address answers           | the delivery …                                                      |
|-------------------------------|---------------------------------------------------------------------|
| 2xx                           | is sent                                                             |
| nothing in time, 5xx, 408,    | waits, longer each time (5 s to 15 min), and those behind it wait   |
| 425, 429                      | too; after `[alerts] retry_hours` it is given up                    |
| 3xx, any other status         | is given up: a redirect is not followed, and a refusal stays one    |

Each address has a task of its own: one that hangs holds up nobody else. What waits lies in the store.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from upswing.config import WebhookConfig
from upswing.contracts.typed import from_json
from upswing.errors import Misuse, Rejected, Transient
from upswing.infra.backoff import Backoff
from upswing.infra.http import Reply, Unreachable, exchange
from upswing.monitor.alert_repository import AlertRow
from upswing.monitor.core.alert_catalog import CATALOG
from upswing.monitor.core.webhook_bodies import (
    AlertmanagerEntry,
    NoticeEvent,
    alertmanager_body,
    is_heard,
    json_body,
    sign_request,
    slack_body,
)
from upswing.monitor.deliveries import DeliveryQueue, DeliveryRow, Recipient

log = logging.getLogger(__name__)
_POLL_SECONDS = 30.0
"""The safety net: whoever queues a notice wakes the senders."""
_ANSWER_BYTES = 1_000_000
_AGAIN = {408, 425, 429}
RETRIES = Backoff(5.0, 900.0)
_SYNC_SECONDS = 60.0
_LASTS = timedelta(minutes=5)
"""Alertmanager believes an open alert for so long unless it is sent again."""
_RESOLVED = timedelta(minutes=15)
"""How long Alertmanager is told that an alert is over: it may have been away."""


@dataclass(frozen=True, slots=True)
class WebhookRuntime:
    """What sending needs beside the address."""

    secret: str = field(repr=False)
    clock: Callable[[], datetime]
    """The loop's own, by which rows are dated."""
    wall_clock: Callable[[], datetime]
    """Real time, by which receivers go."""
    retry_for: timedelta = timedelta(hours=24)
    backoff: Backoff = RETRIES


def recipients_of(webhooks: Sequence[WebhookConfig]) -> list[Recipient]:
    """The webhooks to which every change is delivered; Alertmanager hears the state instead."""
    return [
        Recipient(each.name, each.severity, each.alerts, each.reports)
        for each in webhooks
        if each.format != "alertmanager"
    ]


class WebhookSender:
    """Delivers what waits for one address."""

    def __init__(
        self, webhook: WebhookConfig, queue: DeliveryQueue, runtime: WebhookRuntime
    ) -> None:
        self._webhook, self._queue, self._runtime = webhook, queue, runtime
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Something was queued."""
        self._woken.set()

    async def run(self) -> None:
        """For ever; a store that is away is waited for."""
        while True:
            self._woken.clear()
            try:
                pause = await self.send_next()
            except Transient as error:
                log.warning("%s", error, extra={"action": "webhook"})
                pause = self._runtime.backoff.first
            if pause is None:
                await _wait(self._woken, _POLL_SECONDS)
            elif pause:
                await asyncio.sleep(pause)

    async def send_next(self) -> float | None:
        """Try the oldest delivery; seconds until the next try, None when nothing waits."""
        delivery = await self._queue.first_waiting(self._webhook.name)
        if delivery is None:
            return None
        runtime, now = self._runtime, self._runtime.clock()
        if delivery.tries and now - delivery.queued >= runtime.retry_for:
            await self._give_up(delivery, delivery.error)
            return 0.0
        try:
            reply = await self._exchange(delivery)
        except Unreachable as error:
            return await self._postpone(delivery, str(error))
        except (Misuse, Rejected) as error:
            await self._give_up(delivery, str(error))
            return 0.0
        return await self._settle(delivery, reply)

    async def _exchange(self, delivery: DeliveryRow) -> Reply:
        event: NoticeEvent = "report" if delivery.kind == "report" else "alert"
        make = slack_body if self._webhook.format == "slack" else json_body
        runtime = self._runtime
        request = sign_request(
            make(event, delivery.body),
            runtime.secret,
            event,
            delivery.delivery_id,
            runtime.wall_clock(),
        )
        return await exchange(
            "POST",
            self._webhook.url,
            body=request.body,
            headers=request.headers,
            seconds=self._webhook.timeout_seconds,
            limit=_ANSWER_BYTES,
        )

    async def _settle(self, delivery: DeliveryRow, reply: Reply) -> float:
        if 200 <= reply.status < 300:
            await self._queue.sent(delivery, self._runtime.clock())
            return 0.0
        sentence = f"It answered {reply.status}."
        if reply.status >= 500 or reply.status in _AGAIN:
            return await self._postpone(delivery, sentence)
        if 300 <= reply.status < 400:
            sentence = (
                f"It answered {reply.status}: no redirect is followed, name the address itself."
            )
        await self._give_up(delivery, sentence)
        return 0.0

    async def _postpone(self, delivery: DeliveryRow, why: str) -> float:
        pause = self._runtime.backoff.seconds(delivery.tries + 1)
        log.warning(
            "webhook %s: %s It is tried again in %g s",
            self._webhook.name,
            why,
            pause,
            extra={"action": "webhook_waits"},
        )
        until = self._runtime.clock() + timedelta(seconds=pause)
        await self._queue.postpone(delivery, why, until)
        return pause

    async def _give_up(self, delivery: DeliveryRow, why: str) -> None:
        await self._queue.give_up(delivery, why, self._runtime.clock())
        log.error(
            "webhook %s did not take %s %s: %s",
            self._webhook.name,
            delivery.kind,
            delivery.ref,
            why,
            extra={"action": "alert", "reason": "webhook_given_up", "target": self._webhook.name},
        )


class AlertmanagerSync:
    """Keeps one Alertmanager informed of what is open, and of what is over: it forgets by itself."""

    def __init__(
        self,
        webhook: WebhookConfig,
        open_alerts: Callable[[], Awaitable[Sequence[AlertRow]]],
        resolved_since: Callable[[datetime], Awaitable[Sequence[AlertRow]]],
        runtime: WebhookRuntime,
        *,
        source: str,
    ) -> None:
        """`source` tells this loop from others that the same Alertmanager hears of."""
        self._webhook, self._runtime, self._source = webhook, runtime, source
        self._open, self._resolved = open_alerts, resolved_since
        self._woken, self._failures = asyncio.Event(), 0

    def wake(self) -> None:
        """An alert has changed."""
        self._woken.set()

    async def run(self) -> None:
        """For ever."""
        while True:
            self._woken.clear()
            try:
                await self.sync()
                self._failures = 0
            except (Transient, Rejected) as error:
                self._failures += 1
                log.warning(
                    "webhook %s: %s", self._webhook.name, error, extra={"action": "webhook_waits"}
                )
            if self._failures:
                await asyncio.sleep(
                    min(_SYNC_SECONDS, self._runtime.backoff.seconds(self._failures))
                )
            else:
                await _wait(self._woken, _SYNC_SECONDS)

    async def sync(self) -> None:
        """Tell it everything once; `Transient` when it does not take it."""
        now, wall = self._runtime.clock(), self._runtime.wall_clock()
        rows = [*await self._open(), *await self._resolved(now - _RESOLVED)]
        entries = [_entry(each, wall - now) for each in rows]
        heard = [each for each in entries if is_heard(each.severity, self._webhook.severity)]
        if not heard or not self._webhook.alerts:
            return
        body = alertmanager_body(heard, wall, _LASTS, self._source)
        request = sign_request(body, self._runtime.secret, "alert", f"sync-{self._source}", wall)
        reply = await exchange(
            "POST",
            f"{self._webhook.url.rstrip('/')}/api/v2/alerts",
            body=request.body,
            headers=request.headers,
            seconds=self._webhook.timeout_seconds,
            limit=_ANSWER_BYTES,
        )
        if not 200 <= reply.status < 300:
            raise Transient(f"Alertmanager answered {reply.status}.")


def _entry(row: AlertRow, ahead: timedelta) -> AlertmanagerEntry:
    """In real time: the loop's own may differ by `ahead`."""
    kind = CATALOG.get(row.name)
    return AlertmanagerEntry(
        row.name,
        kind.severity if kind else "warning",
        row.summary,
        from_json(row.labels, dict[str, str]),
        row.runbook,
        row.began + ahead,
        row.resolved + ahead if row.resolved else None,
    )


async def _wait(woken: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await woken.wait()
    except TimeoutError:
        return
