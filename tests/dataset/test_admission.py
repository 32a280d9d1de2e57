"""Which task it was and whether it was only an evaluation: found at the door and in old rows."""

import json
import re
from dataclasses import replace

import pytest
from tests.support import raw, trajectory

from upswing.collect.core.admit import AdmissionLimits, admit
from upswing.contracts.steps import trajectory_from_row
from upswing.dataset.evaluation import is_evaluation
from upswing.infra.sql.schema import MIGRATIONS
from upswing.redact import Redactor

REDACTOR = Redactor()
FLAGS = [
    ({}, False),
    ({"is_evaluation": True}, True),
    ({"isEvaluation": 1}, True),
    ({"is_evaluation": False}, False),
    ({"is_evaluation": None, "row": {"is_evaluation": True}}, True),
    ({"row": {"is_training_data": False}}, True),
    ({"row": {"is_training_data": "f"}}, True),
    ({"row": {"is_training_data": True, "is_evaluation": False}}, False),
    ({"row": "is_evaluation"}, False),
    ({"row": {"isEvaluation": "True"}}, True),
]


def admitted(**changes):
    return admit(raw(trajectory(**changes)), REDACTOR, AdmissionLimits()).admitted


@pytest.mark.parametrize(("metadata", "evaluation"), FLAGS)
def test_an_evaluation_is_known_by_its_flags(metadata, evaluation):
    assert is_evaluation(metadata) is evaluation
    assert admitted(metadata=metadata).evaluation is evaluation


def test_a_row_of_the_table_layout_brings_its_flags_along():
    row = {
        "trajectoryId": "t-1",
        "agentId": "a",
        "isTrainingData": False,
        "isEvaluation": True,
        "stepsJson": json.dumps([{"stepNumber": 1, "environmentState": {"balance": 1}}]),
        "scenarioId": "2025-12-08T13:00",
    }
    made = admit(raw(trajectory_from_row(row)), REDACTOR, AdmissionLimits()).admitted
    assert (made.task_id, made.evaluation) == ("2025-12-08T13:00", True)


def named(task_id, **metadata):
    made = trajectory()
    made["task_context"]["task_id"] = task_id
    made["metadata"] |= metadata
    return admit(raw(made), REDACTOR, AdmissionLimits()).admitted


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x" * 300, "x" * 3000),
        ("x" * 299 + "a", "x" * 299 + "b"),
        ("ann@example.org", "bob@example.org"),
        ("Kühe", "Kuhe"),
    ],
    ids=["length", "end", "address", "accent"],
)
def test_two_tasks_stay_two_and_are_not_spelled_out_where_they_are_private(one, other):
    found = [named(each) for each in (one, other, one)]
    assert found[0].task_id == found[2].task_id != found[1].task_id
    assert all(len(each.task_id) <= 256 and len(each.scenario_id) <= 256 for each in found)
    assert not any("@" in each.task_id or b"@example.org" in each.body for each in found)


def test_a_scenario_that_is_called_like_its_task_stays_called_like_it():
    same = named("ann@example.org", scenario_id="ann@example.org")
    assert (same.scenario_id, same.continuous) == (same.task_id, False)


def drop_triggers(tx):
    """They name columns, which could not be dropped."""
    if not tx.postgres:
        for (name,) in tx.rows("SELECT name FROM sqlite_master WHERE type = 'trigger'"):
            tx.execute(f"DROP TRIGGER {name}")
        return
    for (name,) in tx.rows(
        "SELECT proname FROM pg_proc JOIN pg_namespace n ON n.oid = pronamespace "
        "WHERE nspname = current_schema()"
    ):
        tx.execute(f"DROP FUNCTION {name} CASCADE")


async def test_rows_from_before_the_columns_are_filled_in(store):
    """The store is taken back to the second migration, with rows that name no task."""
    rows = [
        admitted(metadata=metadata, task_context={"task_id": f"task {place}"})
        for place, (metadata, _) in enumerate(FLAGS)
    ]
    odd = admitted(
        task_context={"task_id": 'a \\ "quoted" \\u0000 task', "instructions": "\0 null"}
    )
    for row in [*rows, odd]:
        await store.take(row, door="http", now=row.ended, stream_seq=None, announce=False)

    def back(tx):
        drop_triggers(tx)
        later = " ".join(statement for each in MIGRATIONS[2:] for statement in each)
        made = re.findall(r"CREATE TABLE (\w+)", later)
        for index in re.findall(r"CREATE INDEX (\w+)", later):
            tx.execute(f"DROP INDEX IF EXISTS {index}")
        for table in made:
            tx.execute(f"DROP TABLE {table}")
        for table, column in re.findall(r"ALTER TABLE (\w+) ADD COLUMN (\w+)", later):
            if table not in made:
                tx.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        tx.execute("DELETE FROM migrations WHERE version >= 3")

    await store.database.write(back)
    await store.prepare()

    for row in [*rows, odd]:
        found = (await store.trajectory(row.trajectory_id)).admitted
        assert (found.answers, found.request) == ("", ""), "these are not read out of old rows"
        assert replace(found, answers=row.answers, request=row.request) == row
