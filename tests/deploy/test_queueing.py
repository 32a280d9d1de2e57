"""A new candidate while another is on its way: the table, and the line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upswing.deploy.core import queueing as module
from upswing.deploy.core.queueing import RolloutContender, decide_start, next_in_line

NEW = RolloutContender("agent-v7", 7)
RUNNING = {
    "nothing": None,
    "the same model": NEW,
    "a newer model": RolloutContender("agent-v8", 8),
    "an older, early": RolloutContender("agent-v6", 6),
    "an older, last step": RolloutContender("agent-v6", 6, last_step=True),
    "an older, unproven": RolloutContender("agent-v6", 6, unproven=True),
}


def table():
    rows = [line.strip("|").split("|") for line in module.__doc__.splitlines() if line[:1] == "|"]
    head, _, *rest = [[cell.strip() for cell in row] for row in rows]
    policies = [cell.removeprefix("policy ") for cell in head[1:]]
    return {
        (row[0], policy): cell
        for row in rest
        for policy, cell in zip(policies, row[1:], strict=True)
    }


def test_the_table_has_a_row_for_each_situation():
    assert {row for row, _ in table()} == set(RUNNING)


@pytest.mark.parametrize(("cell", "expected"), table().items())
def test_the_table_is_what_happens(cell, expected):
    row, policy = cell
    answer = decide_start(NEW, RUNNING[row], policy)
    assert type(answer).__name__ == expected
    assert NEW.model_id in answer.sentence


@given(st.lists(st.integers(1, 99), unique=True))
def test_the_newest_goes_next_and_the_others_are_passed_over(versions):
    waiting = [RolloutContender(f"agent-v{n}", n) for n in versions]
    first, others = next_in_line(waiting)
    assert (first is None) is (not versions)
    if first:
        assert first.version == max(versions)
        assert {*others, first} == set(waiting)
