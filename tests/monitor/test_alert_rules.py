"""Each alert's rule as a table: what is seen, and whether it holds, is over, or nobody can say."""

from dataclasses import replace
from datetime import timedelta

import pytest

from upswing.monitor.core.alert_catalog import CATALOG
from upswing.monitor.core.alert_rules import (
    RULES,
    AlertFacts,
    AlertLimits,
    CollectionCounts,
    observe_conditions,
)
from upswing.monitor.core.alert_states import AlertOver, AlertSeen
from upswing.monitor.core.conditions import DiskSpace, LoopConditions, RewardDrift
from upswing.records import JudgeUse

WELL = LoopConditions(bus_connected=True, bus_sync_always=True, model_server_answers=True)
GB = 1000**3
MINUTE = timedelta(minutes=1)
HOLDS, OVER, UNKNOWN = "holds", "over", "unknown"


def facts(conditions=None, **more):
    return AlertFacts(replace(WELL, **(conditions or {})), **more)


def drift(mean, reference):
    return RewardDrift("v3", mean, reference, error=0.01, least=0.1)


def judge(spent):
    return JudgeUse(5_000_000, 1.5, 5_000_000, None, spent)


def collected(taken, **reasons):
    return CollectionCounts(taken, sum(reasons.values()), reasons)


TABLE = [
    ("TrainingFailing", facts({"failed_jobs_in_a_row": 3}), HOLDS),
    ("TrainingFailing", facts({"failed_jobs_in_a_row": 7}), HOLDS),
    ("TrainingFailing", facts({"failed_jobs_in_a_row": 2}), OVER),
    ("CollectionErrors", facts(collected=collected(89, schema=11)), HOLDS),
    ("CollectionErrors", facts(collected=collected(90, schema=10)), OVER),
    ("CollectionErrors", facts(collected=collected(0, schema=20)), HOLDS),
    ("CollectionErrors", facts(collected=collected(0, schema=19)), UNKNOWN),
    ("CollectionErrors", facts(collected=collected(5)), OVER),
    ("CollectionErrors", facts(collected=collected(0)), OVER),
    ("CollectionErrors", facts(), UNKNOWN),
    ("BusUnreachable", facts({"bus_connected": False}, bus_away=5 * MINUTE), HOLDS),
    ("BusUnreachable", facts({"bus_connected": False}, bus_away=4.9 * MINUTE), UNKNOWN),
    ("BusUnreachable", facts(), OVER),
    ("BusMayLoseMessages", facts({"bus_sync_always": False}), HOLDS),
    ("BusMayLoseMessages", facts({"bus_sync_always": True}), OVER),
    ("BusMayLoseMessages", facts({"bus_sync_always": None}), UNKNOWN),
    ("TrainingServiceUnreachable", facts(training_port_away=MINUTE), HOLDS),
    ("TrainingServiceUnreachable", facts(training_port_away=MINUTE / 2), UNKNOWN),
    ("TrainingServiceUnreachable", facts(training_port_away=timedelta()), OVER),
    (
        "TrainingServiceUnreachable",
        facts(training_port_away=timedelta(), job_waits=10 * MINUTE),
        HOLDS,
    ),
    (
        "TrainingServiceUnreachable",
        facts(training_port_away=timedelta(), job_waits=9 * MINUTE),
        OVER,
    ),
    ("TrainingServiceUnreachable", facts(job_waits=10 * MINUTE), HOLDS),
    ("TrainingServiceUnreachable", facts(), UNKNOWN),
    ("GatewayUnreachable", facts({"gateway_answers": False}, gateway_away=MINUTE), HOLDS),
    ("GatewayUnreachable", facts({"gateway_answers": False}, gateway_away=MINUTE / 2), UNKNOWN),
    ("GatewayUnreachable", facts({"gateway_answers": True}), OVER),
    ("GatewayUnreachable", facts({"gateway_answers": None}), UNKNOWN),
    (
        "ModelServerUnreachable",
        facts({"model_server_answers": False}, model_server_away=MINUTE),
        HOLDS,
    ),
    (
        "ModelServerUnreachable",
        facts({"model_server_answers": False}, model_server_away=MINUTE / 2),
        UNKNOWN,
    ),
    ("ModelServerUnreachable", facts(), OVER),
    ("ModelServerUnreachable", facts({"model_server_answers": None}), UNKNOWN),
    ("DiskNearlyFull", facts({"disks": (DiskSpace("data", 9 * GB, 100 * GB),)}), HOLDS),
    ("DiskNearlyFull", facts({"disks": (DiskSpace("data", 11 * GB, 100 * GB),)}), OVER),
    ("DiskNearlyFull", facts(), UNKNOWN),
    ("JudgeBudgetSpent", facts({"judge": judge(True)}), HOLDS),
    ("JudgeBudgetSpent", facts({"judge": judge(False)}), OVER),
    ("JudgeBudgetSpent", facts({"judge": None}), UNKNOWN),
    ("RewardDrift", facts({"drift": drift(0.5, 0.7)}, rollout_under_way=False), HOLDS),
    ("RewardDrift", facts({"drift": drift(0.65, 0.7)}, rollout_under_way=False), OVER),
    ("RewardDrift", facts({"drift": drift(0.5, 0.7)}, rollout_under_way=True), UNKNOWN),
    ("RewardDrift", facts({"drift": drift(0.5, 0.7)}, rollout_under_way=None), UNKNOWN),
    ("RewardDrift", facts({"drift": drift(float("nan"), 0.7)}, rollout_under_way=False), OVER),
    ("RewardDrift", facts({"drift": None}, rollout_under_way=False), UNKNOWN),
]


@pytest.mark.parametrize(("name", "seen", "verdict"), TABLE)
def test_a_rule_says_what_the_table_says(name, seen, verdict):
    found = [each for each in observe_conditions(seen, AlertLimits()) if each.name == name]
    kinds = {AlertSeen: HOLDS, AlertOver: OVER}
    assert [kinds[type(each)] for each in found] == ([] if verdict is UNKNOWN else [verdict])


def test_every_lasting_kind_has_a_rule_that_can_fire_and_be_over():
    lasting = {name for name, kind in CATALOG.items() if kind.lasting}
    assert len(lasting) == len(RULES)
    for verdict in (HOLDS, OVER):
        assert {name for name, _, said in TABLE if said is verdict} == lasting


def test_a_sentence_has_the_figures_that_it_rests_on():
    full = facts(
        {"disks": (DiskSpace("data", 9 * GB, 100 * GB), DiskSpace("models", 1, 2 * GB))},
        collected=collected(60, schema=30, malformed=10),
    )
    seen = [each for each in observe_conditions(full, AlertLimits()) if isinstance(each, AlertSeen)]
    by_cause = {(each.name, each.labels.get("disk")): each for each in seen}
    assert set(by_cause) == {
        ("CollectionErrors", None),
        ("DiskNearlyFull", "data"),
        ("DiskNearlyFull", "models"),
    }
    errors = by_cause["CollectionErrors", None]
    assert errors.summary == (
        "40% of 100 messages were refused (schema 30, malformed 10); 10% may be."
    )
    assert errors.evidence["refused"] == 40
    assert "9.0 GB left of 100.0 GB" in by_cause["DiskNearlyFull", "data"].summary
