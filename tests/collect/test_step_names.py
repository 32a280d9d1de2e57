"""May two keys call their runs alike? Each has its own, and what an earlier version opened is still found."""

import uuid
from datetime import UTC, datetime

import msgspec
import pytest
from prometheus_client import CollectorRegistry
from tests.support import raw

from upswing.collect.core.admit import AdmissionLimits
from upswing.collect.core.evaluate import evaluate
from upswing.collect.core.step_evaluation import OWN_ID, evaluate_stepwise
from upswing.collect.intake import Intake
from upswing.collect.metrics import CollectMetrics
from upswing.collect.open_trajectories import OpenTrajectories
from upswing.collect.step_intake import StepwiseIntake
from upswing.contracts.steps import uuid_for_external_id
from upswing.errors import Misuse
from upswing.infra.sql.store import open_in_memory_store
from upswing.principals import Sender
from upswing.records import Taken
from upswing.redact import Redactor

NOW = datetime(2026, 3, 1, tzinfo=UTC)
REDACTOR = Redactor()
ANN, BOB = Sender("k-ann", many=False), Sender("k-bob", many=False)
OPERATOR = Sender("op", operator=True)
STEP = raw({"stepNumber": 1, "environmentState": {"a": "b"}})


class NoOptOuts:
    def opted_out(self, _):
        return False


@pytest.fixture
async def rows():
    store = open_in_memory_store()
    await store.prepare()
    yield store
    store.close()


@pytest.fixture
async def steps(rows):
    async def evaluate_message(kind, message):
        return evaluate(kind, message, REDACTOR, AdmissionLimits())

    async def evaluate_here(request):
        return evaluate_stepwise(request, REDACTOR)

    intake = Intake(
        rows,
        NoOptOuts(),
        evaluate_message,
        CollectMetrics(CollectorRegistry()),
        clock=lambda: NOW,
        new_id=uuid.uuid4,
    )
    return StepwiseIntake(
        intake,
        OpenTrajectories(rows.database),
        rows,
        NoOptOuts(),
        evaluate_here,
        clock=lambda: NOW,
        new_id=uuid.uuid4,
    )


async def run(steps, name, sender, agent):
    key = None if sender.operator else sender.key_id
    opened = await steps.start(raw({"agent_id": agent, "trajectory_id": name}), sender)
    assert opened.taken, opened
    known = await steps.resolve_id(name, key)
    assert known == opened.id
    assert (await steps.step(known, STEP, key)).taken
    assert (await steps.end(known, b"{}", key)).taken is Taken.STORED
    return opened.id


async def test_keys_that_name_their_runs_alike_have_one_each(steps, rows):
    made = [
        await run(steps, "run-1", sender, agent)
        for sender, agent in ((ANN, "a"), (BOB, "b"), (OPERATOR, "c"))
    ]
    assert len(set(made)) == 3
    assert made[2] == uuid_for_external_id("run-1"), "an operator's names are the installation's"
    for trajectory_id, agent in zip(made, "abc", strict=True):
        body = msgspec.json.decode((await rows.trajectory(trajectory_id)).admitted.body)
        assert (body["trajectory_id"], body["agent_id"]) == (trajectory_id, agent)
        assert (body["metadata"]["external_id"], body["session_id"]) == ("run-1", "run-1")


async def test_what_one_key_began_another_cannot_go_on_with(steps):
    opened = await steps.start(raw({"agent_id": "a", "trajectory_id": "run-1"}), ANN)
    for name in ("run-1", opened.id):
        with pytest.raises(Misuse):
            await steps.step(await steps.resolve_id(name, "k-bob"), STEP, "k-bob")


async def test_a_start_cannot_say_what_the_loop_alone_writes(steps, rows):
    forged = {OWN_ID: str(uuid.uuid4()), "_key": "k-bob", "_many": True}
    name = str(uuid.uuid4())
    opened = await steps.start(raw({"agent_id": "a", "trajectory_id": name, **forged}), ANN)
    await steps.step(opened.id, STEP, "k-ann")
    assert (await steps.end(opened.id, b"{}", "k-ann")).taken is Taken.STORED
    stored = (await rows.trajectory(name)).admitted
    assert (stored.key_id, stored.many) == ("k-ann", False)


@pytest.mark.parametrize("ended", [False, True])
async def test_what_an_earlier_version_opened_is_still_found(steps, rows, ended):
    """Its id is made of the name alone; the same key goes on with it, and begins no second one."""
    start = {"agent_id": "a", "trajectory_id": "run-1", "start_time": "2026-03-01T00:00:00Z"}
    head = msgspec.json.encode({**start, "_key": "k-ann", "_many": False}, order="sorted")
    await OpenTrajectories(rows.database).begin(uuid_for_external_id("run-1"), head, None, NOW)
    name = await steps.resolve_id("run-1", "k-ann")
    assert name == uuid_for_external_id("run-1")
    assert (await steps.step(name, STEP, "k-ann")).taken is Taken.STORED
    if ended:
        assert (await steps.end(name, b"{}", "k-ann")).taken is Taken.STORED
    assert (await steps.start(raw(start), ANN)).id == uuid_for_external_id("run-1")
    other = await steps.start(raw(start), BOB)
    assert (other.taken, other.id) == (Taken.STORED, uuid_for_external_id("run-1", "k-bob"))
