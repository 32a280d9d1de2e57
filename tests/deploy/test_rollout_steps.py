"""A rollout as a reducer: every way it can go, and what holds on each."""

import math
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from upswing.deploy.core.canary import Hold, Promote, RollBack, SetWeight, next_action
from upswing.deploy.core.events import (
    ActionDecided,
    ApproveRollout,
    BeginRollout,
    PauseRollout,
    RestoreRollout,
    ResumeRollout,
    RolloutEvent,
    SuccessorPromoted,
    WithdrawRollout,
)
from upswing.deploy.core.health import HealthStatus, HealthVerdict
from upswing.deploy.core.rollout import Rollout, apply_event, new_rollout
from upswing.deploy.core.states import (
    ACTIVE,
    MODEL_STATE_OF_ROLLOUT,
    ROLLOUT_TRANSITIONS,
    RolloutState,
)
from upswing.deploy.core.strategy import BlueGreenStrategy, CanaryStrategy, ImmediateStrategy
from upswing.errors import Conflict

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
WAYS = [
    CanaryStrategy(0.10, "A canary."),
    CanaryStrategy(0.05, "A canary.", approval=True),
    BlueGreenStrategy("Much better."),
    BlueGreenStrategy("Much better.", approval=True),
    ImmediateStrategy("At once."),
]
NOT_A_NUMBER = PauseRollout("ann", math.nan)
EVENTS = [
    BeginRollout(),
    ApproveRollout("ann"),
    PauseRollout("ann"),
    PauseRollout("ann", 0.0),
    PauseRollout("ann", 0.33),
    PauseRollout("ann", 1.0),
    NOT_A_NUMBER,
    ResumeRollout("ann"),
    WithdrawRollout("replaced", "A newer one."),
    SuccessorPromoted("agent-v8"),
    RestoreRollout("agent-v8 was taken back."),
    ActionDecided(Hold("Not yet.")),
    *(ActionDecided(SetWeight(n, 0.25, "Up."), 100) for n in range(4)),
    ActionDecided(Promote("Proven.")),
    ActionDecided(RollBack("high_error_rate", "Errors.")),
]


def planned(strategy=WAYS[0]):
    return new_rollout("r-1", "agent-v7", "agent-v6", "val-1", strategy, NOW)


def after(*events, strategy=WAYS[0], at=NOW):
    rollout = planned(strategy)
    for event in events:
        rollout = apply_event(rollout, event, at)
    return rollout


def holds(rollout):
    """What is true of every rollout, however it came about."""
    assert sum(rollout.weights.values()) == 1
    assert set(rollout.weights) == {"agent-v6", "agent-v7"}
    assert all(0 <= share <= 1 for share in rollout.weights.values())
    assert rollout.model_state is MODEL_STATE_OF_ROLLOUT[rollout.state]
    assert rollout.share == 0 or rollout.state in ACTIVE | {RolloutState.PROMOTED}
    assert (rollout.share == 1) is (rollout.state is RolloutState.PROMOTED)
    assert (rollout.canary is not None) is (rollout.state in ACTIVE)
    assert (rollout.paused_at is not None) is (rollout.state is RolloutState.PAUSED)
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
                later = apply_event(rollout, event, NOW)
            except Conflict:
                continue
            if later.state is not rollout.state:
                ways.add((rollout.state, later.state))
            fresh.append(later)
    return found, ways


def test_every_way_of_the_table_can_be_gone_and_no_other():
    found, ways = explore()
    assert len(found) > 50
    assert ways == {
        (state, later) for state, after in ROLLOUT_TRANSITIONS.items() for later in after
    }


moments = st.lists(st.tuples(st.sampled_from(EVENTS), st.floats(0, 48)), max_size=30)


@given(st.sampled_from(WAYS), moments)
def test_whatever_happens_the_shares_are_in_order(strategy, events):
    rollout, now = planned(strategy), NOW
    for event, hours in events:
        now += hours * HOUR
        try:
            rollout = apply_event(rollout, event, now)
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
        told = msgspec.json.decode(msgspec.json.encode(event), type=RolloutEvent)
        other = msgspec.json.decode(msgspec.json.encode(other), type=Rollout)
        try:
            rollout = apply_event(rollout, event, now)
        except Conflict:
            with pytest.raises(Conflict):
                apply_event(other, told, now)
            continue
        other = apply_event(other, told, now)
        assert other == rollout


def test_an_approval_that_is_asked_for_comes_before_the_first_traffic():
    way = CanaryStrategy(0.10, "A canary.", approval=True)
    waiting = after(BeginRollout(), strategy=way)
    assert (waiting.state, waiting.share) == (RolloutState.AWAITING, 0)
    assert apply_event(waiting, BeginRollout(), NOW) == waiting
    begun = apply_event(waiting, ApproveRollout("ann"), NOW)
    assert (begun.state, begun.share, begun.approved) == (RolloutState.RAMPING, 0.10, "ann")
    assert after(ApproveRollout("ann"), BeginRollout(), strategy=way).state is RolloutState.RAMPING


def test_an_approval_while_it_ramps_is_a_word_for_100_percent():
    assert after(BeginRollout(), ApproveRollout("ann")).canary.approved
    assert not after(BeginRollout()).canary.approved


def test_a_pause_neither_shortens_a_step_nor_eats_the_deadline():
    begun = after(BeginRollout())
    held = apply_event(begun, PauseRollout("ann", 0.4), NOW + HOUR / 2)
    assert held.weights == {"agent-v6": 0.6, "agent-v7": 0.4}
    going = apply_event(held, ResumeRollout("ann"), NOW + 30 * HOUR)
    assert going.share == 0.10
    assert going.canary.since == NOW + 29.5 * HOUR
    assert going.canary.deadline == begun.canary.deadline + 29.5 * HOUR
    healthy = HealthVerdict(HealthStatus.HEALTHY, "Fine.", 1000)
    assert isinstance(next_action(going.canary, healthy, NOW + 30.4 * HOUR), Hold)
    assert isinstance(next_action(going.canary, healthy, NOW + 30.5 * HOUR), SetWeight)


def test_a_step_told_twice_is_taken_once():
    up = ActionDecided(SetWeight(1, 0.25, "Up."), 120)
    moved = apply_event(after(BeginRollout()), up, NOW + HOUR)
    assert (moved.share, moved.canary.since, moved.canary.sampled) == (0.25, NOW + HOUR, 120)
    with pytest.raises(Conflict, match="agent-v7 is at step 2 of 3: step 2 is not the next"):
        apply_event(moved, up, NOW + 2 * HOUR)


def test_there_is_no_rollout_without_a_passed_validation_or_onto_itself():
    with pytest.raises(Conflict, match="no passed validation"):
        new_rollout("r-1", "agent-v7", "agent-v6", "", WAYS[0], NOW)
    with pytest.raises(Conflict, match="is the baseline"):
        new_rollout("r-1", "agent-v7", "agent-v7", "val-1", WAYS[0], NOW)
