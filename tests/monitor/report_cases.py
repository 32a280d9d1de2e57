"""Rows for reports, written by the stages' own code: a base, a model that answers, and one that was rolled back."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import msgspec

from tests.support import raw, trajectory
from upswing.collect.core.admit import AdmissionLimits, admit
from upswing.contracts import (
    Reward,
    TrainingRequest,
    TrainingStatus,
    from_builtins,
)
from upswing.contracts.examples import EXAMPLES
from upswing.deploy.core.rows import DeploymentChange, ModelStateChange, RolloutRow
from upswing.deploy.repository import RolloutRepository
from upswing.infra.sql.models import Models
from upswing.infra.sql.rewards import Rewards
from upswing.infra.sql.store import to_microseconds
from upswing.records import JudgedGroup, NewReward, ScoredFacts
from upswing.redact import Redactor
from upswing.reward.outcome_repository import OutcomeRepository
from upswing.train.jobs.repository import JobRepository

START = datetime(2026, 1, 5, 8, tzinfo=UTC)
"""A Monday."""
END = START + timedelta(days=7)
HOUR = timedelta(hours=1)
BASE, ANSWERS, BAD = "tiny", "v1", "v2"
REDACTOR = Redactor()


async def score(store, model, total, at, *, gateway=False, started=None, group="g", **facts):
    """A trajectory, stored at that time and scored."""
    lint = facts.pop("lint", None)
    turns, tokens = facts.pop("turns", 1), facts.pop("tokens", None)
    document = raw(trajectory(metadata={"model": model}))
    admitted = admit(document, REDACTOR, AdmissionLimits()).admitted
    admitted = replace(
        admitted,
        started=started or admitted.started,
        evaluation=facts.pop("evaluation", False),
        practice=facts.pop("practice", False),
    )
    door = "gateway" if gateway else "http"
    await store.take(admitted, door=door, now=at, stream_seq=None, announce=False)
    stored = await store.trajectory(admitted.trajectory_id)
    components = dict(EXAMPLES[Reward]["reward_components"])
    if lint is not None:
        components["code_quality"] = {
            "score": lint,
            "weight": 0.15,
            "source": "linter",
            "raw_data": {"parts": {"linter": lint}},
        }
    tree = EXAMPLES[Reward] | {
        "trajectory_id": admitted.trajectory_id,
        "reward_components": components,
        "metadata": EXAMPLES[Reward]["metadata"]
        | {
            "revision": 1,
            "raw_total": total,
            "model": model,
            "window_id": "w",
            "scenario_id": group,
        },
    }
    new = NewReward(
        trajectory_seq=stored.seq,
        reward=from_builtins(Reward, tree),
        raw={} if lint is None else {"code_quality": lint},
        facts=ScoredFacts("coding", 0.3, turns, None, tokens),
        episode_id=None,
        agent_id="a",
        principal="a",
        pnl=facts.pop("pnl", None),
        balance=None,
        infra_error=facts.pop("infra_error", False),
        gateway=gateway,
        **facts,
    )
    await Rewards(store.database).publish([new], cursor=stored.seq, now=at)
    return admitted.trajectory_id


async def end_job(store, job_id, state, at, **status):
    """A job that ran and ended then."""
    jobs = JobRepository(store.database)
    request = EXAMPLES[TrainingRequest] | {"training_job_id": job_id}
    begun = from_builtins(TrainingStatus, _status(job_id, "queued", at))
    await jobs.submit(from_builtins(TrainingRequest, request), b"{}", begun, now=at - HOUR)
    await jobs.claim("worker", at - HOUR, HOUR)
    ended = from_builtins(TrainingStatus, _status(job_id, state, at) | status)
    await jobs.finish(job_id, state, ended, b"[]", at, worker="worker")


def _status(job_id, state, at):
    return {"training_job_id": job_id, "timestamp": at.isoformat(), "status": state}


async def make_model(store, job_id, at, samples=100):
    return await Models(store.database).register(
        job_id=job_id,
        base_model=BASE,
        parent=None,
        snapshot="s",
        path="/p",
        card="",
        samples=samples,
        final_reward=0.6,
        now=at,
        prefix="v",
    )


async def fill_week(store):
    """The week whose report the tests work out by hand."""
    early = START - timedelta(days=14)
    for at in range(20):  # the base, before the week
        await score(
            store,
            BASE,
            0.4,
            early,
            verified=float(at < 10),
            turns=10,
            feedback=0.0 if at < 4 else 0.5,
            lint=0.5,
            tokens=1000.0,
            pnl=-10.0,
        )
    await end_job(
        store, "job-1", "completed", START + HOUR, resource_usage=_used(3600, 3.0), **_evaluated()
    )
    assert await make_model(store, "job-1", START + HOUR) == ANSWERS
    for at in range(20):  # the model that answers
        await score(
            store,
            ANSWERS,
            0.8 if at % 2 else 0.4,
            START + timedelta(days=at // 5, hours=2),
            verified=float(at < 15),
            turns=8,
            feedback=1.0 if at < 10 else 0.25 if at < 12 else 0.5,
            lint=0.54,
            tokens=2000.0 if at < 18 else None,
            pnl=20.0 if at < 12 else -5.0,
            group="judged" if at < 3 else "g",
        )
    late = START + timedelta(days=4)
    for _ in range(2):
        await score(store, ANSWERS, 0.0, late, infra_error=True)
    await score(store, ANSWERS, 0.0, late, evaluation=True)
    await score(store, ANSWERS, 0.0, late, practice=True)
    await _roll_out(store, late)
    await end_job(
        store,
        "job-3",
        "failed",
        late,
        resource_usage=_used(1800, 1.5),
        error={"code": "OOM", "message": "no memory"},
    )
    await score(store, "after", 1.0, END)  # the next week's


async def _roll_out(store, late):
    """v1 is promoted; v2 is trained, gets traffic, and is rolled back."""
    await end_job(store, "job-2", "completed", late, resource_usage=_used(1800, 0.0))
    assert await make_model(store, "job-2", late) == BAD
    decided = late + HOUR
    await score(
        store,
        BAD,
        0.1,
        decided + HOUR,
        gateway=True,
        started=decided + timedelta(seconds=30),
        group="judged",
    )
    rollouts = RolloutRepository(store.database)
    fence, _ = await rollouts.take_over("one", START)
    promoted = {"began": START + HOUR, "ended": START + 2 * HOUR, "reason": "promoted"}
    back = {"began": late, "ended": decided, "reason": "high_error_rate", "sentence": "8 % failed."}
    await rollouts.commit(
        fence,
        DeploymentChange(
            now=late,
            rollouts=(
                RolloutRow("r-1", ANSWERS, BASE, "promoted", 1.0, msgspec.json.encode(promoted)),
                RolloutRow("r-2", BAD, ANSWERS, "rolled_back", 0.0, msgspec.json.encode(back)),
            ),
            models=(
                ModelStateChange(ANSWERS, "deployed", ("trained",), START + 2 * HOUR, 0.5),
                ModelStateChange(BAD, "rolled_back", ("trained",)),
            ),
        ),
    )
    group = JudgedGroup("w", "judged", "judge", True, "Fine.", 900, 100, 1.0)
    await OutcomeRepository(store.database).record_judgement(group, late)
    await store.database.write(
        lambda tx: tx.execute(
            "INSERT INTO judge_spend (asked_us, prompt_tokens, completion_tokens, usd) VALUES (?, 400, 100, 0.5)",
            (to_microseconds(late),),
        )
    )
    for run, model, improvement in (("val-1", ANSWERS, 0.08), ("val-2", BAD, 0.02)):
        values = (run, model, b"[]", improvement, to_microseconds(late))
        await store.database.write(
            lambda tx, values=values: tx.execute(
                "INSERT INTO validations (run_id, candidate, against, suites, state, word, sentence, improvement, "
                "started_us, ended_us) VALUES (?, ?, 'tiny', ?, 'done', 'pass', 'Better.', ?, 1, ?)",
                values,
            )
        )


def _used(seconds, usd):
    return {"total_training_time_seconds": seconds, "cost_usd": usd}


def _evaluated():
    return {"evaluation_results": {"holdout_reward": 0.6, "improvement_over_baseline": 0.1}}
