"""What a canary does next: the table of the docstring, cell by cell, and its laws."""

import re
from datetime import UTC, datetime, timedelta
from itertools import product

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from upswing.deploy.core import canary as module
from upswing.deploy.core.canary import (
    Canary,
    CanaryAction,
    Hold,
    Promote,
    RollBack,
    SetWeight,
    first_canary_step,
    next_action,
)
from upswing.deploy.core.health import FailureCause, HealthStatus, HealthVerdict
from upswing.deploy.core.ramp import ramp_steps

START = datetime(2026, 1, 5, 12, tzinfo=UTC)
STEPS = ramp_steps()
LAST = len(STEPS) - 1
FIRST_DUE, LAST_DUE = START + STEPS[0].dwell, START + STEPS[LAST].dwell
SITUATIONS = {
    "not yet due": (0, START, 0, False),
    "due": (0, FIRST_DUE, STEPS[0].sample, True),
    "last, due": (LAST, LAST_DUE, STEPS[LAST].sample, False),
    "last, due, proven": (LAST, LAST_DUE, STEPS[LAST].sample, True),
    "too late": (0, START + timedelta(days=7), STEPS[0].sample, False),
}


def table():
    """{(row, column): name of the action} of the module's own docstring."""
    lines = [line.strip() for line in module.__doc__.splitlines() if line.startswith("    ")]
    head, *rows = (re.split(r"\s{2,}", line) for line in lines)
    return {
        (row[0], column): cell
        for row in rows
        for column, cell in zip(head[1:], row[1:], strict=True)
    }


TABLE = table()


def verdict(health, rewards=0, *, proven=False):
    cause = FailureCause.ERRORS if health is HealthStatus.FAILING else None
    return HealthVerdict(
        health, "Because.", rewards, proven and health is HealthStatus.HEALTHY, cause
    )


def test_the_table_has_every_verdict_in_every_situation():
    rows = [f"{h.name}{word}" for word, h in product(["", ", approved", ", paused"], HealthStatus)]
    assert set(TABLE) == set(product(rows, SITUATIONS))


@pytest.mark.parametrize("cell", TABLE, ids=" | ".join)
def test_the_table_is_what_happens(cell):
    row, column = cell
    name, _, word = row.partition(", ")
    step, now, rewards, proven = SITUATIONS[column]
    canary = Canary(
        STEPS,
        step,
        START,
        START + timedelta(days=7),
        approved=word == "approved",
        paused=word == "paused",
    )
    action = next_action(canary, verdict(HealthStatus[name], rewards, proven=proven), now)
    assert type(action).__name__ == TABLE[cell]
    assert action.sentence


canaries = st.builds(
    lambda steps, at, since, sampled, approved, paused: Canary(
        steps, at % len(steps), START + since, START + timedelta(days=7), sampled, approved, paused
    ),
    st.sampled_from([ramp_steps(), ramp_steps(0.05), ramp_steps(0.5)]),
    st.integers(0, 3),
    st.timedeltas(timedelta(), timedelta(days=8)),
    st.integers(0, 1000),
    st.booleans(),
    st.booleans(),
)
verdicts = st.builds(
    lambda health, rewards, proven: verdict(health, rewards, proven=proven),
    st.sampled_from(HealthStatus),
    st.integers(0, 2000),
    st.booleans(),
)
times = st.timedeltas(timedelta(days=-1), timedelta(days=10)).map(lambda later: START + later)


@given(canaries, verdicts, times)
def test_a_failing_model_always_goes_back(canary, told, now):
    action = next_action(canary, told, now)
    if told.health is HealthStatus.FAILING:
        assert action == RollBack(FailureCause.ERRORS, "Because.")


@given(canaries, verdicts, times)
def test_traffic_grows_only_when_it_is_due_and_healthy(canary, told, now):
    action = next_action(canary, told, now)
    dwelt = now - canary.since >= canary.current_step.dwell
    enough = told.rewards - canary.sampled >= canary.current_step.sample
    if isinstance(action, SetWeight):
        assert dwelt
        assert enough
        assert told.health is HealthStatus.HEALTHY
        assert action.step == canary.step + 1
        assert action.share == canary.steps[action.step].share > canary.current_step.share
    if isinstance(action, Promote):
        assert canary.is_last_step
        assert dwelt
        assert canary.approved or (enough and told.proven)


@given(canaries, verdicts, times)
def test_whoever_pauses_is_obeyed_unless_it_fails(canary, told, now):
    if canary.paused and told.health is not HealthStatus.FAILING:
        assert isinstance(next_action(canary, told, now), Hold)


@given(canaries, verdicts)
def test_nothing_stays_undecided_for_ever(canary, told):
    later = max(canary.deadline, canary.since) + timedelta(days=10)
    action = next_action(canary, told, later)
    assert canary.paused or isinstance(action, RollBack | Promote)


@given(canaries, verdicts, times)
def test_an_action_and_its_inputs_go_through_a_journal(canary, told, now):
    action = next_action(canary, told, now)
    assert msgspec.json.decode(msgspec.json.encode(action), type=CanaryAction) == action
    again = msgspec.json.decode(
        msgspec.json.encode([canary, told]), type=tuple[Canary, HealthVerdict]
    )
    assert next_action(*again, now) == action


def test_a_four_hour_ramp_with_plenty_of_traffic():
    canary, now, seen, told = first_canary_step(STEPS, START), START, 0, []
    while True:
        now += timedelta(minutes=5)
        seen += 50
        action = next_action(canary, verdict(HealthStatus.HEALTHY, seen, proven=True), now)
        if isinstance(action, Promote):
            break
        if isinstance(action, SetWeight):
            told.append((int((now - START) / timedelta(minutes=1)), action.share))
            canary = msgspec.structs.replace(canary, step=action.step, since=now, sampled=seen)
    assert told == [(60, 0.25), (120, 0.5)]
    assert now - START == timedelta(hours=4)
