"""Completion: the tables of its docstring, and values nobody should send."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scoring_cases import trajectory, turn

from upswing.reward.core.completion import completion_score
from upswing.reward.core.implicit import implicit_signals

NAN = math.nan


@pytest.mark.parametrize(
    ("outcome", "score"),
    [
        ({"status": "completed"}, 1.0),
        ({"status": "completed", "share": 0.4}, 1.0),
        ({"status": "partial", "share": 0.0}, 0.5),
        ({"status": "partial", "share": 0.5}, 0.75),
        ({"status": "partial", "share": 1}, 1.0),
        ({"status": "partial"}, 0.5),
        ({"status": "failed"}, 0.0),
        ({"status": "failed", "share": 0.9}, 0.0),
        ({"status": "Timeout"}, 0.0),
        ({"status": "timed out"}, 0.0),
        ({"success": True}, 1.0),
        ({"share": 0}, 0.0),
        ({"share": 0.5}, 0.75),
        ({"share": 1.0}, 1.0),
        ("success", 1.0),
        ("error", 0.0),
        (True, 1.0),
        (False, 0.0),
    ],
)
def test_the_table_of_reported_outcomes(outcome, score):
    found = completion_score(trajectory(outcome=outcome))
    assert (found.value, found.confidence, found.source) == (score, 1.0, "automated")


@pytest.mark.parametrize("status", ["completed", "partial", "failed"])
@pytest.mark.parametrize(
    ("source", "by"),
    [
        ({}, "by the agent itself, as no source is named"),
        ({"source": "agent"}, "by the agent itself."),
        ({"source": "world"}, "by `world`."),
        ({"source": "dashboard"}, "by `dashboard`, which verifies nothing."),
    ],
)
def test_the_sentence_says_who_reports_it(status, source, by):
    assert by in completion_score(trajectory(outcome={"status": status, **source})).reasoning


@pytest.mark.parametrize("share", [NAN, 2, -0.1, "x", math.inf, [], {}, True, 10**400])
def test_a_bad_share_is_left_out_with_a_note(share):
    found = completion_score(trajectory(outcome={"status": "partial", "share": share}))
    assert found.value == 0.5
    assert "left out" in found.reasoning


@pytest.mark.parametrize("outcome", ["so-so", {"status": "hm"}, {"status": 3}, 7, [], NAN, {}])
def test_an_unknown_outcome_is_derived_instead(outcome):
    found = completion_score(trajectory(outcome=outcome))
    assert found.confidence < 1
    assert found.value == 0.8


ANSWER, CALL = {"does": "response"}, {"does": "tool_call"}


@pytest.mark.parametrize(
    ("turns", "score"),
    [
        ([turn(**ANSWER)], 0.8),
        ([turn(**CALL)], 0.6),
        ([turn(**CALL, ok=False)], 0.2 - 0.3),
        ([turn(**CALL), turn(**ANSWER, ok=False)], 0.2 - 0.15),
        ([turn(**CALL, ok=False), turn(**ANSWER)], 0.8 - 0.15),
        ([turn(**ANSWER), turn(**ANSWER, seen="user_message", says="No, wrong.")], 0.6),
    ],
)
def test_the_table_of_derived_outcomes(turns, score):
    found = completion_score(trajectory(*turns))
    assert found.value == pytest.approx(max(0, score))
    assert 0.5 <= found.confidence <= 0.7


@pytest.mark.parametrize(
    ("subtasks", "score"),
    [
        ([{"done": True}, {"done": True}], 1.0),
        ([{"done": True}, {"done": False}], 0.75),
        ([{"status": "failed"}, {"status": "pending"}], 0.0),
        ([{"status": "completed"}], 1.0),
        (["a", 3, {}], 0.8),
        ({"done": True}, 0.8),
    ],
)
@pytest.mark.parametrize("place", ["task", "metadata"])
def test_subtasks_count_before_the_last_turn(subtasks, score, place):
    where = {"task": {"subtasks": subtasks}} if place == "task" else {"subtasks": subtasks}
    assert completion_score(trajectory(**where)).value == score


@pytest.mark.parametrize(
    ("message", "corrects"),
    [
        ("No, that is not it", True),
        ("that's not what I asked for", True),
        ("Wrong. Look at the tests.", True),
        ("Again please", False),
        ("try again", True),
        ("still fails", True),
        ("It doesn't work", True),
        ("sort the list!", True),
        ("I asked you to sort the list", True),
        ("Thanks, now the other one.", False),
        ("No problem at all", False),
        ("Notice the new file", False),
        ("", False),
    ],
)
def test_how_a_user_corrects_or_asks_again(message, corrects):
    later = turn(says=message, seen="user_message", does="response")
    assert implicit_signals(trajectory(turn(does="response"), later)).complaints() == corrects


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
outcomes = json | st.fixed_dictionaries({}, optional={"status": json, "share": json})


@given(outcomes, json)
def test_whatever_is_reported_the_score_is_in_range(outcome, subtasks):
    found = completion_score(trajectory(outcome=outcome, subtasks=subtasks))
    assert 0 <= found.value <= 1
    assert found.reasoning


@given(st.floats(0, 1), st.floats(0, 1), st.sampled_from(["completed", "partial", "failed", None]))
def test_a_larger_share_is_never_worth_less(a, b, status):
    def score(share):
        return completion_score(trajectory(outcome={"status": status, "share": share})).value

    assert score(min(a, b)) <= score(max(a, b))
