"""Whatever operators, models, traffic and deaths do to a controller, these things stay true."""

import asyncio
import random
from datetime import timedelta

import pytest
from tests.deploy.controlling import BASE, LOOK, Ground
from tests.deploy.test_controller_crashes import Died, Fate

from upswing.contracts.traffic import Switches
from upswing.deploy.core.deployment_state import decode_rollout
from upswing.deploy.core.journal import replay
from upswing.deploy.core.states import ACTIVE, RolloutState
from upswing.errors import Misuse, Rejected, Transient

SEEDS = 60


SWITCHES = (
    {},
    {"a": Switches()},
    {"a": Switches(enabled=False)},
    {"a": Switches(version="v1"), "b": Switches(percentage=20)},
)


def rollouts(ground):
    return [decode_rollout(row) for row in ground.store.rollouts.values()]


def holds(ground):
    """True at every moment, also right after a death."""
    found = rollouts(ground)
    promoted = [each for each in found if each.state is RolloutState.PROMOTED]
    active = [each for each in found if each.state in ACTIVE]
    assert len(promoted) <= 1
    assert sum(each.state is RolloutState.RAMPING for each in active) <= 1
    baseline = promoted[0].model_id if promoted else BASE
    assert {each.baseline_id for each in active} <= {baseline}
    assert sum(each.share for each in active) <= 1 + 1e-9
    assert all(each.validation_id and not each.override for each in promoted)
    deployed = [row.model_id for row in ground.store.registry.values() if row.state == "deployed"]
    assert deployed == ([baseline] if baseline in ground.store.registry else [])
    canaries = {row.model_id for row in ground.store.registry.values() if row.state == "canary"}
    assert canaries == {each.model_id for each in active} - {BASE}  # which has no row
    if active:
        assert not any(each.holdback for each in found)
    assert all(each.state is RolloutState.PROMOTED for each in found if each.holdback)
    for plan in ground.board.plans[-3:]:
        assert sum(each.share for each in plan.candidates) <= 1 + 1e-9


def settled(ground):
    """True when a controller has just done its work."""
    active = {each.model_id: each.share for each in rollouts(ground) if each.state in ACTIVE}
    told = {each.model.model_id: each.share for each in ground.plan.candidates}
    assert told == active
    held = next((each.holdback for each in rollouts(ground) if each.holdback), None)
    kept = ground.plan.holdback
    assert (kept and (kept.model.model_id, kept.share)) == (held and (held.model_id, held.share))
    assert ground.plan.untrained.model_id == BASE
    assert not {each.model_id for each in ground.plan.pinned} & set(ground.plan.withdrawn)
    ramps = any(each.state is RolloutState.RAMPING for each in rollouts(ground))
    assert (ground.plan.lease_until is not None) is ramps
    for decision in ground.store.decisions:
        assert replay(decision.kind, decision.inputs) == (decision.outcome, decision.sentence)


async def happen(ground, controller, chance):
    """One thing that may happen."""
    names = [*ground.store.registry, BASE, "nobody"]
    name, other = chance.choice(names), chance.choice(names)
    word = chance.choice(("approve", "pause", "resume", "rollback", "override"))
    share = chance.choice([0, 5, 30, 60, 100])
    things = [
        controller.admit,
        controller.admit,
        lambda: controller.operator.act(word, name, "ann", "so"),
        lambda: controller.set_traffic(name, share, "ann"),
        lambda: controller.split({other: 30, name: 20}, "ann"),
        lambda: controller.register("ours", BASE, "/models/ours"),
        lambda: train(ground, chance),
        lambda: change(ground, chance, name),
        lambda: pass_time(ground, controller, chance),
        lambda: pass_time(ground, controller, chance),
    ]
    await chance.choice(things)()


async def train(ground, chance):
    if len(ground.store.registry) < 8:
        ground.trained(len(ground.store.registry) + 1)
    ground.improvement = chance.choice([0.01, 0.08, 0.2, -0.1])
    ground.word = chance.choice(["pass", "pass", "pass", "fail"])


async def change(ground, chance, name):
    """The world's own ways."""
    ground.errors[name] = chance.choice([0.01, 0.01, 0.5])
    ground.reward[name] = chance.choice([0.6, 0.6, 0.3])
    if chance.random() < 0.3:
        ground.serving.away ^= {name} - {BASE}
    if chance.random() < 0.3:
        ground.board.switches = chance.choice(SWITCHES)
    if chance.random() < 0.3:
        ground.board.away = not ground.board.away


async def pass_time(ground, controller, chance):
    ground.now += LOOK * chance.choice([1, 1, 1, 12])
    ground.wall += timedelta(seconds=chance.choice([5, 5, 60]))
    if ground.board.plan:
        ground.serve(chance.choice([0, 40, 150]))
    await controller.tick()


async def lived(seed):
    """One life of sixty events with deaths at random awaits; the ground that is left."""
    chance, ground = (
        random.Random(seed),
        Ground(
            seed,
            newcomers=random.Random(seed).choice(["wait", "replace"]),
            holdback=0.05 * (seed % 2),
        ),
    )
    fate = Fate(chance.randrange(5, 300))
    for part in (ground.store, ground.board, ground.serving):
        part.pause = fate
    controller = None
    for _ in range(60):
        try:
            if controller is None:
                controller = await ground.started(holder=str(seed))
            await happen(ground, controller, chance)
        except (Transient, Rejected, Misuse):
            pass
        except Died:
            controller = None
            fate.left = chance.randrange(5, 300)
        holds(ground)
    fate.left = 10**9
    ground.board.away, ground.serving.away = False, set()
    last = await ground.started(holder="last")
    await last.tick()
    holds(ground)
    settled(ground)
    return ground


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_one_baseline_and_no_promotion_without_a_validation_whatever_happens(seed):
    await lived(seed)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(40))
async def test_ten_thousand_lives_keep_the_same_laws(block, trials):
    for seed in range(250 * block, 250 * (block + 1)):
        await lived(seed)
        trials.add()


async def test_the_same_seed_leaves_the_same_trace():
    first, second = await asyncio.gather(lived(3), lived(3))
    assert first.store.decisions == second.store.decisions
    assert first.store.messages == second.store.messages
    assert first.board.plans == second.board.plans
