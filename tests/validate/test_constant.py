"""The best constant answer."""

from collections import Counter

import pytest

from tests.validate.test_world import Doubling
from upswing.validate.constant import best_constant, worth
from upswing.validate.suite import playable
from upswing.validate.suites_service import tasks_of
from upswing.validate.task import Exact, Task
from upswing.validate.world import suite_of_world
from upswing.worlds.known import world_of


def task(name, answer):
    asked = ({"role": "user", "content": f"{name}?"},)
    return playable(Task(task_id=name, messages=asked, check=Exact(any_of=(answer,))))


TASKS = [task("a", "yes"), task("b", "yes"), task("c", "no"), task("d", "maybe")]


def test_the_best_of_the_answers_given_is_told():
    found = best_constant(TASKS, Counter({"no": 9, "yes": 2, "perhaps": 5}))
    assert (found.answer, found.score) == ("yes", 0.5)


def test_only_the_most_frequent_are_tried():
    assert best_constant(TASKS, Counter({"no": 9, "yes": 2}), most=1).answer == "no"


def test_without_answers_or_tasks_there_is_none():
    assert best_constant(TASKS, Counter()) is None
    assert best_constant([], Counter({"yes": 1})) is None


def test_a_suite_whose_answers_are_run_has_none():
    code = [playable(each) for each in tasks_of("code_generation")]
    assert best_constant(code, Counter({"def f(): pass": 3})) is None


@pytest.mark.parametrize(("name", "low", "high"), [("triage", 0.25, 0.25), ("desk", 0.15, 0.4)])
def test_in_a_world_it_is_said_in_every_turn(name, low, high):
    suite = suite_of_world(world_of(name))
    words = Counter(["refund", "repair", "replace", "explain", "lookup"])
    assert low <= best_constant(suite.tasks, words).score <= high


def test_a_world_that_never_ends_is_worth_nothing():
    suite = suite_of_world(Doubling())
    assert worth(suite.tasks[1], "wait") == 0.0
    assert worth(suite.tasks[1], "2") == 1.0
