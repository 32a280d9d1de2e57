"""How well did it go? What people write is understood, or it counts as not said; never in between."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.outcomes import REFUSED, UNDERSTOOD

from upswing.dataset.ground_truth import ground_truth_check, ground_truth_error
from upswing.dataset.outcome import (
    OUTCOME_FORMS,
    REMARK_FIELDS,
    SHARE_FIELDS,
    STATUS,
    UNKNOWN_OUTCOME,
    VERIFIERS,
    outcome_error,
    trajectory_outcome,
)


def test_the_page_lists_what_is_taken_and_what_is_not():
    assert len(UNDERSTOOD) > 20
    assert len(REFUSED) > 10


@pytest.mark.parametrize(("told", "value"), UNDERSTOOD, ids=repr)
def test_what_people_write_is_understood(told, value):
    assert trajectory_outcome({"outcome": told}).value == value
    assert outcome_error(told) == ""


@pytest.mark.parametrize("told", [*REFUSED, float("nan"), float("inf"), 10**400], ids=repr)
def test_what_is_not_understood_counts_as_not_said_and_says_what_can_be_written(told):
    assert outcome_error(told).startswith("The outcome is not understood: ")
    assert outcome_error(told).endswith(OUTCOME_FORMS)
    if told != {
        "status": "completed",
        "shar": 0.3,
    }:  # what is stored already is read as far as it can be
        assert trajectory_outcome({"outcome": told}) == UNKNOWN_OUTCOME


@pytest.mark.parametrize("source", sorted(VERIFIERS))
@pytest.mark.parametrize("name", SHARE_FIELDS)
def test_a_number_by_whatever_name_is_verified_when_it_was_checked(name, source):
    assert trajectory_outcome({"outcome": {name: 0.7, "source": source}}).verified == 0.7


names = st.sampled_from(["status", "success", "source", *SHARE_FIELDS, "details", "shar"])
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=9)
    | st.sampled_from([*STATUS])
)
anything = (
    scalars
    | st.lists(scalars, max_size=2)
    | st.dictionaries(names, scalars | st.floats(0, 1), max_size=4)
)


@given(anything)
def test_an_outcome_is_a_number_from_0_to_1_or_none_and_one_of_both_is_said(told):
    value = trajectory_outcome({"outcome": told}).value
    if told is None:
        assert (value, outcome_error(told)) == (None, "")
    elif not outcome_error(told):
        assert 0 <= value <= 1
    elif value is not None:  # only a field that we do not know may stand beside what is understood
        assert isinstance(told, dict)
        assert (
            set(told) - {"status", "success", "source", *SHARE_FIELDS, *REMARK_FIELDS}
            or "source" in told
        )


@pytest.mark.parametrize(
    "truth",
    [
        "Paris",
        ["Paris", "Lutetia"],
        9.5,
        {"answer": "a"},
        {"answer": 1},
        {"told": "up"},
        {"kind": "contains", "text": "a"},
        {"kind": "exact", "any_of": ["a"]},
    ],
)
def test_a_ground_truth_that_can_be_used_has_nothing_said_of_it(truth):
    assert ground_truth_error(truth) == ""
    assert ground_truth_check({"ground_truth": truth}) or "told" in truth


@pytest.mark.parametrize(
    "truth",
    [{"kind": "nope"}, {"right": "a"}, {}, [], True, {"answer": None}, {"kind": "exact"}],
    ids=repr,
)
def test_a_ground_truth_that_nothing_can_be_checked_against_is_said_to_be_one(truth):
    assert ground_truth_check({"ground_truth": truth}) is None
    assert "No answer can be checked" in ground_truth_error(truth)
