"""Alerts begin once for a cause, go on, and are over: the table of states, and laws over any history."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upswing.monitor.core.alert_catalog import CATALOG
from upswing.monitor.core.alert_states import (
    AlertOver,
    AlertSeen,
    BeginAlert,
    ContinueAlert,
    OpenAlert,
    ResolveAlert,
    Settling,
    cause_of,
    decide_changes,
)

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
SETTLING = Settling(clear=timedelta(minutes=1), quiet=timedelta(hours=24))
CONDITION, EVENT = "BusUnreachable", "ModelRolledBack"


def opened(name, *, seen=NOW, began=NOW, labels=None):
    return OpenAlert(f"id-{name}", name, cause_of(name, labels or {}), "firing", began, seen)


def decide(known, observed, *, cleared=None, now=NOW):
    return decide_changes(known, observed, {} if cleared is None else cleared, now, SETTLING)


def test_what_is_seen_begins_once_and_then_goes_on():
    seen = AlertSeen(EVENT, "v4 was rolled back.", {"model": "v4"})
    (begun,) = decide([], [seen, seen])
    assert isinstance(begun, BeginAlert)
    assert (begun.severity, begun.seen.times) == ("urgent", 2)
    (again,) = decide([opened(EVENT, labels={"model": "v4"})], [seen])
    assert again == ContinueAlert(f"id-{EVENT}", seen)


def test_other_labels_are_another_cause():
    seen = AlertSeen(EVENT, "v5 was rolled back.", {"model": "v5"})
    (begun,) = decide([opened(EVENT, labels={"model": "v4"})], [seen])
    assert isinstance(begun, BeginAlert)


def test_a_condition_is_over_when_it_was_away_for_a_minute():
    known, over, cleared = [opened(CONDITION)], [AlertOver(CONDITION, "It is back.", {})], {}
    assert decide(known, over, cleared=cleared) == []
    half = NOW + timedelta(seconds=30)
    assert decide(known, over, cleared=cleared, now=half) == []
    whole = NOW + timedelta(seconds=60)
    assert decide(known, over, cleared=cleared, now=whole) == [
        ResolveAlert(f"id-{CONDITION}", "It is back.")
    ]
    assert cleared == {}


def test_a_condition_that_flickers_is_one_alert():
    known, cleared = [opened(CONDITION)], {}
    over, seen = [AlertOver(CONDITION, "It is back.", {})], [AlertSeen(CONDITION, "Away.")]
    for second in range(0, 600, 30):
        observed = over if second % 60 else seen
        changes = decide(known, observed, cleared=cleared, now=NOW + timedelta(seconds=second))
        assert not any(isinstance(each, BeginAlert | ResolveAlert) for each in changes)


def test_of_what_nobody_says_anything_stays_until_the_quiet_time():
    for name in (CONDITION, EVENT):
        late = NOW + timedelta(hours=23, minutes=59)
        assert decide([opened(name)], [], now=late) == []
        (over,) = decide([opened(name)], [], now=NOW + timedelta(hours=24))
        assert over == ResolveAlert(f"id-{name}", "It was not seen again for 24 hours.")


@pytest.mark.parametrize(("before", "ends"), [(1, True), (0, False), (-1, False)])
def test_an_event_is_over_only_by_what_came_after_it(before, ends):
    over = AlertOver(EVENT, "A model was promoted since.", before=NOW + timedelta(hours=before))
    changes = decide([opened(EVENT, labels={"model": "v4"})], [over])
    assert changes == ([ResolveAlert(f"id-{EVENT}", over.why)] if ends else [])


names = st.sampled_from([CONDITION, EVENT, "PartFailing"])
labels = st.dictionaries(st.sampled_from(["model", "part"]), st.sampled_from(["a", "b"]))
seen = st.builds(AlertSeen, names, st.just("It."), labels)
over = st.builds(AlertOver, names, st.just("Over."), st.none() | labels)
rounds = st.lists(st.tuples(st.integers(0, 100_000), st.lists(seen | over, max_size=4)))


@given(rounds)
def test_a_cause_never_has_two_open_alerts_and_nothing_is_resolved_twice(history):
    """Any history of looks, played against a store in memory."""
    store, cleared, now, begun, ended = {}, {}, NOW, 0, 0
    for seconds, observed in history:
        now += timedelta(seconds=seconds)
        for change in decide_changes(list(store.values()), observed, cleared, now, SETTLING):
            match change:
                case BeginAlert(each, _):
                    assert each.cause not in {alert.cause for alert in store.values()}
                    begun += 1
                    name = f"alert-{begun}"
                    store[name] = OpenAlert(name, each.name, each.cause, "firing", now, now)
                case ContinueAlert(name, each):
                    old = store[name]
                    assert old.cause == each.cause
                    store[name] = OpenAlert(name, old.name, old.cause, old.state, old.began, now)
                case ResolveAlert(name):
                    del store[name]
                    ended += 1
        holding = {each.cause for each in observed if isinstance(each, AlertSeen)}
        assert holding <= {alert.cause for alert in store.values()}
        assert set(cleared) <= {alert.cause for alert in store.values()}
    assert begun - ended == len(store)


def test_every_kind_says_what_it_is_when_it_is_over_and_what_to_do():
    for kind in CATALOG.values():
        assert kind.about.endswith(".")
        assert kind.remedy.rstrip(")").endswith((".", "?"))
        assert kind.over
