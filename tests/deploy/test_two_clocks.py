"""Two controllers whose clocks differ: who leads, and what does a jump do to a ramp?"""

from datetime import timedelta

import pytest
from tests.deploy.controlling import BASE, LOOK, Ground

from upswing.deploy.candidates import CandidateChecks
from upswing.deploy.controller import Controller
from upswing.deploy.core.states import RolloutState
from upswing.deploy.environment import DeployEnvironment

DAY = timedelta(days=1)


def elsewhere(ground, skew, holder):
    """A controller on another machine, whose clock shows something else."""
    env = DeployEnvironment(
        ground.store,
        ground.board,
        ground.serving,
        lambda: ground.now,
        lambda: ground.wall + skew,
        ground.new_id,
    )
    return Controller(env, CandidateChecks(ground.prove), ground.policy, base=BASE, holder=holder)


@pytest.mark.parametrize("skew", [DAY, -DAY, timedelta(seconds=50), timedelta(seconds=-50)])
async def test_who_stands_by_takes_over_after_a_lease_of_silence_by_their_own_clock(skew):
    ground = Ground()
    old = elsewhere(ground, skew, "old")
    await old.start()
    new = await ground.started(holder="new")
    await old._safely(old.renew)
    assert not old.leading
    for _ in range(12):
        ground.wall += timedelta(seconds=10)
        await new.renew()
        await old._safely(old._round)
        assert (ground.plan.fence, old.leading) == (2, False)
    ground.wall += timedelta(seconds=40)
    await old._safely(old._round)
    assert ground.plan.fence == 2
    ground.wall += timedelta(seconds=10)
    await old._safely(old._round)
    assert (ground.plan.fence, old.leading) == (3, True)


async def test_a_plan_says_how_long_it_holds():
    ground = Ground()
    name = ground.trained(1)
    controller = await ground.started()
    await controller.admit()
    assert ground.rollout(name).state is RolloutState.RAMPING
    assert ground.plan.lease_seconds == 45
    await controller.operator.rollback(name, "ann")
    assert ground.plan.lease_seconds is None


@pytest.mark.parametrize("jump", [timedelta(hours=1), DAY])
async def test_a_restart_after_a_clock_was_set_ahead_shortens_no_step(jump):
    """A process begins with the wall's time: what nobody led through does not count."""
    ground = Ground()
    name = ground.trained(1)
    controller = await ground.started()
    await controller.admit()
    ground.now += LOOK
    await controller.renew()
    before = ground.rollout(name).canary
    ground.now += jump
    ground.wall += jump
    after = (await ground.started(holder="next")) and ground.rollout(name).canary
    assert after.step == before.step
    assert ground.now - after.since == LOOK
