"""The controller on twins: whole stories, from a trained model to its end."""

import asyncio
from datetime import timedelta

import pytest
from tests.deploy.controlling import BASE, LOOK, OWN, START, Ground
from tests.support import until

from upswing.deploy.core.journal import replay
from upswing.deploy.core.next_step import next_step
from upswing.deploy.core.offline import LoggedEstimate
from upswing.deploy.core.states import ModelState, RolloutState
from upswing.errors import Conflict, Misuse, Transient

HOUR = timedelta(hours=1)


@pytest.fixture
def ground():
    return Ground()


def replays(ground):
    """Every journalled decision comes out the same from its inputs."""
    for decision in ground.store.decisions:
        assert replay(decision.kind, decision.inputs) == (decision.outcome, decision.sentence)
        assert decision.stage == "deploy"
    return True


async def test_the_plan_exists_from_the_first_start_on_with_the_base_as_baseline(ground):
    await ground.started()
    assert ground.shares == {BASE: 100.0}
    assert (ground.plan.fence, ground.plan.candidates, ground.plan.lease_until) == (1, (), None)


async def test_a_model_that_was_deployed_before_is_the_baseline(ground):
    name = ground.trained(3, state="deployed", deployed=START)
    await ground.started()
    assert ground.shares == {name: 100.0}


async def test_a_better_model_goes_out_in_steps_and_is_promoted(ground):
    name = ground.trained(1)
    controller = await ground.started()
    assert await controller.admit()
    assert ground.proved == [(name, BASE)]
    assert ground.shares == {BASE: 90.0, name: 10.0}
    assert ground.plan.lease_until == ground.wall + timedelta(seconds=45)
    await ground.pass_time(controller, 8 * HOUR)
    assert (ground.rollout(name).state, ground.state(name)) == (RolloutState.PROMOTED, "deployed")
    assert ground.shares == {name: 100.0}
    assert [(each.event, each.share) for each in ground.events] == [
        ("deployed", 10.0),
        ("ramped", 25.0),
        ("ramped", 50.0),
        ("promoted", 100.0),
    ]
    assert ground.store.registry[name].baseline_reward == pytest.approx(0.6, abs=0.05)
    assert {"canary", "begin", "hold", "set_weight", "promote"} <= set(ground.kinds)
    assert replays(ground)


@pytest.mark.parametrize(
    ("worse", "reason"),
    [
        ({"reward": 0.4}, "performance_degradation"),
        ({"errors": 0.25}, "high_error_rate"),
        ({"errors": 0.9}, "hard_failure"),
    ],
)
async def test_a_worse_model_comes_back_by_itself(ground, worse, reason):
    name = ground.trained(1)
    ground.reward[name] = worse.get("reward", 0.6)
    ground.errors[name] = worse.get("errors", 0.01)
    controller = await ground.started()
    await controller.admit()
    await ground.pass_time(controller, LOOK, per_look=250)
    await ground.pass_time(controller, 6 * HOUR)
    assert (ground.rollout(name).state, ground.rollout(name).reason) == (
        RolloutState.ROLLED_BACK,
        reason,
    )
    assert (ground.state(name), ground.shares) == ("rolled_back", {BASE: 100.0})
    (incident,) = ground.store.incident_rows
    assert (incident.model_id, incident.reason) == (name, reason)
    assert b'"figures"' in incident.metrics
    assert (ground.events[-1].event, ground.events[-1].about["reason"]) == ("rollback", reason)
    assert replays(ground)


@pytest.mark.parametrize(
    ("word", "improvement", "state"),
    [
        ("fail", 0.3, "failed"),
        ("inconclusive", 0.3, "undecided"),
        ("pass", -0.01, "aborted"),
        ("pass", float("nan"), "aborted"),
        ("pass", None, "aborted"),
    ],
)
async def test_what_is_not_proved_better_does_not_ship(ground, caplog, word, improvement, state):
    name = ground.trained(1)
    ground.word, ground.improvement = word, improvement
    controller = await ground.started()
    assert await controller.admit()
    assert (ground.state(name), ground.shares) == (state, {BASE: 100.0})
    assert ground.store.rollouts == {}
    assert [row.model_id for row in ground.store.incident_rows] == [name]
    assert "alert" in [getattr(record, "action", "") for record in caplog.records]
    assert ground.kinds == ["abort"]
    assert replays(ground)
    assert not await controller.admit()


@pytest.mark.parametrize(("improvement", "lower"), [(0.0, -0.01), (0.004, -0.01), (0.3, -0.2)])
async def test_what_may_be_chance_waits_for_an_operators_word(ground, caplog, improvement, lower):
    name = ground.trained(1)
    ground.improvement, ground.lower = improvement, lower
    controller = await ground.started()
    assert await controller.admit()
    await ground.pass_time(controller, 6 * HOUR)
    assert (ground.rollout(name).state, ground.shares) == (RolloutState.AWAITING, {BASE: 100.0})
    assert "once an operator approves" in ground.rollout(name).strategy.sentence
    assert "needs_approval" in [getattr(record, "reason", "") for record in caplog.records]
    await controller.operator.approve(name, "anna")
    assert ground.shares == {BASE: 95.0, name: 5.0}
    assert replays(ground)


async def test_a_newer_model_does_not_wait_for_one_that_nobody_approved(ground):
    old = ground.trained(1)
    ground.improvement, ground.lower = 0.01, -0.01
    controller = await ground.started()
    await controller.admit()
    assert ground.rollout(old).state is RolloutState.AWAITING
    new = ground.trained(2)
    ground.improvement, ground.lower = 0.08, None
    await controller.admit()
    assert (ground.rollout(old).state, ground.rollout(old).reason) == (
        RolloutState.CANCELLED,
        "replaced",
    )
    assert ground.shares == {BASE: 90.0, new: 10.0}
    assert replays(ground)


async def test_what_training_did_not_change_is_not_even_validated(ground):
    name = ground.trained(1)
    ground.unmoved.add(name)
    controller = await ground.started()
    assert await controller.admit()
    assert (ground.proved, ground.state(name), ground.shares) == ([], "failed", {BASE: 100.0})
    (incident,) = ground.store.incident_rows
    assert (incident.reason, "did not change it" in incident.sentence) == ("no_change", True)
    assert incident.sentence.endswith("Record more."), "what to try next"
    assert replays(ground)


async def test_what_was_registered_by_hand_is_validated_in_any_case(ground):
    name = ground.trained(1, job_id="registered-1")
    ground.unmoved.add(name)
    controller = await ground.started()
    assert await controller.admit()
    assert ground.proved == [(name, BASE)]
    assert ground.rollout(name).state is RolloutState.AWAITING


async def test_a_checkpoint_that_does_not_verify_is_refused(ground):
    name = ground.trained(1)
    ground.serving.broken.add(name)
    controller = await ground.started()
    assert await controller.admit()
    assert (ground.state(name), ground.proved, ground.shares) == ("failed", [], {BASE: 100.0})
    assert "does not verify" in ground.store.incident_rows[0].sentence


async def test_a_validation_that_cannot_be_run_now_is_run_later_and_not_for_ever(ground):
    name = ground.trained(1)
    ground.trouble = Transient("The model server is busy.")
    controller = await ground.started()
    assert await controller.admit()
    assert not await controller.admit()
    for _ in range(4):
        ground.wall += HOUR
        assert await controller.admit()
    assert (ground.state(name), len(ground.proved)) == ("undecided", 5)


async def test_a_much_better_model_takes_all_traffic_and_the_old_one_stands_by(ground):
    name = ground.trained(1)
    ground.improvement = 0.2
    controller = await ground.started()
    ground.serve(100)
    await controller.admit()
    assert (ground.shares, ground.state(name)) == ({name: 100.0}, "deployed")
    assert [each.event for each in ground.events] == ["promoted"]
    ground.errors[name] = 0.5
    await ground.pass_time(controller, HOUR)
    assert (ground.shares, ground.state(name)) == ({BASE: 100.0}, "rolled_back")
    assert ground.events[-1].event == "rollback"
    assert replays(ground)


async def test_the_model_before_answers_again_when_its_successor_fails_after_promotion(ground):
    ground.improvement = 0.2
    controller = await ground.started()
    first = ground.trained(1)
    await controller.admit()
    second = ground.trained(2)
    await controller.admit()
    assert ground.shares == {second: 100.0}
    assert (ground.state(first), ground.rollout(first).state) == ("retired", RolloutState.SUCCEEDED)
    ground.errors[second] = 0.8
    await ground.pass_time(controller, LOOK * 2)
    assert (ground.state(first), ground.state(second)) == ("deployed", "rolled_back")
    assert ground.shares == {first: 100.0}
    ground.errors[first] = 0.8
    await ground.pass_time(controller, LOOK * 3)
    assert ground.shares == {BASE: 100.0}


async def test_a_fall_of_reward_after_promotion_calls_a_person_once(ground):
    name = ground.trained(1)
    controller = await ground.started()
    await controller.admit()
    await ground.pass_time(controller, 8 * HOUR)
    assert ground.shares == {name: 100.0}
    ground.reward[name] = 0.3
    await ground.pass_time(controller, 2 * HOUR)
    assert [row.reason for row in ground.store.incident_rows] == ["performance_degradation"]
    assert ground.shares == {name: 100.0}
    assert ground.kinds.count("degraded") == 1
    assert replays(ground)


async def test_a_newcomer_waits_and_the_newest_goes_next(ground):
    first = ground.trained(1)
    controller = await ground.started()
    await controller.admit()
    second, third = ground.trained(2), ground.trained(3)
    assert await controller.admit()
    assert await controller.admit() is False  # 2 is older than 3, which waits
    assert await controller.admit() is False
    assert ground.rollout(third).state is RolloutState.QUEUED
    assert "wait" in ground.kinds
    assert "skip" in ground.kinds
    assert (await controller.operator.rollback(first, "ann")).state is RolloutState.ROLLED_BACK
    await controller.tick()
    assert ground.shares == {BASE: 90.0, third: 10.0}
    assert ground.state(second) == "trained"
    assert replays(ground)


async def test_a_newcomer_takes_the_place_of_an_older_one_where_the_policy_says_so():
    ground = Ground(newcomers="replace")
    first = ground.trained(1)
    controller = await ground.started()
    await controller.admit()
    second = ground.trained(2)
    await controller.admit()
    assert ground.shares == {BASE: 90.0, second: 10.0}
    assert (ground.rollout(first).state, ground.state(first)) == (RolloutState.REPLACED, "retired")
    assert replays(ground)


async def test_a_candidate_whose_parent_stopped_serving_is_dropped(ground):
    first = ground.trained(1)
    controller = await ground.started()
    await controller.admit()
    waits, later = ground.trained(2), ground.trained(3)
    await controller.admit()
    assert ground.proved[-1] == (later, BASE)
    await controller.set_traffic(first, 100, "ann")
    await controller.tick()
    assert not await controller.admit(), "both were trained from the base, which answers no more"
    assert [ground.state(name) for name in (waits, later)] == ["aborted", "aborted"]
    assert ground.shares == {first: 100.0}
    child = ground.trained(4)
    assert await controller.admit()
    assert ground.proved[-1] == (child, first)


async def test_what_a_person_registered_and_was_proved_beside_another_baseline_is_proved_again(
    ground,
):
    first = ground.trained(1)
    controller = await ground.started()
    await controller.admit()
    second = ground.trained(2, job_id="registered-2")
    await controller.admit()
    assert ground.proved[-1] == (second, BASE)
    await controller.set_traffic(first, 100, "ann")
    await controller.tick()
    assert ground.state(second) == "validating"
    assert await controller.admit()
    assert ground.proved[-1] == (second, first)
    assert ground.shares == {first: 100.0}, "a person's model waits for a person's word"


async def test_a_canary_that_nobody_can_decide_comes_back_after_a_week(ground):
    name = ground.trained(1)
    controller = await ground.started()
    await controller.admit()
    await ground.pass_time(controller, timedelta(days=7), per_look=0)
    assert ground.rollout(name).reason == "undecided"
    assert ground.shares == {BASE: 100.0}


async def test_a_candidate_whose_server_is_dead_goes_back_and_a_common_outage_does_not(ground):
    name = ground.trained(1)
    controller = await ground.started()
    await controller.admit()
    ground.serving.away |= {name, BASE}
    await ground.pass_time(controller, LOOK * 3, per_look=0)
    assert ground.rollout(name).state is RolloutState.RAMPING
    ground.serving.away = {name}
    await ground.pass_time(controller, LOOK, per_look=0)
    assert ground.rollout(name).reason == "backend_dead"
    assert ground.shares == {BASE: 100.0}


async def test_a_baseline_that_is_refused_is_asked_for_less_and_less_often(ground):
    """However often the controller is woken, as it is by every request at a gateway."""
    asked = []

    async def noted(what):
        asked.append(what)

    ground.serving.pause, ground.serving.away = noted, {BASE}
    controller = ground.controller()
    running = asyncio.create_task(controller.run())
    await until(lambda: "ensure" in asked)
    for _ in range(140):
        controller.wake()
        await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert 1 <= asked.count("ensure") <= 20, "every wake would be an ask"


async def test_a_failing_canary_is_noticed_at_a_glance(ground):
    name = ground.trained(1)
    ground.errors[name] = 1.0
    controller = await ground.started()
    await controller.admit()
    ground.serve(200)
    await controller.check_changes()
    assert (ground.rollout(name).reason, ground.shares) == ("hard_failure", {BASE: 100.0})


async def test_an_older_model_gets_its_chance_when_the_newer_one_is_taken_back(ground):
    controller = await ground.started()
    older, newer = ground.trained(1), ground.trained(2)
    await controller.admit()
    assert await controller.admit() is False
    await controller.operator.rollback(newer, "ann")
    assert await controller.admit()
    assert ground.shares == {BASE: 90.0, older: 10.0}


async def test_a_baseline_that_can_never_be_served_again_gives_way(ground):
    ground.improvement = 0.2
    controller = await ground.started()
    names = []
    for version in (1, 2):
        names.append(ground.trained(version))
        await controller.admit()
    ground.serving.broken |= set(names)
    ground.serving.loaded.clear()
    await ground.started(holder="two")
    assert ground.shares == {BASE: 100.0}
    assert [ground.state(name) for name in names] == ["rolled_back", "rolled_back"]


async def test_a_model_that_failed_is_validated_once_more_when_somebody_asks(ground):
    name = ground.trained(1)
    ground.word = "inconclusive"
    controller = await ground.started()
    await controller.admit()
    assert not await controller.admit()
    ground.word = "pass"
    await controller.operator.revalidate(name, "ann")
    assert await controller.admit()
    assert ground.shares == {BASE: 90.0, name: 10.0}
    with pytest.raises(Conflict):
        await controller.operator.revalidate(name, "ann")


async def test_servers_forget_what_nobody_needs(ground):
    controller = await ground.started()
    name = ground.trained(1)
    await controller.admit()
    await controller.operator.rollback(name, "ann")
    await controller.tick()
    assert name in ground.serving.loaded
    await controller.tick()
    assert ground.serving.loaded == {BASE}


# ── operators ────────────────────────────────────────────────────────────────────────────────────


async def test_an_operators_share_has_no_lease_and_pauses_the_ramp(ground):
    name = ground.trained(1)
    controller = await ground.started()
    await controller.admit()
    told = await controller.set_traffic(name, 33, "ann")
    assert told["traffic"] == {BASE: 67.0, name: 33.0}
    assert (ground.plan.lease_until, ground.plan.operator) == (None, True)
    await ground.pass_time(controller, 9 * HOUR)
    assert ground.shares == {BASE: 67.0, name: 33.0}
    await controller.operator.resume(name, "ann")
    assert ground.shares == {BASE: 90.0, name: 10.0}
    assert ground.plan.lease_until is not None
    assert [(row.who, row.what, row.about) for row in ground.store.audit_rows] == [
        ("ann", "traffic", name),
        ("ann", "resume", name),
    ]
    assert replays(ground)


async def test_what_an_operator_holds_goes_back_all_the_same_when_it_fails(ground):
    name = ground.trained(1)
    ground.errors[name] = 0.4
    controller = await ground.started()
    await controller.admit()
    await controller.set_traffic(name, 50, "ann")
    await ground.pass_time(controller, HOUR)
    assert (ground.rollout(name).state, ground.shares) == (RolloutState.ROLLED_BACK, {BASE: 100.0})


@pytest.mark.parametrize("held", [True, False], ids=["held", "ramping"])
async def test_no_traffic_ends_a_rollout_and_newcomers_do_not_wait_for_it(ground, held):
    first = ground.trained(1)
    controller = await ground.started()
    await controller.admit()
    if held:
        await controller.set_traffic(first, 20, "ann")
    assert first in ground.shares
    await controller.set_traffic(first, 0, "ann")
    assert (ground.shares, ground.state(first)) == ({BASE: 100.0}, "retired")
    assert ground.rollout(first).sentence == "ann took its traffic away."
    second = ground.trained(2)
    await controller.admit()
    assert second in ground.shares, "its turn comes at once"
    await controller.set_traffic(second, 0, "ann")
    await controller.set_traffic(second, 0, "ann")
    await controller.set_traffic(first, 10, "ann")
    assert ground.shares == {BASE: 90.0, first: 10.0}, "it may have traffic again"
    assert replays(ground)


async def test_several_models_stand_side_by_side_at_fixed_shares(ground):
    controller = await ground.started()
    names = []
    for version in (1, 2, 3):  # each is out for a while
        ground.improvement = 0.2
        names.append(ground.trained(version))
        assert await controller.admit()
        assert ground.shares == {names[-1]: 100.0}
    told = await controller.split({names[0]: 20, names[1]: 30}, "ann")
    assert told["traffic"] == {names[2]: 50.0, names[0]: 20.0, names[1]: 30.0}
    lead = ground.plan.rollout
    assert lead == ground.plan.salt
    ground.errors[names[1]] = 0.5
    await ground.pass_time(controller, 4 * HOUR)
    assert ground.shares == {names[2]: 80.0, names[0]: 20.0}
    assert ground.rollout(names[1]).reason in {"high_error_rate", "hard_failure"}
    assert replays(ground)


async def test_hundred_percent_makes_a_model_the_baseline_and_of_the_baseline_ends_canaries(ground):
    name = ground.trained(1)
    controller = await ground.started()
    await controller.admit()
    await controller.set_traffic(BASE, 100, "ann")
    assert (ground.shares, ground.rollout(name).reason) == ({BASE: 100.0}, "operator")
    other = ground.trained(2)
    await controller.admit()
    await controller.set_traffic(other, 100, "ann")
    assert (ground.shares, ground.state(other)) == ({other: 100.0}, "deployed")
    await controller.set_traffic(BASE, 100, "ann")
    assert (ground.shares, ground.state(other)) == ({BASE: 100.0}, "retired")
    await controller.set_traffic(other, 100, "ann")
    assert ground.shares == {other: 100.0}
    assert replays(ground)


async def test_a_rollback_by_hand_takes_back_what_is_on_its_way_and_then_what_answers(ground):
    ground.improvement = 0.2
    controller = await ground.started()
    first = ground.trained(1)
    await controller.admit()
    ground.improvement = 0.08
    second = ground.trained(2)
    await controller.admit()
    assert (await controller.operator.rollback(None, "ann", "a feeling")).model_id == second
    assert (await controller.operator.rollback(None, "ann")).model_id == first
    assert ground.shares == {BASE: 100.0}
    with pytest.raises(Exception, match="nothing stands behind"):
        await controller.operator.rollback(None, "ann")
    assert [each.about["deployed_by"] for each in ground.events][-2:] == ["ann", "ann"]


async def test_approval_comes_before_the_first_traffic_where_it_is_asked_for():
    ground = Ground(boldness={"approval": True})
    name = ground.trained(1)
    controller = await ground.started()
    await controller.admit()
    assert (ground.shares, ground.rollout(name).state) == ({BASE: 100.0}, RolloutState.AWAITING)
    await controller.operator.approve(name, "ann")
    assert ground.shares == {BASE: 90.0, name: 10.0}
    assert ground.events[0].about["approval_status"] == "manual_approved"
    assert replays(ground)


async def test_an_emergency_override_is_a_canary_under_the_same_tests(ground):
    name = ground.trained(1)
    ground.word = "fail"
    controller = await ground.started()
    await controller.admit()
    with pytest.raises(Exception, match="rollouts override"):
        await controller.set_traffic(name, 10, "ann")
    await controller.operator.override(name, "ann", "the base is on fire")
    assert ground.shares == {BASE: 95.0, name: 5.0}
    assert ground.events[0].about["approval_status"] == "emergency_override"
    with pytest.raises(Exception, match="no passed validation"):
        await controller.set_traffic(name, 100, "ann")
    with pytest.raises(Exception, match="no passed validation"):
        await controller.operator.approve(name, "ann")
    ground.errors[name] = 0.5
    await ground.pass_time(controller, 4 * HOUR)
    assert (ground.state(name), ground.shares) == ("rolled_back", {BASE: 100.0})
    assert replays(ground)


async def test_a_good_override_never_gets_all_traffic_by_itself(ground):
    name = ground.trained(1, state="failed")
    controller = await ground.started()
    await controller.operator.override(name, "ann", "we know better")
    await ground.pass_time(controller, timedelta(days=2))
    assert ground.shares == {BASE: 50.0, name: 50.0}


async def test_a_registered_model_is_validated_and_waits_for_a_word(ground):
    controller = await ground.started()
    told = await controller.register("ours-v9", BASE, "http://127.0.0.1:9/v1")
    assert (told["model_id"], told["state"]) == ("ours-v9", "trained")
    await controller.register("ours-v9", BASE, "http://127.0.0.1:9/v1")
    with pytest.raises(Exception, match="another base"):
        await controller.register("ours-v9", BASE, "/elsewhere")
    assert await controller.admit()
    assert ground.rollout("ours-v9").state is RolloutState.AWAITING
    await controller.set_traffic("ours-v9", 10, "ann")
    assert ground.shares == {BASE: 90.0, "ours-v9": 10.0}


@pytest.mark.parametrize("share", [-1, 101, float("nan"), float("inf")])
async def test_a_share_that_is_none_is_refused(ground, share):
    controller = await ground.started()
    with pytest.raises(Exception, match="from 0 to 100"):
        await controller.set_traffic(BASE, share, "ann")


async def test_what_nobody_knows_and_what_cannot_be_is_said_clearly(ground):
    name = ground.trained(1)
    controller = await ground.started()
    for ask in (
        controller.operator.approve,
        controller.operator.pause,
        controller.operator.resume,
        controller.operator.rollback,
    ):
        with pytest.raises(Misuse, match="no model"):
            await ask("nobody", "ann")
    with pytest.raises(Misuse):
        await controller.set_traffic("nobody", 10)
    with pytest.raises(Misuse):
        await controller.metrics("nobody")
    with pytest.raises(Exception, match="gets what the others leave"):
        await controller.set_traffic(BASE, 10)
    await controller.admit()
    with pytest.raises(Exception, match="sum to"):
        await controller.split({name: 60, BASE: 60})
    with pytest.raises(Exception, match="ramping"):
        await controller.operator.resume(name, "ann")


async def test_metrics_tell_how_a_model_does(ground):
    name = ground.trained(1)
    controller = await ground.started()
    await controller.admit()
    await ground.pass_time(controller, HOUR)
    told = await controller.metrics(name)
    assert told["traffic_percentage"] == 10.0 or told["traffic_percentage"] == 25.0
    assert told["requests"] > 50
    assert 0 <= told["error_rate"] < 0.2
    assert told["reward_mean"] == pytest.approx(0.6, abs=0.1)
    assert told["health"] == "healthy"
    assert (await controller.metrics("current"))["model_id"] == BASE
    assert [each["model_id"] for each in await controller.models()] == [name, BASE]
    assert (await controller.rollouts())[0]["state"] == "ramping"


# ── nothing of the user's own can be played ──────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("logged", "state"),
    [
        (LoggedEstimate(0.3, 0.6, 80.0), "canary"),
        (LoggedEstimate(0.3, 0.31, 80.0), "passed"),
        (LoggedEstimate(0.3, 0.9, 10.0), "undecided"),
        (None, "undecided"),
    ],
)
async def test_what_cannot_be_played_gets_a_canary_by_what_was_logged(ground, logged, state):
    ground.estimated, ground.word, ground.improvement = logged, "inconclusive", None
    name = ground.trained(1)
    controller = await ground.started()
    await controller.admit()
    assert ground.state(name) == state
    if state == "canary":
        assert ground.shares == {BASE: 95.0, name: 5.0}, "whatever the estimate says"


@pytest.mark.parametrize("strategy", ["auto", "canary", "blue_green", "immediate"])
@pytest.mark.parametrize("own", [False, True])
async def test_an_estimate_never_gets_all_traffic_at_once(strategy, own):
    ground = Ground(boldness={"strategy": strategy})
    ground.estimated, ground.lower = LoggedEstimate(0.3, 0.9, 80.0), -0.2
    ground.word, ground.improvement = ("pass", 0.2) if own else ("inconclusive", None)
    ground.suites = (OWN,) if own else ()
    name = ground.trained(1)
    controller = await ground.started()
    await controller.admit()
    assert ground.shares == {BASE: 95.0, name: 5.0}


@pytest.mark.parametrize(
    ("improvement", "logged", "state"),
    [
        (0.1, LoggedEstimate(0.8, 0.99, 80.0), "canary"),
        (0.1, LoggedEstimate(0.8, 0.8, 80.0), "passed"),
        (-0.01, LoggedEstimate(0.8, 0.99, 80.0), "aborted"),
        (0.1, None, "passed"),
    ],
)
async def test_too_few_own_tasks_and_the_log_have_to_agree(ground, improvement, logged, state):
    ground.estimated, ground.improvement, ground.lower = logged, improvement, -0.2
    ground.suites = (OWN,)
    name = ground.trained(1)
    controller = await ground.started()
    await controller.admit()
    assert ground.state(name) == state


@pytest.mark.parametrize(
    ("improvement", "lower", "logged", "state"),
    [
        (0.1, -0.05, None, "canary"),  # 1.31 standard errors
        (0.1, -0.06, None, "passed"),  # 1.23
        (0.01, -0.004, None, "canary"),
        (0.0, -0.004, None, "passed"),
        (0.1, -0.05, LoggedEstimate(0.8, 0.8, 80.0), "canary"),
        (0.1, -0.05, LoggedEstimate(0.8, 0.7, 80.0), "passed"),
        (0.1, -0.05, LoggedEstimate(0.8, 0.1, 5.0), "canary"),
    ],
)
async def test_what_was_played_and_is_probably_better_gets_a_canary_by_itself(
    ground, improvement, lower, logged, state
):
    ground.estimated, ground.improvement, ground.lower = logged, improvement, lower
    ground.suites = (OWN,)
    name = ground.trained(1)
    controller = await ground.started()
    await controller.admit()
    assert ground.state(name) == state
    if state == "canary":
        assert ground.shares == {BASE: 95.0, name: 5.0}, "little, whatever the policy"


async def test_who_was_taken_back_or_has_retired_is_withdrawn_and_who_stands_by_is_not(ground):
    controller = await ground.started()
    assert ground.plan.withdrawn == ()
    names = []
    for version in (1, 2, 3):
        names.append(ground.trained(version))
        await controller.admit()
        await controller.set_traffic(names[-1], 100.0, "ann")
    first, second, third = names
    assert (ground.plan.baseline.model_id, ground.state(second)) == (third, "retired")
    assert ground.plan.withdrawn == (first,), "the second stands by for the third"
    await controller.operator.rollback(None, "ann")
    assert (ground.plan.baseline.model_id, ground.plan.withdrawn) == (second, (third,))
    again = await ground.started(holder="two")
    assert ground.plan.withdrawn == (third,), "the rows say so, whoever leads"
    await again.operator.rollback(None, "ann")
    assert (ground.plan.baseline.model_id, ground.plan.withdrawn) == (first, (second, third))
    ground.improvement = -0.1
    fourth = ground.trained(4)
    await again.admit()
    assert (ground.state(fourth), ground.plan.withdrawn) == ("aborted", (second, third, fourth))


@pytest.mark.parametrize("action", ["approve", "pause", "resume", "rollback"])
async def test_an_undecided_model_is_answered_with_what_to_do(ground, action):
    ground.word = "inconclusive"
    name = ground.trained(1)
    controller = await ground.started()
    await controller.admit()
    assert ground.state(name) == "undecided"
    with pytest.raises(Conflict) as refused:
        await getattr(controller.operator, action)(name, "anna")
    for step in ("[validate.files]", f"rollouts revalidate {name}", f"rollouts override {name}"):
        assert step in str(refused.value)
    with pytest.raises(Conflict, match="rollouts override"):
        await controller.set_traffic(name, 50, "anna")


def test_every_state_of_a_model_has_a_next_step_or_traffic():
    for state in ModelState:
        sentence = next_step("m", state)
        assert bool(sentence) == (state not in {ModelState.CANARY, ModelState.DEPLOYED})
        assert "{" not in sentence
