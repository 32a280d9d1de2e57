"""The paired bootstrap: how often it is right, and what it may never do."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from upswing.contracts.validation import SampleScore
from upswing.validate.core.compare import bootstrap_difference, paired_scores

scores = st.sampled_from([0.0, 0.25, 0.5, 1.0])
tables = st.lists(st.tuples(scores, scores), min_size=1, max_size=30).map(
    lambda both: {f"t{i:02d}": pair for i, pair in enumerate(both)}
)
FEW = 100


def sample_scores(task_id, seed, candidate, current):
    return [
        SampleScore("s", task_id, seed, "candidate", candidate),
        SampleScore("s", task_id, seed, "current", current),
    ]


def covered(draw, truth, tasks, runs=300):
    hits = 0
    for run in range(runs):
        chance = random.Random(run)
        table = {f"t{i:03d}": draw(chance) for i in range(tasks)}
        found = bootstrap_difference([table], run, resamples=200)
        hits += found.lower <= truth <= found.upper
    return hits / runs


def improved(chance):
    """Tasks differ in difficulty; the candidate is right a little more often."""
    easy = chance.random() * 0.9
    return float(chance.random() < easy + 0.1), float(chance.random() < easy)


def graded(chance):
    """Scores in between, the candidate a little better."""
    easy = chance.uniform(0.2, 0.7)
    return easy + chance.uniform(0, 0.2), easy + chance.uniform(-0.1, 0.1)


@pytest.mark.parametrize("tasks", [20, 60])
@pytest.mark.parametrize(("draw", "truth"), [(improved, 0.1), (graded, 0.1)])
def test_the_interval_holds_the_truth_as_often_as_it_says(draw, truth, tasks):
    assert covered(draw, truth, tasks) >= 0.93


def test_rare_losses_are_not_overlooked():
    """One task in twenty is lost: often not one is seen, and the interval must still reach it."""
    assert covered(lambda c: (float(c.random() > 0.05), 1.0), -0.05, 30) >= 0.93


@given(tables, st.integers(0, 5))
def test_swapping_the_models_turns_the_interval_around(table, seed):
    one = bootstrap_difference([table], seed, resamples=FEW)
    other = bootstrap_difference([{k: (b, a) for k, (a, b) in table.items()}], seed, resamples=FEW)
    assert other.estimate == pytest.approx(-one.estimate, abs=1e-15)
    assert (other.lower, other.upper) == (-one.upper, -one.lower)


@given(tables, st.data())
def test_a_better_score_never_lowers_a_bound(table, data):
    task = data.draw(st.sampled_from(sorted(table)))
    candidate, current = table[task]
    better = table | {task: (data.draw(st.sampled_from([candidate, 1.0])), current)}
    before, after = (bootstrap_difference([each], 0, resamples=FEW) for each in (table, better))
    assert after.estimate >= before.estimate - 1e-12
    assert after.lower >= before.lower - 1e-12
    assert after.upper >= before.upper - 1e-12


@given(tables, st.randoms(use_true_random=False))
def test_the_order_of_the_tasks_does_not_matter(table, chance):
    shuffled = list(table.items())
    chance.shuffle(shuffled)
    assert bootstrap_difference([dict(shuffled)], 3, resamples=FEW) == bootstrap_difference(
        [table], 3, resamples=FEW
    )


@given(tables)
def test_the_estimate_lies_in_its_interval(table):
    found = bootstrap_difference([table], 0)
    assert found.lower - 1e-12 <= found.estimate <= found.upper + 1e-12


def test_the_same_seed_gives_the_same_interval_for_ever():
    table = {f"t{i}": (float(i % 3 == 0), float(i % 2)) for i in range(12)}
    found = bootstrap_difference([table], 42)
    rounded = [round(x, 3) for x in (found.estimate, found.lower, found.upper)]
    assert rounded == [-0.167, -0.5, 0.286]


def test_models_that_tie_everywhere_are_not_certain_to_be_equal():
    found = bootstrap_difference([{f"t{i}": (1.0, 1.0) for i in range(20)}], 0)
    assert found.lower == -found.upper
    assert 0.1 <= found.upper <= 0.16


def test_more_seeds_of_one_task_do_not_narrow_the_interval():
    one = [
        sample_score
        for t in range(8)
        for sample_score in sample_scores(f"t{t}", 0, float(t % 2), 0.0)
    ]
    ten = [
        sample_score
        for t in range(8)
        for s in range(10)
        for sample_score in sample_scores(f"t{t}", s, float(t % 2), 0.0)
    ]
    assert bootstrap_difference([paired_scores(one)], 1) == bootstrap_difference(
        [paired_scores(ten)], 1
    )


def test_seeds_are_averaged_and_only_pairs_count():
    found = paired_scores(
        [
            *sample_scores("a", 0, 1.0, 0.0),
            *sample_scores("a", 1, 0.0, 0.0),
            *sample_scores("a", 2, None, 1.0),
            SampleScore("s", "b", 0, "candidate", 1.0),
        ]
    )
    assert found == {"a": (0.5, 0.0)}


def test_every_group_counts_the_same():
    big = {f"t{i}": (1.0, 0.0) for i in range(90)}
    small = {f"t{i}": (0.0, 0.0) for i in range(10)}
    assert bootstrap_difference([big, small], 0).estimate == 0.5


def test_a_score_that_is_no_number_spoils_the_difference():
    found = bootstrap_difference([{"a": (math.nan, 1.0), "b": (1.0, 1.0)}], 0)
    assert all(math.isnan(x) for x in (found.estimate, found.lower, found.upper))


def test_nothing_compared_is_no_difference():
    assert bootstrap_difference([], 0) is None
    assert bootstrap_difference([{}], 0) is None


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 1000))
def test_two_groups_are_drawn_apart(seed):
    table = {f"t{i}": (float(i % 2), 0.0) for i in range(20)}
    alone, twice = bootstrap_difference([table], seed), bootstrap_difference([table, table], seed)
    assert twice.upper - twice.lower < alone.upper - alone.lower
