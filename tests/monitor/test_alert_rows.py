"""Alerts as rows, on all databases: once per cause, with their message and deliveries, whatever crashes."""

import itertools
import json
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from upswing.contracts import AlertNotice, decode
from upswing.contracts.topics import ALERT
from upswing.errors import Conflict
from upswing.infra.sql.audit import AuditTrail, audit_entry
from upswing.monitor.alert_repository import AlertFilter, AlertRepository, as_open
from upswing.monitor.core.alert_states import (
    AlertSeen,
    BeginAlert,
    ContinueAlert,
    ResolveAlert,
    Settling,
    decide_changes,
)
from upswing.monitor.deliveries import MOST_WAITING, DeliveryQueue, Recipient

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
ROLLED = AlertSeen("ModelRolledBack", "v4 was rolled back.", {"model": "v4"}, {"reason": "errors"})
BROKE = AlertSeen("PartFailing", "reward broke.", {"part": "reward"})


@pytest.fixture
def alerts(store):
    numbers = itertools.count(1)
    recipients = [Recipient("all"), Recipient("pager", "urgent"), Recipient("paper", alerts=False)]
    return AlertRepository(store.database, recipients, new_id=lambda: UUID(int=next(numbers)))


async def outbox(store):
    return [
        decode(AlertNotice, each.payload) for each in await store.outbox() if each.subject == ALERT
    ]


async def begin(alerts, *seen, now=NOW, cursors=None):
    severities = {"ModelRolledBack": "urgent"}
    changes = [BeginAlert(each, severities.get(each.name, "warning")) for each in seen]
    return await alerts.apply(changes, cursors or {}, now)


async def test_an_alert_is_a_row_a_message_and_a_delivery_to_whoever_hears_of_such(store, alerts):
    rolled, broke = await begin(alerts, ROLLED, BROKE)
    assert (rolled.state, rolled.severity, rolled.times) == ("firing", "urgent", 1)
    assert [(each.name, each.state) for each in await outbox(store)] == [
        ("ModelRolledBack", "firing"),
        ("PartFailing", "firing"),
    ]
    assert (await outbox(store))[0].labels == {"model": "v4"}
    queue = DeliveryQueue(store.database)
    targets = [each.target for each in await queue.of_notice(rolled.alert_id)]
    assert targets == ["all", "pager"]
    assert [each.target for each in await queue.of_notice(broke.alert_id)] == ["all"]


async def test_a_cause_has_one_open_alert_however_often_it_begins(store, alerts):
    await begin(alerts, ROLLED)
    assert await begin(alerts, ROLLED) == []  # two processes saw it at once
    assert len(await alerts.open_alerts()) == 1
    assert len(await outbox(store)) == 1


async def test_what_is_seen_again_counts_and_tells_nobody(store, alerts):
    (row,) = await begin(alerts, ROLLED)
    later = NOW + timedelta(hours=1)
    await alerts.apply([ContinueAlert(row.alert_id, ROLLED)], {}, later)
    (again,) = await alerts.open_alerts()
    assert (again.times, again.seen, again.began) == (2, later, NOW)
    assert len(await outbox(store)) == 1


async def test_a_resolved_alert_says_why_and_what_it_was_and_the_cause_may_begin_anew(
    store, alerts
):
    (row,) = await begin(alerts, ROLLED)
    (over,) = await alerts.apply([ResolveAlert(row.alert_id, "v5 was promoted.")], {}, NOW)
    assert (over.state, over.over, over.summary) == (
        "resolved",
        "v5 was promoted.",
        ROLLED.summary,
    )
    assert (await outbox(store))[-1].summary == "v5 was promoted. It was: v4 was rolled back."
    assert await alerts.apply([ResolveAlert(row.alert_id, "Again.")], {}, NOW) == []
    (fresh,) = await begin(alerts, ROLLED)
    assert fresh.alert_id != row.alert_id


async def test_the_cursor_moves_with_the_alerts_and_never_back(store, alerts):
    await begin(alerts, ROLLED, cursors={"monitor incidents": 7})
    assert await store.cursor("monitor incidents") == 7
    await alerts.apply([], {"monitor incidents": 3}, NOW)
    assert await store.cursor("monitor incidents") == 7


async def test_an_acknowledgement_is_told_audited_and_done_once(store, alerts):
    (row,) = await begin(alerts, ROLLED)
    entry = audit_entry("key ops", "acknowledge", row.alert_id, NOW)
    seen = await alerts.acknowledge(row.alert_id, "key ops", "looking", NOW, entry)
    assert (seen.state, seen.acknowledged_by, seen.note) == ("acknowledged", "key ops", "looking")
    again = await alerts.acknowledge(row.alert_id, "key other", "", NOW, entry)
    assert again.acknowledged_by == "key ops"
    assert [each.state for each in await outbox(store)] == ["firing", "acknowledged"]
    assert (await AuditTrail(store.database).head())[0] == 1
    await alerts.apply([ResolveAlert(row.alert_id, "Over.")], {}, NOW)
    with pytest.raises(Conflict, match="is over since 2026-01-05 12:00 UTC"):
        await alerts.acknowledge(row.alert_id, "key ops", "", NOW, entry)
    assert await alerts.acknowledge("nobody", "key ops", "", NOW, entry) is None


async def test_an_acknowledged_alert_that_happens_again_stays_acknowledged(store, alerts):
    (row,) = await begin(alerts, ROLLED)
    await alerts.acknowledge(row.alert_id, "key ops", "", NOW, None)
    known = [as_open(each) for each in await alerts.open_alerts()]
    changes = decide_changes(known, [ROLLED], {}, NOW, Settling())
    assert await alerts.apply(changes, {}, NOW) == []
    (still,) = await alerts.open_alerts()
    assert (still.state, still.times) == ("acknowledged", 2)


async def test_alerts_are_found_by_state_severity_name_and_page(store, alerts):
    rows = await begin(
        alerts, *(AlertSeen("PartFailing", "b", {"part": f"p{n}"}) for n in range(5))
    )
    await begin(alerts, ROLLED)
    await alerts.apply([ResolveAlert(rows[0].alert_id, "Over.")], {}, NOW)
    found = await alerts.search(AlertFilter(severity="urgent"), 10)
    assert [each.name for each in found] == ["ModelRolledBack"]
    done = await alerts.search(AlertFilter(states=("resolved",)), 10)
    assert [each.alert_id for each in done] == [rows[0].alert_id]
    first = await alerts.search(AlertFilter(name="PartFailing"), 3)
    rest = await alerts.search(AlertFilter(name="PartFailing", before_seq=first[-1].seq), 3)
    assert [json.loads(each.labels)["part"] for each in (*first, *rest)] == [
        "p4",
        "p3",
        "p2",
        "p1",
        "p0",
    ]


async def test_old_alerts_are_forgotten_and_open_ones_never(store, alerts):
    old, _ = await begin(alerts, ROLLED, BROKE)
    await alerts.apply([ResolveAlert(old.alert_id, "Over.")], {}, NOW)
    assert await alerts.prune(NOW) == 0
    assert await alerts.prune(NOW + timedelta(days=1)) == 1
    assert [each.name for each in await alerts.open_alerts()] == ["PartFailing"]


async def test_an_address_that_never_answers_keeps_the_newest_deliveries(store, alerts):
    many = [AlertSeen("PartFailing", "b", {"part": f"p{n}"}) for n in range(MOST_WAITING + 3)]
    rows = await begin(alerts, *many)
    first = await DeliveryQueue(store.database).first_waiting("all")
    assert first.ref == rows[3].alert_id
    (gone,) = await DeliveryQueue(store.database).of_notice(rows[0].alert_id)
    assert (gone.state, gone.error) == ("given_up", "Too many wait behind it.")


async def test_what_waits_for_an_address_that_is_gone_is_given_up(store, alerts):
    (row,) = await begin(alerts, ROLLED)
    assert await DeliveryQueue(store.database).give_up_strangers(["pager"], NOW) == 1
    states = {
        each.target: each.state
        for each in await DeliveryQueue(store.database).of_notice(row.alert_id)
    }
    assert states == {"all": "given_up", "pager": "waiting"}
