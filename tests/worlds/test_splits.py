"""Three splits: what is learned from, what a candidate is measured with, and what neither sees."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.worlds.small import policy

from upswing.worlds.agentgym_sessions import WorldSessions
from upswing.worlds.attempt import begin_numbered_task
from upswing.worlds.known import WORLDS, known_worlds, make_world
from upswing.worlds.measure import gain_interval, mean_interval, measure_policy
from upswing.worlds.triage import Triage
from upswing.worlds.world import third_split

NAMES = tuple(WORLDS)


def shown(world, task):
    """What an agent reads when the task begins."""
    return task.instructions, world.observe(world.reset(task)).text


@settings(max_examples=12, deadline=None)
@given(name=st.sampled_from(NAMES), seed=st.integers(0, 10_000))
def test_no_test_task_reads_like_one_to_learn_from_or_to_validate_with(name, seed):
    world = make_world(name, seed)
    seen = [*world.training, *world.held_out]
    assert len(world.test) >= 300
    assert not {shown(world, task) for task in world.test} & {shown(world, task) for task in seen}
    assert not {task.task_id for task in world.test} & {task.task_id for task in seen}
    assert not {task.task_id for task in world.training} & {task.task_id for task in world.held_out}


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_makes_the_same_test(name):
    one, two, other = make_world(name, 3), make_world(name, 3), make_world(name, 4)
    assert one.test == two.test
    assert [task.task_id for task in one.test] != [task.task_id for task in other.test]
    assert len({task.task_id for task in one.test}) == len(one.test)


@pytest.mark.parametrize("name", NAMES)
def test_a_served_world_keeps_its_numbers_and_the_test_comes_last(name):
    world = make_world(name)
    learning, held = len(world.training), len(world.held_out)
    assert begin_numbered_task(world, 0).task == world.training[0]
    assert begin_numbered_task(world, learning).task == world.held_out[0]
    assert begin_numbered_task(world, learning + held).task == world.test[0]
    about = WorldSessions(world).world_info()
    assert (about.training, about.held_out, about.test) == (learning, held, len(world.test))


def test_a_test_case_of_the_desk_is_never_spoiled_by_the_desk_itself():
    desk = known_worlds()["desk"]
    assert "good" in {case.outage for case in desk.training}
    assert "good" not in {case.outage for case in (*desk.held_out, *desk.test)}
    kinds = [case.kind for case in desk.test]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {
        "named": 160,
        "hidden": 80,
        "code": 80,
    }


def test_a_world_without_a_third_split_has_no_test_tasks():
    class Plain:
        name, max_turns = "plain", 1
        training = held_out = ()

    assert third_split(Plain()) == ()
    assert WorldSessions(Plain()).world_info().test == 0


def test_the_same_model_measured_twice_has_gained_nothing():
    world, player = Triage(tests=40), policy()
    once = measure_policy(world, player, seed=1)
    assert once == measure_policy(world, player, seed=1)
    assert set(once) == {task.task_id for task in world.test}
    assert set(once.values()) <= {0, 0.25, 0.5, 0.75, 1}
    gained = gain_interval(once, once)
    assert (gained.mean, gained.lower, gained.upper, gained.tasks) == (0, 0, 0, 40)


def test_a_gain_is_compared_task_by_task_so_that_hard_tasks_do_not_widen_it():
    before = {f"t{number}": number / 100 for number in range(50)}
    after = {
        task: score + 0.2 + 0.1 * (number % 2)
        for number, (task, score) in enumerate(before.items())
    }
    gained = gain_interval(before, after)
    assert gained.lower < gained.mean < gained.upper
    assert gained.mean == pytest.approx(0.25)
    assert (
        gained.upper - gained.lower < (mean_interval(after).upper - mean_interval(after).lower) / 2
    )


def test_measuring_takes_the_tasks_it_is_given():
    world, player = Triage(tests=8), policy()
    assert set(measure_policy(world, player, tasks=world.held_out[:5])) == {
        task.task_id for task in world.held_out[:5]
    }
