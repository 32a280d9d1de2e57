"""Hands of the data set tests: candidates out of thin air, and trajectories with rewards in a store."""

import copy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import NAMESPACE_URL, uuid4, uuid5

from hypothesis import strategies as st
from tests.support import raw, trajectory

from upswing.collect.core.admit import AdmissionLimits, admit
from upswing.contracts import Reward, TrainingRequest
from upswing.contracts.codec import from_builtins
from upswing.contracts.examples import EXAMPLES
from upswing.dataset.filtering import TrajectoryCandidate
from upswing.infra.sql.rewards import Rewards
from upswing.records import NewReward, ScoredFacts
from upswing.redact import Redactor

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NOON = datetime(2025, 12, 8, 12, tzinfo=UTC)
REDACTOR = Redactor()


def candidate(number=0, **changes):
    """A candidate that nothing speaks against."""
    made = TrajectoryCandidate(
        trajectory_id=f"t{number:05d}",
        agent_id=f"agent-{number % 8}",
        profile="main",
        domain="coding",
        task_id=f"task-{number // 8}",
        window_id="2025-12-08T12:00",
        scenario_id=f"scenario-{number // 8}",
        ended=NOON + timedelta(minutes=number),
        turns=3,
        revision=1,
        reward=0.5,
        raw_total=0.5,
        model="tiny",
        verified=float(number % 2),
    )
    return replace(made, **changes)


def crowd(count, **changes):
    """Candidates in groups of eight agents; a change may be a function of the number."""
    return [
        candidate(n, **{key: v(n) if callable(v) else v for key, v in changes.items()})
        for n in range(count)
    ]


flags = st.booleans()
scores = st.sampled_from([None, None, 0.0, 0.5, 1.0])
candidates = st.lists(
    st.builds(
        candidate,
        number=st.integers(0, 400),
        agent_id=st.sampled_from(["a", "b", "c", "d", "e", "f"]),
        domain=st.sampled_from(["coding", "research", "general"]),
        task_id=st.sampled_from(["", "x", "y", "z", "v", "w"]),
        scenario_id=st.sampled_from(["s1", "s2", "s3", "s4"]),
        infra_error=st.sampled_from([False, False, False, True]),
        evaluation=st.sampled_from([False, False, False, True]),
        opted_out=st.sampled_from([False, False, False, True]),
        seen=flags,
        reward=st.sampled_from([0.1, 0.9, 0.5, None, float("nan")]),
        profile=st.sampled_from(["main", "hacker"]),
        turns=st.integers(1, 9),
        continuous=flags,
        verified=scores,
        judged=scores,
        reported=scores,
        feedback=scores,
        pnl=st.none() | st.floats(-100, 100),
        model=st.sampled_from(["tiny", "v1", "v2", "foreign"]),
        key_id=st.sampled_from(["", "", "k1", "k2"]),
    ),
    max_size=80,
    unique_by=lambda each: each.trajectory_id,
)


def request(algorithm="grpo", *, metadata=None, **dataset):
    """A training request; keywords are of its data set."""
    tree = copy.deepcopy(EXAMPLES[TrainingRequest])
    config = tree["training_config"]
    config |= {"algorithm": algorithm}
    config["dataset"] = {"source": "local", "sample_size": 1000, **dataset}
    return from_builtins(TrainingRequest, tree | ({"metadata": metadata} if metadata else {}))


def admitted(**changes):
    return admit(raw(trajectory(**changes)), REDACTOR, AdmissionLimits()).admitted


def grouped(place, agent, **changes):
    """The trajectory of an agent in scenario `place`, whose task it is."""
    metadata = {
        "scenario_id": f"s{place}",
        "user_id": f"user-{agent}",
        **changes.pop("metadata", {}),
    }
    return admitted(
        trajectory_id=str(uuid5(NAMESPACE_URL, f"{place} {agent}")),
        agent_id=f"agent-{agent}",
        metadata=metadata,
        task_context={"task_id": f"task-{place}", **changes.pop("task_context", {})},
        **changes,
    )


async def put(store, row, *, total=0.5, score=True, judge=None, now=NOW):
    """Store a trajectory and, unless told otherwise, its reward."""
    await store.take(row, door="http", now=now, stream_seq=None, announce=False)
    if score:
        await reward(store, row, total=total, judge=judge)
    return row


async def reward(store, row, *, total=0.5, judge=None):
    """The first revision of a trajectory's reward; with a judge's score, the second too."""
    rewards = Rewards(store.database)
    found = await store.trajectory(row.trajectory_id)
    first = reward_of(row, total, 1)
    facts = ScoredFacts(row.domain, row.complexity, row.turns, None, None)
    await rewards.publish(
        [
            NewReward(
                found.seq,
                first,
                {},
                facts,
                None,
                row.agent_id,
                row.user_id or "",
                None,
                None,
                row.infra_error,
                verified=float(sum(row.agent_id.encode()) % 2),
                task_id=row.task_id,
                continuous=row.continuous,
                answers=row.answers,
            )
        ],
        cursor=found.seq,
        now=NOW,
    )
    if judge is not None:
        await rewards.revise(reward_of(row, total, 2), judge_score=judge, now=NOW)


def reward_of(row, total, revision):
    about = {
        "evaluator": "upswing",
        "evaluation_method": "automated",
        "revision": revision,
        "raw_total": total / 2,
        "model": row.model,
        "window_id": row.window_id,
        "scenario_id": row.scenario_id,
    }
    tree = EXAMPLES[Reward] | {
        "trajectory_id": row.trajectory_id,
        "reward_id": str(uuid4()),
        "total_reward": total,
        "metadata": about,
    }
    return from_builtins(Reward, tree)


async def made_model(store, job_id, model_id=None, parent=None, *, covers=0, ended=True):
    """A job, and the model that it made if it made one."""

    def unit(tx):
        tx.execute(
            "INSERT INTO jobs (job_id, state, priority, reason, request, recipe, status, failures, "
            "created_us, not_before_us, ended_us, covers_seq) VALUES (?, ?, 1, 'manual', ?, ?, ?, ?, 0, 0, ?, ?)",
            (
                job_id,
                "completed" if ended else "running",
                b"",
                b"",
                b"",
                b"",
                1 if ended else None,
                covers,
            ),
        )
        if model_id:
            tx.execute(
                "INSERT INTO models (model_id, job_id, base_model, parent, snapshot, path, card, state, "
                "samples, created_us) VALUES (?, ?, 'tiny', ?, '', '', '', 'trained', 1, 0)",
                (model_id, job_id, parent),
            )

    await store.database.write(unit)
