"""A number of a step, an end or a row that is none: is it refused by its name, or left out in silence?"""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as some

from upswing.collect.core.step_evaluation import (
    AddStepRequest,
    CleanedStep,
    EndedSteps,
    EndRequest,
    evaluate_stepwise,
)
from upswing.contracts import canonical
from upswing.contracts.steps import trajectory_from_row
from upswing.errors import Reason, Rejected
from upswing.records import RejectedMessage
from upswing.redact import Redactor

NOW = datetime(2026, 3, 1, tzinfo=UTC)
REDACTOR = Redactor()
HEAD = canonical({"agent_id": "a", "trajectory_id": "run-1", "start_time": "2026-03-01T00:00:00Z"})
STEP = {"step_number": 1, "environment_state": {"a": 1}}
NUMBERS = some.integers(-(10**15), 10**15) | some.floats(-1e15, 1e15)
OTHERS = (
    some.text(max_size=20)
    | some.booleans()
    | some.lists(some.none(), max_size=2)
    | some.dictionaries(some.text(max_size=3), some.integers(0, 9), max_size=2)
    | some.integers(10**16, 10**18)
)
STEP_FIELDS = ["reward", "action.execution_time_ms", "action.executionTimeMs"]
END_FIELDS = [
    "total_reward",
    "totalReward",
    "final_pnl",
    "finalPnL",
    "final_balance",
    "trades_executed",
]


def placed(path, value):
    *outer, name = path.split(".")
    return {outer[0]: {"type": "trade", name: value}} if outer else {name: value}


def add(path, value):
    raw = canonical({**STEP, **placed(path, value)})
    return evaluate_stepwise(AddStepRequest(raw, NOW, 1, [], None), REDACTOR)


def end(path, value):
    raw = canonical(placed(path, value))
    return evaluate_stepwise(EndRequest(raw, NOW, HEAD, [canonical(STEP)]), REDACTOR)


def refused_by_name(verdict, path):
    assert isinstance(verdict, RejectedMessage), verdict
    assert verdict.reason is Reason.SCHEMA
    assert f"`{path}` is a number" in verdict.detail
    return True


@pytest.mark.parametrize("path", STEP_FIELDS)
@given(value=OTHERS)
def test_what_is_no_number_is_refused_in_a_step(path, value):
    assert refused_by_name(add(path, value), path)


@pytest.mark.parametrize("path", END_FIELDS)
@given(value=OTHERS)
def test_what_is_no_number_is_refused_in_an_end(path, value):
    assert refused_by_name(end(path, value), path)


@given(value=NUMBERS | some.none())
def test_numbers_and_nothing_are_taken(value):
    assert all(isinstance(add(path, value), CleanedStep) for path in STEP_FIELDS)
    assert all(isinstance(end(path, value), EndedSteps) for path in END_FIELDS)


@given(value=OTHERS)
def test_a_row_says_which_step_has_no_number(value):
    row = {"trajectoryId": "run-1", "agentId": "a", "stepsJson": [STEP, {**STEP, "reward": value}]}
    with pytest.raises(Rejected, match=r"`stepsJson\[1\]\.reward` is a number"):
        trajectory_from_row(row)
    with pytest.raises(Rejected, match="`totalReward` is a number"):
        trajectory_from_row({**row, "stepsJson": [STEP], "totalReward": value})


def test_a_step_that_an_earlier_version_took_still_ends():
    old = canonical({**STEP, "reward": "much"})
    ended = evaluate_stepwise(EndRequest(b"{}", NOW, HEAD, [old]), REDACTOR)
    assert isinstance(ended, EndedSteps)
