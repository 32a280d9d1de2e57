"""What teaches an algorithm something is counted as the job itself would find it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dataset.data_cases import candidate

from upswing.dataset.attempts import ScoredAttempt, count_comparable, count_imitable
from upswing.dataset.groups import Learnable, count_learnable
from upswing.train.core.recipe import Recipe
from upswing.train.learn.advantages import compute_advantages
from upswing.trigger.core.readiness import DataMinimums, training_readiness


def attempts(tasks, each, right, *, answers="", **changes):
    """So many attempts at so many tasks; `right(task, attempt)` says whether one went well."""
    return [
        candidate(
            task * each + at,
            task_id=f"task-{task}",
            verified=float(right(task, at)),
            answers=answers and f"{answers} {task}",
            **changes,
        )
        for task in range(tasks)
        for at in range(each)
    ]


lessons = st.lists(
    st.builds(
        ScoredAttempt,
        trajectory_id=st.just("x"),
        group=st.sampled_from("abcdef"),
        domain=st.just("d"),
        task=st.just("t"),
        model=st.just("m"),
        score=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
        scale=st.sampled_from(["verified", "feedback"]),
    ),
    max_size=20,
)


@given(lessons)
def test_what_can_be_told_apart_is_what_reinforce_keeps(given_lessons):
    found = compute_advantages(
        [each.score for each in given_lessons],
        [f"{each.group} ({each.scale})" for each in given_lessons],
        algorithm="reinforce",
        scale="none",
        min_spread=Recipe().min_spread,
        domains=[f"{each.domain}/{each.scale}" for each in given_lessons],
    )
    assert count_comparable(given_lessons) == sum(found.kept)


def test_the_same_answer_again_and_again_teaches_nobody_anything():
    there = count_learnable(attempts(173, 4, lambda task, _: task % 2, answers="same"))
    assert (there.with_outcome, there.good, there.successes) == (692, 344, 344)
    for algorithm in ("grpo", "rloo", "dpo", "reinforce", "rft"):
        assert there.usable_by(algorithm) == 0
    state = training_readiness(there, DataMinimums())
    assert not state.ready
    assert "173 groups with the same answer again and again" in state.reason
    assert "temperature 0" in state.reason
    assert "`explore` in [gateway]" in state.reason


def test_everything_solved_is_nothing_to_learn():
    there = count_learnable(attempts(100, 1, lambda *_: True))
    state = training_readiness(there, DataMinimums())
    assert (state.ready, there.successes, there.imitable) == (False, 100, 0)
    assert "everything is solved already: all 100 outcomes are successes" in state.reason
    assert there.tasks.sentence == "Of 100 tasks 100 are always solved, 0 sometimes and 0 never."


def test_everything_failed_says_so():
    state = training_readiness(count_learnable(attempts(400, 1, lambda *_: False)), DataMinimums())
    assert not state.ready
    assert "0 of 100 single attempts that can be told apart" in state.reason
    assert "nothing was solved: all 400 outcomes are failures" in state.reason


def test_what_another_model_can_do_is_news():
    theirs = attempts(100, 1, lambda *_: True, model="large")
    assert count_learnable(theirs, own_policies=["tiny"]).imitable == 100
    assert (
        training_readiness(count_learnable(theirs, own_policies=["tiny"]), DataMinimums()).algorithm
        == "rft"
    )
    assert count_learnable(theirs, own_policies=["large"]).imitable == 0


def test_a_success_beside_failures_is_worth_imitating():
    mixed = [ScoredAttempt("x", "g", "d", "t", "m", score) for score in (1.0, 0.0, 0.0)]
    assert count_imitable(mixed) == 1
    alone = [replace(each, group=f"g{at}") for at, each in enumerate(mixed)]
    assert count_imitable(alone) == 1


def test_what_somebody_showed_and_what_may_be_believed_is_imitated():
    failed = attempts(30, 1, lambda *_: False)
    shown = [each.trajectory_id for each in failed[:25]]
    assert training_readiness(
        count_learnable(failed, demonstrated_ids=shown), DataMinimums(30), requested="sft"
    ).ready
    own_word = [
        replace(each, verified=None, reported=float(at % 2)) for at, each in enumerate(failed)
    ]
    assert count_learnable(own_word).imitable == 0
    assert count_learnable(own_word, self_reported=True).imitable == 15


def test_tasks_are_counted_by_how_often_they_were_solved():
    there = count_learnable(attempts(6, 4, lambda task, at: task < 2 or (task < 3 and at == 0)))
    assert there.tasks.sentence == "Of 6 tasks 2 are always solved, 1 sometimes and 3 never."


@pytest.mark.parametrize(
    ("there", "asked", "ready", "words"),
    [
        (Learnable(500, usable=2, with_outcome=500, good=9), "grpo", False, "2 of 32 groups"),
        (Learnable(500, usable=32), "rloo", True, ""),
        (Learnable(500, with_outcome=500, singles=500, good=9), "reinforce", True, ""),
        (
            Learnable(500, with_outcome=500, singles=99, good=9),
            "reinforce",
            False,
            "99 of 100 single",
        ),
        (Learnable(500, with_outcome=500, good=9, imitable=9), "rft", False, "9 of 20 confirmed"),
        (Learnable(500, thumbs_up=20, thumbs_down=20), "kto", True, ""),
    ],
)
def test_who_asks_for_an_algorithm_needs_as_much_as_the_table_says(there, asked, ready, words):
    state = training_readiness(there, DataMinimums(), requested=asked)
    assert (state.ready, words in state.reason) == (ready, True)
    if not ready and asked == "grpo":
        assert training_readiness(there, DataMinimums(), "grpo", requested="grpo").ready, (
            "configured: one is enough"
        )
