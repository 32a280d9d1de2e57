"""Tasks at which attempts differ are tried more often, and no task is given up."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from upswing.train.learn.curriculum import MIN_WEIGHT, TaskAttempts, choose_tasks, sampling_weight

TRIES = st.integers(0, 200).flatmap(
    lambda attempts: st.integers(0, attempts).map(lambda good: TaskAttempts(attempts, good))
)
STATS = st.dictionaries(st.text("abcdef", min_size=1, max_size=3), TRIES, max_size=20)


@given(stats=STATS, n=st.integers(1, 30), seed=st.integers(0, 99))
def test_as_many_different_tasks_as_were_asked_for_and_the_same_ones_for_the_same_seed(
    stats, n, seed
):
    tasks = [*stats, "never tried"]
    drawn = choose_tasks(stats, tasks, n, seed)
    assert drawn == choose_tasks(stats, tasks, n, seed)
    assert len(drawn) == len(set(drawn)) == min(n, len(tasks))
    assert set(drawn) <= set(tasks)


@given(tries=TRIES)
def test_a_task_weighs_the_same_whether_it_is_always_solved_or_never_and_at_least_the_floor(tries):
    turned = TaskAttempts(tries.attempts, tries.attempts - tries.successes)
    assert MIN_WEIGHT <= sampling_weight(tries) <= 1
    assert abs(sampling_weight(tries) - sampling_weight(turned)) < 1e-9


@given(half=st.integers(2, 100), off=st.integers(1, 100))
def test_the_more_one_sided_a_task_is_the_less_it_weighs(half, off):
    even, odd = TaskAttempts(2 * half, half), TaskAttempts(2 * half, min(2 * half, half + off))
    assert sampling_weight(even) > sampling_weight(odd)


def test_tasks_in_between_get_most_attempts_and_none_starves():
    stats = {f"solved-{n}": TaskAttempts(40, 40) for n in range(40)}
    stats |= {f"never-{n}": TaskAttempts(40, 0) for n in range(40)}
    stats |= {f"between-{n}": TaskAttempts(40, 12) for n in range(20)}
    drawn = Counter(
        task for seed in range(400) for task in choose_tasks(stats, list(stats), 8, seed)
    )
    kinds = Counter(task.partition("-")[0] for task in drawn.elements())
    assert kinds["between"] > 0.6 * 400 * 8
    assert set(drawn) == set(stats)
