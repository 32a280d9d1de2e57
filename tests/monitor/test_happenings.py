"""What happened becomes the right alert, once: incidents, validations and lines of the log."""

import ast
import logging
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from upswing.cli import parser
from upswing.deploy.core.rows import DeploymentChange, Incident, RolloutRow
from upswing.deploy.executor import NEWS
from upswing.deploy.repository import RolloutRepository
from upswing.infra.sql.store import to_microseconds
from upswing.monitor.core.alert_catalog import CATALOG, PAGE
from upswing.monitor.core.alert_states import AlertOver, AlertSeen
from upswing.monitor.core.happenings import (
    INCIDENT_KINDS,
    LOGGED,
    TOLD_ELSEWHERE,
    EndedValidation,
    IncidentRow,
    LoggedAlert,
    observe_incidents,
    observe_logged,
    observe_promotion,
    observe_validations,
)
from upswing.monitor.core.recommendations import REMEDIES
from upswing.monitor.happening_reader import HappeningReader
from upswing.monitor.log_alerts import AlertLogHandler

ROOT = Path(__file__).parents[2]
NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)

INCIDENTS = [
    ("high_error_rate", "rolled_back", "ModelRolledBack"),
    ("performance_degradation", "rolled_back", "ModelRolledBack"),
    ("performance_degradation", "promoted", "ModelDegraded"),
    ("not_better", "", "CandidateNotShipped"),
    ("no_change", "", "CandidateNotShipped"),
    ("validation_inconclusive", "", "CandidateNotShipped"),
    ("not_servable", "cancelled", "ModelNotServable"),
    ("emergency_override", "ramping", "EmergencyOverride"),
]


@pytest.mark.parametrize(("reason", "state", "name"), INCIDENTS)
def test_an_incident_is_the_alert_of_the_table(reason, state, name):
    (seen,) = observe_incidents([IncidentRow(1, "v4", reason, "It fell.", state)])
    assert (seen.name, seen.labels) == (name, {"model": "v4"})
    assert "It fell." in seen.summary


def test_a_failed_validation_is_told_by_its_own_row():
    assert observe_incidents([IncidentRow(1, "v4", "validation_fail", "It fell.", "")]) == []


def ended(verdict):
    return EndedValidation("run-1", "v4", verdict, "safety fell.", NOW)


def test_validations_call_and_calm():
    fail, none, passed = observe_validations([ended("fail"), ended(""), ended("pass")])
    assert isinstance(fail, AlertSeen)
    assert fail.summary == "v4 failed its validation: safety fell."
    assert none.summary == "v4 could not be validated: safety fell."
    assert passed == AlertOver("ValidationFailed", "v4 has passed its validation.", before=NOW)
    assert observe_validations([ended("inconclusive")]) == []


def test_a_promotion_puts_an_end_to_what_went_before():
    assert observe_promotion(None) == []
    assert {each.name for each in observe_promotion(NOW)} == {"ModelRolledBack", "ModelDegraded"}


def test_a_line_of_the_log_is_the_alert_of_its_reason():
    lines = [
        LoggedAlert("part_broke", "reward broke", {"part": "reward", "thread": "7"}),
        LoggedAlert("bus_not_durable", "the bus may lose …"),
        LoggedAlert("high_error_rate", "v4: …", {"model": "v4"}, "upswing.deploy.executor"),
        LoggedAlert("needs_approval", "v4: …", {"model": "v4"}, "upswing.deploy.executor"),
        LoggedAlert("", "a plugin's own alert"),
    ]
    found = [(each.name, each.labels) for each in observe_logged(lines)]
    assert found == [
        ("PartFailing", {"part": "reward"}),
        ("ApprovalNeeded", {"model": "v4"}),
        ("OtherAlert", {}),
    ]


# ── the log ──────────────────────────────────────────────────────────────────────────────────────


def alert_calls():
    """(file and line, the reason) of every call in our code that logs an alert."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Dict):
                keys = {
                    each.value: value
                    for each, value in zip(node.keys, node.values, strict=True)
                    if isinstance(each, ast.Constant)
                }
                action = keys.get("action")
                if isinstance(action, ast.Constant) and action.value == "alert":
                    reason = keys.get("reason")
                    fixed = reason.value if isinstance(reason, ast.Constant) else None
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", reason is not None, fixed


def test_every_alert_in_our_code_names_a_reason_that_has_a_kind():
    calls = list(alert_calls())
    assert len(calls) > 25
    assert [place for place, named, _ in calls if not named] == []
    reasons = {fixed for _, _, fixed in calls if fixed}
    assert reasons - LOGGED.keys() - TOLD_ELSEWHERE == set()
    assert set(LOGGED.values()) <= CATALOG.keys()


def test_a_handler_hears_alerts_from_any_logger_of_ours_and_nothing_else():
    handler, woken = AlertLogHandler(), []
    handler.on_alert = lambda: woken.append(1)
    handler.attach()
    try:
        log = logging.getLogger("upswing.somewhere")
        log.error(
            "all is lost in %s",
            "reward",
            extra={"action": "alert", "reason": "part_broke", "part": "reward"},
        )
        log.error("an error", extra={"action": "other"})
        logging.getLogger("another").error("not ours", extra={"action": "alert"})
        try:
            int("secret")
        except ValueError:
            log.exception("it broke", extra={"action": "alert", "reason": "chore_broke"})
    finally:
        handler.detach()
    first, second = handler.take()
    assert first == LoggedAlert(
        "part_broke", "all is lost in reward", {"part": "reward"}, "upswing.somewhere"
    )
    assert second.message == "it broke (ValueError)"
    assert (handler.take(), len(woken)) == ([], 2)


def test_a_flood_of_lines_is_bounded_and_what_could_not_be_written_comes_again():
    handler = AlertLogHandler()
    for number in range(5000):
        record = logging.makeLogRecord({"levelno": 40, "msg": f"line {number}", "action": "alert"})
        handler.handle(record)
    taken = handler.take()
    assert (len(taken), taken[-1].message) == (1000, "line 4999")
    handler.put_back(taken[:2])
    assert handler.take() == taken[:2]


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────


async def test_incidents_and_validations_are_read_once_also_by_the_next_process(store):
    rollouts = RolloutRepository(store.database)
    await rollouts.take_over("one", NOW)
    body = msgspec.json.encode({"ended": NOW, "began": NOW})
    incident = Incident("i-1", "r-1", "v4", "high_error_rate", "8 % failed.", b"{}", NOW)
    change = DeploymentChange(
        now=NOW,
        rollouts=(RolloutRow("r-1", "v4", "v3", "rolled_back", 0.0, body),),
        incidents=(incident,),
    )
    await rollouts.commit(1, change)
    await store.database.write(
        lambda tx: tx.execute(
            "INSERT INTO validations (run_id, candidate, against, suites, state, word, sentence, started_us, ended_us) "
            "VALUES ('val-1', 'v5', 'v3', ?, 'done', 'fail', 'safety fell.', 1, ?)",
            (b"[]", to_microseconds(NOW)),
        )
    )
    reader = HappeningReader(store.database)
    found = await reader.read()
    assert found.incidents == (
        IncidentRow(1, "v4", "high_error_rate", "8 % failed.", "rolled_back"),
    )
    assert [(each.model_id, each.verdict) for each in found.validations] == [("v5", "fail")]
    assert (found.promoted, found.more) == (None, False)
    for name, seq in found.cursors.items():
        await store.move_cursor(name, seq)
    again = await HappeningReader(store.database).read()
    assert (again.incidents, again.validations, again.cursors) == ((), (), {})


async def test_the_time_of_the_last_promotion_is_that_of_the_model_that_answers(store):
    rollouts = RolloutRepository(store.database)
    await rollouts.take_over("one", NOW)
    for number, state, at in ((1, "succeeded", 1), (2, "promoted", 2), (3, "rolled_back", 3)):
        body = msgspec.json.encode({"ended": NOW + timedelta(hours=at)})
        row = RolloutRow(f"r-{number}", f"v{number}", "tiny", state, 0.0, body)
        await rollouts.commit(1, DeploymentChange(now=NOW, rollouts=(row,)))
    assert (await HappeningReader(store.database).read()).promoted == NOW + timedelta(hours=2)


# ── the runbook ──────────────────────────────────────────────────────────────────────────────────


def test_every_kind_has_its_entry_in_the_runbook_with_the_same_words():
    page = (ROOT / PAGE).read_text().split("\n## Runbook\n")[1].split("\n## ")[0]
    sections = dict(re.findall(r"^### (\w+)\n(.*?)(?=^#|\Z)", page, re.MULTILINE | re.DOTALL))
    assert set(sections) == set(CATALOG)
    for name, kind in CATALOG.items():
        told = " ".join(sections[name].split())
        for sentence in (kind.about, kind.over, kind.remedy, kind.severity):
            assert " ".join(sentence.split()) in told, (name, sentence)


def test_what_is_only_news_is_no_error_in_the_log():
    news = {reason for reason, kind in INCIDENT_KINDS.items() if CATALOG[kind].severity == "info"}
    assert news == NEWS


def test_every_command_that_a_remedy_names_exists():
    commands = next(a for a in parser()._actions if a.choices and "up" in a.choices).choices
    texts = [kind.remedy for kind in CATALOG.values()] + list(REMEDIES.values())
    named = {word for text in texts for word in re.findall(r"`upswing ([a-z-]+)", text)}
    assert named - set(commands) == set()
