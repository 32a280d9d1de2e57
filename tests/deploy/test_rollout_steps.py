"""A rollout as a reducer: every way it can go, and what holds on each."""

import math
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from upswing.deploy.canary import Hold, Promote, RollBack, SetWeight, next_action
from upswing.deploy.events import (
    Approve,
    Begin,
    Decided,
    Event,
    Pause,
    Restore,
    Resume,
    Succeed,
    Withdraw,
)
from upswing.deploy.health import Health, HealthVerdict
from upswing.deploy.rollout import Rollout, plan_rollout, step
from upswing.deploy.states import ACTIVE, ROLLOUT, TOGETHER
from upswing.deploy.states import Rollout as State
from upswing.deploy.strategy import BlueGreen, Gradual, Immediate
from upswing.errors import Conflict

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
WAYS = [
    Gradual(0.10, "A canary."),
    Gradual(0.05, "A canary.", approval=True),
    BlueGreen("Much better."),
    BlueGreen("Much better.", approval=True),
    Immediate("At once."),
]
NOT_A_NUMBER = Pause("ann", math.nan)
EVENTS = [
    Begin(),
    Approve("ann"),
    Pause("ann"),
    Pause("ann", 0.0),
    Pause("ann", 0.33),
    Pause("ann", 1.0),
    NOT_A_NUMBER,
    Resume("ann"),
    Withdraw("replaced", "A newer one."),
    Succeed("agent-v8"),
    Restore("agent-v8 was taken back."),
    Decided(Hold("Not yet.")),
    *(Decided(SetWeight(n, 0.25, "Up."), 100) for n in range(4)),
    Decided(Promote("Proven.")),
    Decided(RollBack("high_error_rate", "Errors.")),
]


def planned(strategy=WAYS[0]):
    return plan_rollout("r-1", "agent-v7", "agent-v6", "val-1", strategy, NOW)


def after(*events, strategy=WAYS[0], at=NOW):
    rollout = planned(strategy)
    for event in events:
        rollout = step(rollout, event, at)
    return rollout


def holds(rollout):
    """What is true of every rollout, however it came about."""
    assert sum(rollout.weights.values()) == 1
    assert set(rollout.weights) == {"agent-v6", "agent-v7"}
    assert all(0 <= share <= 1 for share in rollout.weights.values())
    assert rollout.model_state is TOGETHER[rollout.state]
    assert rollout.share == 0 or rollout.state in ACTIVE | {State.PROMOTED}
    assert (rollout.share == 1) is (rollout.state is State.PROMOTED)
    assert (rollout.canary is not None) is (rollout.state in ACTIVE)
    assert (rollout.paused_at is not None) is (rollout.state is State.PAUSED)
    assert rollout.sentence
    if rollout.strategy.approval and rollout.began:
        assert rollout.approved


def explore():
    """Every rollout that some sequence of events leads to; the time stands still."""
    found, fresh, ways = set(), [planned(way) for way in WAYS], set()
    while fresh:
        rollout = fresh.pop()
        key = msgspec.json.encode(rollout)
        if key in found:
            continue
        found.add(key)
        holds(rollout)
        for event in EVENTS:
            try:
                later = step(rollout, event, NOW)
            except Conflict:
                continue
            if later.state is not rollout.state:
                ways.add((rollout.state, later.state))
            fresh.append(later)
    return found, ways


def test_every_way_of_the_table_can_be_gone_and_no_other():
    found, ways = explore()
    assert len(found) > 50
    assert ways == {(state, later) for state, after in ROLLOUT.items() for later in after}


moments = st.lists(st.tuples(st.sampled_from(EVENTS), st.floats(0, 48)), max_size=30)


@given(st.sampled_from(WAYS), moments)
def test_whatever_happens_the_shares_are_in_order(strategy, events):
    rollout, now = planned(strategy), NOW
    for event, hours in events:
        now += hours * HOUR
        try:
            rollout = step(rollout, event, now)
        except Conflict:
            continue
        holds(rollout)


@given(st.sampled_from(WAYS), moments)
def test_the_same_events_make_the_same_rollout_also_after_a_restart(strategy, events):
    rollout = other = planned(strategy)
    for event, hours in events:
        if event is NOT_A_NUMBER:
            continue  # JSON has none
        now = NOW + hours * HOUR
        told = msgspec.json.decode(msgspec.json.encode(event), type=Event)
        other = msgspec.json.decode(msgspec.json.encode(other), type=Rollout)
        try:
            rollout = step(rollout, event, now)
        except Conflict:
            with pytest.raises(Conflict):
                step(other, told, now)
            continue
        other = step(other, told, now)
        assert other == rollout


def test_an_approval_that_is_asked_for_comes_before_the_first_traffic():
    way = Gradual(0.10, "A canary.", approval=True)
    waiting = after(Begin(), strategy=way)
    assert (waiting.state, waiting.share) == (State.AWAITING, 0)
    assert step(waiting, Begin(), NOW) == waiting
    begun = step(waiting, Approve("ann"), NOW)
    assert (begun.state, begun.share, begun.approved) == (State.RAMPING, 0.10, "ann")
    assert after(Approve("ann"), Begin(), strategy=way).state is State.RAMPING


def test_an_approval_while_it_ramps_is_a_word_for_100_percent():
    assert after(Begin(), Approve("ann")).canary.approved
    assert not after(Begin()).canary.approved


def test_a_pause_neither_shortens_a_step_nor_eats_the_deadline():
    begun = after(Begin())
    held = step(begun, Pause("ann", 0.4), NOW + HOUR / 2)
    assert held.weights == {"agent-v6": 0.6, "agent-v7": 0.4}
    going = step(held, Resume("ann"), NOW + 30 * HOUR)
    assert going.share == 0.10
    assert going.canary.since == NOW + 29.5 * HOUR
    assert going.canary.deadline == begun.canary.deadline + 29.5 * HOUR
    healthy = HealthVerdict(Health.HEALTHY, "Fine.", 1000)
    assert isinstance(next_action(going.canary, healthy, NOW + 30.4 * HOUR), Hold)
    assert isinstance(next_action(going.canary, healthy, NOW + 30.5 * HOUR), SetWeight)


def test_a_step_told_twice_is_taken_once():
    up = Decided(SetWeight(1, 0.25, "Up."), 120)
    moved = step(after(Begin()), up, NOW + HOUR)
    assert (moved.share, moved.canary.since, moved.canary.sampled) == (0.25, NOW + HOUR, 120)
    with pytest.raises(Conflict, match="agent-v7 is at step 2 of 3: step 2 is not the next"):
        step(moved, up, NOW + 2 * HOUR)


def test_there_is_no_rollout_without_a_passed_validation_or_onto_itself():
    with pytest.raises(Conflict, match="no passed validation"):
        plan_rollout("r-1", "agent-v7", "agent-v6", "", WAYS[0], NOW)
    with pytest.raises(Conflict, match="is the baseline"):
        plan_rollout("r-1", "agent-v7", "agent-v7", "val-1", WAYS[0], NOW)
