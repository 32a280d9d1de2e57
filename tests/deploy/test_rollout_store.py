"""Rollouts in the store: on the twin, on SQLite and on PostgreSQL."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.deploy.scoring import NOW, REDACTOR, reward_of, scored
from tests.support import raw

from upswing.collect.core.admit import AdmissionLimits, admit_feedback
from upswing.contracts import ModelDeployed
from upswing.contracts.examples import EXAMPLES
from upswing.contracts.topics import MODEL_DEPLOYED
from upswing.deploy.core.rows import (
    MOST_PENDING,
    ComplaintBatch,
    DeploymentChange,
    Incident,
    LeadershipLost,
    ModelStateChange,
    ObservedComplaint,
    RecordRow,
    RegisteredModel,
    RolloutRow,
)
from upswing.deploy.in_memory import MemoryRollouts
from upswing.deploy.repository import RolloutRepository
from upswing.errors import Conflict
from upswing.infra.sql.decisions import Decisions
from upswing.infra.sql.models import Models
from upswing.infra.sql.rewards import Rewards
from upswing.records import AuditEntry, Decision
from upswing.trigger.signals import SignalReader

MESSAGE = raw(EXAMPLES[ModelDeployed])


def row(name="r-1", model="m-1", state="ramping", share=0.1, baseline="tiny"):
    return RolloutRow(name, model, baseline, state, share, json.dumps({"share": share}).encode())


def change(**parts):
    return DeploymentChange(now=NOW, **parts)


@pytest.fixture
def rollouts(request, store):
    return RolloutRepository(store.database)


@pytest.fixture
async def both(request, store):
    """The twin, and every engine."""
    return [MemoryRollouts(), RolloutRepository(store.database)]


async def test_whoever_takes_over_raises_the_fence_and_the_one_before_writes_no_more(both):
    for rows in both:
        assert await rows.leader() is None
        first, before = await rows.take_over("one", NOW)
        assert (first, before) == (1, None)
        await rows.heartbeat(first, NOW, NOW)
        second, before = await rows.take_over("two", NOW + timedelta(seconds=1))
        assert (second, before.holder, before.held) == (2, "one", NOW)
        with pytest.raises(LeadershipLost):
            await rows.commit(first, change(rollouts=(row(),)))
        with pytest.raises(LeadershipLost):
            await rows.heartbeat(first, NOW, NOW)
        await rows.commit(second, change(rollouts=(row(),)))
        assert (await rows.leader()).held == NOW
        assert len((await rows.deployment_rows()).rollouts) == 1


async def test_a_change_happens_whole_or_not_at_all(both):
    for rows in both:
        fence, _ = await rows.take_over("one", NOW)
        impossible = ModelStateChange("nobody", "deployed", ("passed",))
        with pytest.raises(Conflict):
            await rows.commit(
                fence,
                change(
                    rollouts=(row(),),
                    records=(RecordRow("r-1", 1, 2, b"{}"),),
                    models=(impossible,),
                    messages=(MESSAGE,),
                    audit=(AuditEntry("ann", "traffic", "m-1", b"null", NOW),),
                ),
            )
        assert (await rows.deployment_rows()).rollouts == ()
        assert await rows.record("r-1") is None
        assert await rows.audit() == []


async def test_a_model_moves_only_from_where_it_may(both):
    for rows in both:
        fence, _ = await rows.take_over("one", NOW)
        new = RegisteredModel("m-1", "tiny", "/models/m-1")
        await rows.commit(fence, change(newcomer=new))
        await rows.commit(fence, change(newcomer=new))
        with pytest.raises(Conflict):
            await rows.commit(fence, change(newcomer=RegisteredModel("m-1", "tiny", "/elsewhere")))
        made = await rows.model("m-1")
        assert (made.state, made.path, made.job_id[:11]) == (
            "trained",
            "/models/m-1",
            "registered-",
        )
        await rows.commit(
            fence, change(models=(ModelStateChange("m-1", "deployed", ("trained",), NOW, 0.5),))
        )
        made = await rows.model("m-1")
        assert (made.state, made.deployed, made.baseline_reward) == ("deployed", NOW, 0.5)
        with pytest.raises(Conflict, match="is deployed"):
            await rows.commit(
                fence, change(models=(ModelStateChange("m-1", "canary", ("passed",)),))
            )
        await rows.commit(
            fence, change(models=(ModelStateChange("m-1", "retired", ("deployed",)),))
        )
        assert (await rows.model("m-1")).baseline_reward == 0.5
        assert [each.model_id for each in await rows.models()] == ["m-1"]


async def test_a_watch_period_keeps_no_training_waiting(store, rollouts):
    """A model on its way does; one that is promoted and has a holdback beside it does not."""
    fence, _ = await rollouts.take_over("one", NOW)
    reader = SignalReader(store.database)
    await rollouts.commit(fence, change(rollouts=(row(),)))
    assert (await reader.signals(10, 10)).pending == "m-1"
    await rollouts.commit(fence, change(rollouts=(row(state="promoted", share=1.0),)))
    assert (await reader.signals(10, 10)).pending is None


async def test_what_is_over_is_history(both):
    for rows in both:
        fence, _ = await rows.take_over("one", NOW)
        await rows.commit(fence, change(rollouts=(row(), row("r-2", "m-2", "queued", 0.0))))
        await rows.commit(fence, change(rollouts=(row(state="rolled_back", share=0.0),)))
        assert [each.rollout_id for each in (await rows.deployment_rows()).rollouts] == ["r-2"]
        assert [each.rollout_id for each in await rows.list_rollouts()] == ["r-2", "r-1"]
        assert (await rows.latest_rollout("m-1")).state == "rolled_back"
        assert await rows.latest_rollout("m-9") is None


async def test_records_incidents_and_the_audit_come_back_as_they_went_in(both):
    for rows in both:
        fence, _ = await rows.take_over("one", NOW)
        incident = Incident("i-1", "r-1", "m-1", "hard_failure", "It fails.", b'{"n": 1}', NOW)
        audit = AuditEntry("ann", "traffic", "m-1", b'{"traffic_percentage": 5}', NOW)
        await rows.commit(
            fence,
            change(
                records=(RecordRow("r-1", 7, 8, b'{"a": 1}'),),
                incidents=(incident,),
                audit=(audit,),
            ),
        )
        assert await rows.record("r-1") == b'{"a": 1}'
        assert await rows.incidents() == [incident]
        assert await rows.audit() == [audit]


async def test_the_journal_and_the_outbox_are_part_of_the_change(store, rollouts):
    fence, _ = await rollouts.take_over("one", NOW)
    decision = Decision("d-1", "deploy", "hold", "Not yet.", b"{}", b"{}", NOW)
    told = change(rollouts=(row(),), decisions=(decision,), messages=(MESSAGE,))
    await rollouts.commit(fence, told)
    assert (await Decisions(store.database).get("d-1")).sentence == "Not yet."
    (entry,) = await store.outbox()
    assert (entry.subject, entry.payload) == (MODEL_DEPLOYED, MESSAGE)


async def test_models_on_their_way_and_those_that_rollouts_name_are_in_the_picture(store, rollouts):
    models = Models(store.database)
    names = [
        await models.register(
            job_id=f"j-{job}",
            base_model="tiny",
            parent=None,
            snapshot="s",
            path="/p",
            card="",
            samples=1,
            final_reward=None,
            now=NOW,
        )
        for job in range(4)
    ]
    fence, _ = await rollouts.take_over("one", NOW)
    moves = [
        ModelStateChange(names[1], "failed", ("trained",)),
        ModelStateChange(names[2], "retired", ("trained",)),
    ]
    named = row("r-1", names[3], baseline=names[2])
    await rollouts.commit(fence, change(models=tuple(moves), rollouts=(named,)))
    seen = [each.model_id for each in (await rollouts.deployment_rows()).models]
    assert seen == [names[0], names[2], names[3]]


# ── what is seen ─────────────────────────────────────────────────────────────────────────────────


async def test_only_what_chance_gave_to_one_model_counts(store, rollouts):
    await scored(store, total=0.4)
    await scored(store, model="tiny", total=0.6)
    await scored(store, model="somebody-else")
    await scored(store, gateway=False)
    await scored(store, gateway={"named": True})
    await scored(store, mixed_models=["m-1", "tiny"])
    await scored(store, infra_error=True)
    await scored(store, is_evaluation=True)
    await scored(store, gateway={"rollout": "r-2"}, total=0.9)
    seen = await rollouts.rewards_after(0, ["m-1", "tiny"])
    assert [each.lost for each in seen.rows] == [False, False, True, True, False]
    assert [(each.model, each.rollout, each.raw_total) for each in seen.rows if not each.lost] == [
        ("m-1", "r-1", 0.4),
        ("tiny", "r-1", 0.6),
        ("m-1", "r-2", 0.9),
    ]
    assert seen.upto == (await rollouts.newest_sequences())[0] == 9
    assert not seen.more
    assert (await rollouts.rewards_after(seen.upto, ["m-1"])).rows == ()


async def test_a_reward_counts_at_its_first_revision(store, rollouts):
    name = await scored(store, total=0.4)
    stored = await store.trajectory(name)
    later = reward_of(stored, "m-1", 0.9, revision=2).reward
    await Rewards(store.database).revise(later, judge_score=None, now=NOW)
    seen = await rollouts.rewards_after(0, ["m-1"])
    assert [each.raw_total for each in seen.rows] == [0.4]
    assert seen.upto == 2


@pytest.mark.parametrize("door", ["nats", "http", "steps", "replay", ""])
async def test_what_only_says_that_a_gateway_recorded_it_is_no_evidence(store, rollouts, door):
    forged = await scored(store, door=door, total=1.0, episode="e-9")
    await say(store, 1, type="thumbs_down", trajectory_id=forged)
    assert (await rollouts.rewards_after(0, ["m-1"])).rows == ()
    assert (await rollouts.complaints_after(0, ["m-1"])).rows == ()
    assert (await rollouts.mean_reward("m-1")).count == 0
    await scored(store, total=0.4)
    assert [each.raw_total for each in (await rollouts.rewards_after(0, ["m-1"])).rows] == [0.4]
    assert (await rollouts.mean_reward("m-1")).mean == pytest.approx(0.4)


@pytest.mark.parametrize("rollout", ["r-1", ""])
async def test_what_a_switch_chose_is_nobodys_evidence(store, rollouts, rollout):
    about = {"rollout": rollout, "candidate": False, "named": False, "switch": "USE_RL_MODEL"}
    name = await scored(store, total=1.0, gateway=about, episode="e-9")
    await say(store, 1, type="thumbs_down", trajectory_id=name)
    assert (await rollouts.rewards_after(0, ["m-1"])).rows == ()
    assert (await rollouts.complaints_after(0, ["m-1"])).rows == ()
    assert (await rollouts.mean_reward("m-1")).count == 0
    await scored(store, total=0.4)
    assert (await rollouts.mean_reward("m-1")).mean == pytest.approx(0.4)


async def test_rewards_are_read_in_batches(store, rollouts):
    for _ in range(5):
        await scored(store)
    seen = await rollouts.rewards_after(0, ["m-1"], limit=3)
    assert (len(seen.rows), seen.more) == (3, True)
    rest = await rollouts.rewards_after(seen.upto, ["m-1"], limit=3)
    assert (len(rest.rows), rest.more) == (2, False)


async def test_what_a_model_earned_is_the_mean_of_its_newest(store, rollouts):
    assert (await rollouts.mean_reward("m-1")).mean is None
    for total in (0.2, 0.4, 0.6):
        await scored(store, total=total)
    await scored(store, total=0.0, infra_error=True)
    told = await rollouts.mean_reward("m-1", most=2)
    assert (told.mean, told.count) == (pytest.approx(0.5), 2)


async def say(store, number, now=NOW, *, key="", **word):
    said = {
        "user_id": "user-4",
        "feedback_id": f"f-{number}",
        "timestamp": "2026-01-05T12:00:00Z",
        **word,
    }
    admitted, _ = admit_feedback(raw(said), REDACTOR, AdmissionLimits())
    admitted = replace(admitted, principal=key) if key else admitted
    await store.take_feedback(admitted, now=now, announce=False)


async def test_a_trajectory_complains_once_and_only_when_somebody_is_unhappy(store, rollouts):
    first, second = await scored(store, episode="e-1"), await scored(store, model="tiny")
    await say(store, 1, type="thumbs_up", trajectory_id=first)
    await say(store, 2, type="thumbs_down", trajectory_id=first)
    await say(store, 3, type="rating", rating=1, episode_id="e-1")
    await say(store, 4, type="rating", rating=4, trajectory_id=second)
    await say(store, 5, type="abandoned", trajectory_id=second)
    await say(store, 6, type="thumbs_down", inference_id="chatcmpl-1")
    seen = await rollouts.complaints_after(0, ["m-1", "tiny"])
    assert [(each.seq, each.model, each.rollout) for each in seen.rows] == [
        (2, "m-1", "r-1"),
        (5, "tiny", "r-1"),
    ]
    assert seen.upto == 6


async def test_a_complaint_waits_for_its_trajectory_but_not_for_ever(store, rollouts):
    await say(store, 1, type="thumbs_down", episode_id="e-7")
    seen = await rollouts.complaints_after(0, ["m-1"])
    assert (seen.rows, seen.upto, seen.pending) == ((), 1, (1,))
    await scored(store, episode="e-7")
    seen = await rollouts.complaints_after(1, ["m-1"], pending=seen.pending)
    assert ([each.seq for each in seen.rows], seen.upto, seen.pending) == ([1], 1, ())
    await say(store, 2, type="thumbs_down", episode_id="never")
    waiting = await rollouts.complaints_after(1, ["m-1"])
    await say(store, 3, NOW + timedelta(hours=2), type="thumbs_up", episode_id="e-7")
    seen = await rollouts.complaints_after(2, ["m-1"], pending=waiting.pending)
    assert (waiting.pending, seen.rows, seen.upto, seen.pending) == ((2,), (), 3, ())


@pytest.fixture(params=["twin", "store"])
async def complaining(request, store):
    """Complaints about four episodes, and a way to have an episode come after its complaint."""
    if request.param == "twin":
        rows = [ObservedComplaint(seq, "m-1", "r-1", NOW) for seq in (1, 2, 3, 4)]
        twin = MemoryRollouts(complaints=rows, unknown={1, 3})

        async def comes(seq):
            twin.unknown.remove(seq)

        return twin, comes
    for episode in (2, 4):
        await scored(store, episode=f"e-{episode}")
    for seq in (1, 2, 3, 4):
        await say(store, seq, type="thumbs_down", episode_id=f"e-{seq}")
    return RolloutRepository(store.database), lambda seq: scored(store, episode=f"e-{seq}")


async def test_a_complaint_that_nothing_is_known_about_holds_up_no_other(complaining):
    rows, comes = complaining
    seen = await rows.complaints_after(0, ["m-1"])
    assert ([each.seq for each in seen.rows], seen.upto, seen.pending) == ([2, 4], 4, (1, 3))
    await comes(3)
    seen = await rows.complaints_after(seen.upto, ["m-1"], pending=seen.pending)
    assert ([each.seq for each in seen.rows], seen.upto, seen.pending) == ([3], 4, (1,))
    await comes(1)
    seen = await rows.complaints_after(seen.upto, ["m-1"], pending=seen.pending)
    assert ([each.seq for each in seen.rows], seen.upto, seen.pending) == ([1], 4, ())


async def test_what_waits_is_carried_from_batch_to_batch(complaining):
    rows, _ = complaining
    seen, found = ComplaintBatch((), 0, more=True), []
    while seen.more:
        seen = await rows.complaints_after(seen.upto, ["m-1"], limit=1, pending=seen.pending)
        found += [each.seq for each in seen.rows]
    assert (found, seen.upto, seen.pending) == ([2, 4], 4, (1, 3))


async def test_a_crowd_of_one_key_pushes_out_its_own(store, rollouts):
    for number in range(5):
        await say(store, number, type="thumbs_down", episode_id=f"e-{number}", key=f"k-{number}")
    for number in range(MOST_PENDING + 2):
        made_up = {"type": "thumbs_down", "episode_id": f"made-up-{number}"}
        await say(store, 10 + number, key="troll", **made_up)
    seen = await rollouts.complaints_after(0, ["m-1"], limit=2 * MOST_PENDING)
    assert len(seen.pending) == MOST_PENDING
    assert seen.pending[:5] == (1, 2, 3, 4, 5)


async def test_a_crowd_of_complaints_about_nothing_pushes_the_oldest_out(store, rollouts):
    for number in range(MOST_PENDING + 2):
        await say(store, number, type="thumbs_down", episode_id=f"made-up-{number}")
    seen = await rollouts.complaints_after(0, ["m-1"], limit=MOST_PENDING + 2)
    assert (len(seen.pending), seen.pending[0], seen.pending[-1]) == (
        MOST_PENDING,
        3,
        MOST_PENDING + 2,
    )
    again = await rollouts.complaints_after(seen.upto, ["m-1"], pending=seen.pending)
    assert again.pending == seen.pending


async def test_who_is_withdrawn_is_told_the_newest_first_and_not_without_end(both, store):
    for rows in both:
        fence, _ = await rows.take_over("one", NOW)
        states = ("rolled_back", "aborted", "retired", "failed", "deployed", "trained")
        for state in states:
            await rows.commit(
                fence, change(newcomer=RegisteredModel(state, "tiny", f"/models/{state}"))
            )
            if state != "trained":
                await rows.commit(
                    fence, change(models=(ModelStateChange(state, state, ("trained",)),))
                )
        assert (await rows.deployment_rows()).withdrawn == ("retired", "aborted", "rolled_back")
        await rows.commit(
            fence, change(models=(ModelStateChange("retired", "canary", ("retired",)),))
        )
        assert (await rows.deployment_rows()).withdrawn == ("aborted", "rolled_back")
        limited = (
            replace(rows, most_withdrawn=1)
            if isinstance(rows, MemoryRollouts)
            else RolloutRepository(store.database, most_withdrawn=1)
        )
        assert (await limited.deployment_rows()).withdrawn == ("aborted",)


async def test_evidence_says_under_which_shares_it_began_and_what_part_of_the_traffic_it_is(
    rollouts, store
):
    await scored(store, gateway={"step": "0.25"}, segment="eu", domain="trade")
    (row,) = (await rollouts.rewards_after(0, ["m-1"])).rows
    assert row.step == "0.25"
    assert row.segments == ("domain trade", "agent type developer", "segment eu")
    assert row.completion is not None
    assert not row.by_user


async def test_where_users_keep_their_model_each_counts_once(rollouts, store):
    for user in ("ann", "bob", "ann", "ann", "eve", "bob"):
        await scored(store, gateway={"unit": "user"}, user_id=user)
    await scored(store, gateway={"unit": "user", "rollout": "r-2"}, user_id="ann")
    rows = (await rollouts.rewards_after(0, ["m-1"])).rows
    assert [row.rollout for row in rows] == ["r-1"] * 3 + ["r-2"]
    assert all(row.by_user for row in rows)


async def test_a_complaint_counts_with_the_share_that_its_gateway_had(store, rollouts):
    """A gateway that may give 5 % beside a plan of 50 %."""
    for number, step in enumerate(("0.05", ""), 1):
        name = await scored(store, gateway={"step": step})
        await say(store, number, type="thumbs_down", trajectory_id=name)
    seen = await rollouts.complaints_after(0, ["m-1"])
    assert [row.step for row in seen.rows] == ["0.05", ""]
