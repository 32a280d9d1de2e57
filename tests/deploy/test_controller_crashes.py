"""A controller dies, is replaced, or loses its store and its bus: what is true afterwards?"""

import asyncio
from datetime import timedelta

import pytest
from tests.deploy.controlling import BASE, LOOK, START, Ground
from tests.support import until

from upswing.contracts.traffic import Counts
from upswing.deploy.core.record import read_record
from upswing.deploy.core.rows import LeadershipLost
from upswing.deploy.core.states import RolloutState
from upswing.deploy.environment import DeployTimeouts
from upswing.errors import Misuse, Transient

HOUR = timedelta(hours=1)


class Died(BaseException):
    """As `kill -9` would: nothing after it runs, not even a handler of errors."""


class Fate:
    """Lets a controller die at the n-th effect."""

    def __init__(self, at):
        self.left = at
        self.where = None

    async def __call__(self, place):
        await asyncio.sleep(0)
        self.left -= 1
        if self.left == 0:
            self.where = place
            raise Died(place)


def holds(ground):
    """What is true at every moment, whoever died where."""
    rollouts = [ground.rollout(name) for name in ground.store.registry if ground_has(ground, name)]
    assert sum(each.state is RolloutState.PROMOTED for each in rollouts) <= 1
    assert sum(each.state is RolloutState.RAMPING for each in rollouts) <= 1
    deployed = [row for row in ground.store.registry.values() if row.state == "deployed"]
    assert len(deployed) <= 1
    for each in rollouts:
        if each.state is RolloutState.PROMOTED:
            assert each.validation_id
            assert ground.state(each.model_id) == "deployed"
    if ground.board.plan:
        assert sum(ground.shares.values()) == pytest.approx(100)


def ground_has(ground, name):
    return any(row.model_id == name for row in ground.store.rollouts.values())


async def story(ground, fate):
    """A model goes out, a worse one comes back; whoever dies is followed by another."""
    for part in (ground.store, ground.board, ground.serving):
        part.pause = fate
    ground.errors["agent-zero-rl-v2"] = 0.6
    controller, looks, deaths = None, 0, 0
    while looks < 75:
        try:
            if controller is None:
                controller = await ground.started(holder=f"c{deaths}")
            if looks == 60 and "agent-zero-rl-v2" not in ground.store.registry:
                ground.trained(2)
            while await controller.admit():
                pass
            ground.now += LOOK
            ground.wall += timedelta(seconds=8)
            await controller.renew()
            ground.serve(120)
            await controller.tick()
            looks += 1
        except Died:
            controller, deaths = None, deaths + 1
            fate.left = 10**9
            holds(ground)
    holds(ground)
    return deaths


@pytest.mark.parametrize("seed", range(25))
async def test_wherever_it_dies_the_story_ends_the_same(seed):
    ground = Ground(seed)
    ground.trained(1)
    fate = Fate(3 + seed * 37)
    assert await story(ground, fate) == 1, "the story was over before"
    assert ground.state("agent-zero-rl-v1") == "deployed", fate.where
    assert ground.state("agent-zero-rl-v2") == "rolled_back", fate.where
    assert ground.shares == {"agent-zero-rl-v1": 100.0}
    told = [(each.model, each.event) for each in ground.events]
    assert told.count(("agent-zero-rl-v1", "promoted")) == 1
    assert told.count(("agent-zero-rl-v2", "rollback")) == 1


async def test_the_same_seed_leaves_the_same_trace():
    traces = []
    for _ in range(2):
        ground = Ground(7)
        ground.trained(1)
        await story(ground, Fate(200))
        traces.append((ground.store.decisions, ground.store.messages, ground.board.plans))
    assert traces[0] == traces[1]


async def test_after_a_death_it_is_at_the_same_step_with_its_evidence_and_no_shorter_dwell():
    ground = Ground()
    name = ground.trained(1)
    controller = await ground.started()
    await controller.admit()
    await ground.pass_time(controller, HOUR + LOOK)
    before, shown = ground.rollout(name), ground.store.records[ground.rollout(name).rollout_id]
    assert before.share == 0.25
    ground.now += 3 * HOUR
    ground.wall += 3 * HOUR
    assert ground.shares == {BASE: 100.0}  # the lease is over
    again = await ground.started(holder="two")
    after = ground.rollout(name)
    assert (after.state, after.canary.step, after.share) == (RolloutState.RAMPING, 1, 0.25)
    assert ground.shares == {BASE: 75.0, name: 25.0}
    lost = after.canary.since - before.canary.since
    assert 3 * HOUR - LOOK <= lost <= 3 * HOUR + LOOK
    assert after.canary.deadline - before.canary.deadline == lost
    kept = read_record(ground.store.records[after.rollout_id].body)
    assert kept.evidence.rewards.candidates >= read_record(shown.body).evidence.rewards.candidates
    await ground.pass_time(again, HOUR - 2 * LOOK)
    assert ground.rollout(name).canary.step == 1
    assert "outage" in ground.kinds


async def test_a_bus_that_was_away_for_longer_than_a_lease_shortens_no_dwell():
    ground = Ground()
    name = ground.trained(1)
    controller = await ground.started()
    await controller.admit()
    ground.board.away = True
    for _ in range(12):
        ground.now += LOOK
        ground.wall += LOOK
        with pytest.raises(Transient):
            await controller.renew()
    ground.board.away = False
    await controller.renew()
    assert ground.rollout(name).canary.since == START + 12 * LOOK
    assert ground.shares == {BASE: 90.0, name: 10.0}


async def test_of_two_controllers_only_the_newer_one_writes():
    ground = Ground()
    ground.trained(1)
    old = await ground.started(holder="old")
    new = await ground.started(holder="new")
    for ask in (old.tick, old.renew, old.admit):
        with pytest.raises(LeadershipLost):
            await ask()
    with pytest.raises(LeadershipLost):
        await old.set_traffic(BASE, 100, "ann")
    assert [plan.fence for plan in ground.board.plans] == [1, 2]
    await new.admit()
    assert ground.plan.fence == 2


async def test_a_way_back_does_not_wait_for_the_store():
    ground = Ground()
    name = ground.trained(1)
    ground.errors[name] = 1.0
    controller = await ground.started()
    await controller.admit()
    ground.serve(300)

    async def away(fence, change):
        raise Transient("The store is away.")

    ground.store.instead["commit"] = away
    with pytest.raises(Transient, match="traffic is back"):
        await controller.tick()
    assert ground.shares == {BASE: 100.0}
    ground.store.instead.clear()
    await controller.renew()
    assert ground.shares == {BASE: 100.0}, "a renewal does not bring it back"
    assert ground.rollout(name).state is RolloutState.RAMPING
    await controller.tick()
    assert (ground.rollout(name).state, ground.shares) == (RolloutState.ROLLED_BACK, {BASE: 100.0})


async def test_what_failed_while_nobody_led_is_judged_before_it_gets_traffic_again():
    ground = Ground()
    name = ground.trained(1)
    controller = await ground.started()
    await controller.admit()
    lead = ground.plan.rollout
    ground.board.counts["gw"] = {lead: {name: Counts(40, 40), BASE: Counts(400, 2)}}
    await ground.started(holder="two")
    assert (ground.rollout(name).state, ground.shares) == (RolloutState.ROLLED_BACK, {BASE: 100.0})
    seconds = [plan for plan in ground.board.plans if plan.fence == 2]
    assert all(not plan.candidates for plan in seconds)


async def test_a_validation_that_was_cut_short_is_done_again():
    ground = Ground()
    name = ground.trained(1)
    controller = await ground.started()
    ground.trouble = Died()
    with pytest.raises(Died):
        await controller.admit()
    ground.trouble = None
    assert ground.state(name) == "validating"
    again = await ground.started(holder="two")
    assert await again.admit()
    assert ground.shares == {BASE: 90.0, name: 10.0}


async def test_telling_the_same_twice_changes_no_evidence():
    ground = Ground()
    name = ground.trained(1)
    controller = await ground.started()
    await controller.admit()
    ground.serve(500)
    await controller.tick()
    once = ground.store.records[ground.rollout(name).rollout_id]
    await controller.tick()
    await controller.check_changes()
    assert ground.store.records[ground.rollout(name).rollout_id] == once


async def test_a_store_put_back_from_a_copy_is_led_all_the_same():
    ground = Ground()
    for holder in ("one", "two", "three"):
        await ground.started(holder=holder)
    ground.store.fence = None
    await ground.started(holder="four")
    assert ground.plan.fence == 4


async def test_what_nobody_can_serve_when_its_turn_comes_is_cancelled():
    ground = Ground()
    first = ground.trained(1)
    controller = await ground.started()
    await controller.admit()
    second = ground.trained(2)
    await controller.admit()
    ground.serving.broken.add(second)
    controller = await ground.started(holder="two")
    await controller.operator.rollback(first, "ann")
    await controller.tick()
    assert (ground.rollout(second).reason, ground.shares) == ("not_servable", {BASE: 100.0})
    assert ground.store.incident_rows[-1].reason == "not_servable"


async def test_one_that_stands_by_takes_over_when_the_leader_is_silent_for_a_lease():
    ground = Ground()
    name = ground.trained(1)
    old = await ground.started(holder="old")
    new = await ground.started(holder="new")
    await new.admit()
    await old._safely(old.renew)
    assert not old.leading
    for _ in range(4):
        ground.wall += timedelta(seconds=10)
        await new.renew()
        await old._safely(old._round)
    assert ground.plan.fence == 2
    ground.wall += timedelta(seconds=46)  # the newer one is dead
    await old._safely(old._round)
    assert old.leading
    assert (ground.plan.fence, ground.shares) == (3, {BASE: 90.0, name: 10.0})
    await new._safely(new.renew)
    assert not new.leading


async def test_a_plan_that_could_not_be_written_is_written_at_the_next_turn():
    ground = Ground()
    name = ground.trained(1)
    controller = await ground.started()
    await controller.admit()
    ground.board.away = True
    with pytest.raises(Transient):
        await controller.operator.rollback(name, "ann")
    assert ground.rollout(name).state is RolloutState.ROLLED_BACK
    ground.board.away = False
    await controller._safely(controller._round)
    assert ground.shares == {BASE: 100.0}


async def promoted(ground, versions):
    """A controller that has promoted models, one after the other."""
    ground.improvement = 0.2
    controller = await ground.started()
    names = []
    for version in versions:
        names.append(ground.trained(version))
        await controller.admit()
    assert ground.shares == {names[-1]: 100.0}
    return controller, names


@pytest.mark.parametrize("versions", [(1,), (1, 2)])
async def test_a_way_back_from_a_promoted_model_does_not_wait_for_the_store(versions):
    ground = Ground()
    ground.timeouts = DeployTimeouts(store=0.01)
    controller, names = await promoted(ground, versions)
    name, behind = names[-1], [BASE, *names][-2]
    ground.errors[name] = 1.0
    ground.serve(300)

    async def slow(*_):
        await asyncio.sleep(3600)

    ground.store.instead.update(commit=slow, heartbeat=slow)
    with pytest.raises(Transient, match="traffic is back"):
        await asyncio.wait_for(controller.tick(), 300)
    assert ground.shares == {behind: 100.0}
    ground.store.instead.clear()
    await controller.renew()
    assert ground.shares == {behind: 100.0}, "a renewal does not bring it back"
    assert controller.executor.deployment.baseline == name, "the rows do not know it yet"
    await controller.tick()
    assert (ground.rollout(name).state, ground.shares) == (
        RolloutState.ROLLED_BACK,
        {behind: 100.0},
    )
    assert controller.executor.deployment.baseline == behind
    holds(ground)


@pytest.mark.parametrize(
    "trouble",
    [
        OSError(28, "No space left on device"),
        ExceptionGroup("in a task group", [ValueError("odd")]),
    ],
)
async def test_whatever_goes_wrong_in_a_validation_is_tried_again_and_ends_nothing(trouble):
    ground = Ground()
    name = ground.trained(1)
    controller = await ground.started()
    ground.trouble = trouble
    assert await controller.admit()
    assert ground.state(name) == "validating"
    ground.trouble, ground.wall = None, ground.wall + HOUR
    assert await controller.admit()
    assert ground.shares == {BASE: 90.0, name: 10.0}


@pytest.mark.parametrize("trouble", [OSError("The disk is full."), Misuse("Mend it.")])
async def test_what_no_step_foresaw_is_an_alert_and_ends_no_run(trouble, caplog):
    controller = await Ground().started()

    async def work():
        raise trouble

    assert await controller._safely(work) is None
    assert [each.action for each in caplog.records][-1:] == ["alert"]


async def test_the_baseline_is_reached_before_anything_is_done_about_candidates():
    ground = Ground()
    name = ground.trained(1)
    await (await ground.started()).admit()
    assert ground.shares == {BASE: 90.0, name: 10.0}
    ground.serving.url = "http://127.0.0.1:2/v1"  # the server was started anew elsewhere
    ensure, seen = ground.serving.ensure, []

    async def watched(model):
        if model != BASE:
            seen.append((ground.plan.baseline.backend, ground.shares))
        return await ensure(model)

    ground.serving.instead["ensure"] = watched
    await ground.started(holder="two")
    assert seen[0] == ("http://127.0.0.1:2/v1", {BASE: 100.0})
    assert ground.shares == {BASE: 90.0, name: 10.0}


async def test_a_plan_that_reaches_the_baseline_stays_until_candidates_are_judged():
    ground = Ground()
    name = ground.trained(1)
    await (await ground.started()).admit()
    await ground.started(holder="two")
    seconds = [plan for plan in ground.board.plans if plan.fence == 2]
    assert [each.model.model_id for plan in seconds for each in plan.candidates] == [name]


async def test_a_look_that_fails_does_not_keep_a_lease_from_being_renewed():
    ground = Ground()
    name = ground.trained(1)
    controller = await ground.started()
    await controller.admit()

    async def away(*_):
        raise Transient("The rewards cannot be read.")

    ground.store.instead["rewards_after"] = away
    until = ground.plan.lease_until
    ground.now += LOOK
    ground.wall += timedelta(seconds=30)
    await controller._round()
    assert ground.plan.lease_until > until
    assert ground.shares == {BASE: 90.0, name: 10.0}


async def test_a_server_that_takes_long_to_load_keeps_nobody_waiting():
    ground = Ground()
    ground.timeouts = DeployTimeouts(load=0.01)
    name = ground.trained(1)
    controller = await ground.started()
    await controller.admit()
    ground.serving.loaded.discard(name)  # its server was started anew
    ensure, asked, loaded = ground.serving.ensure, [], asyncio.Event()

    async def slow(model):
        if model != BASE:
            asked.append(model)
            await loaded.wait()
        return await ensure(model)

    ground.serving.instead["ensure"] = slow
    for _ in range(5):
        await asyncio.wait_for(controller.tick(), 300)
        await asyncio.wait_for(controller.renew(), 300)
        ground.wall += timedelta(seconds=20)
    assert len(asked) == 1, "it is loaded once"
    assert ground.rollout(name).state is RolloutState.RAMPING, (
        "a model that is being loaded is not dead"
    )
    loaded.set()
    await controller.tick()
    assert name in ground.serving.loaded
    await asyncio.wait_for(controller.operator.rollback(name, "ann"), 300)
    assert ground.shares == {BASE: 100.0}


async def test_a_candidate_that_takes_long_to_load_gets_its_share_when_it_is_there():
    ground = Ground()
    ground.timeouts = DeployTimeouts(load=0.01)
    name = ground.trained(1)
    await (await ground.started()).admit()
    ensure, loaded = ground.serving.ensure, asyncio.Event()

    async def slow(model):
        if model != BASE:
            await loaded.wait()
        return await ensure(model)

    ground.serving.instead["ensure"] = slow
    again = ground.controller(holder="two")
    await asyncio.wait_for(again.start(), 300)
    assert ground.shares == {BASE: 100.0}
    loaded.set()
    await until(lambda: name in again.executor.planner.served)
    await again.renew()
    assert ground.shares == {BASE: 90.0, name: 10.0}


async def test_a_way_back_that_no_row_knows_is_judged_again_before_anything_is_written():
    ground = Ground()
    controller, (name,) = await promoted(ground, (1,))
    ground.errors[name] = 1.0
    ground.serve(300)

    async def away(fence, change):
        raise Transient("The store is away.")

    ground.store.instead["commit"] = away
    with pytest.raises(Transient, match="traffic is back"):
        await controller.tick()
    ground.store.instead.clear()
    await ground.started(holder="two")
    assert ground.rollout(name).state is RolloutState.ROLLED_BACK
    seconds = [plan for plan in ground.board.plans if plan.fence == 2]
    assert {plan.baseline.model_id for plan in seconds} == {BASE}
