"""A world's held-out tasks as a suite."""

import math
from dataclasses import dataclass, replace

import pytest

from upswing.contracts.validation import TaskAnswer
from upswing.validate.core.moves import AskModel, TaskResult
from upswing.validate.core.world_tasks import make_world_suite
from upswing.validate.suite_loader import load_suites


@dataclass(frozen=True)
class Errand:
    task_id: str
    instructions: str
    number: int


@dataclass(frozen=True)
class Round:
    errand: Errand
    replies: tuple = ()


@dataclass(frozen=True)
class Said:
    text: str


@dataclass(frozen=True)
class Result:
    success: bool
    score: float
    sentence: str


class Doubling:
    """The smallest world: say the double; `wait` gives another turn."""

    name, max_turns = "doubling", 3
    held_out = tuple(Errand(f"d{i}", "double it" if i else "", i) for i in range(5))

    def reset(self, task):
        return Round(task)

    def observe(self, state):
        return Said(f"{state.errand.number}{'?' * len(state.replies)}")

    def step(self, state, reply):
        return replace(state, replies=(*state.replies, reply))

    def outcome(self, state):
        if not state.replies or state.replies[-1] == "wait":
            return None
        right = state.replies[-1] == str(2 * state.errand.number)
        return Result(right, float(right), "Right." if right else "Wrong.")


def move(place, *replies):
    task = make_world_suite(Doubling()).tasks[place]
    return task.next_move([TaskAnswer(reply) for reply in replies])


def test_what_the_world_shows_is_asked():
    asked = move(2)
    assert isinstance(asked, AskModel)
    assert asked.messages == (
        {"role": "system", "content": "double it"},
        {"role": "user", "content": "2"},
    )


def test_no_instructions_are_no_message():
    assert [message["role"] for message in move(0).messages] == ["user"]


def test_an_episode_goes_on_until_the_world_says_how_it_ended():
    asked = move(2, " wait ")
    assert [message["content"] for message in asked.messages] == ["double it", "2", " wait ", "2?"]
    assert move(2, "wait", "4") == TaskResult(1.0, "Right.")
    assert move(2, "5") == TaskResult(0.0, "Wrong.")


def test_turns_run_out():
    assert move(2, "wait", "wait", "wait").score == 0


def test_a_suite_can_be_a_part_of_the_world():
    assert make_world_suite(Doubling(), max_tasks=2).task_ids == ("d0", "d1")


async def test_a_world_is_found_by_its_name():
    (suite,) = await load_suites(["world:doubling"], worlds={"doubling": Doubling()})
    assert (suite.name, suite.kind, len(suite.tasks)) == ("world:doubling", "benchmark", 5)


def test_a_shipped_world_is_a_suite():
    triage = pytest.importorskip("upswing.worlds.triage", reason="this tree has no worlds")
    world = triage.Triage(sizes=(50, 20))
    suite = make_world_suite(world)
    assert len(suite.tasks) == 20
    for task, ticket in zip(suite.tasks, world.held_out, strict=True):
        assert isinstance(task.next_move([]), AskModel)
        assert task.next_move([TaskAnswer(ticket.answer)]).score == 1
        assert task.next_move([TaskAnswer("shrug")]).score == 0


def test_a_score_that_is_not_a_number_is_passed_on():
    class Broken(Doubling):
        def outcome(self, state):
            return Result(False, math.nan, "?") if state.replies else None

    done = make_world_suite(Broken()).tasks[0].next_move([TaskAnswer("x")])
    assert math.isnan(done.score)
