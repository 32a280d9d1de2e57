"""The best constant answer."""

from collections import Counter

import pytest

from tests.validate.test_world_tasks import Doubling
from upswing.validate.core.constant_answer import best_constant_answer, constant_score
from upswing.validate.core.suite import to_playable
from upswing.validate.core.task import Exact, ValidationTask
from upswing.validate.core.world_tasks import make_world_suite
from upswing.validate.suite_loader import builtin_tasks
from upswing.worlds.known import make_world


def task(name, answer):
    asked = ({"role": "user", "content": f"{name}?"},)
    return to_playable(ValidationTask(task_id=name, messages=asked, check=Exact(any_of=(answer,))))


TASKS = [task("a", "yes"), task("b", "yes"), task("c", "no"), task("d", "maybe")]


def test_the_best_of_the_answers_given_is_told():
    found = best_constant_answer(TASKS, Counter({"no": 9, "yes": 2, "perhaps": 5}))
    assert (found.answer, found.score) == ("yes", 0.5)


def test_only_the_most_frequent_are_tried():
    assert (
        best_constant_answer(TASKS, Counter({"no": 9, "yes": 2}), max_candidates=1).answer == "no"
    )


def test_without_answers_or_tasks_there_is_none():
    assert best_constant_answer(TASKS, Counter()) is None
    assert best_constant_answer([], Counter({"yes": 1})) is None


def test_a_suite_whose_answers_are_run_has_none():
    code = [to_playable(each) for each in builtin_tasks("code_generation")]
    assert best_constant_answer(code, Counter({"def f(): pass": 3})) is None


@pytest.mark.parametrize(("name", "low", "high"), [("triage", 0.25, 0.25), ("desk", 0.15, 0.4)])
def test_in_a_world_it_is_said_in_every_turn(name, low, high):
    suite = make_world_suite(make_world(name))
    words = Counter(["refund", "repair", "replace", "explain", "lookup"])
    assert low <= best_constant_answer(suite.tasks, words).score <= high


def test_a_world_that_never_ends_is_worth_nothing():
    suite = make_world_suite(Doubling())
    assert constant_score(suite.tasks[1], "wait") == 0.0
    assert constant_score(suite.tasks[1], "2") == 1.0
