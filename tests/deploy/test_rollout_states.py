"""The tables of states: complete, connected, and what reducers really do."""

import pytest

from upswing.deploy.core.states import (
    ACTIVE,
    INITIAL_STATES,
    MODEL_STATE_OF_ROLLOUT,
    MODEL_TRANSITIONS,
    ROLLOUT_TRANSITIONS,
    ModelState,
    RolloutState,
    mermaid_diagram,
    states_before,
)

TABLES = [
    (ModelState, MODEL_TRANSITIONS, INITIAL_STATES[0]),
    (RolloutState, ROLLOUT_TRANSITIONS, INITIAL_STATES[1]),
]


def reachable(table, first):
    found, fresh = {first}, [first]
    while fresh:
        new = table[fresh.pop()] - found
        found |= new
        fresh += new
    return found


@pytest.mark.parametrize(("states", "table", "first"), TABLES)
def test_every_state_has_its_row_and_can_be_reached(states, table, first):
    assert set(table) == set(states)
    assert reachable(table, first) == set(states)
    assert all(state not in after for state, after in table.items())


def test_every_rollout_state_has_its_model_state():
    assert set(MODEL_STATE_OF_ROLLOUT) == set(RolloutState)


def test_whatever_a_rollout_does_its_model_may_do():
    for state, after in ROLLOUT_TRANSITIONS.items():
        for later in after:
            a, b = MODEL_STATE_OF_ROLLOUT[state], MODEL_STATE_OF_ROLLOUT[later]
            assert a is b or b in MODEL_TRANSITIONS[a], (
                f"{state} → {later}, but {a} → {b} is no way"
            )


def test_a_model_ships_only_after_its_validation_passed():
    for state in (ModelState.CANARY, ModelState.DEPLOYED):
        assert set(states_before(MODEL_TRANSITIONS, state)) <= {
            ModelState.PASSED,
            ModelState.CANARY,
            ModelState.RETIRED,
        }
    without = {state: after - {ModelState.PASSED} for state, after in MODEL_TRANSITIONS.items()}
    assert reachable(without, ModelState.TRAINED).isdisjoint(
        {ModelState.CANARY, ModelState.DEPLOYED, ModelState.RETIRED}
    )


def test_what_has_traffic_can_always_go_back():
    for state in ACTIVE | {RolloutState.PROMOTED}:
        assert RolloutState.ROLLED_BACK in ROLLOUT_TRANSITIONS[state]


@pytest.mark.parametrize(("states", "table", "first"), TABLES)
def test_the_diagram_shows_every_way(states, table, first):
    drawn = mermaid_diagram(table, first).splitlines()
    assert drawn[:2] == ["stateDiagram-v2", f"    [*] --> {first}"]
    for state, after in table.items():
        for later in after:
            assert f"    {state} --> {later}" in drawn
    assert len(drawn) == 2 + sum(max(1, len(after)) for after in table.values())
