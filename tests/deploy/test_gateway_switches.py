"""Gateways say what they may serve: when does a rollout begin, does its time pass, and who stays served?"""

from datetime import timedelta

import pytest
from tests.deploy.controlling import BASE, LOOK, START, Ground
from tests.deploy.test_controller_stories import replays

from upswing.contracts.traffic import Switches
from upswing.deploy.core.gateway_switches import blocked_reason, pinned_models
from upswing.deploy.core.states import RolloutState
from upswing.errors import Conflict, Transient

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
OFF, PINNED, CAPPED, ON = (
    Switches(enabled=False),
    Switches(version="v1"),
    Switches(percentage=0),
    Switches(percentage=10),
)


@pytest.mark.parametrize("bars", [(OFF,), (PINNED,), (CAPPED,), (OFF, PINNED, CAPPED)])
async def test_a_rollout_that_no_gateway_may_serve_says_so_and_does_not_begin(bars):
    ground = Ground()
    ground.board.switches = {str(number): each for number, each in enumerate(bars)}
    name = ground.trained(2)
    controller = await ground.started()
    assert await controller.admit()
    await ground.pass_time(controller, 9 * DAY, per_look=0)
    found = ground.rollout(name)
    assert (found.state, ground.shares) == (RolloutState.QUEUED, {BASE: 100.0})
    assert "No gateway may serve it" in found.sentence
    for each in bars:
        assert each.bar in found.sentence
    assert ground.kinds.count("wait") == 1
    ground.board.switches["another"] = ON
    await controller.check_changes()
    assert (ground.rollout(name).state, ground.shares) == (
        RolloutState.RAMPING,
        {BASE: 90.0, name: 10.0},
    )
    assert replays(ground)


async def test_one_on_its_way_holds_and_its_time_does_not_pass():
    ground = Ground()
    ground.board.switches = {"one": Switches()}
    name = ground.trained(1)
    controller = await ground.started()
    await controller.admit()
    await ground.pass_time(controller, HOUR / 2)
    before = ground.rollout(name).canary
    ground.board.switches = {"one": OFF}
    await ground.pass_time(controller, 9 * DAY, per_look=0)
    held = ground.rollout(name)
    assert (held.state, held.canary.step) == (RolloutState.RAMPING, before.step)
    assert held.sentence == "No gateway may serve it: USE_RL_MODEL at 1."
    ground.board.switches = {"one": Switches()}
    await controller.check_changes()
    after = ground.rollout(name)
    assert after.state is RolloutState.RAMPING
    assert after.canary.deadline - before.deadline == pytest.approx(9 * DAY, abs=4 * LOOK)
    await ground.pass_time(controller, 8 * HOUR)
    assert ground.rollout(name).state is RolloutState.PROMOTED
    assert replays(ground)


async def test_a_controller_that_comes_later_does_not_count_that_time_either():
    ground = Ground()
    ground.board.switches = {"one": Switches()}
    name = ground.trained(1)
    controller = await ground.started()
    await controller.admit()
    ground.board.switches = {"one": OFF}
    await ground.pass_time(controller, 9 * DAY, per_look=0)
    ground.board.switches = {"one": Switches()}
    await ground.started(holder="two")
    assert ground.rollout(name).state is RolloutState.RAMPING


async def test_one_that_fails_goes_back_all_the_same():
    ground = Ground()
    ground.board.switches = {"one": Switches()}
    name = ground.trained(1)
    ground.errors[name] = 0.9
    controller = await ground.started()
    await controller.admit()
    ground.serve(300)
    ground.board.switches = {"one": OFF}
    await controller.tick()
    assert ground.rollout(name).state is RolloutState.ROLLED_BACK


async def test_an_operators_word_does_not_begin_it_either_and_says_why():
    ground = Ground()
    name = ground.trained(1)
    ground.improvement, ground.lower = 0.01, -0.01
    controller = await ground.started()
    await controller.admit()
    ground.board.switches = {"one": OFF}
    with pytest.raises(Conflict, match=r"does not begin\. No gateway may serve it"):
        await controller.operator.approve(name, "anna")
    with pytest.raises(Conflict, match="No gateway may serve it"):
        await controller.set_traffic(name, 20, "anna")
    assert ground.shares == {BASE: 100.0}
    ground.board.switches = {"one": ON}
    await controller.operator.approve(name, "anna")
    assert ground.rollout(name).state is RolloutState.RAMPING


async def test_a_board_that_is_away_changes_nothing_that_was_heard():
    ground = Ground()
    ground.board.switches = {"one": OFF}
    controller = await ground.started()
    ground.board.away = True
    await controller.executor.gateways.refresh()
    assert controller.executor.gateways.blocked_reason == blocked_reason({"one": OFF})


# ── the base, and pins ───────────────────────────────────────────────────────────────────────────


async def test_the_plan_has_the_base_beside_a_trained_baseline():
    ground = Ground()
    name = ground.trained(3, state="deployed", deployed=START)
    await ground.started()
    assert (ground.plan.baseline.model_id, ground.plan.trained) == (name, True)
    assert ground.plan.untrained.model_id == BASE


async def test_without_a_trained_model_the_base_is_the_baseline():
    ground = Ground()
    await ground.started()
    assert (ground.plan.trained, ground.plan.base) == (False, None)
    assert ground.plan.untrained.model_id == BASE


async def test_a_base_that_cannot_be_served_is_not_in_the_plan_and_holds_nothing_up():
    ground = Ground()
    ground.trained(3, state="deployed", deployed=START)
    ground.serving.broken.add(BASE)
    await ground.started()
    assert (ground.plan.trained, ground.plan.untrained) == (True, None)


async def test_a_model_that_a_gateway_is_pinned_to_stays_served_whatever_is_promoted():
    ground = Ground()
    first = ground.trained(1)
    controller = await ground.started()
    await controller.admit()
    await ground.pass_time(controller, 8 * HOUR)
    ground.board.switches = {"pinned": Switches(version="v1"), "open": Switches()}
    for version in (2, 3):
        new = ground.trained(version)
        await controller.admit()
        await ground.pass_time(controller, 8 * HOUR)
        assert ground.rollout(new).state is RolloutState.PROMOTED
    assert ground.state(first) == "retired"
    assert [each.model_id for each in ground.plan.pinned] == [first]
    assert first not in ground.plan.withdrawn
    ground.board.switches = {"open": Switches()}
    await controller.tick()
    assert ground.plan.pinned == ()
    assert first in ground.plan.withdrawn


async def test_a_pin_on_what_was_rolled_back_gives_nothing():
    ground = Ground()
    ground.trained(1, state="rolled_back")
    ground.trained(2, state="failed")
    ground.board.switches = {"a": Switches(version="v1"), "b": Switches(version="v2")}
    await ground.started()
    assert ground.plan.pinned == ()


async def pinned_canary():
    ground = Ground()
    ground.board.switches = {"open": Switches(), "pinned": Switches(version="v1")}
    name = ground.trained(1)
    controller = await ground.started()
    await controller.admit()
    await ground.pass_time(controller, HOUR / 2)
    assert name in {each.model.model_id for each in ground.plan.candidates}
    return ground, controller, name


@pytest.mark.parametrize("how", ["by an operator", "by its errors"])
async def test_what_is_rolled_back_answers_at_no_pinned_gateway_from_that_plan_on(how):
    ground, controller, name = await pinned_canary()
    if how == "by an operator":
        await controller.operator.rollback(name, "anna", "it leaks")
    else:
        ground.errors[name] = 0.9
        ground.serve(300)
        await controller.tick()
    assert ground.state(name) == "rolled_back"
    for again in (controller.renew, controller.check_changes, controller.tick):
        assert ground.plan.pinned == ()
        assert name in ground.plan.withdrawn
        await again()


async def test_nor_while_the_store_does_not_know_that_it_is_rolled_back():
    ground, controller, name = await pinned_canary()

    async def away(*_):
        raise Transient("The store is away.")

    ground.errors[name] = 0.9
    ground.serve(300)
    ground.store.instead["commit"] = away
    for _ in range(3):
        with pytest.raises(Transient):
            await controller.tick()
        assert ground.plan.candidates == ground.plan.pinned == ()
        assert name in ground.plan.withdrawn
    assert ground.state(name) == "canary"


@pytest.mark.parametrize(
    ("policy", "switches", "why"),
    [
        ({}, {"a": Switches(version="v1"), "b": Switches()}, "is what a gateway is pinned to"),
        ({"holdback": 0.05}, {}, "is the holdback of"),
        ({"holdback": 0.0}, {}, "stands by for"),
    ],
)
async def test_a_model_that_is_kept_for_something_is_not_validated_beside_it(policy, switches, why):
    ground = Ground(**policy)
    first = ground.trained(1, state="deployed", deployed=START)
    second = ground.trained(2)
    ground.board.switches = {"b": Switches()}
    controller = await ground.started()
    await controller.admit()
    while ground.state(first) != "retired":
        await ground.pass_time(controller, HOUR, per_look=150)
    ground.board.switches = switches
    await controller.tick()
    before = (ground.plan.pinned, ground.plan.holdback)
    with pytest.raises(Conflict, match=why):
        await controller.operator.revalidate(first, "anna")
    await controller.tick()
    assert (ground.state(first), ground.state(second)) == ("retired", "deployed")
    assert (ground.plan.pinned, ground.plan.holdback) == before


def test_an_exact_name_comes_before_an_ending():
    ground = Ground()
    ground.trained(1, state="retired")
    ground.trained(11, state="passed")
    rows = ground.store.registry.values()
    assert pinned_models({"v1"}, rows) == {"agent-zero-rl-v1"}
    assert pinned_models({"agent-zero-rl-v11", "v99"}, rows) == {"agent-zero-rl-v11"}


# ── what is shown to a person ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("switches", "sentences"),
    [
        ((), ()),
        ((Switches(), Switches()), ()),
        ((OFF,), ("USE_RL_MODEL is off", "the base model answers everything there")),
        ((Switches(), PINNED), ("RL_MODEL_VERSION is v1 at 1 of 2 gateways", "that model alone")),
        ((CAPPED, CAPPED), ("RL_ROLLOUT_PERCENTAGE is 0 at 2 of 2 gateways",)),
        ((ON,), ("trained models get at most 10 % there",)),
    ],
    ids=repr,
)
async def test_traffic_says_where_switches_decide_otherwise(switches, sentences):
    ground = Ground()
    controller = await ground.started()
    ground.board.switches = {str(number): each for number, each in enumerate(switches)}
    found = (await controller.traffic())["exceptions"]
    assert len(found) == (1 if sentences else 0)
    for sentence in sentences:
        assert sentence in found[0]


async def test_each_kind_of_switch_is_said_once_with_its_count():
    ground = Ground()
    controller = await ground.started()
    ground.board.switches = dict(
        zip("abcdef", (OFF, OFF, PINNED, CAPPED, ON, Switches()), strict=True)
    )
    found = (await controller.traffic())["exceptions"]
    assert [each.split(" at ")[1][:6] for each in found] == ["2 of 6", "1 of 6", "1 of 6", "1 of 6"]


async def test_a_board_that_cannot_be_asked_leaves_traffic_as_last_heard():
    ground = Ground()
    ground.board.switches = {"one": OFF}
    controller = await ground.started()
    await controller.check_changes()
    ground.board.away = True
    assert "USE_RL_MODEL" in (await controller.traffic())["exceptions"][0]
