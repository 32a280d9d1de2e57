"""Webhooks over real sockets: signed, in order, retried, never followed elsewhere, and in nobody's way."""

import asyncio
import itertools
import json
import logging
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from tests.monitor.receiving import Receiver
from tests.support import until
from upswing.config import WebhookConfig
from upswing.infra.backoff import Backoff
from upswing.infra.sql.store import open_in_memory_store
from upswing.infra.tasks import cancel_all, start_task
from upswing.monitor.alert_repository import AlertRepository
from upswing.monitor.core.alert_states import AlertSeen, BeginAlert, ResolveAlert
from upswing.monitor.core.webhook_bodies import verify_signature
from upswing.monitor.deliveries import DeliveryQueue
from upswing.monitor.webhooks import (
    AlertmanagerSync,
    WebhookRuntime,
    WebhookSender,
    recipients_of,
)

pytestmark = pytest.mark.live
NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
SECRET = "whs_test"


class Bench:
    """A store with alerts, and a sender for one address."""

    def __init__(self, store, webhook, *, retry_hours=24):
        self.now, numbers = NOW, itertools.count(1)
        self.webhook = webhook
        self.alerts = AlertRepository(
            store.database, recipients_of([webhook]), new_id=lambda: UUID(int=next(numbers))
        )
        self.queue = DeliveryQueue(store.database)
        self.runtime = WebhookRuntime(
            SECRET,
            lambda: self.now,
            lambda: self.now,
            timedelta(hours=retry_hours),
            Backoff(0.01, 0.02),
        )

    @property
    def sender(self):
        """A new one each time: what waits lies in the store."""
        return WebhookSender(self.webhook, self.queue, self.runtime)

    async def fire(self, part="reward", name="PartFailing", severity="warning"):
        seen = AlertSeen(name, f"<{part}> broke & stopped.", {"part": part})
        (row,) = await self.alerts.apply([BeginAlert(seen, severity)], {}, self.now)
        return row

    async def resolve(self, row):
        await self.alerts.apply([ResolveAlert(row.alert_id, "Over.")], {}, self.now)

    async def states(self, row):
        return [each.state for each in await self.queue.of_notice(row.alert_id)]


@pytest.fixture
async def bench():
    stores = []

    async def make(url, **options):
        retry_hours = options.pop("retry_hours", 24)
        store = open_in_memory_store()
        await store.prepare()
        stores.append(store)
        return Bench(store, WebhookConfig(name="ops", url=url, **options), retry_hours=retry_hours)

    yield make
    for store in stores:
        store.close()


async def test_a_notice_comes_signed_once_and_in_order(bench):
    async with Receiver() as receiver:
        made = await bench(f"{receiver.url}/hook?x=1")
        row = await made.fire()
        await made.resolve(row)
        assert [await made.sender.send_next() for _ in range(3)] == [0.0, 0.0, None]
    assert receiver.alerts() == [("PartFailing", "firing"), ("PartFailing", "resolved")]
    first = receiver.heard[0]
    assert first.path == "/hook?x=1"
    assert first.headers["X-Upswing-Event"] == "alert"
    assert first.tree["alert"]["labels"] == {"part": "reward"}
    signed = first.headers["X-Upswing-Signature"]
    assert verify_signature(first.body, signed, SECRET, NOW, timedelta(minutes=5))
    assert not verify_signature(first.body, signed, "whs_other", NOW, timedelta(minutes=5))
    assert len({each.headers["X-Upswing-Delivery"] for each in receiver.heard}) == 2
    assert await made.states(row) == ["sent", "sent"]


async def test_slack_gets_a_message_in_which_nothing_is_a_link_or_a_mention(bench):
    async with Receiver() as receiver:
        made = await bench(receiver.url, format="slack")
        await made.fire("@channel")
        await made.sender.send_next()
    text = receiver.heard[0].tree["text"]
    assert text.startswith(
        "🔥 *PartFailing* (warning, firing)\n&lt;@channel&gt; broke &amp; stopped."
    )
    assert "What to do:_ The log has the traceback." in text


@pytest.mark.parametrize("status", [500, 503, 408, 425, 429])
async def test_an_address_in_trouble_is_tried_again_with_the_same_delivery(bench, status):
    async with Receiver(status) as receiver:
        made = await bench(receiver.url)
        row = await made.fire()
        assert await made.sender.send_next() == 0.01
        assert await made.sender.send_next() == 0.02
        assert await made.states(row) == ["waiting"]
        receiver.status = 204
        await made.sender.send_next()
    assert await made.states(row) == ["sent"]
    assert len({each.headers["X-Upswing-Delivery"] for each in receiver.heard}) == 1


@pytest.mark.parametrize("status", [400, 401, 404, 410, 301, 302, 307, 308])
async def test_a_refusal_and_a_redirect_are_given_up_and_called_an_alert(bench, status, caplog):
    async with Receiver() as elsewhere, Receiver(status) as receiver:
        receiver.headers = f"Location: {elsewhere.url}/secret\r\n"
        made = await bench(receiver.url)
        row = await made.fire()
        await made.sender.send_next()
        assert await made.states(row) == ["given_up"]
    assert (len(receiver.heard), elsewhere.heard) == (1, [])
    (record,) = [each for each in caplog.records if getattr(each, "action", "") == "alert"]
    assert (record.reason, record.target) == ("webhook_given_up", "ops")
    assert receiver.url not in record.getMessage()


async def test_after_the_hours_of_retrying_it_is_given_up(bench):
    async with Receiver(500) as receiver:
        made = await bench(receiver.url, retry_hours=1)
        row = await made.fire()
        await made.sender.send_next()
        made.now += timedelta(hours=1)
        await made.sender.send_next()
    assert await made.states(row) == ["given_up"]
    (delivery,) = await made.queue.of_notice(row.alert_id)
    assert delivery.error == "It answered 500."
    assert len(receiver.heard) == 1


async def test_an_address_that_hangs_costs_its_own_time_alone(bench):
    async with Receiver(None) as silent, Receiver() as other:
        slow = await bench(silent.url, timeout_seconds=0.2)
        quick = await bench(other.url)
        await slow.fire()
        await quick.fire()
        tasks = [start_task(slow.sender.run()), start_task(quick.sender.run())]
        try:
            await until(other.alerts)
            await until(lambda: len(silent.heard) >= 2, what="it was not tried again")
        finally:
            await cancel_all(tasks)


async def test_nobody_there_is_a_reason_to_wait(bench):
    async with Receiver() as receiver:
        url = receiver.url
    made = await bench(url)
    row = await made.fire()
    assert await made.sender.send_next() == 0.01
    (delivery,) = await made.queue.of_notice(row.alert_id)
    assert "cannot be reached" in delivery.error
    assert delivery.tries == 1


async def test_what_was_queued_is_sent_by_whoever_starts_next(bench):
    async with Receiver() as receiver:
        made = await bench(receiver.url)
        row = await made.fire()
        first = made.sender
        task = start_task(first.run())
        await until(receiver.alerts)
        await cancel_all([task])
        await made.fire("trigger")
        task = start_task(made.sender.run())
        await until(lambda: len(receiver.alerts()) == 2)
        await cancel_all([task])
    assert await made.states(row) == ["sent"]


async def test_alertmanager_hears_what_is_open_and_what_is_over(bench):
    async with Receiver() as receiver:
        made = await bench(receiver.url + "/", format="alertmanager")
        made.now = NOW + timedelta(days=3)  # the loop's time may lie ahead of the wall's
        sync = AlertmanagerSync(
            made.webhook,
            made.alerts.open_alerts,
            made.alerts.resolved_since,
            WebhookRuntime(SECRET, lambda: made.now, lambda: NOW),
            source="here",
        )
        await sync.sync()
        assert receiver.heard == []
        row = await made.fire()
        await sync.sync()
        await made.resolve(row)
        await sync.sync()
    assert {each.path for each in receiver.heard} == {"/api/v2/alerts"}
    (fired,), (over,) = (each.tree for each in receiver.heard)
    assert fired["labels"] == {
        "alertname": "PartFailing",
        "severity": "warning",
        "job": "upswing",
        "instance": "here",
        "part": "reward",
    }
    assert fired["startsAt"] == "2026-01-05T12:00:00Z"
    assert fired["endsAt"] == "2026-01-05T12:05:00Z"
    assert over["labels"] == fired["labels"]
    assert over["endsAt"] == "2026-01-05T12:00:00Z"


async def test_alertmanager_that_is_away_is_told_everything_when_it_is_back(bench, caplog):
    caplog.set_level(logging.WARNING)
    async with Receiver(503) as receiver:
        made = await bench(receiver.url, format="alertmanager")
        await made.fire()
        sync = AlertmanagerSync(
            made.webhook,
            made.alerts.open_alerts,
            made.alerts.resolved_since,
            made.runtime,
            source="here",
        )
        task = start_task(sync.run())
        await until(lambda: len(receiver.heard) >= 3)
        receiver.status = 200
        heard = len(receiver.heard)
        await until(lambda: len(receiver.heard) > heard)
        await asyncio.sleep(0)
        await cancel_all([task])
    assert json.loads(receiver.heard[-1].body)[0]["labels"]["alertname"] == "PartFailing"
    assert "Alertmanager answered 503." in caplog.text


def test_two_webhooks_have_two_names():
    from upswing.config import AlertsConfig

    twice = WebhookConfig(name="ops", url="http://127.0.0.1:1")
    with pytest.raises(ValueError, match="have the same `name`"):
        AlertsConfig(webhooks=(twice, twice))
