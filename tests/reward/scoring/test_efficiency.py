"""Efficiency and the statistics it is measured by."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scoring_cases import trajectory, turn

from upswing.reward.core.baseline import TrailingWindow
from upswing.reward.core.efficiency import efficiency_score
from upswing.reward.core.stats import (
    Facts,
    StatisticsByKind,
    TaskStatistics,
    complexity_band,
    facts_of,
    task_kind,
)

SIX_ON_AVERAGE = [5] * 25 + [6] * 48 + [7] * 25
"""A deviation of 5/7, so five turns lie 1.4 deviations below the mean."""


def of_turns(*numbers):
    return TaskStatistics(turns=TrailingWindow(numbers=numbers))


def with_turns(count):
    return trajectory(*(turn(does="response", output=str(i)) for i in range(count)))


def test_five_turns_where_six_are_usual_are_worth_085():
    found = efficiency_score(with_turns(5), of_turns(*SIX_ON_AVERAGE))
    assert found.value == 0.85
    assert found.reasoning == "It took 5 turns (average 6)."


@pytest.mark.parametrize(
    ("deviations", "score"),
    [(-9, 1.0), (-2, 1.0), (-1, 0.75), (0, 0.5), (1, 0.25), (2, 0.0), (9, 0.0)],
)
def test_the_table_of_deviations(deviations, score):
    known = of_turns(*[8, 12] * 50)  # a mean of 10, a deviation of 2
    taken = 10 + 2 * deviations
    if taken >= 1:
        assert efficiency_score(with_turns(taken), known).value == score
    known = TaskStatistics(seconds=TrailingWindow(numbers=[80, 120] * 50))
    assert efficiency_score(trajectory(seconds=max(1, 100 + 20 * deviations)), known).value == score


def test_the_score_is_the_mean_of_what_is_known():
    known = TaskStatistics(
        turns=TrailingWindow(numbers=[1] * 40),
        seconds=TrailingWindow(numbers=[80, 120] * 50),
        tokens=TrailingWindow(numbers=[900, 1100] * 50),
    )
    assert (
        efficiency_score(trajectory(seconds=60, total_tokens=1100), known).value == 0.583333333333
    )
    assert efficiency_score(trajectory(seconds=60), known).value == 0.75
    assert efficiency_score(trajectory(total_tokens=900), known).value == 0.625


@pytest.mark.parametrize("known", [None, TaskStatistics(), of_turns(*[6] * 29)])
def test_a_cold_start_is_neutral(known):
    found = efficiency_score(with_turns(40), known)
    assert (found.value, found.confidence) == (0.5, 0.5)


def test_where_everybody_takes_the_same_a_little_more_is_no_fault():
    assert efficiency_score(with_turns(21), of_turns(*[20] * 50)).value == 0.375


@pytest.mark.parametrize(("calls", "score"), [(1, 0.5), (2, 0.45), (4, 0.35), (7, 0.2), (50, 0.2)])
def test_repeated_calls_cost(calls, score):
    same = [turn(tool_name="ls", tool_args={"path": ".", "all": True}, output="a b")] * calls
    assert efficiency_score(trajectory(*map(dict, same)), None).value == pytest.approx(score)


def test_a_call_with_a_new_result_is_no_repetition():
    runs = [turn(tool_name="tests", tool_args={}, output=f"{i} passed") for i in range(9)]
    assert efficiency_score(trajectory(*runs), None).value == 0.5


@pytest.mark.parametrize("tokens", [None, 0, 10**18])
def test_tokens_nobody_counted_are_not_known(tokens):
    told = {} if tokens is None else {"total_tokens": tokens}
    assert facts_of(trajectory(**told)).tokens is None


@pytest.mark.parametrize(
    ("complexity", "word"),
    [(0, "low"), (0.33, "low"), (0.331, "medium"), (0.66, "medium"), (0.661, "high"), (1, "high")],
)
def test_the_table_of_bands(complexity, word):
    assert complexity_band(complexity) == word


def test_a_foreign_domain_counts_as_general_so_kinds_stay_few():
    assert task_kind("cooking", 0.1) == ("general", "low")
    seen = StatisticsByKind(rows=(Facts(f"domain-{i}", i / 100, 3, None, None) for i in range(100)))
    assert len(seen._kinds) == 3


rows = st.builds(
    Facts,
    domain=st.sampled_from(["coding", "research", "odd"]),
    complexity=st.floats(0, 1),
    turns=st.integers(1, 100),
    seconds=st.none() | st.floats(0.001, 1e6),
    tokens=st.none() | st.floats(1, 1e9),
)


@given(st.lists(rows, max_size=60), st.integers(1, 10))
def test_every_replica_has_the_same_statistics(told, size):
    grown = StatisticsByKind(size)
    for row in told:
        grown.push(row)
    last = {}
    for i, row in enumerate(told):
        last.setdefault(task_kind(row.domain, row.complexity), []).append(i)
    kept = sorted(i for of_kind in last.values() for i in of_kind[-size:])
    rebuilt = StatisticsByKind(size, rows=(told[i] for i in kept))
    for row in told:
        ours, theirs = (s.of(row.domain, row.complexity) for s in (grown, rebuilt))
        assert ours.turns == theirs.turns
    assert grown.copy() == grown


@given(st.lists(st.integers(1, 60), min_size=30, max_size=80), st.integers(1, 40))
def test_fewer_turns_are_never_worth_less(known, taken):
    history = of_turns(*known)
    fewer, more = (efficiency_score(with_turns(n), history).value for n in (taken, taken + 1))
    assert 0 <= more <= fewer <= 1
