"""Which held-out tasks of a job can be played, and what a world that fails costs: never the job."""

import msgspec
import pytest

from upswing.train.learn.example import Example
from upswing.worlds.triage import Triage
from upswing.worlds.world import WorldObservation, WorldOutcome


def example(task, *, temperature=1.0):
    return Example(
        trajectory_id=task,
        group=task,
        task=task,
        ids=(1, 2, 3),
        trained=(False, True, True),
        turns=(0, 0, 0),
        logps=(0.0, -1.0, -1.0),
        exact=True,
        reward=1.0,
        temperature=temperature,
    )


@pytest.fixture(scope="module")
def tiny(bases):
    from upswing.train.bases.catalog import resolve_base
    from upswing.train.bases.loading import load_base

    return load_base(resolve_base("tiny", bases))


def found(tiny, tasks, worlds=None, **options):
    from upswing.train.child.held_out_player import held_out_player

    return held_out_player(
        [example(task) for task in tasks], tiny[1], worlds or {}, seed=0, **options
    )


def test_tasks_of_our_worlds_are_played_with_the_seed_that_their_ids_tell(tiny):
    tasks = [task.task_id for seed in (3, 4) for task in Triage(seed).training[:6]]
    play = found(tiny, [*tasks, "unknown-1", "desk-x"])
    score, attempts = play(tiny[0])
    assert 0 <= score <= 1
    assert attempts == 4 * len(tasks)
    assert play(tiny[0]) == (score, attempts)


@pytest.mark.parametrize(
    "tasks",
    [
        [],
        [task.task_id for task in Triage().training[:7]],
        [task.task_id for task in Triage().held_out[:20]],
        [f"own-{number}" for number in range(20)],
    ],
    ids=["none", "too few", "validation's own", "of nobody"],
)
def test_what_cannot_be_played_is_left_to_the_logged_estimate(tiny, tasks):
    assert found(tiny, tasks) is None


class Task(msgspec.Struct, frozen=True):
    task_id: str
    instructions: str = "Say one word."
    text: str = "?"


class Own:
    """A user's world; it raises where it is told to."""

    name, max_turns = "own", 1
    training = tuple(Task(f"own-{number}") for number in range(10))
    held_out = (Task("own-held"),)

    def reset(self, task):
        return (task, None)

    def observe(self, state):
        return WorldObservation(state[0].text)

    def step(self, state, text):
        return (state[0], text)

    def outcome(self, state):
        return None if state[1] is None else WorldOutcome(True, 0.5, "done")


class Failing(Own):
    def outcome(self, state):
        if state[1] is not None:
            raise RuntimeError("the shop is closed")


HERE = "tests.train.test_held_out_player"
OWN = [task.task_id for task in Own.training]


def test_a_world_of_the_users_own_is_played(tiny):
    assert found(tiny, OWN, {"own": f"{HERE}:Own"})(tiny[0]) == (0.5, 40)


@pytest.mark.parametrize("where", [f"{HERE}:Missing", "nowhere.at.all:World", "http://127.0.0.1:1"])
def test_a_world_that_cannot_be_had_is_none(tiny, where):
    assert found(tiny, OWN, {"own": where}) is None


def test_a_world_that_raises_is_asked_once(tiny):
    play = found(tiny, OWN, {"own": f"{HERE}:Failing"})
    assert play(tiny[0]) is None
    assert play(tiny[0]) is None


def test_a_world_that_takes_too_long_is_asked_once(tiny):
    now = iter([0.0, 100.0])
    play = found(tiny, OWN, {"own": f"{HERE}:Own"}, clock=lambda: next(now))
    assert play(tiny[0]) is None
    assert play(tiny[0]) is None
