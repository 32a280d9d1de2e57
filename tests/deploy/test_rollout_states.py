"""The tables of states: complete, connected, and what reducers really do."""

import pytest

from upswing.deploy.states import (
    ACTIVE,
    FIRST,
    MODEL,
    ROLLOUT,
    TOGETHER,
    Model,
    Rollout,
    before,
    mermaid,
)

TABLES = [(Model, MODEL, FIRST[0]), (Rollout, ROLLOUT, FIRST[1])]


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
    assert set(TOGETHER) == set(Rollout)


def test_whatever_a_rollout_does_its_model_may_do():
    for state, after in ROLLOUT.items():
        for later in after:
            a, b = TOGETHER[state], TOGETHER[later]
            assert a is b or b in MODEL[a], f"{state} → {later}, but {a} → {b} is no way"


def test_a_model_ships_only_after_its_validation_passed():
    for state in (Model.CANARY, Model.DEPLOYED):
        assert set(before(MODEL, state)) <= {Model.PASSED, Model.CANARY, Model.RETIRED}
    without = {state: after - {Model.PASSED} for state, after in MODEL.items()}
    assert reachable(without, Model.TRAINED).isdisjoint(
        {Model.CANARY, Model.DEPLOYED, Model.RETIRED}
    )


def test_what_has_traffic_can_always_go_back():
    for state in ACTIVE | {Rollout.PROMOTED}:
        assert Rollout.ROLLED_BACK in ROLLOUT[state]


@pytest.mark.parametrize(("states", "table", "first"), TABLES)
def test_the_diagram_shows_every_way(states, table, first):
    drawn = mermaid(table, first).splitlines()
    assert drawn[:2] == ["stateDiagram-v2", f"    [*] --> {first}"]
    for state, after in table.items():
        for later in after:
            assert f"    {state} --> {later}" in drawn
    assert len(drawn) == 2 + sum(max(1, len(after)) for after in table.values())
