"""What the journal says is what was decided: nothing is computed a second time for it."""

import msgspec
from tests.deploy.controlling import Ground

from upswing.deploy.core.journal import DecisionInputs, WatchInputs, decide, replay
from upswing.deploy.core.limits import RolloutLimits
from upswing.deploy.core.watch import ModelDegraded, begin_watch


def test_a_decision_is_journalled_as_it_was_computed():
    executor = Ground().controller().executor
    inputs = WatchInputs("m", "r", begin_watch(RolloutLimits(), None), RolloutLimits())
    computed = ModelDegraded("reward", "It is not what it was.")
    assert decide(inputs) != computed, "the rules would say something else"
    row = executor.journal_row(inputs, computed)
    assert (row.kind, row.sentence) == ("degraded", computed.sentence)
    assert msgspec.json.decode(row.outcome, type=ModelDegraded) == computed
    assert msgspec.json.decode(row.inputs, type=DecisionInputs) == inputs


async def test_every_journalled_decision_of_a_rollout_follows_from_its_inputs():
    ground = Ground()
    controller = await ground.started()
    name = ground.trained(1)
    await controller.admit()
    await controller.operator.pause(name, "ann")
    await controller.operator.resume(name, "ann")
    ground.reward[name] = 0.3
    for _ in range(12):
        ground.serve(200)
        await controller.tick()
    kinds = {decision.kind for decision in ground.store.decisions}
    assert {"canary", "begin", "pause", "resume", "hold", "roll_back"} <= kinds
    for decision in ground.store.decisions:
        assert replay(decision.kind, decision.inputs) == (decision.outcome, decision.sentence)
