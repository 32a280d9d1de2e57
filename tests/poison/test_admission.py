"""What is admitted can be read by every stage after it, whatever stands in its open parts."""

import itertools
import json
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client import CollectorRegistry

from tests.support import raw, trajectory
from upswing.collect.core.admit import AdmissionLimits, admit, admit_feedback
from upswing.collect.core.evaluate import MessageKind, evaluate
from upswing.collect.core.step_evaluation import evaluate_stepwise
from upswing.collect.intake import Intake
from upswing.collect.metrics import CollectMetrics
from upswing.collect.open_trajectories import OpenTrajectories
from upswing.collect.step_intake import StepwiseIntake
from upswing.contracts import Feedback, decode_trajectory
from upswing.contracts.examples import EXAMPLES
from upswing.contracts.steps import finite_number_or_none
from upswing.errors import Rejected
from upswing.infra.sql.rewards import Rewards
from upswing.infra.sql.store import open_in_memory_store
from upswing.redact import Redactor, Rule, default_rules
from upswing.reward.core.assess import RewardRules
from upswing.reward.core.weights import component_weights
from upswing.reward.metrics import RewardMetrics
from upswing.reward.rewarder import Rewarder

NOW = datetime(2026, 1, 2, tzinfo=UTC)
REDACTOR = Redactor()
ADDRESS = "ann@example.com"


def changed(path, value):
    made = trajectory()
    part = made
    for key in path[:-1]:
        if not isinstance(part.get(key), dict):
            part[key] = {}
        part = part[key]
    part[path[-1]] = value
    return made


class Door:
    """A step-wise door on a store in memory."""

    def __init__(self, dead_letters=lambda store: None):
        self.store = open_in_memory_store()

        async def evaluate_message(kind: MessageKind, message: bytes):
            return evaluate(kind, message, REDACTOR, AdmissionLimits())

        async def evaluate_here(request):
            return evaluate_stepwise(request, REDACTOR)

        self.intake = Intake(
            self.store,
            self,
            evaluate_message,
            CollectMetrics(CollectorRegistry()),
            clock=lambda: NOW,
            new_id=uuid.uuid4,
        )
        self.steps = StepwiseIntake(
            self.intake,
            OpenTrajectories(self.store.database),
            self.store,
            self,
            evaluate_here,
            clock=lambda: NOW,
            new_id=uuid.uuid4,
            dead_letters=dead_letters(self.store),
        )

    def opted_out(self, _):
        return False


@pytest.mark.parametrize("contact", [ADDRESS, f"mail {ADDRESS}", "+49 170 1234567"])
@pytest.mark.parametrize(
    ("path", "word"),
    [
        (("task_context", "domain"), "coding"),
        (("metadata", "outcome"), "done"),
        (("metadata", "outcome", "status"), "timed_out"),
        (("metadata", "outcome", "source"), "ground_truth"),
        (("metadata", "window_id"), "2026-01-02T10:00"),
        (("subordinate_profile",), "developer"),
    ],
)
def test_a_word_of_the_contract_is_never_joined_with_its_neighbour(path, word, contact):
    made = changed(path, word)
    made["metadata"] |= {"contact": contact, "zz": contact}
    made["task_context"]["zz"] = contact
    if len(path) == 3:
        made["metadata"]["outcome"]["zz"] = contact
    body = json.loads(admit(raw(made), REDACTOR, AdmissionLimits()).admitted.body)
    for key in path:
        body = body[key]
    assert body == word


def test_a_whole_address_does_not_swallow_the_word_of_another_key():
    clean = REDACTOR.tree({"team": "general", "contact": ADDRESS}).value
    assert clean == {"team": "general", "contact": "<email-1>"}
    cut = REDACTOR.tree({"one": "ann", "two": "@example.com"}).value
    assert "ann" not in cut["one"]


def test_what_redaction_would_break_is_refused():
    """A rule of one's own may hit what readers depend on."""
    hungry = Redactor(rules=(*default_rules(), Rule("own", "completed|ratin[g]")))
    made = trajectory(task_context={"instructions": "x"})
    made["turns"][0]["observation"]["context"] = {"available_tools": ["rating"]}
    decode_trajectory(admit(raw(made), hungry, AdmissionLimits()).admitted.body)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**400, 1e300, -1e16])
def test_a_number_that_no_store_keeps_is_none(value):
    assert finite_number_or_none(value) is None


@pytest.mark.parametrize("when", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
@pytest.mark.parametrize("at", ["start_timestamp", "end_timestamp", "turn", "feedback"])
def test_a_time_at_the_edge_of_the_calendar_is_refused(at, when):
    made = trajectory()
    if at == "feedback":
        with pytest.raises(Rejected):
            admit_feedback(
                raw(EXAMPLES[Feedback] | {"timestamp": when}), REDACTOR, AdmissionLimits()
            )
        return
    if at == "turn":
        made["turns"][0]["timestamp"] = when
    else:
        made[at] = when
    with pytest.raises(Rejected):
        admit(raw(made), REDACTOR, AdmissionLimits())


OPEN = [
    ("metadata", "environment"),
    ("metadata", "environment", "pnl"),
    ("metadata", "environment", "balance"),
    ("metadata", "outcome"),
    ("metadata", "outcome", "status"),
    ("metadata", "outcome", "share"),
    ("metadata", "outcome", "source"),
    ("metadata", "test_results"),
    ("metadata", "test_results", "passed"),
    ("metadata", "test_results", "pass_rate"),
    ("metadata", "linter_results"),
    ("metadata", "linter_results", "score"),
    ("metadata", "security_scan"),
    ("metadata", "tokens"),
    ("metadata", "step_rewards"),
    ("metadata", "window_id"),
    ("metadata", "scenario_id"),
    ("metadata", "episode_id"),
    ("metadata", "user_id"),
    ("metadata", "model"),
    ("metadata", "total_tokens"),
    ("metadata", "total_cost_usd"),
    ("metadata", "temperature"),
    ("metadata", "window_hours"),
    ("metadata", "tools"),
    ("metadata", "row"),
    ("metadata", "purpose"),
    ("metadata", "is_evaluation"),
    ("metadata", "infra_error"),
    ("metadata", "subtasks"),
    ("metadata", "ground_truth"),
    ("metadata", "gateway"),
    ("metadata", "policy_version"),
    ("task_context", "task_id"),
    ("task_context", "subtasks"),
    ("task_context", "complexity_score"),
    ("task_context", "domain"),
    ("agent_id",),
    ("session_id",),
    ("subordinate_profile",),
]
BAD = [
    None,
    True,
    "",
    "\0",
    "a\0b",
    "x" * 10_000,
    "é" * 3000,
    "NaN",
    "0001-01-01T00:00",
    "9999-12-31T23:00",
    0,
    -1,
    2**31,
    2**63,
    -(2**63) - 1,
    10**400,
    1e308,
    -1e308,
    5e-324,
    [],
    [[]],
    ["x"],
    [None],
    [2**64],
    [1e308, 1e308],
    {},
    {"": ""},
    {"a\0": 1},
    {"status": ["x"]},
    {"passed": 10**400, "failed": {}},
    [{"turn_id": 10**30, "ids": [2**70], "logprobs": [10**400]}],
    [{"turn_id": 1, "ids": [1], "logprobs": [-1e308]}],
]


@pytest.mark.parametrize("path", OPEN, ids=".".join)
async def test_whatever_stands_in_an_open_part_is_scored_or_refused(path):
    store = open_in_memory_store()
    await store.prepare()
    taken = []
    for value in BAD:
        try:
            admitted = admit(raw(changed(path, value)), REDACTOR, AdmissionLimits()).admitted
        except Rejected:
            continue
        decode_trajectory(admitted.body)
        assert all(
            len(name) <= 256 for name in (admitted.scenario_id, admitted.model, admitted.task_id)
        )
        await store.take(admitted, door="http", now=NOW, stream_seq=None, announce=True)
        taken.append(admitted.trajectory_id)
    rewarder = Rewarder(
        store,
        Rewards(store.database),
        RewardRules(component_weights({})),
        RewardMetrics(CollectorRegistry()),
        clock=lambda: NOW,
    )
    await rewarder.run_once()
    for key in taken:
        assert await Rewards(store.database).newest(key) is not None
    store.close()


HEADS = [
    {"domain": ["x"]},
    {"domain": {"a": 1}},
    {"start_time": "0001-01-01T00:00:00+02:00"},
    {"start_time": "9999-12-31T23:59:59-02:00"},
    {"start_time": -1e17},
    {"start_time": 1e300},
    {"start_time": 10**400},
    {"start_time": [1]},
    {"window_hours": 0},
    {"window_hours": -3},
    {"window_hours": 10**400},
    {"window_id": ["x"]},
    {"scenario_id": {}},
    {"session_id": 3},
    {"episode_id": [1]},
    {"user_id": ["u"]},
    {"metadata": "x"},
    {"metadata": {"outcome": [1]}},
    {"model": {"a": 1}},
    {"instructions": 10**400},
    {"task_id": ["t"]},
    {"trajectory_id": "x" * 10_000},
    {"trajectory_id": {"a": 1}},
    {"trajectory_id": ""},
    {"profile": [1]},
]
STEPS = [
    {},
    {"timestamp": "0001-01-01T00:00:00+02:00"},
    {"timestamp": True},
    {"timestamp": {}},
    {"timestamp": 10**400},
    {"action": 3},
    {"action": {"type": ["x"], "success": "no"}},
    {"llm_calls": {"a": 1}},
    {"reward": 10**400},
    {"environment_state": [1]},
    {"environment_state": {"pnl": 2**63}},
    {"action": {"execution_time_ms": 10**400}},
    {"action": {"reasoning": {"a": 1}}},
]


async def test_a_trajectory_in_steps_ends_or_is_refused_whatever_it_was_told():
    door = Door()
    await door.store.prepare()
    for head, step in itertools.product(HEADS, STEPS):
        begun = await door.steps.start(raw({"agent_id": "a", **head}))
        if begun.rejected:
            continue
        await door.steps.step(begun.id, raw(step))
        await door.steps.end(begun.id, b"{}")
    await door.steps.end_stale(timedelta(seconds=-1))
    door.store.close()


NAMES = [
    path
    for path in OPEN
    if path[-1] in {"model", "scenario_id", "episode_id", "user_id", "task_id", "agent_id"}
]


async def test_names_of_any_length_and_spelling_are_kept_by_every_database(store):
    """A null character, or a text too long for an index, is no reason to wait for ever."""
    rewards, taken = Rewards(store.database), []
    for path, value in itertools.product(NAMES, ["a\0b", "x" * 10_000, "\U0001f600" * 3000]):
        row = admit(raw(changed(path, value)), REDACTOR, AdmissionLimits()).admitted
        await store.take(row, door="http", now=NOW, stream_seq=None, announce=True)
        taken.append(row.trajectory_id)
    said = EXAMPLES[Feedback] | {"episode_id": "x" * 10_000}
    del said["trajectory_id"]
    word, _ = admit_feedback(raw(said), REDACTOR, AdmissionLimits())
    await store.take_feedback(word, now=NOW, announce=True)
    rewarder = Rewarder(
        store,
        rewards,
        RewardRules(component_weights({})),
        RewardMetrics(CollectorRegistry()),
        clock=lambda: NOW,
    )
    while await rewarder.run_once():
        pass
    assert all([await rewards.newest(key) for key in taken])
