"""A server takes minutes to load a model: who waits for it, and who does not?"""

import asyncio
from datetime import timedelta

import pytest
from tests.deploy.controlling import BASE, Ground

from upswing.deploy.core.states import RolloutState
from upswing.deploy.environment import DeployTimeouts
from upswing.errors import Conflict, Transient

SOON = 60
"""Seconds: nothing here waits for a load, which never ends unless it is told to."""


@pytest.fixture
def ground():
    ground = Ground()
    ground.timeouts = DeployTimeouts(load=0.01, loaded=0.01)
    return ground


class Slow:
    """From now on, loads of these models wait until `go` is set."""

    def __init__(self, ground, *names):
        self.names, self.go, self.begun = set(names), asyncio.Event(), asyncio.Event()
        self.asked, self._ensure = [], ground.serving.ensure
        ground.serving.instead["ensure"] = self

    async def __call__(self, model):
        name = model if isinstance(model, str) else model.model_id
        self.asked.append(name)
        if name in self.names:
            self.begun.set()
            await self.go.wait()
        return await self._ensure(model)


async def soon(awaitable):
    return await asyncio.wait_for(awaitable, SOON)


async def promoted(ground, controller, *versions):
    ground.improvement = 0.2
    names = []
    for version in versions:
        names.append(ground.trained(version))
        await controller.admit()
    assert ground.shares == {names[-1]: 100.0}
    ground.improvement = 0.08
    return names


async def test_a_newcomer_that_is_being_loaded_delays_no_way_back_of_another(ground):
    controller = await ground.started()
    (first,) = await promoted(ground, controller, 1)
    second = ground.trained(2)
    await controller.admit()
    third = ground.trained(3)
    await controller.admit()
    controller = await ground.started(holder="two")  # which knows of no server that has the third
    slow = Slow(ground, third)
    await controller.operator.rollback(second, "ann")
    await soon(controller.tick())
    await soon(controller.check_changes())
    assert slow.asked.count(third) == 1, "it is loaded, once"
    assert ground.rollout(third).state is RolloutState.QUEUED
    await soon(controller.operator.rollback(first, "ann"))
    assert ground.shares == {BASE: 100.0}


async def test_a_newcomer_begins_when_it_is_loaded_and_nobody_has_to_ask(ground):
    controller = await ground.started()
    first = ground.trained(1)
    await controller.admit()
    second = ground.trained(2)
    await controller.admit()
    controller = await ground.started(holder="two")
    slow = Slow(ground, second)
    await controller.operator.rollback(first, "ann")
    await soon(controller.tick())
    controller._woken.clear()
    slow.go.set()
    await soon(controller._woken.wait())
    ground.wall += timedelta(minutes=1)
    await soon(controller._step())
    assert ground.shares == {BASE: 90.0, second: 10.0}


async def test_a_canary_is_not_replaced_before_its_successor_is_there(ground):
    ground = Ground(newcomers="replace")
    controller = await ground.started()
    first = ground.trained(1)
    await controller.admit()
    second = ground.trained(2)
    slow = Slow(ground, second)
    proved = asyncio.create_task(controller.admit())
    await soon(slow.begun.wait())
    await soon(controller.tick())
    assert ground.shares == {BASE: 90.0, first: 10.0}
    slow.go.set()
    await soon(proved)
    assert ground.shares == {BASE: 90.0, second: 10.0}


async def test_a_newcomer_that_can_never_be_served_leaves_the_canary_where_it_is(ground):
    ground.policy = Ground(newcomers="replace").policy
    controller = await ground.started()
    first, second = ground.trained(1), ground.trained(2)
    await controller.admit()
    assert ground.shares == {BASE: 90.0, second: 10.0}
    third = ground.trained(3)

    def gone():
        ground.serving.broken.add(third)
        del controller.executor.planner.served[third]

    ground.meanwhile = gone
    await controller.admit()
    await controller.tick()
    assert ground.rollout(third).reason == "not_servable"
    assert ground.shares == {BASE: 90.0, second: 10.0}
    assert ground.state(first) == "trained"


async def test_a_way_back_that_waits_for_its_model_delays_no_other(ground):
    controller = await ground.started()
    first, second = await promoted(ground, controller, 1, 2)
    third = ground.trained(3)
    await controller.admit()
    slow = Slow(ground, first)
    waits = asyncio.create_task(controller.operator.rollback(second, "ann"))
    await soon(slow.begun.wait())
    await soon(controller.operator.rollback(third, "ben"))
    assert ground.shares == {second: 100.0}
    await soon(controller.tick())
    slow.go.set()
    await soon(waits)
    assert ground.shares == {first: 100.0}


async def test_a_controller_takes_over_when_its_baseline_is_there_and_not_before(ground):
    old = await ground.started(holder="old")
    name = ground.trained(1)
    await old.admit()
    slow = Slow(ground, BASE)
    new = ground.controller(holder="new")
    starts = asyncio.create_task(new.start())
    await soon(slow.begun.wait())
    await soon(old.renew())
    assert (await soon(new.traffic()))["baseline"] == BASE
    await soon(old.operator.rollback(name, "ann"))
    assert (ground.plan.fence, ground.shares) == (1, {BASE: 100.0})
    slow.go.set()
    await soon(starts)
    assert (new.leading, ground.plan.fence) == (True, 2)


async def test_a_baseline_that_was_replaced_while_it_was_loaded_does_not_answer_again(ground):
    old = await ground.started(holder="old")
    first = (await promoted(ground, old, 1))[0]
    slow = Slow(ground, first)
    new = ground.controller(holder="new")
    starts = asyncio.create_task(new.start())
    await soon(slow.begun.wait())
    await soon(old.operator.rollback(first, "ann"))
    slow.go.set()
    await soon(starts)
    assert (ground.plan.fence > 1, ground.shares) == (True, {BASE: 100.0})


async def test_what_changed_while_a_model_was_loaded_is_seen_before_anything_is_done(ground):
    controller = await ground.started()
    name = ground.trained(1)
    await controller.admit()
    slow = Slow(ground, name)
    told = asyncio.create_task(controller.set_traffic(name, 50, "ann"))
    await soon(slow.begun.wait())
    await soon(controller.operator.rollback(name, "ben"))
    slow.go.set()
    with pytest.raises(Conflict, match="rolled back"):
        await soon(told)
    assert ground.shares == {BASE: 100.0}
    assert [row.what for row in ground.store.audit_rows] == ["rollback"]


async def test_who_gives_traffic_up_waits_for_no_server(ground):
    controller = await ground.started()
    name = ground.trained(1)
    await controller.admit()
    slow = Slow(ground, name)
    await soon(controller.set_traffic(name, 2, "ann"))
    assert (slow.asked, ground.shares) == ([], {BASE: 98.0, name: 2.0})


async def test_servers_keep_what_an_operator_waits_for(ground):
    controller = await ground.started()
    first, second, third = await promoted(ground, controller, 1, 2, 3)
    for _ in range(2):
        await controller.tick()
    assert first not in ground.serving.loaded, "nobody needs it"
    slow = Slow(ground, second)
    told = asyncio.create_task(controller.split({first: 10, second: 10}, "ann"))
    await soon(slow.begun.wait())
    for _ in range(3):
        await soon(controller.tick())
    assert first in ground.serving.loaded
    slow.go.set()
    await soon(told)
    assert ground.shares == {third: 80.0, first: 10.0, second: 10.0}
    assert slow.asked.count(first) == 1


async def test_a_load_that_fails_is_told_to_the_operator_and_tried_anew_when_asked_again(ground):
    controller = await ground.started()
    first, second = await promoted(ground, controller, 1, 2)
    ground.serving.away.add(first)
    with pytest.raises(Transient, match="does not answer"):
        await soon(controller.operator.rollback(second, "ann"))
    assert ground.shares == {second: 100.0}
    ground.serving.away.clear()
    await soon(controller.operator.rollback(second, "ann"))
    assert ground.shares == {first: 100.0}
